package oracle

import (
	"context"
	"slices"
	"testing"
	"time"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/testkit/redisserver"
)

func TestChangesOfTheMemberThatTakesWrites(t *testing.T) {
	began := time.Now()
	acks := func(members string) []ack {
		var all []ack
		for i, member := range members {
			all = append(all, ack{member: string(member), at: began.Add(time.Duration(i) * time.Millisecond)})
		}
		return all
	}
	for members, want := range map[string]int{"": 0, "aaa": 0, "aabb": 1, "aabba": 2, "abab": 3} {
		if got := changes(acks(members)); len(got) != want {
			t.Errorf("%q: got %d changes %v, want %d", members, len(got), got, want)
		}
	}
}

// TestTheMonitorSeesTwoPrimaries runs on two real servers that both take writes.
func TestTheMonitorSeesTwoPrimaries(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var targets []Target
	for range 2 {
		server := redisserver.Start(t, "redis-8.0", conf.Input{MemoryLimit: 64 << 20})
		promote(ctx, t, server)
		targets = append(targets, Target{Address: server.Address(), Username: naming.UserDefault, Password: redisserver.Passwords.Default})
	}
	watch := func(promotions int64, enough func([]ack) bool, targets ...Target) error {
		m := Watch(ctx, "monitor", func(context.Context) ([]Target, error) { return targets, nil })
		for !enough(m.seen()) {
			if ctx.Err() != nil {
				t.Fatal("the monitor's writes are not accepted")
			}
			time.Sleep(monitorPace)
		}
		return m.Err(promotions)
	}
	if err := watch(0, func(acks []ack) bool { return len(acks) >= 10 }, targets[0]); err != nil {
		t.Errorf("there is one primary: %v", err)
	}
	if err := watch(1, func(acks []ack) bool { return len(changes(acks)) > 1 }, targets...); err == nil {
		t.Error("two took writes at a time, and the monitor says nothing")
	}
}

func (m *Monitor) seen() []ack {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.acks)
}
