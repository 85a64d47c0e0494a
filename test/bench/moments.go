package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/naming"
	"seang.org/operator/test/e2e/audit"
	"seang.org/operator/test/e2e/kubeapi"
)

// runningAt is when the API server had answered the kubelet's status patch that
// reports the last of the pods' containers running: for each pod the first such
// patch counts. It fails unless each of the pods runs.
func runningAt(requests []audit.Request, pods []string) (time.Time, error) {
	first := map[string]time.Time{}
	for _, r := range requests {
		if r.Resource != "pods" || r.Subresource != "status" || !strings.HasPrefix(r.User, "system:node:") || r.Code >= http.StatusMultipleChoices {
			continue
		}
		runs, err := saysRunning(r)
		if err != nil {
			return time.Time{}, err
		}
		if _, known := first[r.Name]; runs && !known {
			first[r.Name] = r.At
		}
	}
	var last time.Time
	for _, pod := range pods {
		at, known := first[pod]
		if !known {
			return time.Time{}, fmt.Errorf("the audit log does not show that pod %s runs", pod)
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

// saysRunning says that a status patch reports the pod's first container running.
func saysRunning(r audit.Request) (bool, error) {
	var sent struct{ Status corev1.PodStatus }
	if err := json.Unmarshal(r.Object, &sent); err != nil {
		return false, fmt.Errorf("read the status of pod %s in the audit log: %w", r.Name, err)
	}
	containers := sent.Status.ContainerStatuses
	return len(containers) > 0 && containers[0].State.Running != nil, nil
}

// readyAt is when the API server had answered the first update of the status of
// a RedisCluster with Ready=True.
func readyAt(requests []audit.Request, cluster string) (time.Time, error) {
	for _, r := range requests {
		if r.User != kubeapi.OperatorUser || r.Resource != "redisclusters" || r.Subresource != "status" || r.Name != cluster || r.Code >= http.StatusMultipleChoices {
			continue
		}
		var sent v1alpha1.RedisCluster
		if err := json.Unmarshal(r.Object, &sent); err != nil {
			return time.Time{}, fmt.Errorf("read the status of RedisCluster %s in the audit log: %w", cluster, err)
		}
		if kubeapi.IsReady(&sent) {
			return r.At, nil
		}
	}
	return time.Time{}, fmt.Errorf("the audit log does not show that RedisCluster %s is Ready", cluster)
}

// firstChildWrite is how long after the answer to the change of a spec the
// operator's first write of another object was answered. The requests begin with
// the change of an idle cluster.
func firstChildWrite(requests []audit.Request, cluster string) (time.Duration, error) {
	changed := slices.IndexFunc(requests, func(r audit.Request) bool {
		return r.User != kubeapi.OperatorUser && r.Resource == "redisclusters" && r.Subresource == "" && r.Name == cluster &&
			(r.Verb == "patch" || r.Verb == "update")
	})
	writes, _ := audit.Writes(requests, kubeapi.OperatorUser)
	child := slices.IndexFunc(writes, func(r audit.Request) bool { return r.Resource != "redisclusters" })
	if changed < 0 || child < 0 {
		return 0, fmt.Errorf("the audit log does not show that the spec of RedisCluster %s changed and the operator wrote a child then", cluster)
	}
	return writes[child].At.Sub(requests[changed].At), nil
}

// conflicts are the writes that were refused because the object had changed.
func conflicts(writes []audit.Request) int {
	count := 0
	for _, r := range writes {
		if r.Code == http.StatusConflict {
			count++
		}
	}
	return count
}

// members are the names of the pods of a StatefulSet of 1 + replicas pods.
func members(statefulSet string) []string {
	var names []string
	for i := range replicas + 1 {
		names = append(names, naming.Pod(statefulSet, i))
	}
	return names
}
