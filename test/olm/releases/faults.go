package main

import (
	"context"
	"path/filepath"
	"slices"
)

// Releases after the working tree's, on candidate, that show what goes wrong. Their
// catalogs have the names of the faults; tests use them.
func faults(next Release) map[string]Release {
	after := func(suffix string) Release {
		return Release{Version: next.Version[:len(next.Version)-1] + suffix, Channels: next.Channels, Changes: "A release for tests."}
	}
	broken := after("1")
	broken.breakIt = func(b *bundle) {
		// It runs, and never gets ready; the Deployment says so after a short while.
		deployment := &b.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
		deployment.ProgressDeadlineSeconds = new(int32(20))
		container := &deployment.Template.Spec.Containers[0]
		container.Image, container.Command = "registry.seang.org/test/not-redis:v1", []string{"sleep", "infinity"}
		container.Args = nil
		container.StartupProbe = nil
	}
	forbidden := after("3")
	forbidden.breakIt = func(b *bundle) {
		install := &b.csv.Spec.InstallStrategy.StrategySpec
		install.ClusterPermissions = install.ClusterPermissions[:0]
		runProgramOf(b, next)
	}
	absent := after("4")
	absent.noImage = true
	absent.breakIt = func(b *bundle) { runProgramOf(b, next) }
	repaired := after("2")
	repaired.breakIt = func(b *bundle) { runProgramOf(b, next) }
	return map[string]Release{"broken": broken, "repaired": repaired, "forbidden": forbidden, "absent": absent}
}

// runProgramOf runs the program of another release.
func runProgramOf(b *bundle, r Release) {
	b.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = operatorRepository + ":" + r.tag()
}

// faults makes the bundles and catalogs of the releases with faults. The one that
// repairs the broken one comes after it.
func (b builder) faults(ctx context.Context, releases []Release) error {
	made := faults(releases[len(releases)-1])
	for _, r := range made {
		if err := b.bundleImage(ctx, r, "."); err != nil {
			return err
		}
	}
	for name, r := range made {
		list := slices.Clone(releases)
		if name == "repaired" {
			list = append(list, made["broken"])
		}
		if err := b.catalog(ctx, name, append(list, r)); err != nil {
			return err
		}
	}
	return nil
}

func absolute(dir string) string {
	path, err := filepath.Abs(dir)
	if err != nil {
		return dir // The working directory is gone; what comes next says so.
	}
	return path
}
