package strategies_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

var db = rollout.Workload{Kind: "StatefulSet", Namespace: testApp.Namespace, Name: "web"}

// ofSet returns the spec of a StatefulSet's canary, with the defaults of package render.
func ofSet(steps ...rollout.Step) rollout.Spec {
	return rollout.Spec{Name: "web", Workload: db, Scaling: rollout.InPlace, Canary: &rollout.Canary{Steps: steps}}
}

// TestStatefulSetNumbers checks the documented table: how many of n pods are new for a weight or a setCanaryScale.
func TestStatefulSetNumbers(t *testing.T) {
	batch := func(s rollout.CanaryScale) rollout.Step { return rollout.Step{SetCanaryScale: &s} }
	for name, tc := range map[string]struct {
		step rollout.Step
		want map[int]int // pods -> new pods
	}{
		"0 %":           {weight(0), map[int]int{1: 0, 3: 0, 10: 0}},
		"1 %":           {weight(1), map[int]int{1: 0, 2: 1, 3: 1, 10: 1, 200: 2}},
		"20 %":          {weight(20), map[int]int{1: 0, 3: 1, 5: 1, 10: 2}},
		"50 %":          {weight(50), map[int]int{1: 0, 2: 1, 3: 2, 5: 3, 10: 5}},
		"60 %":          {weight(60), map[int]int{1: 0, 147: 88}},
		"99 %":          {weight(99), map[int]int{1: 0, 2: 1, 3: 2, 10: 9}},
		"100 %":         {weight(100), map[int]int{1: 1, 3: 3, 10: 10}},
		"no pod":        {batch(rollout.CanaryScale{Replicas: new(0)}), map[int]int{1: 0, 3: 0}},
		"2 pods":        {batch(rollout.CanaryScale{Replicas: new(2)}), map[int]int{0: 0, 1: 0, 2: 1, 3: 2, 10: 2}},
		"a batch of 1%": {batch(rollout.CanaryScale{Weight: new(1)}), map[int]int{1: 0, 2: 1, 10: 1, 200: 2}},
		"99 % of pods":  {batch(rollout.CanaryScale{Weight: new(99)}), map[int]int{1: 0, 2: 1, 10: 9}},
		"all pods":      {batch(rollout.CanaryScale{Weight: new(100)}), map[int]int{1: 1, 10: 10}},
	} {
		p := plan.Compile(ofSet(tc.step))
		got := map[int]int{}
		for n := range tc.want {
			c := p.CountsAt(0, n)
			if got[n] = c.Canary; c.Canary+c.Stable != n {
				t.Errorf("%s of %d pods is %+v", name, n, c)
			}
		}
		compare.CheckNamed(t, name, tc.want, got)
	}
}

// TestDeploymentBatchesInPlace checks setCanaryScale of an in-place release, as a number and as a percentage, with and without surge.
func TestDeploymentBatchesInPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		scale rollout.CanaryScale
		surge int
		n     int
		want  plan.Counts
	}{
		"2 of 10":                {rollout.CanaryScale{Replicas: new(2)}, 3, 10, plan.Counts{Canary: 2, Stable: 8}},
		"all, one stable stays":  {rollout.CanaryScale{Replicas: new(5)}, 0, 3, plan.Counts{Canary: 2, Stable: 1}},
		"all, and one beside":    {rollout.CanaryScale{Replicas: new(5)}, 1, 3, plan.Counts{Canary: 3, Stable: 1}},
		"one of one":             {rollout.CanaryScale{Replicas: new(1)}, 1, 1, plan.Counts{Canary: 1, Stable: 1}},
		"33 % of 10, rounded up": {rollout.CanaryScale{Weight: new(33)}, 0, 10, plan.Counts{Canary: 4, Stable: 6}},
		"100 %":                  {rollout.CanaryScale{Weight: new(100)}, 1, 10, plan.Counts{Canary: 10, Stable: 0}},
	} {
		spec := rollout.Spec{Scaling: rollout.InPlace, MaxSurge: rollout.Amount{Value: tc.surge},
			Canary: &rollout.Canary{Steps: []rollout.Step{{SetCanaryScale: &tc.scale}}}}
		compare.CheckNamed(t, name, tc.want, plan.Compile(spec).CountsAt(0, tc.n))
	}
}

// setAt returns a StatefulSet of n ready pods at its first step (default: setWeight 30). The parameter fresh counts the new pods.
func setAt(t *testing.T, n, fresh int, steps ...rollout.Step) (strategies.Input, *history) {
	t.Helper()
	if steps == nil {
		steps = []rollout.Step{weight(30), aPause}
	}
	h := twoVersions(func(s *rollout.Spec) { *s = ofSet(steps...) })
	in := world(h)
	in.Observed = setOf(h, n, 0, n)
	d := strategies.Decide(in)
	if len(d.State.Progress) != 1 || d.State.Progress[0].Workload != db {
		t.Fatalf("a release begins as %s", dump(d.State))
	}
	in.State, in.Source, in.Observed = d.State, in.Head.Render, setOf(h, n, fresh, n-fresh)
	return in, h
}

// setGoingBack returns setAt's StatefulSet in a rollback. The controller has seen the stable template, but the given pods have the new
// version.
func setGoingBack(t *testing.T, n, fresh int, left ...rollout.Pod) strategies.Input {
	t.Helper()
	in, h := setAt(t, n, fresh)
	in.State.Phase, in.State.Source, in.Source = rollout.Aborting, commitID(0), h.at(commitID(0))
	in.State.Rollback = &rollout.Rollback{To: commitID(0), Drain: in.Now.Add(-time.Second)}
	changeLive(&in, db, func(live *rollout.ObservedWorkload) {
		live.Hash = in.Source.Templates[db]
		live.Revisions[0].Current, live.Revisions[1].Current, live.Revisions[0].Members = false, true, left
	})
	return in
}

const partitionField = "spec.updateStrategy.rollingUpdate.partition"

func setOf(h *history, n, fresh, stable int) rollout.Observed {
	of := func(commit string, ready int) rollout.Revision {
		r := pods(ready, ready)
		r.Name, r.Pin = "web-"+commit, rollout.Pin{Label: rollout.LabelRevision, Value: "web-" + commit}
		return r
	}
	old, next := of(commitID(0), stable), of(commitID(1), fresh)
	// The adopted base version has no hash annotation.
	old.Base, next.Current, next.Hash = true, true, h.at(commitID(1)).Templates[db]
	live := rollout.ObservedWorkload{Replicas: n, Hash: next.Hash, Synced: true, Floor: stable, Revisions: []rollout.Revision{next, old}}
	if fresh == 0 {
		old.Current, old.Hash = true, h.at(commitID(0)).Templates[db]
		live.Hash, live.Revisions, live.Complete = old.Hash, []rollout.Revision{old}, true
	}
	return rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{db: live}}
}

// TestStatefulSetSurplus checks a step with more new pods than it requests, for example after a scale-up. The step ends although the
// surplus pods remain, and starts no more new pods.
func TestStatefulSetSurplus(t *testing.T) {
	for fresh, done := range map[int]bool{1: false, 3: true, 8: true} {
		in, h := setAt(t, 10, fresh)
		d := strategies.Decide(in)
		if moved := d.State.Progress[0].Step > 0; moved != done {
			t.Errorf("with %d new pods the step is done: %t; it waits for %s", fresh, moved, d.Waiting)
		}
		o := desiredOf(in, h, db)
		if got := rollout.In(o, partitionField); got != int64(7) || o.Map("spec")["minReadySeconds"] == int64(workloads.HoldMinReadySeconds) {
			t.Errorf("with %d new pods the partition is %v of %v, want 7", fresh, got, o.Map("spec"))
		}
	}
}

// TestStatefulSetIsStableWithItsBase checks that a release ends only when the controller creates all pods in the release's version.
// Otherwise the next release could run beside two other versions.
func TestStatefulSetIsStableWithItsBase(t *testing.T) {
	in, _ := setAt(t, 3, 3)
	in.State.Phase, in.State.Progress[0].Step = rollout.Promoting, in.State.Progress[0].Of
	if d := strategies.Decide(in); d.State.Phase == rollout.Healthy {
		t.Error("it is healthy while the old version is still the base")
	}
	live := in.Observed.Workloads[db]
	live.Revisions[0].Base, live.Revisions[1].Base = true, false
	checkPhase(t, "with the new version as its base", in, rollout.Healthy)
	live.Revisions[0].ReadySince = live.Revisions[0].ReadySince[:2]
	if d := strategies.Decide(in); d.State.Phase == rollout.Healthy {
		t.Error("it is healthy with 2 of 3 pods")
	}
}

func TestEvictions(t *testing.T) {
	pod := func(name string, ready, terminating bool) rollout.Pod {
		return rollout.Pod{Name: name, UID: "uid-of-" + name, Ready: ready, Terminating: terminating}
	}
	for name, tc := range map[string]struct {
		change func(s *rollout.State, live *rollout.ObservedWorkload)
		left   []rollout.Pod // pods of the new version; default: web-9, which is not ready
		want   string        // the name of the evicted pod, "" if no pod is evicted
	}{
		"the highest, by its number": {left: []rollout.Pod{pod("web-9", false, false), pod("web-10", false, false)}, want: "web-10"},
		"none that is ready":         {left: []rollout.Pod{pod("web-9", true, false)}},
		"one at a time":              {left: []rollout.Pod{pod("web-9", false, false), pod("web-10", false, true)}},
		"none before the controller has seen stable": {
			change: func(_ *rollout.State, live *rollout.ObservedWorkload) { live.Synced = false }},
		"none while the new template is there": {
			change: func(_ *rollout.State, live *rollout.ObservedWorkload) { live.Hash = "h1-other" }},
		"at a step that asks for none": {
			change: func(s *rollout.State, _ *rollout.ObservedWorkload) { s.Phase = rollout.Paused }, want: "web-9"},
		"none of a release that goes on": {change: func(s *rollout.State, live *rollout.ObservedWorkload) {
			s.Phase, live.Hash = rollout.Progressing, s.Release.Templates[db]
		}},
		"none before the template may go": {
			change: func(s *rollout.State, _ *rollout.ObservedWorkload) { s.Source = "another" }},
	} {
		if tc.left == nil {
			tc.left = []rollout.Pod{pod("web-9", false, false)}
		}
		in := setGoingBack(t, 11, 2, tc.left...)
		in.Observed.Workloads[db].Revisions[1].Members = []rollout.Pod{pod("web-0", false, false)} // an unready stable pod is not evicted
		if tc.change != nil {
			changeLive(&in, db, func(live *rollout.ObservedWorkload) { tc.change(&in.State, live) })
		}
		got := ""
		for _, e := range strategies.Evictions(strategies.Input{State: in.State, Observed: in.Observed}) {
			if got += e.Pod.Name; e.Namespace != db.Namespace || e.Pod.UID != "uid-of-"+e.Pod.Name {
				t.Errorf("%s: evicts %+v", name, e)
			}
		}
		if got != tc.want {
			t.Errorf("%s: evicts %q, want %q", name, got, tc.want)
		}
	}
}

// TestRetreatEvictsOfWhatIsStagedNow checks that a rollback includes a workload that got its Rollout document during the release. The text
// of the rollback names the pod that gitrollout deletes.
func TestRetreatEvictsOfWhatIsStagedNow(t *testing.T) {
	in := setGoingBack(t, 3, 1, rollout.Pod{Name: "web-2"})
	want := "; pod " + db.Namespace + "/web-2, which is not ready, to be deleted"
	if d := strategies.Decide(in); !strings.Contains(d.Waiting, want) {
		t.Errorf("it waits for %q, want %q", d.Waiting, want)
	}
	in.State.Release.Templates = map[rollout.Workload]rollout.Hash{{Namespace: db.Namespace, Name: "api"}: "h1-other"}
	if got := strategies.Evictions(in); len(got) != 1 || got[0].Pod.Name != "web-2" {
		t.Errorf("evicts %+v, want web-2 alone", got)
	}
}

// TestStatefulSetTakenForAll checks a StatefulSet that had no pods. Kubernetes then ignores the partition and uses the new version for all
// pods. If neither the current nor an earlier step asks for all pods, all pods first return to the stable version, and Explain says so.
// gitrollout deletes no pod, even with rebalance.
func TestStatefulSetTakenForAll(t *testing.T) {
	waits := []rollout.Step{weight(30), aPause}
	const allNew = "10 of 10 new, 3 asked: "
	for name, tc := range map[string]struct {
		steps   []rollout.Step
		at      int
		back    bool // the controller has seen the stable template
		base    bool
		pods    int // how many of the 10 pods have the new version
		surplus string
		want    any // the partition; nil for the stable template
	}{
		"the stable one is the base":    {waits, 1, false, false, 3, "", int64(7)},
		"all are new":                   {waits, 1, false, true, 10, allNew + takenText, nil},
		"some are back":                 {waits, 1, true, true, 4, "4 of 10 new, 3 asked: " + takenText, nil},
		"fewer are left than asked for": {waits, 1, true, true, 1, "", nil},
		"this step asks for all":        {[]rollout.Step{weight(100), aPause}, 1, false, true, 10, "", int64(0)},
		"an earlier one asked for all": {[]rollout.Step{weight(100), aPause, weight(30), aPause}, 3, false, true, 10,
			allNew + "an earlier step asked for more", int64(7)},
		"a later one will":              {[]rollout.Step{weight(30), aPause, weight(100)}, 1, false, true, 10, allNew + takenText, nil},
		"at a step that waits for pods": {waits, 0, false, true, 10, allNew + takenText, nil},
	} {
		in, h := setAt(t, 10, tc.pods)
		in.Source.Specs[0].Canary.Steps, in.Source.Specs[0].Canary.Rebalance = tc.steps, true
		in.State.Progress[0].Step, in.State.Progress[0].Of, in.State.Phase = tc.at, len(tc.steps), rollout.Paused
		in.State.Progress[0].Plan = plan.Compile(in.Source.Specs[0]).Digest()
		stable := h.at(commitID(0)).Templates[db]
		changeLive(&in, db, func(live *rollout.ObservedWorkload) {
			fresh, old := &live.Revisions[0], &live.Revisions[1]
			fresh.Base, old.Base, old.Hash = tc.base, !tc.base, stable
			if live.Floor = 0; tc.back {
				live.Hash, fresh.Current, old.Current = stable, false, true
			}
		})
		taken := tc.want == nil
		got, hash := partitionAt(in, h, db, partitionField)
		if got != tc.want || taken != (hash == stable) {
			t.Errorf("%s: the partition is %v of %s, want %v", name, got, hash, tc.want)
		}
		e, d := strategies.Explain(in)[0], strategies.Decide(in)
		if e.Surplus != tc.surplus || strings.HasPrefix(e.Waiting, "all pods to return to the stable version first") != taken {
			t.Errorf("%s: it says %q, want %q, and waits for %q", name, e.Surplus, tc.surplus, e.Waiting)
		}
		stalls := d.State.Phase == rollout.Stalled && d.State.Progress[0].Step == tc.at && strings.Contains(d.State.Reason, takenWhy)
		if stalls != taken {
			t.Errorf("%s: it is %s at %d: %s", name, d.State.Phase, d.State.Progress[0].Step, d.State.Reason)
		}
		compare.CheckNamed(t, name+": the role of the new pods", plan.RoleCanary, e.Revisions[0].Role)
		if got := strategies.Evictions(in); len(got) > 0 {
			t.Errorf("%s: evicts %+v", name, got)
		}
	}
}

const (
	takenText = "Kubernetes took the new version for all pods"
	takenWhy  = "no step requests so many new pods: all pods return to the stable version first"
)

// TestStatefulSetTakesNoPodWhileAnotherIsMissing checks that gitrollout replaces no pod while another pod is not ready. With
// podManagementPolicy Parallel, the controller itself replaces pods from the partition on, even if a lower pod is not ready.
func TestStatefulSetTakesNoPodWhileAnotherIsMissing(t *testing.T) {
	const none = -1
	for name, tc := range map[string]struct {
		fresh int // how many of the 5 pods are new
		down  int // the index of a stable pod that is not ready
		late  bool
		told  int  // the partition in the cluster minus the first ordinal; default: the number of stable pods
		back  bool // the new pods have the lowest ordinals, for example after a rollback of the other pods
		want  any  // the partition; nil for the stable template
	}{
		"all serve":                         {1, none, false, 0, false, int64(3)},
		"one below is down":                 {1, 1, false, 0, false, int64(4)},
		"the next to go is down":            {1, 3, false, 0, false, int64(3)},
		"one after the next is down":        {0, 3, false, 0, false, nil},
		"none is new yet":                   {0, 1, false, 0, false, nil},
		"the first to go is down":           {0, 4, false, 0, false, int64(4)},
		"one has not served for long":       {1, none, true, 0, false, int64(4)},
		"as many as asked for, one is down": {2, 1, false, 0, false, int64(3)},
		"one goes that was told to go":      {1, 3, false, 3, false, int64(3)},
		"another one goes meanwhile":        {1, 0, false, 3, false, int64(3)},
		"one is down in the rollback":       {2, 3, false, 0, true, nil},
		"all serve in the rollback":         {2, none, false, 0, true, int64(3)},
	} {
		in, h := setAt(t, 5, tc.fresh, weight(40))
		in.Source.Specs[0].MinReadySeconds = 10
		live := in.Observed.Workloads[db]
		for i := range 5 {
			r := &live.Revisions[len(live.Revisions)-1]
			if i >= 5-tc.fresh && !tc.back || i < tc.fresh && tc.back {
				r = &live.Revisions[0]
			}
			r.Members = append(r.Members, rollout.Pod{Name: fmt.Sprintf("web-%d", 5+i), Ready: i != tc.down})
			if i == tc.down {
				r.ReadySince = r.ReadySince[1:]
			}
		}
		live.First, live.Floor = 5, 5+cmp.Or(tc.told, 5-tc.fresh)
		if tc.back {
			live.Hash, live.Floor = h.at(commitID(0)).Staged()[db], 5
		}
		if tc.late {
			live.Revisions[1].ReadySince[3] = in.Now.Add(-9 * time.Second)
		}
		in.Observed.Workloads[db] = live
		if got, _ := partitionAt(in, h, db, partitionField); got != tc.want {
			t.Errorf("%s: the partition is %v, want %v", name, got, tc.want)
		}
	}
}

// TestDeadlineOfTheNewVersionOnly checks that no deadline rejects a version whose pods wait for an unready stable pod. A new pod's deadline
// begins with the creation of the pod.
func TestDeadlineOfTheNewVersionOnly(t *testing.T) {
	in, h := setAt(t, 5, 0)
	for _, r := range []*rollout.Render{in.Source, h.at(commitID(0))} {
		r.Specs[0].ProgressDeadlineSeconds, r.Specs[0].ProgressDeadlineAbort = 60, true
	}
	stable := &in.Observed.Workloads[db].Revisions[0]
	stable.Problem, stable.ReadySince = "CrashLoopBackOff", stable.ReadySince[1:]
	for i := range 5 {
		stable.Members = append(stable.Members, rollout.Pod{Name: fmt.Sprintf("web-%d", i), Ready: i > 0})
	}
	in.Now = in.Now.Add(time.Hour)
	d := strategies.Decide(in)
	if d.State.Phase != rollout.Stalled || !strings.Contains(d.State.Reason, "pod web-0 has to be ready first") {
		t.Fatalf("behind a broken pod the release is %s: %s", d.State.Phase, d.State.Reason)
	}
	broken := in.Now
	in.State, in.Observed = d.State, setOf(h, 5, 0, 4)
	fresh := pods(1, 0)
	fresh.Name, fresh.Hash, fresh.Current, fresh.Problem = "web-new", h.at(commitID(1)).Templates[db], true, "CrashLoopBackOff"
	fresh.Members = []rollout.Pod{{Name: "web-4", Created: broken}}
	changeLive(&in, db, func(live *rollout.ObservedWorkload) {
		live.Revisions[0].Current, live.Revisions[0].Base = false, true
		live.Hash, live.Floor, live.Replicas, live.Revisions = fresh.Hash, 4, 5, append([]rollout.Revision{fresh}, live.Revisions...)
	})
	for seconds, want := range map[int]bool{1: false, 59: false, 60: true} {
		in.Now = broken.Add(time.Duration(seconds) * time.Second)
		if d := strategies.Decide(in); d.Rollback != want {
			t.Errorf("%d s after its pod was made the release is %s: %s", seconds, d.State.Phase, d.State.Reason)
		}
	}
}

// TestStatefulSetOfAThirdTemplate checks a manually set template. gitrollout applies the release's template again, so the controller
// replaces the pods from the partition on. If a pod below the partition has the manual template, gitrollout applies the stable template
// next. The manual template's ControllerRevision has the release's hash.
func TestStatefulSetOfAThirdTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		by      map[int]bool // ordinals of the pods with the third template
		unseen  bool         // the controller has not seen the last write
		current bool         // the object still has the third template
		want    any
	}{
		"none any more":                 {nil, false, false, int64(3)},
		"none any more, after a write":  {nil, true, false, int64(3)},
		"above the partition":           {map[int]bool{4: true}, false, true, int64(3)},
		"above the partition, put back": {map[int]bool{3: true, 4: true}, false, false, int64(3)},
		"below it: the template first":  {map[int]bool{2: true, 3: true, 4: true}, false, true, int64(3)},
		"below it":                      {map[int]bool{2: true}, false, false, nil},
	} {
		in, h := setAt(t, 5, 2, weight(40))
		live := in.Observed.Workloads[db]
		fresh, stable := live.Revisions[0], live.Revisions[1]
		third := fresh
		third.Name, third.Pin.Value, third.Number, third.Current = "web-third", "web-third", fresh.Number+1, tc.current
		fresh.Current = !tc.current && !tc.unseen
		for _, r := range []*rollout.Revision{&fresh, &stable, &third} {
			r.Members, r.Desired, r.Pods, r.ReadySince = nil, 0, 0, nil
		}
		for i := range 5 {
			r := &stable
			switch {
			case tc.by[i]:
				r = &third
			case i > 2:
				r = &fresh
			}
			r.Members = append(r.Members, rollout.Pod{Name: fmt.Sprintf("web-%d", i), Ready: true})
			r.Desired, r.Pods, r.ReadySince = r.Desired+1, r.Pods+1, append(r.ReadySince, in.Now.Add(-time.Hour))
		}
		live.Revisions, live.Floor = []rollout.Revision{fresh, stable, third}, 3
		in.Observed.Workloads[db] = live
		if got, _ := partitionAt(in, h, db, partitionField); got != tc.want {
			t.Errorf("%s: the partition is %v, want %v", name, got, tc.want)
		}
	}
}

// TestRebalance checks that new pods below the partition are deleted one at a time, the lowest first, while all other pods are ready. The
// step waits until no new pod is below the partition, unless an earlier step asked for all pods.
func TestRebalance(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(in *strategies.Input, live *rollout.ObservedWorkload)
		want   string
	}{
		"the lowest, by its number": {nil, "web-9"},
		"none without rebalance": {
			func(in *strategies.Input, _ *rollout.ObservedWorkload) { in.Source.Specs[0].Canary.Rebalance = false }, ""},
		"none above the partition":                     {func(_ *strategies.Input, live *rollout.ObservedWorkload) { live.Floor = 9 }, ""},
		"none before the controller has seen the step": {func(_ *strategies.Input, live *rollout.ObservedWorkload) { live.Synced = false }, ""},
		"none that would be made anew as it is": {func(_ *strategies.Input,
			live *rollout.ObservedWorkload) {
			live.Revisions[0].Base = true
		}, ""},
		"none of a template set by hand": {func(_ *strategies.Input, live *rollout.ObservedWorkload) { live.Hash = "h1-other" }, ""},
		"none while one is missing": {
			func(_ *strategies.Input, live *rollout.ObservedWorkload) { live.Revisions[1].ReadySince = nil }, ""},
		"one that is not ready, though another is missing": {func(_ *strategies.Input, live *rollout.ObservedWorkload) {
			live.Floor, live.Revisions[0].Members[0].Ready, live.Revisions[1].ReadySince = 12, false, nil
		}, "web-10"},
		"none while one goes": {func(_ *strategies.Input, live *rollout.ObservedWorkload) {
			live.Revisions[0].Members[0].Ready, live.Revisions[0].Members[2].Terminating = false, true
		}, ""},
		"none that is not ready above the partition": {func(_ *strategies.Input, live *rollout.ObservedWorkload) {
			live.Floor, live.Revisions[0].Members[2].Ready = 9, false
		}, ""},
		"none once it is promoted": {func(in *strategies.Input, _ *rollout.ObservedWorkload) { in.State.Phase = rollout.Promoting }, ""},
		"none while one has not served for long enough": {func(in *strategies.Input, live *rollout.ObservedWorkload) {
			in.Source.Specs[0].MinReadySeconds = 30
			live.Revisions[0].ReadySince[2] = in.Now.Add(-29 * time.Second)
		}, ""},
	} {
		in, _ := setAt(t, 12, 3)
		in.Source.Specs[0].Canary.Rebalance = true
		changeLive(&in, db, func(live *rollout.ObservedWorkload) {
			live.Floor, live.Revisions[0].Members = 11, []rollout.Pod{ // sorted by name
				{Name: "web-10", UID: "10", Ready: true}, {Name: "web-11", UID: "11", Ready: true}, {Name: "web-9", UID: "9", Ready: true},
			}
			if tc.change != nil {
				tc.change(&in, live)
			}
		})
		got := rollout.Mapped(strategies.Evictions(in), func(e workloads.Eviction) string { return e.Pod.Name })
		compare.CheckNamed(t, name+": evicts", tc.want, strings.Join(got, " "))
	}
	for _, all := range []bool{false, true} { // whether an earlier step asked for all pods
		in, _ := setAt(t, 10, 5)
		spec, at := &in.Source.Specs[0], 0
		spec.Canary.Rebalance = true
		if all {
			spec.Canary.Steps, at = append([]rollout.Step{weight(100)}, spec.Canary.Steps...), 1
		}
		in.State.Progress[0].Step, in.State.Progress[0].Plan = at, plan.Compile(*spec).Digest()
		in.Observed.Workloads[db].Revisions[0].Base = all
		done := strategies.Decide(in).State.Progress[0].Step > at
		compare.CheckNamed(t, fmt.Sprintf("5 pods are new, 3 are asked for, all were new before: %t; the step is done", all), all, done)
	}
}

// TestSurplusIsExplained checks the explanation of a step with more new pods than it requests. The text names surplus pods that are not
// ready.
func TestSurplusIsExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		fresh  int
		steps  []rollout.Step
		broken bool
		want   string
	}{
		"as many as asked for": {fresh: 3},
		"by a scale-up":        {fresh: 5, want: "5 of 10 new, 3 asked: 2 came by scaling"},
		"of an earlier step": {fresh: 5, steps: []rollout.Step{weight(50), weight(30)},
			want: "5 of 10 new, 3 asked: an earlier step asked for more"},
		"broken": {fresh: 5, broken: true, want: "5 of 10 new, 3 asked: 2 came by scaling; of those not ready: web-5, web-6"},
	} {
		in, _ := setAt(t, 10, tc.fresh)
		if tc.steps != nil {
			in.Source.Specs[0].Canary.Steps = tc.steps
			in.State.Progress[0].Step, in.State.Progress[0].Of = 1, 2
		}
		for i := 5; tc.broken && i < 10; i++ {
			fresh := &in.Observed.Workloads[db].Revisions[0]
			fresh.Members = append(fresh.Members, rollout.Pod{Name: fmt.Sprintf("web-%d", i)})
		}
		compare.CheckNamed(t, name, tc.want, strategies.Explain(in)[0].Surplus)
	}
}

// TestWhatStandsStillIsSaid checks a first version that never becomes ready and therefore blocks the next version. gitrollout deletes no
// pod, names the pod that is not ready, and records no version as stable. A controller that does not run must be reported as well.
func TestWhatStandsStillIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*rollout.ObservedWorkload)
		says   string
	}{
		"a pod that is not ready": {nil, "; if pod shop/web-0, which has an older version, does not become ready, delete it: " +
			"Kubernetes may wait for it"},
		"one that is":   {func(w *rollout.ObservedWorkload) { w.Revisions[1].Members[0].Ready = true }, ""},
		"one that goes": {func(w *rollout.ObservedWorkload) { w.Revisions[1].Members[0].Terminating = true }, ""},
		"no controller": {func(w *rollout.ObservedWorkload) { w.Synced = false },
			"; the StatefulSet controller has not seen StatefulSet/shop/web yet: is the controller running?"},
	} {
		in, h := setAt(t, 3, 1)
		in.State = rollout.State{App: testApp.Name, Path: testApp.Path, Phase: rollout.Progressing, Source: commitID(1),
			Release: in.State.Release}
		in.Observed = setOf(h, 3, 1, 1)
		fresh, old := &in.Observed.Workloads[db].Revisions[0], &in.Observed.Workloads[db].Revisions[1]
		fresh.Desired, fresh.Pods, fresh.ReadySince = 2, 0, nil
		old.ReadySince, old.Members = nil, []rollout.Pod{{Name: "web-0"}}
		if tc.change != nil {
			changeLive(&in, db, tc.change)
		}
		compare.CheckNamed(t, name+": it waits for", "all pods to have the new version and to be available"+
			tc.says, strategies.Decide(in).Waiting)
		for _, r := range strategies.Explain(in)[0].Revisions {
			if r.Role == plan.RoleStable {
				t.Errorf("%s: %s is called stable, and no version is", name, r.Name)
			}
		}
	}
}

// TestDeploymentsAreNotEvictedFrom checks that no pod of a Deployment is evicted: its controller replaces pods that are not ready.
func TestDeploymentsAreNotEvictedFrom(t *testing.T) {
	s := rollout.State{Phase: rollout.Aborting, Source: "a", Rollback: &rollout.Rollback{To: "a"},
		Stable:  &rollout.Release{Templates: map[rollout.Workload]rollout.Hash{web: "h1-a"}},
		Release: &rollout.Release{Templates: map[rollout.Workload]rollout.Hash{web: "h1-b"}}}
	o := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: {Hash: "h1-a", Synced: true,
		Revisions: []rollout.Revision{{Hash: "h1-b", Pods: 1, Members: []rollout.Pod{{Name: "web-1"}}}}}}}
	if got := strategies.Evictions(strategies.Input{State: s, Observed: o}); len(got) > 0 {
		t.Errorf("evicts %s", fmt.Sprint(got))
	}
}

// matchedSet returns a StatefulSet whose first step routes matched requests to the new version.
func matchedSet(later ...rollout.Step) rollout.Spec {
	beta := rollout.Match{Headers: []rollout.NamedMatch{{Name: "X-Beta", StringMatch: rollout.StringMatch{Exact: "yes"}}}}
	match := rollout.Step{Route: &rollout.ManagedRoute{Name: rollout.MatchRoute, Matches: []rollout.Match{beta}}}
	spec := ofSet(append([]rollout.Step{match}, later...)...)
	spec.Canary.StableService, spec.Canary.CanaryService = "web", "web-canary"
	spec.Canary.Traffic = &rollout.Traffic{MaxWeight: 100}
	return spec
}

// TestStatefulSetRoutes checks that routers split requests only by match, because a StatefulSet's weights are shares of pods. Other users
// reach stable pods before the first weight, and all pods afterwards.
func TestStatefulSetRoutes(t *testing.T) {
	spec := matchedSet(aPause, weight(50), aPause)
	p := plan.Compile(spec)
	want := []plan.Counts{{Canary: 1, Stable: 9}, {Canary: 5, Stable: 5}, {Canary: 0, Stable: 1}}
	got := []plan.Counts{p.CountsAt(0, 10), p.CountsAt(2, 10), p.CountsAt(0, 1)}
	if len(p.Stages) != 4 || !slices.Equal(got, want) {
		t.Errorf("of %d stages the first and third of 10, and the first of 1, are %+v", len(p.Stages), got)
	}
	state := func(phase rollout.Phase, step int) rollout.State {
		pr := p.Enter(step, noon)
		pr.Routed = &rollout.Routing{At: noon.Add(-time.Hour)}
		return rollout.State{
			Phase: phase, Stable: &rollout.Release{Hash: "old", Commit: "c0", Templates: map[rollout.Workload]rollout.Hash{db: "old"}},
			Release:  &rollout.Release{Hash: "new", Commit: "c1", Templates: map[rollout.Workload]rollout.Hash{db: "new"}},
			Progress: []rollout.Progress{pr}, Rollback: &rollout.Rollback{To: "c0"}, Source: "c1",
		}
	}
	for name, tc := range map[string]struct {
		phase      rollout.Phase
		step       int
		fresh      int    // how many of the 10 ready pods are new
		main, side string // the versions that the Services select, "" for all pods
		matched    bool
	}{
		"before its pod":     {phase: rollout.Progressing, main: "old", side: "old"},
		"matched":            {phase: rollout.Paused, step: 1, fresh: 1, main: "old", side: "new", matched: true},
		"a weight begins":    {phase: rollout.Progressing, step: 2, fresh: 1, side: "new", matched: true},
		"at a weight":        {phase: rollout.Paused, step: 3, fresh: 5, side: "new", matched: true},
		"aborted at a match": {phase: rollout.Aborting, step: 1, fresh: 1, main: "old", side: "old"},
		// Five stable pods cannot serve all requests.
		"aborted at a weight": {phase: rollout.Aborting, step: 3, fresh: 5, side: "old"},
		"all but one back":    {phase: rollout.Aborting, step: 3, fresh: 1, main: "old", side: "old"},
	} {
		s, live := state(tc.phase, tc.step), rollout.ObservedWorkload{Replicas: 10, Hash: "new", Synced: true}
		for hash, n := range map[rollout.Hash]int{"new": tc.fresh, "old": 10 - tc.fresh} {
			r := pods(n, n)
			r.Hash, r.Current, r.Pin = hash, hash == "new", rollout.Pin{Label: rollout.LabelRevision, Value: string(hash)}
			live.Revisions = append(live.Revisions, r)
		}
		v := workloads.View{Now: noon, Source: &rollout.Render{Specs: []rollout.Spec{spec}},
			Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{db: live}}}
		r := routes.Of(s, p, v)
		if r.Weight != 0 || (len(r.Managed) > 0) != tc.matched || r.StablePods != tc.main || r.CanaryPods != tc.side {
			t.Errorf("%s: %+v, want main %q, side %q, matched %t, and no weight", name, r, tc.main, tc.side, tc.matched)
		}
		if r.PodLabel != "" && r.PodLabel != rollout.LabelRevision {
			t.Errorf("%s: pods are told by %s", name, r.PodLabel)
		}
	}
}

// TestOnePodHasNoRoutes checks that the promotion replaces a StatefulSet's only pod, without a wait for endpoints.
func TestOnePodHasNoRoutes(t *testing.T) {
	spec := matchedSet(aPause)
	for n, want := range map[int]bool{1: true, 2: false} {
		r := pods(n, n)
		r.Hash, r.Current = "old", true
		m := workloads.Staged{Compiled: plan.Compile(spec), Progress: rollout.Progress{Workload: db}, Exists: true, N: n, Stable: r,
			Live: rollout.ObservedWorkload{Replicas: n, Synced: true, Revisions: []rollout.Revision{r}}}
		if v := strategies.WaitVerdict(plan.PodsWait{}, strategies.Input{Now: noon}, m); v.Done != want || v.Route {
			t.Errorf("of %d pods: %+v, want it done %t", n, v, want)
		}
	}
}
