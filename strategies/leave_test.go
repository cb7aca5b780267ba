package strategies_test

import (
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

func threeVersions(spec rollout.Spec) *history {
	h := historyOf(spec)
	h.push(version("v2"))
	h.push(version("v3"))
	return h
}

// TestAPushTakesNobodyBack checks a push while all users are on a version that has passed its steps. That version must become stable, even
// if the Deployment's status is out of date.
func TestAPushTakesNobodyBack(t *testing.T) {
	type state = rollout.ObservedWorkload
	cases := map[string]struct {
		change func(*state)
		abort  bool
		back   bool
	}{
		"all are available": {func(*state) {}, false, false},
		"the controller has not seen yet that it was promoted": {func(w *state) { w.Synced = false }, false, false},
		"its pods became ready by a clock that is ahead": {
			func(w *state) { w.Revisions[0].ReadySince = []time.Time{noon.Add(time.Minute)} }, false, false},
		"its pods have been ready for less than minReadySeconds": {
			func(w *state) { w.Revisions[0].ReadySince = []time.Time{noon} }, false, false},
		"none of its pods is ready":        {func(w *state) { w.Revisions[0].ReadySince = nil }, false, true},
		"a pod of the old version is left": {func(w *state) { w.Revisions[1].Pods = 1 }, false, true},
		"it was aborted meanwhile":         {func(*state) {}, true, true},
	}
	spec := readSpec(t, []byte("replicas: 2\nminReadySeconds: 10\n"), "web")
	git := threeVersions(spec)
	stable, release := git.releaseAt(commitID(0)), git.releaseAt(commitID(1))
	s := rollout.State{App: testApp.Name, Path: testApp.Path, Phase: rollout.Promoting, Source: commitID(1),
		Stable: &stable, Release: &release, Progress: []rollout.Progress{{Workload: web, Entered: noon}}}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fresh := set(git, commitID(1), 2, 2)
			fresh.Current, fresh.ReadySince = true, []time.Time{noon.Add(-time.Hour), noon.Add(-time.Hour)}
			live := rollout.ObservedWorkload{Replicas: 2, Hash: fresh.Hash, Synced: true,
				Revisions: []rollout.Revision{fresh, set(git, commitID(0), 0, 0)}}
			tc.change(&live)
			in := strategies.Input{Now: noon, App: testApp, Head: git.headInput(), Source: git.at(s.Source), State: s,
				Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: live}}}
			if tc.abort {
				in.Promotion = &rollout.Promotion{Release: release.Hash, Decision: rollout.Abort}
			}
			d := strategies.Decide(in)
			if d.Rollback != tc.back || !tc.back && d.State.Stable.Hash != release.Hash {
				t.Errorf("%s: goes back %t, want %t; stable is %s", d.Subject, d.Rollback, tc.back, d.State.Stable.Hash)
			}
			if _, rejected := d.State.IsRejected(release.Hash); rejected != tc.abort {
				t.Errorf("%s: it is rejected %t, want %t", d.Subject, rejected, tc.abort)
			}
		})
	}
}

// TestAPushWaitsForAPromotion checks a push during a promotion. An old pod of web still has users, so the app rolls back. An old pod of api
// has no users after the Service's switch, so the promotion continues.
func TestAPushWaitsForAPromotion(t *testing.T) {
	for name, tc := range map[string]struct {
		web, api int // number of old pods
		want     rollout.Phase
	}{
		"no old pod is left":        {0, 0, rollout.Healthy},
		"an old pod of api is left": {0, 1, rollout.Promoting},
		"an old pod of web is left": {1, 0, rollout.Aborting},
	} {
		h := newHistory(source{workloads: []staged{
			{spec: readSpec(t, []byte("replicas: 2\n"), "web"), version: "v1"},
			{spec: readSpec(t, []byte("replicas: 2\nblueGreen: {activeService: api, autoPromotionEnabled: true}\n"), "api"), version: "v1"},
		}})
		for _, v := range []string{"v2", "v3"} {
			h.push(func(x *source) { x.workloads[0].version, x.workloads[1].version = v, v })
		}
		stable, release := h.releaseAt(commitID(0)), h.releaseAt(commitID(1))
		in := strategies.Input{Now: noon, App: testApp, Head: h.headInput(), Source: h.at(commitID(1)), State: rollout.State{App: testApp.Name,
			Path: testApp.Path, Phase: rollout.Promoting, Source: commitID(1), Stable: &stable, Release: &release}}
		in.Observed.Workloads = map[rollout.Workload]rollout.ObservedWorkload{}
		for i, spec := range in.Source.Specs {
			p, w := plan.Compile(spec), spec.Workload
			in.State.Progress = append(in.State.Progress, p.Enter(len(p.Stages), noon))
			fresh, old := pods(2, 2), pods([]int{tc.web, tc.api}[i], 0)
			fresh.Hash, fresh.Current, old.Hash = release.Templates[w], true, stable.Templates[w]
			in.Observed.Workloads[w] = rollout.ObservedWorkload{Replicas: 2, Hash: fresh.Hash, Synced: true,
				Revisions: []rollout.Revision{fresh, old}}
		}
		checkPhase(t, name, in, tc.want)
	}
}

// TestAnImageByHandMovesNoService checks a manually set image. The image's ReplicaSet has the release's hash, copied from the Deployment,
// and no ready pod. The main Service must still select the release's own pods.
func TestAnImageByHandMovesNoService(t *testing.T) {
	spec := readSpec(t, []byte("replicas: 2\nblueGreen: {activeService: web, autoPromotionEnabled: true}\n"), "web")
	own, byHand, old := pods(2, 2), pods(1, 0), pods(2, 2)
	own.Hash, byHand.Hash, old.Hash, byHand.Current = "h1-new", "h1-new", "h1-old", true
	own.Pin, byHand.Pin, old.Pin = rollout.PodHash("own"), rollout.PodHash("hand"), rollout.PodHash("old")
	templates := func(h rollout.Hash) map[rollout.Workload]rollout.Hash {
		return map[rollout.Workload]rollout.Hash{web: h}
	}
	p := plan.Compile(spec)
	at := slices.IndexFunc(p.Stages, func(s plan.Stage) bool { return s.Switched })
	s := rollout.State{App: "shop", Phase: rollout.Paused, Stable: &rollout.Release{Hash: "r1", Templates: templates("h1-old")},
		Release: &rollout.Release{Hash: "r2", Templates: templates("h1-new")}, Progress: []rollout.Progress{p.Enter(at, noon)}}
	o := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{
		web: {Replicas: 2, Hash: "h1-new", Synced: true, Revisions: []rollout.Revision{byHand, own, old}},
	}}
	m := workloads.New(s, p, s.Progress[0], o)
	main, _ := routes.Pinned(m, s, workloads.View{Now: noon, Observed: o})
	compare.CheckNamed(t, "the pods of users", rollout.PodHash("own"), main)
}

// TestStableComesBackBesideTheNewVersion checks a step with stable pods after an earlier step has removed all of them. Stable pods start
// beside the new pods, and no new pod stops meanwhile.
func TestStableComesBackBesideTheNewVersion(t *testing.T) {
	spec := readSpec(t, []byte("replicas: 1\ncanary: {stableService: web, canaryService: web-canary, settle: 3s, "+
		"dynamicStableScale: true, steps: [{setWeight: 50}]}\n"), "web")
	routed := &rollout.Routing{Weight: 100}
	m := workloads.Staged{Compiled: plan.Compile(spec), Progress: rollout.Progress{Workload: web, Of: 1, Routed: routed},
		Exists: true, N: 1, Stable: pods(0, 0), Fresh: pods(1, 1), Live: rollout.ObservedWorkload{Replicas: 1, Synced: true}}
	m.Stable.Hash, m.Fresh.Hash, m.Live.Revisions = "old", "new", []rollout.Revision{m.Fresh, m.Stable}
	f, ok := workloads.LimitsOf(m, workloads.View{Now: noon})
	if !ok || !f.Back || f.Surge < 1 || f.Unavailable > 0 {
		t.Errorf("the fence is %+v, %t; want one more pod, which is stable's, and none less", f, ok)
	}
	m.Fresh = pods(0, 0)
	if f, ok := workloads.LimitsOf(m, workloads.View{Now: noon}); ok {
		t.Errorf("from no pods at all, the fence is %+v, want none", f)
	}
}

// TestUsersStayThroughAnotherStrategy checks a Rollout document that loses its Service switch after the Service has switched. While old
// pods are kept, the former strategy's Service must still select the new version.
func TestUsersStayThroughAnotherStrategy(t *testing.T) {
	spec := readSpec(t, []byte("replicas: 2\ncanary: {steps: [{setWeight: 20}]}\n"), "web")
	p := plan.Compile(spec)
	fresh, old := pods(2, 2), pods(2, 2)
	fresh.Pin, old.Pin = rollout.PodHash("new"), rollout.PodHash("old")
	m := workloads.Staged{Compiled: p, Progress: p.Enter(len(p.Stages), noon), Exists: true, N: 2, Stable: old, Fresh: fresh}
	s := rollout.State{Phase: rollout.Promoting, Stable: &rollout.Release{Hash: "r1"}, Release: &rollout.Release{Hash: "r2"}}
	for want, former := range map[string]*rollout.Draining{"": nil, "new": {}} {
		s.Draining = former
		if main, _ := routes.Pinned(m, s, workloads.View{Now: noon}); main.Value != want {
			t.Errorf("with old pods kept %t, users come to %q, want %q", former != nil, main, want)
		}
	}
}

// TestAnAbortWhileOldPodsAreKept checks that, while old pods are kept, an abort rolls the newest stable version back. This holds even if
// the commit with the abort also pushes another version.
func TestAnAbortWhileOldPodsAreKept(t *testing.T) {
	spec := readSpec(t, []byte("replicas: 2\nblueGreen: {activeService: web, autoPromotionEnabled: true, "+
		"scaleDownDelaySeconds: 300}\n"), "web")
	git, p := threeVersions(spec), plan.Compile(spec)
	former, stable := git.releaseAt(commitID(0)), git.releaseAt(commitID(1))
	s := rollout.State{App: testApp.Name, Path: testApp.Path, Phase: rollout.Healthy, Source: commitID(1), Stable: &stable,
		Draining: &rollout.Draining{Release: former, Progress: []rollout.Progress{p.Enter(len(p.Stages)-1, noon)}}}
	in := strategies.Input{Now: noon, App: testApp, Head: git.headInput(), Source: git.at(s.Source), State: s,
		Promotion: &rollout.Promotion{Release: stable.Hash, Decision: rollout.Abort}}
	if d := strategies.Decide(in); !d.Rollback || d.State.Stable.Hash != former.Hash {
		t.Errorf("%s: goes back %t, to %s", d.Subject, d.Rollback, d.State.Stable.Hash)
	}
}
