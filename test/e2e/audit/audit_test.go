package audit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lines = `{"stage":"RequestReceived","verb":"patch","user":{"username":"op"},"objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"op"},"objectRef":{"resource":"pods","namespace":"a","name":"p"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","user":{"username":"op"},"objectRef":{"resource":"pods","subresource":"resize","namespace":"a","name":"p"},"responseStatus":{"code":403}}
{"stage":"ResponseComplete","verb":"get","user":{"username":"op"},"objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"update","user":{"username":"op"},"objectRef":{"resource":"leases"}}
{"stage":"ResponseComplete","verb":"create","user":{"username":"op"},"objectRef":{"resource":"events","namespace":"a","name":"e"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"delete","user":{"username":"kubelet"},"objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"del`

func TestWritesAreChangesOfStoredObjectsByTheUser(t *testing.T) {
	requests, err := parse(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	writes, events := Writes(requests, "op")
	want := []Request{
		{User: "op", Verb: "patch", Resource: "pods", Namespace: "a", Name: "p", Code: 200},
		{User: "op", Verb: "patch", Resource: "pods", Subresource: "resize", Namespace: "a", Name: "p", Code: 403},
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	want = []Request{{User: "op", Verb: "create", Resource: "events", Namespace: "a", Name: "e", Code: 201}}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
