// Package kube writes child objects by server-side apply, and only when the
// write would change something.
package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"seang.org/operator/internal/naming"
)

// ErrNameConflict is returned for an object that has the name of a child and is
// controlled by somebody else. It is never adopted and never overwritten.
var ErrNameConflict = errors.New("exists and does not belong to this RedisCluster; rename or delete it")

// ErrOrphan is returned for an object that belongs to an earlier owner of the
// same name: the garbage collector is about to delete it.
var ErrOrphan = errors.New("belongs to a deleted RedisCluster of this name and is about to be deleted")

// Configuration is an apply configuration of client-go.
type Configuration interface {
	GetKind() *string
	GetNamespace() *string
	GetName() *string
}

// Applier applies the children of one owner.
type Applier struct {
	// Client reads through the cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Owner controls the children.
	Owner client.Object
	// Written remembers between passes at which version each child was last seen or
	// made as wanted, so that a cache that is behind does not lead to a second
	// write, and what has not changed is not compared again.
	Written Writes
}

// Writes holds what each child was last, by kind and name.
type Writes map[string]Write

// Write is a child as it was wanted: the hash of that and the version that has it.
type Write struct{ Hash, ResourceVersion string }

// Older says that one resource version is older than another: within one
// resource they are numbers that grow.
func Older(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// Changed tells what a call of Apply did.
type Changed string

const (
	// Unchanged: the object was as wanted; nothing was written.
	Unchanged Changed = ""
	// Created: the object did not exist.
	Created Changed = "created"
	// Updated: the object differed.
	Updated Changed = "updated"
)

// Apply brings the object to what wanted says. Current must be an empty object
// of the same kind; afterwards it holds what was found before the write, and is
// empty if there was nothing. Fields and labels of others survive. A name that
// is taken by a stranger gives ErrNameConflict.
func (a *Applier) Apply(ctx context.Context, wanted Configuration, current client.Object) (Changed, error) {
	return a.ApplyTo(ctx, wanted, current, a.Client)
}

// ApplyTo is Apply with the current object read from the given reader.
func (a *Applier) ApplyTo(ctx context.Context, wanted Configuration, current client.Object, from client.Reader) (Changed, error) {
	text, err := json.Marshal(wanted)
	if err != nil {
		return Unchanged, fmt.Errorf("encode %T: %w", wanted, err)
	}
	key := client.ObjectKey{Namespace: *wanted.GetNamespace(), Name: *wanted.GetName()}
	what, stamp := *wanted.GetKind()+" "+key.String(), stampOf(text)
	found, err := a.read(ctx, from, key, current)
	if err != nil {
		return Unchanged, fmt.Errorf("read %s: %w", what, err)
	}
	version := current.GetResourceVersion()
	if last := a.Written[what]; found && last.Hash == stamp && (version == last.ResourceVersion || Older(version, last.ResourceVersion)) {
		return Unchanged, nil
	}
	desired, err := stamped(text, stamp)
	if err != nil {
		return Unchanged, fmt.Errorf("decode %s: %w", what, err)
	}
	if !found {
		return Created, a.write(ctx, desired, what, stamp, false)
	}
	if err := a.taken(current); err != nil {
		return Unchanged, fmt.Errorf("%s %w", what, err)
	}
	same, err := contains(current, desired)
	if err != nil {
		return Unchanged, fmt.Errorf("compare %s: %w", what, err)
	}
	if same {
		a.Written[what] = Write{Hash: stamp, ResourceVersion: version}
		return Unchanged, nil
	}
	// The UID makes the write fail, rather than create, if the object was
	// replaced since it was read.
	desired.SetUID(current.GetUID())
	desired.SetResourceVersion(a.pinned(from, version))
	return Updated, a.write(ctx, desired, what, stamp, true)
}

// pinned is the version that an object must have to be written; empty for any. What is
// read otherwise than through the cache is what the wanted one was made from: if another
// wrote it since, it must be made anew.
func (a *Applier) pinned(from client.Reader, version string) string {
	if from == a.Client {
		return ""
	}
	return version
}

// taken says who has the object if the owner has not.
func (a *Applier) taken(current client.Object) error {
	other := metav1.GetControllerOf(current)
	switch {
	case metav1.IsControlledBy(current, a.Owner):
		return nil
	case other != nil && other.Name == a.Owner.GetName() && a.isOwnKind(other):
		return ErrOrphan
	}
	return ErrNameConflict
}

func (a *Applier) isOwnKind(reference *metav1.OwnerReference) bool {
	kind, err := apiutil.GVKForObject(a.Owner, a.Client.Scheme())
	return err == nil && reference.APIVersion == kind.GroupVersion().String() && reference.Kind == kind.Kind
}

// read gets the object from the reader, and live if it is not there or not
// ours: the cache holds only objects with our label, and may be behind.
func (a *Applier) read(ctx context.Context, from client.Reader, key client.ObjectKey, current client.Object) (bool, error) {
	empty := reflect.Zero(reflect.TypeOf(current).Elem())
	err := from.Get(ctx, key, current)
	if from != a.Live && (apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(current, a.Owner)) {
		reflect.ValueOf(current).Elem().Set(empty)
		err = a.Live.Get(ctx, key, current)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (a *Applier) write(ctx context.Context, desired *unstructured.Unstructured, what, stamp string, force bool) error {
	options := []client.ApplyOption{client.FieldOwner(naming.FieldOwner)}
	if force {
		options = append(options, client.ForceOwnership)
	}
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), options...); err != nil {
		return fmt.Errorf("apply %s: %w", what, err)
	}
	a.Written[what] = Write{Hash: stamp, ResourceVersion: desired.GetResourceVersion()}
	return nil
}

// stampOf is the hash of what is wanted, as JSON.
func stampOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// stamped turns what is wanted into unstructured form with an annotation that
// holds its hash: a field that is no longer wanted changes the hash, where a
// comparison with the live object would not show it.
func stamped(text []byte, stamp string) (*unstructured.Unstructured, error) {
	desired := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &desired.Object); err != nil {
		return nil, err
	}
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[naming.AnnotationApplied] = stamp
	desired.SetAnnotations(annotations)
	return desired, nil
}

// contains says that every field of desired has the same value in current.
func contains(current client.Object, desired *unstructured.Unstructured) (bool, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
	if err != nil {
		return false, err
	}
	for field, value := range desired.Object {
		// Typed objects read through a client have no kind.
		if field != "kind" && field != "apiVersion" && !subset(value, have[field]) {
			return false, nil
		}
	}
	return true, nil
}

// subset says that have holds everything that want does: maps may have more
// keys, and lists of named things more elements, since those merge; other lists
// must be equal.
func subset(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return len(want) == 0
		}
		for key, value := range want {
			if have[key] == nil && (key == "apiVersion" || key == "kind") {
				continue // Typed objects drop the kind of what they embed, too.
			}
			if !subset(value, have[key]) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		return (ok || len(want) == 0) && subsetList(want, have)
	case nil:
		return true
	}
	return want == have
}

func subsetList(want, have []any) bool {
	if len(have) != len(want) && !named(want) {
		return false
	}
	next := 0
	for _, element := range want {
		for next < len(have) && !subset(element, have[next]) {
			next++
		}
		if next == len(have) {
			return false
		}
		next++
	}
	return true
}

// named says that the elements merge by a key.
func named(list []any) bool {
	for _, element := range list {
		fields, ok := element.(map[string]any)
		if !ok || (fields["name"] == nil && fields["uid"] == nil) {
			return false
		}
	}
	return len(list) > 0
}
