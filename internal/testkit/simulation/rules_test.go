package simulation

import (
	"fmt"
	"slices"
	"testing"

	"seang.org/operator/internal/naming"
	"seang.org/operator/internal/redis"
	"seang.org/operator/internal/redis/plan"
)

// mutationSchedules bounds the search for a schedule that shows that a rule is
// needed.
const mutationSchedules = 20000

// TestEachRuleIsNeeded switches each rule of docs/safety-rules.md off, by what the
// planner is made to believe or what is made of its decision, and expects a promise
// to break. InSync is not among them: what it keeps is writes that were acknowledged
// and not confirmed, in an unplanned failover, for which there is no promise to break.
func TestEachRuleIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("searches for some ten seconds: run make test-simulation")
	}
	for name, rules := range map[string]Rules{
		"NoRecordNoData: a record that is missing means a new cluster": {Facts: func(f *plan.Facts) {
			if f.Silent() {
				f.Record = nil
				each(f, func(m *plan.Member) { hideData(m) })
			}
		}},
		"RecordFirst: the record is written after the steps that depend on it": {Decision: func(_ *plan.Facts, d *plan.Decision) {
			var first, last []plan.Step
			for _, step := range d.Steps {
				if _, ok := step.(plan.WriteRecord); ok {
					last = append(last, step)
				} else {
					first = append(first, step)
				}
			}
			d.Steps = slices.Concat(first, last)
		}},
		"MayFollow: a primary that the record does not know is told to follow": {Facts: func(f *plan.Facts) {
			each(f, func(m *plan.Member) {
				if f.Record != nil && m.Info != nil && m.ID() != f.Record.Primary {
					m.Info.Role = redis.RoleReplica
				}
			})
		}},
		"MostAdvanced: the first holder is promoted": {Facts: func(f *plan.Facts) {
			if f.Silent() {
				each(f, func(m *plan.Member) {
					if m.Info != nil {
						m.Info.Offset = f.Record.ForkOffset
					}
				})
			}
		}},
		"Fenced: a silent process is taken for one that ended": {Facts: func(f *plan.Facts) {
			each(f, func(m *plan.Member) {
				if m.Info == nil && m.PodUID != "" {
					m.Proof = plan.ProofRefused
				}
			})
		}},
		"Fenced: a lease is taken to have run out at once": {Facts: func(f *plan.Facts) {
			if f.DetachedFor > 0 || f.SilentFor > 0 {
				f.DetachedFor = plan.Lease
			}
		}},
		"Fenced: a lease is taken to bind a process that was stopped": {Facts: func(f *plan.Facts) {
			each(f, func(m *plan.Member) { m.Hangs = false })
		}},
		"Settled: a silent holder is taken for one that ended": {Facts: func(f *plan.Facts) {
			each(f, func(m *plan.Member) {
				if m.Info == nil && m.PodUID != "" && f.Record != nil && m.Pod != f.Record.Primary.Pod {
					m.Proof = plan.ProofRefused
				}
			})
		}},
		"LeaseInRecord: a lease that is not recorded is taken to be in force": {Facts: func(f *plan.Facts) {
			if f.Record != nil {
				f.Record.Lease = true
			}
		}},
		"UnrecordedFork: what a member made primary by hand had before counts for nothing": {Facts: func(f *plan.Facts) {
			each(f, func(m *plan.Member) {
				if m.Info != nil && m.Info.Role == redis.RolePrimary {
					m.Info.BranchedAt = 1
				}
			})
		}},
		"NeverFromEmpty: a member out of reach is taken to hold nothing": {Facts: func(f *plan.Facts) {
			if f.Record == nil {
				return
			}
			f.Record.MayHold = nil
			each(f, func(m *plan.Member) {
				hideData(m)
				if m.Info == nil {
					m.IP = ""
				}
			})
		}},
		"KeepAside: a member is taken to have saved what it has": {Facts: func(f *plan.Facts) {
			each(f, func(m *plan.Member) { m.KeptAside = true })
		}},
		"PersonDecides: a decision is followed again and again": {Facts: func(f *plan.Facts) {
			if f.Record != nil {
				f.Accept = fmt.Sprintf("%s@%d", f.Members[len(f.Members)-1].PodUID, f.Record.Epoch)
			}
		}},
		"OneAtATime: every pod of an older template is replaced at once": {Decision: func(f *plan.Facts, d *plan.Decision) {
			each(f, func(m *plan.Member) {
				if m.Outdated && m.Role == naming.RolePrimary {
					d.Steps = append(d.Steps, plan.Replace{Why: "no rule", Pod: m.Pod, UID: m.PodUID})
				}
			})
		}},
		"13, leadership is not a fence: a new connection leaves the earlier ones open": {KeepConnections: true},
		"KeepTheLastCopy: members are removed at once":                                 {Decision: func(_ *plan.Facts, d *plan.Decision) { d.Removable = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= mutationSchedules; seed++ {
				if w := Run(seed, rules); w.Violation() != nil {
					t.Logf("without it seed %d finds: %v", seed, w.Violation())
					return
				}
			}
			t.Error("without it nothing goes wrong: the rule, or the model, is not worth its name")
		})
	}
}

func each(f *plan.Facts, do func(*plan.Member)) {
	for i := range f.Members {
		do(&f.Members[i])
	}
}

func hideData(m *plan.Member) {
	if m.Info != nil {
		m.Info.Keys = 0
	}
}
