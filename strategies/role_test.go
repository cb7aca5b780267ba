package strategies_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestPodRoles checks which pods get which labels and annotations. The Deployment has a pod of v1, of v2 and of v3, each without role
// labels.
func TestPodRoles(t *testing.T) {
	role := func(name string) string { return fmt.Sprintf(`{"labels":{"role":%q}}`, name) }
	h := twoVersions(func(s *rollout.Spec) { s.NewMetadata, s.StableMetadata = role("canary"), role("stable") })
	v1, v2 := h.releaseAt(commitID(0)), h.releaseAt(commitID(1))
	revision := func(version string, hash rollout.Hash) rollout.Revision {
		pods := []rollout.Pod{{Name: version + "-a"}, {Name: version + "-gone", Terminating: true}}
		return rollout.Revision{Name: version, Hash: hash, Members: pods}
	}
	inFlight := func(in *strategies.Input) { in.State.Release = &v2 }
	labelled := func(of ...string) func(*strategies.Input) {
		return withLive(func(live *rollout.ObservedWorkload) {
			for i, name := range of {
				live.Revisions[i].Members[0].Role = role(name)
			}
		})
	}
	inDocument := func(change func(*rollout.Spec)) func(*strategies.Input) {
		return func(in *strategies.Input) {
			specs := []rollout.Spec{in.Source.Specs[0]}
			change(&specs[0])
			in.Source = &rollout.Render{Commit: in.Source.Commit, Templates: in.Source.Templates, Specs: specs}
		}
	}
	const stable, canary = `v1-a={"labels":{"role":"stable"}}`, `v2-a={"labels":{"role":"canary"}}`
	for name, tc := range map[string]struct {
		changes []func(*strategies.Input)
		want    string
	}{
		"at rest":      {nil, stable},
		"in a release": {[]func(*strategies.Input){inFlight}, stable + " " + canary},
		"in a rollback": {[]func(*strategies.Input){inFlight, func(in *strategies.Input) { in.State.Phase = rollout.Aborting }},
			stable + " " + canary},
		"a first deployment": {[]func(*strategies.Input){func(in *strategies.Input) { in.State.Stable, in.State.Release = nil, &v1 }}, stable},
		"a promoted version": {[]func(*strategies.Input){labelled("stable", "canary"), func(in *strategies.Input) { in.State.Stable = &v2 }},
			`v1-a= v2-a={"labels":{"role":"stable"}}`},
		"while old pods are kept": {[]func(*strategies.Input){labelled("stable"), func(in *strategies.Input) {
			in.State.Stable, in.State.Draining = &v2, &rollout.Draining{Release: v1}
		}}, `v1-a= v2-a={"labels":{"role":"stable"}}`},
		"an aborted version":  {[]func(*strategies.Input){labelled("stable", "canary")}, `v2-a=`},
		"the same again":      {[]func(*strategies.Input){inFlight, labelled("stable", "canary")}, ""},
		"a stranger's labels": {[]func(*strategies.Input){inFlight, labelled("stable", "canary", "canary")}, `v3-a=`},
		"other labels in Git": {[]func(*strategies.Input){labelled("stable"), inDocument(func(s *rollout.Spec) {
			s.StableMetadata = `{"annotations":{"a":"1"}}`
		})}, `v1-a={"annotations":{"a":"1"}}`},
		"no labels in Git": {[]func(
			*strategies.Input){labelled("stable"), inDocument(func(s *rollout.Spec) { s.StableMetadata, s.NewMetadata = "", "" })},
			`v1-a=`},
		"without a document": {[]func(*strategies.Input){labelled("stable"), func(in *strategies.Input) { in.Source = &rollout.Render{} }},
			`v1-a=`},
		"blue-green": {[]func(*strategies.Input){inFlight, inDocument(func(s *rollout.Spec) {
			s.Canary, s.BlueGreen, s.StableMetadata, s.NewMetadata = nil, &rollout.BlueGreen{}, role("active"), role("preview")
		})}, `v1-a={"labels":{"role":"active"}} v2-a={"labels":{"role":"preview"}}`},
		"one template in two roles": {[]func(*strategies.Input){inFlight, labelled("stable"), func(in *strategies.Input) {
			same := v2
			same.Templates = v1.Templates
			in.State.Release = &same
		}}, ""},
		"before the adoption": {[]func(*strategies.Input){inFlight, withLive(func(live *rollout.ObservedWorkload) {
			live.Revisions[0].Hash, live.Revisions[0].Base, live.Revisions[2].Hash = "", true, ""
		})}, stable + " " + canary},
		"a workload that the stable version lacks": {[]func(*strategies.Input){inFlight, func(in *strategies.Input) {
			other := v1
			other.Templates = nil
			in.State.Stable = &other
		}}, canary},
		"without a watch": {[]func(*strategies.Input){func(in *strategies.Input) { in.Observed.Unseen = "the watch of pods is broken" }}, ""},
		"another app's":   {[]func(*strategies.Input){withLive(func(live *rollout.ObservedWorkload) { live.Serial = 0 })}, ""},
		"no source":       {[]func(*strategies.Input){func(in *strategies.Input) { in.Source = nil }}, ""},
	} {
		in := world(h, revision("v1", v1.Templates[web]), revision("v2", v2.Templates[web]), revision("v3", "h1-other"))
		withLive(func(live *rollout.ObservedWorkload) { live.Serial = 1 })(&in)
		for _, change := range tc.changes {
			change(&in)
		}
		var got []string
		for _, p := range strategies.PodRoles(in) {
			got = append(got, fmt.Sprintf("%s=%s", p.Pod.Name, p.Metadata))
		}
		compare.CheckNamed(t, name, tc.want, strings.Join(got, " "))
	}
}
