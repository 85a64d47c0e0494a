package controllers_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/admin"
)

// kinds of which a RedisCluster has children, itself the last.
var kinds = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Secret"),
	corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	corev1.SchemeGroupVersion.WithKind("Pod"),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	certificateGVK,
	v1alpha1.GroupVersion.WithKind("RedisCluster"),
}

func listAll(ctx context.Context, c client.Client, namespace string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := c.List(ctx, list, client.InNamespace(namespace))
		if kind == certificateGVK && meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, list.Items...)
	}
	return all, nil
}

// volatile are the fields that differ between two clusters that are the same: names
// of moments, of processes and of addresses.
var volatile = [][]string{
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"},
	{"metadata", "managedFields"}, {"metadata", "annotations", naming.AnnotationApplied}, {"metadata", "annotations", naming.AnnotationRestartedAt},
	{"metadata", "annotations", naming.AnnotationRetry}, {"metadata", "annotations", naming.AnnotationTLS}, {"metadata", "annotations", naming.AnnotationRecord},
	{"spec", "clusterIP"}, {"spec", "clusterIPs"},
	{"status", "podIP"}, {"status", "podIPs"}, {"status", "startTime"}, {"status", "containerStatuses"}, {"status", "observedGeneration"},
	{"status", "lastSyncTimestamp"}, {"status", "record", "epoch"}, {"status", "record", "replicationID"},
	{"status", "record", "forkID"}, {"status", "record", "forkOffset"},
}

// certificateFile is the name of a file that is called after its content.
var certificateFile = regexp.MustCompile(`[0-9a-f]{16}\.pem`)

var restartedAt = regexp.MustCompile(`\\"restartedAt\\":\\"[0-9a-f]+\\",?`)

// normalised is the state of a namespace as text, with the primary named for its role:
// which pod that is may differ.
func normalised(ctx context.Context, c client.Client, namespace string, cluster *v1alpha1.RedisCluster) (string, error) {
	all, err := listAll(ctx, c, namespace)
	if err != nil {
		return "", err
	}
	names := []string{namespace, "NAMESPACE"}
	if cluster.Status.Primary != "" {
		names = append(names, cluster.Status.Primary, "PRIMARY")
		replicas := 0
		for ordinal := range 1 + int(cluster.Spec.Replicas) {
			if name := naming.Pod(cluster.Name, ordinal); name != cluster.Status.Primary {
				names = append(names, name, fmt.Sprintf("REPLICA-%d", replicas))
				replicas++
			}
		}
	}
	rename := strings.NewReplacer(names...)
	var texts []string
	for i := range all {
		text, err := json.MarshalIndent(strip(&all[i], rename), "", "  ")
		if err != nil {
			return "", err
		}
		texts = append(texts, rename.Replace(restartedAt.ReplaceAllString(string(text), "")))
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n"), nil
}

func strip(object *unstructured.Unstructured, rename *strings.Replacer) map[string]any {
	content := object.Object
	for _, path := range volatile {
		unstructured.RemoveNestedField(content, path...)
	}
	for _, owner := range object.GetOwnerReferences() {
		owner.UID = ""
		unstructured.RemoveNestedField(content, "metadata", "ownerReferences")
		_ = unstructured.SetNestedField(content, owner.Kind+" "+owner.Name, "metadata", "owner")
	}
	if object.GetKind() == "RedisCluster" {
		unstructured.RemoveNestedField(content, "spec") // What was asked, not what came of it.
	}
	if object.GetKind() == "Service" {
		withoutNodePorts(content)
	}
	if object.GetKind() == "Secret" {
		data, _, _ := unstructured.NestedMap(content, "data")
		content["data"] = certificateFile.ReplaceAllString(fmt.Sprint(slices.Sorted(maps.Keys(data))), "HASH.pem")
	}
	if conditions, found, _ := unstructured.NestedSlice(content, "status", "conditions"); found {
		var short []string
		for _, c := range conditions {
			c := c.(map[string]any)
			short = append(short, fmt.Sprint(c["type"], "=", c["status"], " ", c["reason"]))
		}
		_ = unstructured.SetNestedField(content, fmt.Sprint(short), "status", "conditions")
	}
	if record, found, _ := unstructured.NestedMap(content, "status", "record"); found {
		var holders []string
		for _, h := range record["mayHold"].([]any) {
			holders = append(holders, fmt.Sprint(rename.Replace(h.(map[string]any)["pod"].(string)), " in sync: ", h.(map[string]any)["inSync"]))
		}
		slices.Sort(holders)
		record["mayHold"] = fmt.Sprint(holders)
		record["primary"] = record["primary"].(map[string]any)["pod"]
		_ = unstructured.SetNestedField(content, record, "status", "record")
	}
	return content
}

// withoutNodePorts says only that there are some: the API server chooses them.
func withoutNodePorts(service map[string]any) {
	ports, _, _ := unstructured.NestedSlice(service, "spec", "ports")
	for _, port := range ports {
		if port := port.(map[string]any); port["nodePort"] != nil {
			port["nodePort"] = "some"
		}
	}
	_ = unstructured.SetNestedSlice(service, ports, "spec", "ports")
}

// redisAt connects as an application does.
func redisAt(ip, password string) (rueidis.Client, error) {
	return redisAs(naming.UserDefault, ip, password)
}

// redisAs connects as a user, with TLS where there is no other way. Who the process is,
// the tests of TLS ask.
func redisAs(user, ip, password string) (rueidis.Client, error) {
	options := rueidis.ClientOption{
		InitAddress: []string{admin.Address(ip, false)}, Username: user, Password: password,
		ForceSingleClient: true, AlwaysPipelining: true, PipelineMultiplex: -1, DisableRetry: true, DisableCache: true, ConnWriteTimeout: 3 * time.Second}
	conn, err := net.Dial("tcp", options.InitAddress[0])
	if errors.Is(err, syscall.ECONNREFUSED) {
		options.InitAddress, options.TLSConfig = []string{admin.Address(ip, true)}, &tls.Config{InsecureSkipVerify: true}
	}
	if err == nil {
		_ = conn.Close()
	}
	return rueidis.NewClient(options)
}

// writer writes to the primary all the time, as a client does that reconnects, and
// notes what was acknowledged.
type writer struct {
	client    client.Client
	namespace string
	interval  time.Duration

	mu    sync.Mutex // held while a write is under way
	next  int
	acked []string
}

// How often a writer writes: where a primary hands over, so often that a write comes at
// each moment of it.
const (
	writeInterval = 10 * time.Millisecond
	fastInterval  = 200 * time.Microsecond
)

func (w *writer) start(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			w.connectAndWrite(t.Context())
		}
	}()
	t.Cleanup(func() { <-done })
}

func (w *writer) connectAndWrite(ctx context.Context) {
	defer time.Sleep(writeInterval)
	service, pod := &corev1.Service{}, &corev1.Pod{}
	if w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: naming.PrimaryService("cache")}, service) != nil {
		return
	}
	name := service.Spec.Selector[naming.LabelPodName]
	if w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, pod) != nil || pod.Status.PodIP == "" {
		return
	}
	secret := &corev1.Secret{}
	if w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: naming.AppSecret("cache")}, secret) != nil {
		return
	}
	conn, err := redisAt(pod.Status.PodIP, string(secret.Data[naming.KeyPassword]))
	if err != nil {
		return
	}
	defer conn.Close()
	for w.writeOne(ctx, conn) == nil {
		time.Sleep(w.interval)
	}
}

func (w *writer) writeOne(ctx context.Context, conn rueidis.Client) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	key := fmt.Sprintf("write:%d", w.next)
	err := conn.Do(ctx, conn.B().Set().Key(key).Value("written").Build()).Error()
	if err == nil {
		w.acked = append(w.acked, key)
	}
	return err
}

// pause waits for the write that is under way, and returns what was acknowledged since
// the last time; the writer goes on with resume.
func (w *writer) pause() (acked []string, resume func()) {
	w.mu.Lock()
	acked, w.acked = w.acked, nil
	return acked, w.mu.Unlock
}

// memberState checks one member: its role, and that it has the keys.
func memberState(ctx context.Context, pod *corev1.Pod, password string, keys []string) (role string, err error) {
	conn, err := redisAt(pod.Status.PodIP, password)
	if err != nil {
		return "", fmt.Errorf("%s: %w", pod.Name, err)
	}
	defer conn.Close()
	words, err := conn.Do(ctx, conn.B().Role().Build()).ToArray()
	if err != nil {
		return "", fmt.Errorf("ROLE of %s: %w", pod.Name, err)
	}
	if role, err = words[0].ToString(); err != nil || len(keys) == 0 {
		return role, err
	}
	have, err := conn.Do(ctx, conn.B().Mget().Key(keys...).Build()).ToArray()
	if err != nil {
		return role, fmt.Errorf("MGET of %s: %w", pod.Name, err)
	}
	var missing []string
	for i, value := range have {
		if value.IsNil() {
			missing = append(missing, keys[i])
		}
	}
	if len(missing) > 0 {
		return role, fmt.Errorf("%s lacks %d of %d keys that were acknowledged: %v", pod.Name, len(missing), len(keys), missing[:min(5, len(missing))])
	}
	return role, nil
}

// members checks every pod of the cluster: one primary, that of status, Service and label;
// the record speaks of living pods alone; and every key is everywhere.
func (l *lane) members(ctx context.Context, cluster *v1alpha1.RedisCluster, pods map[string]*corev1.Pod, keys []string) error {
	if len(pods) != 1+int(cluster.Spec.Replicas) {
		return fmt.Errorf("%d pods", len(pods))
	}
	service := &corev1.Service{}
	if err := l.client.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: naming.PrimaryService(cluster.Name)}, service); err != nil {
		return err
	}
	if selected := service.Spec.Selector[naming.LabelPodName]; selected != cluster.Status.Primary {
		return fmt.Errorf("the Service selects %s, and the primary is %s", selected, cluster.Status.Primary)
	}
	var problems []error
	for name, pod := range pods {
		want, label := "slave", naming.RoleReplica
		if name == cluster.Status.Primary {
			want, label = "master", naming.RolePrimary
		}
		role, err := memberState(ctx, pod, l.password, keys)
		if err == nil && (role != want || pod.Labels[naming.LabelRole] != label) {
			err = fmt.Errorf("%s is %s with the label %q, want %s", name, role, pod.Labels[naming.LabelRole], want)
		}
		problems = append(problems, err)
	}
	for _, h := range cluster.Status.Record.MayHold {
		if pod := pods[h.Pod]; pod == nil || pod.UID != h.PodUID {
			problems = append(problems, fmt.Errorf("the record names the holder %v, which has no pod", h))
		}
	}
	return errors.Join(problems...)
}

// hasPolicy checks the policy that a process has in force.
func (l *lane) hasPolicy(pod *corev1.Pod, policy string) error {
	conn, err := redisAt(pod.Status.PodIP, l.password)
	if err != nil {
		return err
	}
	defer conn.Close()
	info, err := conn.Do(l.t.Context(), conn.B().Info().Section("memory").Build()).ToString()
	return errors.Join(err, pending(!strings.Contains(info, "maxmemory_policy:"+policy+"\r"), "%s has another policy", pod.Name))
}
