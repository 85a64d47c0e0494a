// Package audit counts, in the audit log of an API server, who wrote what.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Log is the path of an audit log that one API server appends to.
type Log string

// Position is where a log ended at some time, in bytes.
type Position int64

// Request is one request that the API server answered.
type Request struct {
	User, Verb                                    string
	Group, Resource, Subresource, Namespace, Name string
	Code                                          int
	At                                            time.Time
	// Object is what was sent, of those requests whose content the audit policy records.
	Object json.RawMessage
}

func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s %s/%s → %d", r.At.Format("15:04:05.000"), r.Verb, resource, r.Namespace, r.Name, r.Code)
}

// line is what is read of a line of the log.
type line struct {
	Stage, Verb string
	User        struct{ Username string }
	ObjectRef   struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	// ResponseStatus is absent of a request that the client gave up.
	ResponseStatus struct{ Code int }
	StageTimestamp time.Time
	RequestObject  json.RawMessage
}

// End is where the log ends now.
func (l Log) End() (Position, error) {
	info, err := os.Stat(string(l))
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	return Position(info.Size()), nil
}

// Since returns the requests that were answered after a position.
func (l Log) Since(from Position) ([]Request, error) {
	file, err := os.Open(string(l))
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	if _, err := file.Seek(int64(from), io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the audit log from byte %d: %w", from, err)
	}
	return parse(file)
}

// parse reads whole lines; one that is being written is left.
func parse(in io.Reader) ([]Request, error) {
	reader := bufio.NewReaderSize(in, 1<<20)
	var found []Request
	for {
		text, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the audit log: %w", err)
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("parse a line of the audit log: %w", err)
		}
		// A watch is answered from its beginning; it may not have ended yet.
		if l.Stage != "ResponseComplete" && l.Stage != "Panic" && l.Stage != "ResponseStarted" || l.Stage == "ResponseComplete" && l.Verb == "watch" {
			continue
		}
		o := l.ObjectRef
		found = append(found, Request{User: l.User.Username, Verb: l.Verb, Group: o.APIGroup, Resource: o.Resource, Subresource: o.Subresource,
			Namespace: o.Namespace, Name: o.Name, Code: l.ResponseStatus.Code, At: l.StageTimestamp, Object: l.RequestObject})
	}
}

// Writes returns those of the requests with which the user changed stored
// objects, and apart from them those that made Events. Leases and questions
// about tokens and rights are no writes. A refused write is one.
func Writes(requests []Request, user string) (writes, events []Request) {
	for _, r := range requests {
		if r.User != user {
			continue
		}
		switch r.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
		default:
			continue
		}
		switch r.Resource {
		case "leases", "tokenreviews", "subjectaccessreviews":
		case "events":
			events = append(events, r)
		default:
			writes = append(writes, r)
		}
	}
	return writes, events
}
