package v1alpha1

// AuthSpec says how applications log in.
type AuthSpec struct {
	// secretName names a Secret of the same namespace whose key "password"
	// (16 to 512 printable characters) is the password of the user "default".
	// Unset, a password is generated.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="auth.secretName must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret with the password",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	SecretName string `json:"secretName,omitempty"`

	// users are further users of applications, each with rights of its own. How to
	// connect as one stands in the Secret NAME-user-USER.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Users",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Users []UserSpec `json:"users,omitempty"`

	// overlapSeconds is how long an old password of an application still works once
	// the new one does, 0 to 86400: applications that mount a Secret get the new one up
	// to two minutes late. So long they are also told of another CA before members show
	// certificates of it. Unset, it is 180.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Seconds that an old password still works",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	OverlapSeconds *int32 `json:"overlapSeconds,omitempty"`

	// rotateSystemAfterHours is how old the passwords of the operator and of the
	// replication may become before they are replaced, 1 to 8760. Unset, that is done on
	// request only: docs/credentials.md.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8760
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Hours after which the system's passwords are replaced",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced","urn:alm:descriptor:com.tectonic.ui:number"}
	RotateSystemAfterHours int32 `json:"rotateSystemAfterHours,omitempty"`
}

// UserSpec is a user of applications.
type UserSpec struct {
	// name of the user: up to 32 lower-case letters, digits and '-'.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a user must be lower-case letters, digits and '-', and begin and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['default', 'operator', 'replication', 'system'])",message="the names default, operator, replication and system are taken: choose another name"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name,omitempty"`

	// rules are Redis ACL rules about commands, keys and channels, for example
	// "~app:* +@read +@write". No category brings what is in @admin, @dangerous or
	// @scripting, unless that is named too; what could undo what the operator does is
	// refused. Passwords come from Secrets only.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\x00-\\x1f\\x7f]*$')",message="the rules of a user must be one line without control characters"
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *([(]?([+-]@?[A-Za-z0-9._|-]+|~[^ ]+|%(R|W|RW|WR)~[^ ]+|&[^ ]+|allkeys|allchannels|allcommands|nocommands)[)]? *( |$))+$')",message="the rules of a user may have +command, -command, +@category, -@category, ~keys, %R~keys, %W~keys, &channels, allkeys, allchannels, allcommands, nocommands and (selectors) only: passwords come from Secrets"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="ACL rules",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Rules string `json:"rules,omitempty"`

	// secretName names a Secret of the same namespace whose key "password"
	// (16 to 512 printable characters) is the user's password. Unset, a password is
	// generated.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="the secretName of a user must be the name of a Secret: lower-case letters, digits, '-' and '.'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Secret with the password",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	SecretName string `json:"secretName,omitempty"`
}
