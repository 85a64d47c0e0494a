package redis

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// reply is what a real server replied to INFO server replication keyspace memory
// persistence: two of one flavour, of which one follows the other at last.
func reply(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseInfoOfRealServers(t *testing.T) {
	for flavour, server := range map[string]Info{
		"redis-7.0":  {Flavour: "redis", Version: "7.0.15"},
		"redis-8.0":  {Flavour: "redis", Version: "8.0.2"},
		"valkey-8.1": {Flavour: "valkey", Version: "8.1.1"},
	} {
		server.BranchedAt = -1
		booted, primary, replica := server, server, server
		booted.Role, booted.PrimaryHost, booted.PrimaryPort, booted.LinkDownSeconds = RoleReplica, "127.0.0.1", 1, -1
		primary.Role, primary.Keys, primary.MinReplicas, primary.MaxMemory = RolePrimary, 3, 1, 100<<20
		primary.Replicas = []Replica{{IP: "127.0.0.1", State: ReplicaOnline}}
		replica.Role, replica.PrimaryHost, replica.PrimaryPort, replica.LinkUp, replica.Keys = RoleReplica, "127.0.0.1", 17011, true, 3
		for state, want := range map[string]Info{"booted": booted, "primary": primary, "replica": replica} {
			t.Run(flavour+" "+state, func(t *testing.T) {
				got, err := ParseInfo(reply(t, flavour+"-"+state))
				if err != nil {
					t.Fatal(err)
				}
				if len(got.RunID) != 40 || len(got.ReplicationID) != 40 || got.UsedMemory < 1<<19 {
					t.Errorf("run ID %q, replication ID %q, used memory %d", got.RunID, got.ReplicationID, got.UsedMemory)
				}
				changing := cmpopts.IgnoreFields(Info{}, "RunID", "ReplicationID", "UsedMemory", "Offset")
				offsets := cmpopts.IgnoreFields(Replica{}, "Offset", "Lag")
				if diff := cmp.Diff(want, got, changing, offsets); diff != "" {
					t.Errorf("ParseInfo (-want +got):\n%s", diff)
				}
			})
		}
		t.Run(flavour+" shares a history", func(t *testing.T) {
			primary, _ := ParseInfo(reply(t, flavour+"-primary"))
			replica, _ := ParseInfo(reply(t, flavour+"-replica"))
			if primary.ReplicationID != replica.ReplicationID || replica.Offset > primary.Offset+100 {
				t.Errorf("the primary is at %s:%d, its replica at %s:%d", primary.ReplicationID, primary.Offset, replica.ReplicationID, replica.Offset)
			}
		})
	}
}

func TestParseInfo(t *testing.T) {
	for name, c := range map[string]struct {
		reply   string
		want    Info
		wantErr string
	}{
		"a reply without a role":       {reply: "redis_version:7.0.15\r\n", wantErr: "no role"},
		"an empty reply":               {wantErr: "no role"},
		"a role that is not known":     {reply: "role:sentinel\r\n", wantErr: "no role"},
		"a number that is none":        {reply: "role:master\r\nmaster_repl_offset:many\r\n", wantErr: `master_repl_offset is not a number: "many"`},
		"a number that overflows":      {reply: "role:master\r\nmaster_repl_offset:99999999999999999999\r\n", wantErr: "not a number"},
		"a replica's offset is none":   {reply: "role:master\r\nslave0:ip=::1,port=1,state=online,offset=x,lag=0\r\n", wantErr: "offset is not a number"},
		"a negative offset":            {reply: "role:master\r\nmaster_repl_offset:-5\r\n", wantErr: "master_repl_offset is out of range"},
		"a replica's negative offset":  {reply: "role:master\r\nslave0:ip=::1,state=online,offset=-1\r\n", wantErr: "offset is out of range"},
		"a negative number of keys":    {reply: "role:master\r\ndb0:keys=-1,expires=0\r\n", wantErr: "db0 is out of range"},
		"keys that sum to no sum":      {reply: "role:master\ndb0:keys=9223372036854775807\ndb1:keys=1\n", wantErr: "db1 is out of range"},
		"a port beyond the range":      {reply: "role:slave\r\nmaster_port:65536\r\n", wantErr: "master_port is out of range"},
		"lines without a colon":        {reply: "# Replication\nrole:master\n\nnonsense\n", want: Info{Flavour: "redis", Role: RolePrimary}},
		"no secondary ID is all zeros": {reply: "role:master\nmaster_replid2:" + strings.Repeat("0", 40) + "\n", want: Info{Flavour: "redis", Role: RolePrimary}},
		"what a replica applied counts, not what it received": {
			reply: "role:slave\nmaster_repl_offset:50\nslave_repl_offset:40\n", want: Info{Flavour: "redis", Role: RoleReplica, Offset: 40}},
		"a primary's own offset counts": {
			reply: "role:master\nslave_repl_offset:40\nmaster_repl_offset:50\n", want: Info{Flavour: "redis", Role: RolePrimary, Offset: 50}},
		"an address of version 6": {
			reply: "role:master\nslave0:ip=fd00::12,port=6379,state=online,offset=7,lag=1\n",
			want:  Info{Flavour: "redis", Role: RolePrimary, Replicas: []Replica{{IP: "fd00::12", State: "online", Offset: 7, Lag: 1}}}},
		"keys of all databases": {
			reply: "role:master\ndb0:keys=2,expires=0,avg_ttl=0\ndb12:keys=40,expires=1,avg_ttl=9,subexpiry=0\n", want: Info{Flavour: "redis", Role: RolePrimary, Keys: 42}},
		"a failed snapshot":         {reply: "role:master\nrdb_last_bgsave_status:err\naof_last_write_status:ok\n", want: Info{Flavour: "redis", Role: RolePrimary, SaveFailed: true}},
		"a failed append":           {reply: "role:master\nrdb_last_bgsave_status:ok\naof_last_write_status:err\n", want: Info{Flavour: "redis", Role: RolePrimary, SaveFailed: true}},
		"data that is being loaded": {reply: "role:slave\nloading:1\nasync_loading:0\n", want: Info{Flavour: "redis", Role: RoleReplica, Loading: true}},
		"data that is being copied": {reply: "role:slave\nloading:0\nasync_loading:1\n", want: Info{Flavour: "redis", Role: RoleReplica, Loading: true}},
		"the flavour comes after the version it mimics": {
			reply: "role:master\nredis_version:7.2.4\nvalkey_version:8.1.1\n", want: Info{Flavour: "valkey", Version: "8.1.1", Role: RolePrimary}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseInfo(c.reply)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Fatalf("the error is %v, want one with %q", err, c.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ParseInfo (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOfTwoConnectionsFromAnAddressTheOneBehindCounts(t *testing.T) {
	info := Info{Replicas: []Replica{{IP: "10.0.0.1", Offset: 90}, {IP: "10.0.0.2", Offset: 1}, {IP: "10.0.0.1", Offset: 20}}}
	if got := info.Replica("10.0.0.1"); got == nil || got.Offset != 20 {
		t.Errorf("Replica is %v, want the one at 20", got)
	}
	if got := info.Replica("10.0.0.3"); got != nil {
		t.Errorf("Replica is %v for an address that none has", got)
	}
}

func FuzzParseInfo(f *testing.F) {
	for _, name := range []string{"redis-7.0-primary", "redis-8.0-replica", "valkey-8.1-booted"} {
		text, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("role:master\nslave0:ip=,offset=\ndb0:keys=")
	f.Fuzz(func(t *testing.T, reply string) {
		info, err := ParseInfo(reply)
		if err == nil && info.Role != RolePrimary && info.Role != RoleReplica {
			t.Errorf("the role is %q and there is no error", info.Role)
		}
		if info.Offset < 0 || info.Keys < 0 || info.PrimaryPort < 0 || info.PrimaryPort > 65535 {
			t.Errorf("out of range: %+v", info)
		}
	})
}
