package strategies

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

func weight(n int) rollout.Step { return rollout.Step{SetWeight: &n} }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var aPause = rollout.Step{Pause: &rollout.Pause{}}

// TestResumed checks where a release continues after a change of steps: at the first changed step or at its present step, whichever is
// earlier. Users on the new version stay on this version.
func TestResumed(t *testing.T) {
	const gate = -1
	steps := func(weights ...int) []rollout.Step {
		return rollout.Mapped(weights, func(w int) rollout.Step {
			if w == gate {
				return aPause
			}
			return weight(w)
		})
	}
	cases := map[string]struct {
		reason   string
		old, now []rollout.Step
		step     int
		want     int
		kept     bool // the time at which the step began does not change
	}{
		"Same":         {"goes on where it is", steps(20, gate, 40), steps(20, gate, 40), 2, 2, true},
		"Behind":       {"a later step does not matter", steps(20, gate, 40), steps(20, gate, 60, gate), 1, 1, true},
		"Present":      {"the step itself begins anew", steps(20, gate, 40), steps(20, gate, 30), 2, 2, false},
		"Before":       {"back to the changed step", steps(20, gate, 60), steps(10, gate, 30, 100), 1, 0, false},
		"Inserted":     {"a gate that was not there is not passed", steps(20, 40, gate), steps(20, gate, 40, gate), 2, 1, false},
		"Removed":      {"a gate that is gone is not waited at", steps(20, gate, 40), steps(20, 40), 1, 1, false},
		"Longer":       {"one that was through has a step again", steps(20), steps(20, gate), 1, 1, false},
		"Empty":        {"no steps: through", steps(20, gate), nil, 1, 0, false},
		"FirstGate":    {"not a pod has started", steps(gate, 40, gate), steps(gate, 60, gate), 0, 0, true},
		"OnlyTheFirst": {"whatever the weights are", steps(40, gate), steps(40, 40, gate), 1, 1, false},
	}
	for name, tc := range cases {
		old := rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: tc.old}}
		now := rollout.Spec{Scaling: rollout.Surge, Canary: &rollout.Canary{Steps: tc.now}}
		in := Input{Now: noon.Add(time.Hour), Source: &rollout.Render{Specs: []rollout.Spec{old}}, plans: plan.Cache{}}
		in.State.Release = &rollout.Release{}
		pr := plan.Compile(old).Enter(tc.step, noon)
		m := workloads.Staged{Compiled: plan.Compile(now), Progress: pr}
		got := resumed(m, in, changeOf(m, in))
		if got.Step != tc.want || got.Entered.Equal(noon) != tc.kept {
			t.Errorf("%s, %s: got step %d since %s, want %d", name, tc.reason, got.Step, got.Entered, tc.want)
		}
		// The commit with the old list is lost, or another version of gitrollout has compiled the list.
		in.Source.Specs = nil
		if got := resumed(m, in, changeOf(m, in)); got.Step > tc.want {
			t.Errorf("%s: without the old list it goes on at step %d", name, got.Step)
		}
		pr.Plan, in.Source.Specs = "0badcafe", []rollout.Spec{old}
		if m := (workloads.Staged{Compiled: plan.Compile(now), Progress: pr}); resumed(m, in, changeOf(m, in)).Step != tc.want {
			t.Errorf("%s: after an upgrade of the program it goes on elsewhere", name)
		}
	}
}

// TestStandingContent checks that no rollback restores content without objects.
func TestStandingContent(t *testing.T) {
	for objects, want := range map[int]bool{0: false, 1: true} {
		in := Input{Source: &rollout.Render{Content: "c1-old", Objects: make([]rollout.Object, objects)}}
		in.Head.Render = &rollout.Render{Content: "c1-new", Hooked: true}
		compare.CheckNamed(t, fmt.Sprintf("a stable version of %d objects", objects), want, standing(in) != nil)
	}
}

// TestContentOfOtherKinds checks that the status, not the pods, decides whether a workload of an unsupported kind is ready.
func TestContentOfOtherKinds(t *testing.T) {
	clones := rollout.Workload{Kind: "CloneSet.apps.kruise.io", Namespace: "shop", Name: "clones"}
	in := Input{Now: noon, State: rollout.State{Source: "c1", Release: &rollout.Release{Since: noon}},
		Source: &rollout.Render{Commit: rollout.Commit{ID: "c1"}, Hooked: true, Content: "c1-0",
			Templates: map[rollout.Workload]rollout.Hash{clones: "h1-0"}}}
	if why, _ := unready(in, noon); why != "" || len(takenOver(in.Source)) > 0 {
		t.Errorf("waits for %q", why)
	}
	in.Observed.Troubled = []rollout.Trouble{{Ref: clones.Ref(), Message: "2 of 3"},
		{Ref: rollout.Ref{Kind: "Service", Name: "web"}, Message: "no address"}}
	if why, _ := unready(in, noon); why != "CloneSet shop/clones: 2 of 3" {
		t.Errorf("waits for %q", why)
	}
}

func TestRemember(t *testing.T) {
	list := []rollout.Hash{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}
	before := slices.Clone(list)
	compare.CheckNamed(t, "the oldest goes", []rollout.Hash{"x", "0", "1", "2", "3", "4", "5", "6", "7", "8"}, remember(list, "x"))
	compare.CheckNamed(t, "those that came after a known one are left", []rollout.Hash{"4", "5", "6", "7", "8", "9"}, remember(list, "4"))
	compare.CheckNamed(t, "the list is not changed in place", before, list)
}

// TestWhoHoldsIsRemembered checks that a new process takes the author of a hold from the recorded state.
func TestWhoHoldsIsRemembered(t *testing.T) {
	byAnn := &rollout.Held{Message: "release h1 waits for the end of decision: hold by Ann"}
	other := &rollout.Held{Message: "of another kind"}
	for held, want := range map[*rollout.Held]string{nil: "", byAnn: "Ann", other: ""} {
		p := &rollout.Promotion{}
		if got := whoHeld(p, held); got.Author != want || p.Author != "" {
			t.Errorf("recorded %+v: %q, want %q; the given author is %q", held, got.Author, want, p.Author)
		}
		if got := whoHeld(&rollout.Promotion{Author: "Bob"}, held); got.Author != "Bob" {
			t.Errorf("recorded %+v, and Bob holds it: %q", held, got.Author)
		}
	}
}

func TestAbortDelay(t *testing.T) {
	type specs = []rollout.Spec
	web := rollout.Workload{Name: "web"}
	canary := func(scaling rollout.Scaling, service string, seconds int) rollout.Spec {
		return rollout.Spec{Workload: web, Scaling: scaling,
			Canary: &rollout.Canary{StableService: service, AbortScaleDownDelaySeconds: seconds}}
	}
	blueGreen := rollout.Spec{Workload: web, Scaling: rollout.Surge, BlueGreen: &rollout.BlueGreen{AbortScaleDownDelaySeconds: 20}}
	for reason, tc := range map[string]struct {
		specs specs
		want  time.Duration
	}{
		"nothing known: at once":                               {nil, 0},
		"routes first, pods later":                             {specs{canary(rollout.Surge, "web", 30)}, 30 * time.Second},
		"the preview stays for a while":                        {specs{blueGreen}, 20 * time.Second},
		"of several the longest":                               {specs{canary(rollout.Surge, "web", 10), blueGreen}, 20 * time.Second},
		"in place stable needs their room":                     {specs{blueGreen, canary(rollout.InPlace, "web", 30)}, 0},
		"pods that share stable's Service would go on serving": {specs{blueGreen, canary(rollout.Surge, "", 30)}, 0},
	} {
		in := Input{Source: &rollout.Render{Specs: tc.specs}, State: rollout.State{Release: &rollout.Release{Hash: "x"}}}
		compare.CheckNamed(t, reason, tc.want, abortDelay(in))
	}
}

// TestRollingUpdate checks how long a rolling update takes, by the numbers of replicas, missing pods and extra pods.
func TestRollingUpdate(t *testing.T) {
	spec := rollout.Spec{MinReadySeconds: 10, MaxSurge: rollout.Amount{Value: 2}, MaxUnavailable: rollout.Amount{Value: 1}}
	for _, c := range []struct {
		n, missing, extra int
		want              time.Duration
	}{
		{10, 10, 0, 40 * time.Second}, {10, 9, 0, 30 * time.Second}, {10, 1, 0, 10 * time.Second},
		{10, 0, 0, 0}, {10, -1, 0, 0}, {10, 10, 4, 20 * time.Second},
	} {
		compare.CheckNamed(t, fmt.Sprintf("%d missing of %d", c.missing, c.n), c.want, rollingUpdate(spec, c.n, c.missing, c.extra))
	}
}

// TestGatesOfAFullPromotion checks which gates a full promotion opens. A new gate needs an entry here.
func TestGatesOfAFullPromotion(t *testing.T) {
	names := func(all gateList) []string { return rollout.Mapped(all, func(g gate) string { return g.name }) }
	all := []string{"hold", "base", "healed", "suspended", "routers", "inconclusive", "wait", "window"}
	compare.CheckNamed(t, "the gates", all, names(gates))
	compare.CheckNamed(t, "those that a promotion of everything does not open", []string{"hold", "healed", "window"}, names(fullGates))
}

// TestGatesAskInOrder checks lists of open and shut gates. The first shut gate decides. If all gates are open, the verdict names a user who
// opened a gate.
func TestGatesAskInOrder(t *testing.T) {
	shut := func(name string) gate {
		return gate{name, func(Input, workloads.Staged) verdict { return verdict{text: name} }}
	}
	open := gate{"open", func(Input, workloads.Staged) verdict { return verdict{done: true} }}
	by := gate{"by", func(Input, workloads.Staged) verdict { return verdict{done: true, by: "Ann"} }}
	cases := map[string]struct {
		gates gateList
		want  verdict
	}{
		"None":      {nil, verdict{done: true}},
		"Open":      {gateList{open, open}, verdict{done: true}},
		"Somebody":  {gateList{open, by, open}, verdict{done: true, by: "Ann"}},
		"First":     {gateList{open, shut("a"), shut("b")}, verdict{text: "a"}},
		"AfterBy":   {gateList{by, shut("b")}, verdict{text: "b"}},
		"Except":    {gateList{shut("a"), shut("b"), by}.except("a", "b"), verdict{done: true, by: "Ann"}},
		"ExceptOne": {gateList{shut("a"), shut("b")}.except("a"), verdict{text: "b"}},
	}
	for name, tc := range cases {
		compare.CheckNamed(t, name, tc.want, tc.gates.verdict(Input{}, workloads.Staged{}))
	}
}

// TestWaits checks the properties of each wait. The number of a wait is part of recorded digests, so it must not change.
func TestWaits(t *testing.T) {
	cases := map[string]struct {
		wait   plan.Wait
		number int
		pauses bool
		ends   string
	}{
		"Pods":       {plan.PodsWait{}, 0, false, WaitPods},
		"Promotion":  {plan.PromotionWait{}, 1, true, WaitPromotion},
		"Timer":      {plan.TimerWait{Duration: time.Minute}, 2, true, WaitTime},
		"Delay":      {plan.DelayWait{Duration: time.Minute}, 3, true, WaitTime},
		"Nothing":    {plan.NoWait{}, 4, false, ""},
		"Analysis":   {plan.AnalysisWait{Analysis: &rollout.Analysis{}}, 5, false, WaitAnalysis},
		"Experiment": {plan.ExperimentWait{Experiment: &rollout.Experiment{}}, 6, false, ""},
	}
	for name, tc := range cases {
		got := tc.wait.Traits()
		if got.Number != tc.number || got.Pauses != tc.pauses {
			t.Errorf("%s: the traits are %+v, want %d, %t", name, got, tc.number, tc.pauses)
		}
		p := plan.Compiled{Stages: []plan.Stage{{Counts: plan.FullSets, Wait: tc.wait}}}
		c := &forecaster{in: Planned{Replicas: 3, Now: noon}, plan: &p, at: noon, known: true}
		compare.CheckNamed(t, name+": it is ended by", tc.ends, c.stage().Wait)
	}
}

// TestStateBeforeARelease checks that the recorded state is valid while the next release of an app cannot start yet.
func TestStateBeforeARelease(t *testing.T) {
	release := rollout.Release{Commit: "c000001", Hash: "h1-two", Since: noon}
	stable := rollout.Release{Commit: "c000000", Hash: "h1-one", Since: noon}
	cases := map[string]struct{ was, want rollout.State }{
		"New":         {rollout.State{}, rollout.State{Phase: rollout.Pending}},
		"Progressing": {rollout.State{Phase: rollout.Progressing}, rollout.State{Phase: rollout.Healthy}},
		"Promoting":   {rollout.State{Phase: rollout.Promoting}, rollout.State{Phase: rollout.Healthy}},
		"Stalled":     {rollout.State{Phase: rollout.Stalled, Reason: "no progress"}, rollout.State{Phase: rollout.Healthy}},
		"RolledBack":  {rollout.State{Phase: rollout.Aborting, Reason: "reverted"}, rollout.State{Phase: rollout.Healthy}},
		"Degraded":    {rollout.State{Phase: rollout.Degraded, Reason: "rejected"}, rollout.State{Phase: rollout.Degraded, Reason: "rejected"}},
		"InFlight": {rollout.State{Phase: rollout.Progressing, Release: &release},
			rollout.State{Phase: rollout.Progressing, Release: &release}},
	}
	for name, tc := range cases {
		got := tc.was
		beforeRelease(&got)
		got.App, tc.want.App = "shop", "shop"
		got.Stable, tc.want.Stable = &stable, &stable
		got.Source, tc.want.Source = "c000000", "c000000"
		compare.CheckNamed(t, name, tc.want, got)
		file, err := got.Encode()
		if err == nil {
			_, err = rollout.ParseState("state", file)
		}
		if err != nil {
			t.Errorf("%s: no process can read the record: %v", name, err)
		}
	}
}

// TestNamesOfHooksWithoutVersions checks which hook names differ only in their versions.
func TestNamesOfHooksWithoutVersions(t *testing.T) {
	for names, together := range map[[2]string]bool{
		{"shop-7a/migrate-v1", "shop-7a/migrate-v2"}:       true,
		{"shop-7a/migrate-1.2.0", "shop-7a/migrate-1.3.0"}: true,
		{"shop-7a/migrate", "shop-7a/check"}:               false,
		{"shop-7a/migrate-v1", "shop-8b/migrate-v1"}:       false,
	} {
		compare.CheckNamed(t, fmt.Sprint(names, " count together"), together, unversioned(names[0]) == unversioned(names[1]))
	}
}

// TestKeysOfSeveral checks the promotion that opens the gates of several workloads. The promotion names a step of each workload and, if
// State.Spent is set, the latest start of these steps.
func TestKeysOfSeveral(t *testing.T) {
	web, api := rollout.Workload{Namespace: "shop", Name: "web"}, rollout.Workload{Namespace: "shop", Name: "api"}
	s := rollout.State{Release: &rollout.Release{Hash: "h1-1"}, Progress: []rollout.Progress{{Workload: web}, {Workload: api}}}
	key := KeyThrough(s, map[rollout.Workload]int{web: 2, api: 3}, noon)
	if key.Through != "" || len(key.Workloads) != 2 || key.Workloads[web] != "2" || key.Workloads[api] != "3" || key.At != "" {
		t.Errorf("%+v", key)
	}
	s.Spent = "d"
	in := Input{State: s}
	two := []workloads.Staged{
		{Progress: rollout.Progress{Workload: web, Step: 1, Entered: noon}},
		{Progress: rollout.Progress{Workload: api, Step: 2, Entered: noon.Add(time.Minute)}},
	}
	for _, all := range [][]workloads.Staged{two, {two[1], two[0]}} {
		if key := keyTo(in, all); key.At != noon.Add(time.Minute).Format(time.RFC3339) || key.Workloads[web] != "2" || key.Workloads[api] != "3" {
			t.Errorf("%+v", key)
		}
	}
	if key := KeyThrough(s, nil, noon); key.Through != rollout.Full || key.Workloads != nil {
		t.Errorf("all of it: %+v", key)
	}
}

// TestEvidence checks the reason of a failed analysis, which names the last three values of the failed metric.
func TestEvidence(t *testing.T) {
	failed := func(name string, dry bool, condition string, values ...string) rollout.MetricProgress {
		p := rollout.MetricProgress{Metric: name, Phase: rollout.AnalysisFailed, Message: "2 failed", DryRun: dry, Condition: condition}
		for _, v := range values {
			p.Measurements = append(p.Measurements, rollout.Measurement{Value: v})
		}
		return p
	}
	passed := rollout.MetricProgress{Metric: "load", Phase: rollout.AnalysisSuccessful}
	for want, metrics := range map[string][]rollout.MetricProgress{
		"metric errors: 2 failed": {passed, failed("dry", true, "x < 1", "9"), failed("errors", false, "")},
		"metric errors: 2 failed (x < 1), last values: 3, 4, 5": {
			failed("errors", false, "x < 1", "1", "2", "3", "", "4", "5"), failed("load", false, "")},
		"metric errors: 2 failed, last values: 1, 2, 3": {failed("errors", false, "", "1", "2", "3")},
		"metric errors: 2 failed, last values: 1":       {failed("errors", false, "", "1")},
		"it could not be begun":                         {passed, failed("dry", true, "")},
	} {
		run := rollout.AnalysisRun{Phase: rollout.AnalysisFailed, Message: "it could not be begun", Metrics: metrics}
		compare.Check(t, want, evidence(run))
	}
}

// TestAvailable checks how many of ten pods must be available, if 25 % may be missing. Kubernetes rounds a percentage of nodes up. An API
// server without the feature gate MaxUnavailableStatefulSet drops a StatefulSet's maxUnavailable.
func TestAvailable(t *testing.T) {
	for name, tc := range map[string]struct {
		kind string
		room bool // the live object has maxUnavailable
		want int
	}{
		"Deployment":  {"", false, 8},
		"DaemonSet":   {"DaemonSet", false, 7},
		"StatefulSet": {"StatefulSet", true, 8},
		"StatefulSet, and the API server drops the field": {"StatefulSet", false, 10},
		"Advanced StatefulSet":                            {"StatefulSet.apps.kruise.io", false, 8},
	} {
		spec := rollout.Spec{Workload: rollout.Workload{Kind: tc.kind, Name: "web"}, MaxUnavailable: rollout.Amount{Value: 25, Percent: true}}
		live := rollout.ObservedWorkload{Room: tc.room}
		compare.CheckNamed(t, name, tc.want, available(spec, live, 10))
		spec.Canary = &rollout.Canary{ReplicaProgressThreshold: &rollout.ProgressThreshold{Type: "Percent", Value: 1}}
		compare.CheckNamed(t, name+": the pods of a step", tc.want, enough(workloads.Staged{Compiled: plan.Compile(spec), N: 10, Live: live}, 10))
	}
}

// TestLastReady checks that the newest ready pod is found, not an older one.
func TestLastReady(t *testing.T) {
	r := rollout.Revision{Desired: 2, Pods: 2, ReadySince: []time.Time{noon, noon.Add(time.Minute)}}
	compare.Check(t, noon.Add(time.Minute), lastReady(noon, r))
	compare.CheckNamed(t, "since a later time", noon.Add(time.Hour), lastReady(noon.Add(time.Hour), r))
}
