package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"seang.org/operator/test/registry"
)

// bundle is what OLM installs of a release: its ClusterServiceVersion, and manifests
// that it applies as they are, by file name.
type bundle struct {
	csv   *operatorsv1alpha1.ClusterServiceVersion
	files map[string][]byte
}

// newBundle makes the bundle of a release from its config/default, as its sources have
// it: releases from before there was a bundle have one too.
func newBundle(manifests []byte, r Release) (*bundle, error) {
	b := &bundle{files: map[string][]byte{}, csv: &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorsv1alpha1.SchemeGroupVersion.String(), Kind: operatorsv1alpha1.ClusterServiceVersionKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "placeholder"},
	}}
	spec := &b.csv.Spec
	spec.DisplayName, spec.Description, spec.MinKubeVersion = "Redis Operator", r.Changes, "1.35.0"
	spec.InstallStrategy.StrategyName = operatorsv1alpha1.InstallStrategyNameDeployment
	if err := b.release(r); err != nil {
		return nil, err
	}
	for _, mode := range []operatorsv1alpha1.InstallModeType{
		operatorsv1alpha1.InstallModeTypeOwnNamespace, operatorsv1alpha1.InstallModeTypeSingleNamespace,
		operatorsv1alpha1.InstallModeTypeMultiNamespace, operatorsv1alpha1.InstallModeTypeAllNamespaces,
	} {
		spec.InstallModes = append(spec.InstallModes, operatorsv1alpha1.InstallMode{Type: mode, Supported: true})
	}
	for document := range strings.SplitSeq(string(manifests), "\n---\n") {
		if err := b.add([]byte(document), r); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// add puts one manifest where it belongs: what the operator runs as and may do into
// the ClusterServiceVersion, the rest beside it. Bindings and accounts are OLM's.
func (b *bundle) add(document []byte, r Release) error {
	var object metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &object); err != nil {
		return fmt.Errorf("read a manifest of release %s: %w", r.Version, err)
	}
	install := &b.csv.Spec.InstallStrategy.StrategySpec
	var err error
	switch object.Kind {
	case "Namespace", "ServiceAccount", "RoleBinding", "ClusterRoleBinding":
	case "Deployment":
		var deployment appsv1.Deployment
		if err = yaml.Unmarshal(document, &deployment); err == nil {
			watchTargets(&deployment, r)
			install.DeploymentSpecs = append(install.DeploymentSpecs, operatorsv1alpha1.StrategyDeploymentSpec{
				Name: deployment.Name, Label: deployment.Labels, Spec: deployment.Spec})
		}
	case "Role", "ClusterRole":
		err = b.addRole(document, object)
	case "CustomResourceDefinition":
		var crd apiextensionsv1.CustomResourceDefinition
		if err = yaml.Unmarshal(document, &crd); err == nil {
			b.csv.Spec.CustomResourceDefinitions.Owned = append(b.csv.Spec.CustomResourceDefinitions.Owned, operatorsv1alpha1.CRDDescription{
				Name: crd.Name, Kind: crd.Spec.Names.Kind, Version: crd.Spec.Versions[0].Name, DisplayName: crd.Spec.Names.Kind,
				Description: "One primary and its read replicas."})
			b.files[fileName(object)] = document
		}
	default:
		var plain map[string]any
		if err = yaml.Unmarshal(document, &plain); err != nil {
			break
		}
		if meta, ok := plain["metadata"].(map[string]any); ok {
			delete(meta, "namespace") // OLM's to choose
		}
		b.files[fileName(object)], err = yaml.Marshal(plain)
	}
	if err != nil {
		return fmt.Errorf("read %s %s of release %s: %w", object.Kind, object.Name, r.Version, err)
	}
	return nil
}

// addRole grants the operator's own roles to its account; those for users lie beside.
func (b *bundle) addRole(document []byte, object metav1.PartialObjectMetadata) error {
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(document, &role); err != nil {
		return err
	}
	install := &b.csv.Spec.InstallStrategy.StrategySpec
	granted := operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: accountName, Rules: role.Rules}
	switch {
	case object.Kind == "Role":
		install.Permissions = append(install.Permissions, granted)
	case strings.HasSuffix(role.Name, "manager-role"), strings.HasSuffix(role.Name, "metrics-auth-role"):
		install.ClusterPermissions = append(install.ClusterPermissions, granted)
	default:
		b.files[fileName(object)] = document
	}
	return nil
}

func fileName(object metav1.PartialObjectMetadata) string {
	return strings.ToLower(object.Name + "_" + object.Kind + ".yaml")
}

// watchTargets lets the operator of a release watch the namespaces of its
// OperatorGroup, under the image of its version.
func watchTargets(deployment *appsv1.Deployment, r Release) {
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Image = registry.Operator + ":" + r.tag()
	for i := range container.Env {
		if container.Env[i].Name == "WATCH_NAMESPACE" {
			container.Env[i] = corev1.EnvVar{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
				FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"}}}
		}
	}
}

// labels are those of the bundle's image, and its annotations.yaml.
func labels(channels []string) map[string]string {
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1": "registry+v1", prefix + "manifests.v1": "manifests/", prefix + "metadata.v1": "metadata/",
		prefix + "package.v1": packageName, prefix + "channels.v1": strings.Join(channels, ","),
		prefix + "channel.default.v1": defaultChannel,
	}
}

// write makes the directory of the bundle.
func (b *bundle) write(dir string, r Release) error {
	csv, err := yaml.Marshal(b.csv)
	if err != nil {
		return fmt.Errorf("write the ClusterServiceVersion of release %s: %w", r.Version, err)
	}
	annotations, err := yaml.Marshal(map[string]any{"annotations": labels(r.Channels)})
	if err != nil {
		return fmt.Errorf("write the annotations of release %s: %w", r.Version, err)
	}
	files := map[string][]byte{"metadata/annotations.yaml": annotations, "manifests/" + packageName + csvSuffix: csv}
	for name, content := range b.files {
		files["manifests/"+name] = content
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make the bundle of release %s: %w", r.Version, err)
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return fmt.Errorf("make the bundle of release %s: %w", r.Version, err)
		}
	}
	return nil
}

// describe reads the bundle that make bundle wrote, and makes one for releases from
// before there was one.
func (b builder) describe(ctx context.Context, r Release, source string) (*bundle, error) {
	if dir := filepath.Join(source, "bundle/manifests"); exists(dir) {
		return shipped(dir, r)
	}
	manifests, err := run(ctx, "go", "tool", "-modfile=tools/go.mod", "kustomize", "build", filepath.Join(source, "config/default"))
	if err != nil {
		return nil, err
	}
	return newBundle(manifests, r)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// shipped is the bundle that make bundle wrote, under the version of a release.
func shipped(dir string, r Release) (*bundle, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the bundle %s: %w", dir, err)
	}
	b := &bundle{files: map[string][]byte{}}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the bundle: %w", err)
		}
		if !strings.HasSuffix(file, csvSuffix) {
			b.files[filepath.Base(file)] = content
			continue
		}
		b.csv = &operatorsv1alpha1.ClusterServiceVersion{}
		if err := yaml.Unmarshal(content, b.csv); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
	}
	if b.csv == nil {
		return nil, fmt.Errorf("%s has no *%s: run make bundle", dir, csvSuffix)
	}
	return b, b.release(r)
}

// release gives the bundle the name and version of a release.
func (b *bundle) release(r Release) error {
	b.csv.Name = r.csvName()
	if err := b.csv.Spec.Version.UnmarshalJSON([]byte(`"` + r.Version + `"`)); err != nil {
		return fmt.Errorf("version %s: %w", r.Version, err)
	}
	return nil
}

// csvSuffix ends the name of the file with the ClusterServiceVersion.
const csvSuffix = ".clusterserviceversion.yaml"

// bundle makes the directory of a release's bundle.
func (b builder) bundle(ctx context.Context, r Release, source string) (string, error) {
	made, err := b.describe(ctx, r, source)
	if err != nil {
		return "", err
	}
	if r.breakIt != nil {
		r.breakIt(made)
	}
	dir := filepath.Join(b.scratch, "bundle-"+r.tag())
	return dir, made.write(dir, r)
}
