package main

import (
	"context"
	"slices"

	"seang.org/operator/catalog"
	"seang.org/operator/test/registry"
)

// Releases after the working tree's, on candidate, for what the history cannot show. A
// catalog has the name of the last one that it has; tests use them.
func faults(next Release) map[string][]Release {
	after := func(suffix string) Release {
		version := next.Version[:len(next.Version)-1] + suffix
		return Release{Release: catalog.Release{Version: version, Channels: next.Channels, Changes: "A release for tests."}}
	}
	later := after("1") // the same program, under another version
	broken := after("2")
	broken.breakIt = func(b *bundle) {
		// It runs, and never gets ready; the Deployment says so after a short while.
		deployment := &b.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
		deployment.ProgressDeadlineSeconds = new(int32(20))
		container := &deployment.Template.Spec.Containers[0]
		container.Image, container.Command = registry.NotRedis, []string{"sleep", "infinity"}
		container.Args = nil
		container.StartupProbe = nil
	}
	repaired := after("3")
	absent := after("4")
	absent.noImage = true
	return map[string][]Release{"later": {later}, "broken": {later, broken}, "repaired": {later, broken, repaired}, "absent": {absent}}
}

// faults makes the bundles and catalogs of the releases with faults.
func (b builder) faults(ctx context.Context, releases []Release, bundles map[string]blob) error {
	for name, more := range faults(releases[len(releases)-1]) {
		for _, r := range more {
			if err := b.addBundle(ctx, r, ".", bundles); err != nil {
				return err
			}
		}
		if err := b.catalog(ctx, name, append(slices.Clone(releases), more...), bundles); err != nil {
			return err
		}
	}
	return nil
}
