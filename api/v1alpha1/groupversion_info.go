// Package v1alpha1 is the API of the Redis operator: the RedisCluster kind of
// the group cache.seang.org.
// +kubebuilder:object:generate=true
// +groupName=cache.seang.org
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is cache.seang.org/v1alpha1.
	GroupVersion = schema.GroupVersion{Group: "cache.seang.org", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds of this package with a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &RedisCluster{}, &RedisClusterList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
