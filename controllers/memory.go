package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/internal/kube"
	"seang.org/operator/internal/redis/conf"
	"seang.org/operator/internal/redis/plan"
)

// memory is what the operator remembers of a RedisCluster between passes. It is
// never the only ground for keeping data: a restarted operator works without
// it, and waits where it would have known.
type memory struct {
	// known is the newest RedisCluster that was read or written; the cache may be behind.
	known *v1alpha1.RedisCluster
	// children as they were written last.
	children kube.Writes
	// service is the pod that the primary Service was made to select at
	// serviceVersion; the cache may be behind.
	service, serviceVersion string
	// claims holds the resource version of our last write to each volume claim.
	claims map[types.UID]string
	// pods by UID.
	pods map[types.UID]*podMemory
	// marks of the processes.
	marks plan.Marks
	// detachedSince is when every holder was first seen detached from the
	// recorded primary; zero if one is not.
	detachedSince time.Time
	// bootingSince is when the first member of a new cluster first could have become
	// primary.
	bootingSince time.Time
	// silentSince is when the recorded primary was first seen not to answer.
	silentSince time.Time
	// system is the content of the Secret of the system, and passwords those of the
	// applications by user, as wanted last: they outlive a Secret that is deleted.
	system    map[string][]byte
	passwords map[string]string
	// verdicts are what Redis said of the rules of users, by version and rules; empty
	// where it takes them.
	verdicts map[string]string
	// tls is what members have: it outlives a Secret that is deleted.
	tls conf.TLS
	// withoutTLS says that members serve no TLS, and were not asked to.
	withoutTLS bool
	// deployed is the hash of what every member was seen to have.
	deployed string
	// deployedAt is when that was first seen.
	deployedAt time.Time
	// issued is what cert-manager said last.
	issued issuance
	// withdrawn says that cert-manager is asked for nothing.
	withdrawn bool
	// syncing says that replicas were copying in the last pass.
	syncing bool
	// postponedSince is when a change of the status was first left to a later
	// pass; zero if none is.
	postponedSince time.Time
	// unreadable says by pod when its files could last not be loaded: what is to be
	// done about it must outlive the pod that is replaced for it.
	unreadable map[string]string
	// checked is what a server without data made of directives last.
	checked checked
	// proxies follow the changes of the cluster's Services.
	proxies proxies
	// polls counts the polls in a row.
	polls int
}

// podMemory is what is remembered of one pod.
type podMemory struct {
	// proof that the pod's last process ended.
	proof plan.Proof
	// runID of the process that answered last.
	runID string
	// hangsSince is when the process was first seen to hang.
	hangsSince time.Time
	// label is the role that was written last, and version the pod's resource
	// version after our last write; the cache may be behind.
	label, version string
	// users is a hash of the users and of the replication's password that the process
	// has, which was read back.
	users string
	// shown is the certificate that the process was seen to show.
	shown string
	// loadTried is when it was told last to load another, and touched when the kubelet was.
	loadTried, touched time.Time
	// keptAside is when the process was last told to save what it has; zero if never.
	keptAside time.Time
	// config was set and read back; defaults are what its directives had before;
	// started are those that are read at the start alone.
	config, defaults, started map[string]string
}

// newest returns the RedisCluster as read or, if that is older, as it was read or
// written before: the cache may be behind our last write, and events that come again
// must not bring an earlier spec back, for which pods would be replaced.
func (m *memory) newest(read *v1alpha1.RedisCluster) *v1alpha1.RedisCluster {
	if m.known == nil || kube.Older(m.known.ResourceVersion, read.ResourceVersion) {
		m.known = read.DeepCopy()
	}
	return m.known.DeepCopy()
}

// wrote remembers a write of ours.
func (m *memory) wrote(cluster *v1alpha1.RedisCluster) { m.known = cluster.DeepCopy() }

func (m *memory) pod(uid types.UID) *podMemory {
	p := m.pods[uid]
	if p == nil {
		p = &podMemory{}
		m.pods[uid] = p
	}
	return p
}

// seen notes what was seen of the pod, and adds what was seen before.
func (p *podMemory) seen(m *plan.Member, now time.Time) {
	switch {
	case m.Info != nil:
		p.answered(m.Info.RunID)
		m.KeptAside = !p.keptAside.IsZero() && (!m.Info.SaveFailed || now.Sub(p.keptAside) < keepAsideRetry)
	case m.Proof == plan.NotProved && p.proof != plan.NotProved:
		m.Proof = p.proof
	default:
		p.proof = m.Proof
	}
}

// answered notes that a process answered; a new process starts afresh.
func (p *podMemory) answered(runID string) (isNew bool) {
	if p.runID == runID {
		p.proof = plan.NotProved
		return false
	}
	*p = podMemory{runID: runID, label: p.label, version: p.version}
	return true
}

// memories of all RedisClusters.
type memories struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]*memory
}

func newMemories() *memories {
	return &memories{byKey: map[types.NamespacedName]*memory{}}
}

// of returns the memory of one RedisCluster. Passes over one RedisCluster never
// run at the same time, so its content needs no lock.
func (m *memories) of(key types.NamespacedName) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byKey[key] == nil {
		m.byKey[key] = &memory{children: kube.Writes{}, claims: map[types.UID]string{}, pods: map[types.UID]*podMemory{}, marks: plan.Marks{}, unreadable: map[string]string{},
			passwords: map[string]string{}, verdicts: map[string]string{}}
	}
	return m.byKey[key]
}

func (m *memories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
