package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"seang.org/operator/test/e2e/kubeapi"
)

// installation is what a person applies to install through OLM.
const installation = "catalog/install.yaml"

// install does as a person does who has a Kubernetes with OLM: CatalogSource,
// OperatorGroup, Subscription.
func (d *demo) install(ctx context.Context) error {
	if err := errors.Join(operatorsv1.AddToScheme(d.api.Scheme()), operatorsv1alpha1.AddToScheme(d.api.Scheme())); err != nil {
		return fmt.Errorf("register OLM's kinds: %w", err)
	}
	objects, err := d.readInstallation()
	if err != nil {
		return err
	}
	if err := d.uninstall(ctx, objects); err != nil {
		return err
	}
	began := d.screen.clock.Now()
	for _, object := range objects {
		if err := d.api.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	d.screen.command(fmt.Sprintf("kubectl apply -f %s # with the image %s", installation, d.catalog))
	installed, err := d.awaitInstalled(ctx)
	if err != nil {
		return err
	}
	if err := d.api.AwaitOperator(ctx); err != nil {
		return err
	}
	d.screen.result("CatalogSource, Subscription → "+installed+" Succeeded", "%s", seconds(d.screen.clock.Since(began)))
	return nil
}

// readInstallation reads the objects, with the image of the catalog that is shown.
func (d *demo) readInstallation() ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(installation)
	if err != nil {
		return nil, fmt.Errorf("read what installs: %w", err)
	}
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			return nil, fmt.Errorf("read %s: %w", installation, err)
		}
		if object.GetKind() == operatorsv1alpha1.CatalogSourceKind {
			if err := unstructured.SetNestedField(object.Object, d.catalog, "spec", "image"); err != nil {
				return nil, fmt.Errorf("set the image of the catalog: %w", err)
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// uninstall removes the operator of an earlier run with its permissions, and the catalog,
// so that what is served now is installed, with what its bundle asks for and no more.
// RedisClusters stay.
func (d *demo) uninstall(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if kind := object.GetKind(); kind != operatorsv1alpha1.SubscriptionKind && kind != operatorsv1alpha1.CatalogSourceKind {
			continue
		}
		if err := d.api.Delete(ctx, object.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove %s %s of an earlier run: %w", object.GetKind(), object.GetName(), err)
		}
	}
	inNamespace := client.InNamespace(kubeapi.OperatorNamespace)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: kubeapi.OperatorDeployment}}
	if err := d.api.Delete(ctx, deployment); err == nil {
		d.screen.line("removing the operator of an earlier run; every Redis stays")
	}
	err := errors.Join(d.api.DeleteAllOf(ctx, &operatorsv1alpha1.ClusterServiceVersion{}, inNamespace),
		d.api.DeleteAllOf(ctx, &operatorsv1alpha1.InstallPlan{}, inNamespace))
	if err != nil {
		return fmt.Errorf("remove the operator of an earlier run: %w", err)
	}
	if err := d.api.AwaitGone(ctx, deployment); err != nil {
		return err
	}
	return d.api.RevokeDeployed(ctx)
}

// awaitInstalled shows what OLM says until the operator is installed, and returns the
// name of its ClusterServiceVersion.
func (d *demo) awaitInstalled(ctx context.Context) (string, error) {
	subscription := &operatorsv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: "redis-operator"}}
	name := ""
	err := kubeapi.Await(ctx, d.api, subscription, func(now *operatorsv1alpha1.Subscription) (bool, error) {
		name = now.Status.InstalledCSV
		return name != "", nil
	})
	if err != nil {
		return "", err
	}
	d.screen.line("%s", columns("CSV", "PHASE"))
	csv := &operatorsv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kubeapi.OperatorNamespace, Name: name}}
	var shown operatorsv1alpha1.ClusterServiceVersionPhase
	err = kubeapi.Await(ctx, d.api, csv, func(now *operatorsv1alpha1.ClusterServiceVersion) (bool, error) {
		if now.Status.Phase != shown {
			shown = now.Status.Phase
			d.screen.line("%s  %s", now.Name, shown)
		}
		return shown == operatorsv1alpha1.CSVPhaseSucceeded, nil
	})
	if err != nil {
		return "", fmt.Errorf("%w: phase %q, see docs/olm.md", err, shown)
	}
	return name, nil
}
