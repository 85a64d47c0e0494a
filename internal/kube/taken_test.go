package kube

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"seang.org/operator/api/v1alpha1"
)

// behind is a cache that still has an object.
type behind struct {
	client.Reader
	secret *corev1.Secret
}

func (b behind) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	b.secret.DeepCopyInto(object.(*corev1.Secret))
	return nil
}

func TestApplyOfANameThatIsTaken(t *testing.T) {
	ownedBy := func(kind, name string, uid types.UID) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "cache-app", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: new(true)}}}}
	}
	stranger := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "cache-app"}}
	for name, tc := range map[string]struct {
		cached, live *corev1.Secret
		want         Changed
		wantErr      error
	}{
		"a stranger's object is never adopted":                        {cached: stranger, live: stranger, wantErr: ErrNameConflict},
		"that of another RedisCluster is a stranger's":                {cached: ownedBy("RedisCluster", "other", "9"), live: ownedBy("RedisCluster", "other", "9"), wantErr: ErrNameConflict},
		"that of an owner of another kind is a stranger's":            {cached: ownedBy("Cache", "cache", "9"), live: ownedBy("Cache", "cache", "9"), wantErr: ErrNameConflict},
		"that of a deleted RedisCluster of the name goes by itself":   {cached: ownedBy("RedisCluster", "cache", "0"), live: ownedBy("RedisCluster", "cache", "0"), wantErr: ErrOrphan},
		"one that is gone, which the cache does not know, is created": {cached: ownedBy("RedisCluster", "cache", "0"), want: Created},
		"one that was created since is ours":                          {cached: ownedBy("RedisCluster", "cache", "0"), live: ownedBy("RedisCluster", "cache", "1"), want: Updated},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.live != nil {
				builder.WithObjects(tc.live.DeepCopy())
			}
			api := builder.Build()
			owner := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "cache", UID: "1"}}
			applier := &Applier{Client: api, Live: api, Owner: owner, Written: Writes{}}
			wanted := corev1ac.Secret("cache-app", "test").WithStringData(map[string]string{"a": "1"}).WithOwnerReferences(metav1ac.OwnerReference().
				WithAPIVersion(v1alpha1.GroupVersion.String()).WithKind("RedisCluster").WithName("cache").WithUID("1").WithController(true))
			got, err := applier.ApplyTo(t.Context(), wanted, &corev1.Secret{}, behind{secret: tc.cached})
			if got != tc.want || !errors.Is(err, tc.wantErr) {
				t.Errorf("applied: %q, %v; want %q, %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
