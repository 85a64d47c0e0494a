package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"seang.org/operator/api/v1alpha1"
	"seang.org/operator/catalog"
	"seang.org/operator/test/olm/lifecycle"
)

// installTarget is for the operator of a catalog that is served, its images on the node.
const installTarget = 60

// olm finds OLM, removes what would be in its way (the operator that is installed without
// it, and the clusters that only that one needs; it lets go of them first), and publishes
// a catalog that ends with a version.
func (s *suite) olm(ctx context.Context, version string) (*lifecycle.OLM, error) {
	if s.version == "" {
		return nil, errors.New("-version must name the version of the working tree: make bench sets it")
	}
	o, err := lifecycle.Of(ctx, s.api)
	if err != nil {
		return nil, err
	}
	if err := o.RemoveClusters(ctx, s.fleet); err != nil {
		return nil, err
	}
	s.fleet = nil
	if err := o.Evict(ctx); err != nil {
		return nil, err
	}
	if err := o.Uninstall(ctx); err != nil { // what an interrupted run has left
		return nil, err
	}
	if err := o.UseCatalog(ctx, "v"+version); err != nil {
		return nil, err
	}
	return o, o.UseGroup(ctx)
}

// olmInstall measures how long after its Subscription the operator of the working tree is
// installed.
func olmInstall(ctx context.Context, s *suite, n int) (results []result, err error) {
	o, err := s.olm(ctx, s.version)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Uninstall(context.WithoutCancel(ctx))) }()
	var samples []float64
	for i := range n + 1 {
		if err := o.Uninstall(ctx); err != nil {
			return nil, err
		}
		began := s.clock.Now()
		if err := o.Subscribe(ctx, "candidate"); err != nil {
			return nil, err
		}
		if _, err := o.AwaitCSV(ctx, s.version, operatorsv1alpha1.CSVPhaseSucceeded); err != nil {
			return nil, err
		}
		took := s.clock.Since(began).Seconds()
		if i == 0 {
			s.say("Subscription → Succeeded %.1f s, not counted: brings the images", took)
			continue
		}
		samples = append(samples, took)
		s.say("Subscription → Succeeded %.1f s", took)
	}
	return []result{distribution("s, Subscription created → CSV Succeeded; value is max", samples, installTarget, largest)}, nil
}

// olmUpgrade counts what n clusters notice, each under clients that write, while the
// operator is upgraded to a release in another channel, and on to the working tree.
func olmUpgrade(ctx context.Context, s *suite, n int) (results []result, err error) {
	releases, next, err := catalog.Read()
	if err != nil {
		return nil, err
	}
	from, to, err := acrossChannels(releases)
	if err != nil {
		return nil, err
	}
	o, err := s.olm(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, o.Uninstall(context.WithoutCancel(ctx))) }()
	if err := o.Subscribe(ctx, "candidate"); err != nil {
		return nil, err
	}
	if err := o.AwaitVersion(ctx, from); err != nil {
		return nil, err
	}
	clusters, err := s.smallClusters(ctx, o, n)
	if err != nil {
		return nil, err
	}
	for i, step := range []upgrade{
		{channel: "stable", version: to, writes: releases.Writes(from, to)},
		{channel: "candidate", version: s.version, writes: releases.With(next).Writes(to, s.version)},
	} {
		found, err := s.upgrade(ctx, o, i, clusters, step)
		if err != nil {
			return results, err
		}
		results = append(results, found...)
	}
	return results, o.RemoveClusters(ctx, clusters)
}

// upgrade is a step to a version, by a channel, which writes to some kinds of children.
type upgrade struct {
	channel, version string
	writes           []string
}

func (s *suite) upgrade(ctx context.Context, o *lifecycle.OLM, round int, clusters []*v1alpha1.RedisCluster, to upgrade) ([]result, error) {
	if err := o.UseCatalog(ctx, "v"+to.version); err != nil {
		return nil, err
	}
	w, err := o.Watch(ctx, s.log, round, clusters)
	if err != nil {
		return nil, err
	}
	began := s.clock.Now()
	err = o.ChangeSubscription(ctx, func(spec *operatorsv1alpha1.SubscriptionSpec) { spec.Channel = to.channel })
	if err == nil {
		err = o.AwaitVersion(ctx, to.version)
	}
	if err != nil {
		return nil, err
	}
	s.say("upgraded to %s in %s in %.1f s", to.version, to.channel, s.clock.Since(began).Seconds())
	if err := o.Settle(ctx, clusters); err != nil {
		return nil, err
	}
	seen, err := w.Finish(ctx)
	if err != nil {
		return nil, err
	}
	children := seen.Unannounced(to.writes...)
	s.say("%d writes, longest pause of one cluster %s; restarted %v; children %v", seen.Writes.Confirmed+seen.Writes.Unconfirmed, seen.Pause, seen.Restarted, children)
	but := ""
	if len(to.writes) > 0 {
		but = fmt.Sprintf(" but one to each of the %s, which it announces,", strings.Join(to.writes, " and "))
	}
	in := fmt.Sprintf("in the upgrade to %s in %s", to.version, to.channel)
	return []result{
		figure("containers restarted "+in, len(clusters), float64(len(seen.Restarted)), 0),
		figure(fmt.Sprintf("writes lost, of %d, %s", seen.Writes.Confirmed+seen.Writes.Unconfirmed, in), len(clusters),
			float64(seen.Writes.LostConfirmed+seen.Writes.LostUnconfirmed), 0),
		figure("writes to children"+but+" "+in, len(clusters), float64(len(children)), 0),
	}, nil
}

// smallClusters makes n clusters of one primary and one replica.
func (s *suite) smallClusters(ctx context.Context, o *lifecycle.OLM, n int) ([]*v1alpha1.RedisCluster, error) {
	var clusters []*v1alpha1.RedisCluster
	for i := range n {
		cluster := lifecycle.Small(s.namespace, fmt.Sprintf("upgraded-%d", i+1))
		if err := o.Create(ctx, cluster); err != nil {
			return nil, fmt.Errorf("create RedisCluster %s: %w", cluster.Name, err)
		}
		clusters = append(clusters, cluster)
	}
	return clusters, o.AwaitReady(ctx, clusters...)
}

// acrossChannels are the newest release in stable, and the one before it that is in
// candidate only.
func acrossChannels(releases catalog.Releases) (from, to string, err error) {
	for _, r := range slices.Backward(releases) {
		stable := slices.Contains(r.Channels, "stable")
		switch {
		case to == "" && stable:
			to = r.Version
		case to != "" && !stable:
			return r.Version, to, nil
		}
	}
	return "", "", fmt.Errorf("%s has no release in candidate only before one in stable", catalog.File)
}
