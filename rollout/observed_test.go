package rollout_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestServing(t *testing.T) {
	r := rollout.Revision{ReadySince: []time.Time{noon.Add(-time.Minute), noon.Add(-10 * time.Second), noon}}
	for name, tc := range map[string]struct {
		now      time.Time
		minReady time.Duration
		want     int
	}{
		"no minReadySeconds: ready is serving":                          {noon, 0, 3},
		"the two old ones":                                              {noon, 10 * time.Second, 2},
		"just before the second one's time":                             {noon.Add(-time.Second), 10 * time.Second, 1},
		"all have waited":                                               {noon.Add(10 * time.Second), 10 * time.Second, 3},
		"a clock that was set back counts nothing that it has not seen": {noon.Add(-time.Hour), 0, 0},
	} {
		compare.CheckNamed(t, name, tc.want, r.Serving(tc.now, tc.minReady))
	}
}

func TestFindRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		revisions []rollout.Revision
		hash      rollout.Hash
		want      string
	}{
		"nothing has it":                {[]rollout.Revision{{Name: "a", Hash: "h1-1"}}, "h1-2", ""},
		"no hash is not a hash to find": {[]rollout.Revision{{Name: "a"}}, "", ""},
		"the one that the Deployment matches wins": {
			[]rollout.Revision{{Name: "a", Hash: "h1-1", Pods: 5}, {Name: "b", Hash: "h1-1", Current: true}}, "h1-1", "b",
		},
		"then most pods":  {[]rollout.Revision{{Name: "a", Hash: "h1-1", Pods: 1}, {Name: "b", Hash: "h1-1", Pods: 2}}, "h1-1", "b"},
		"then the oldest": {[]rollout.Revision{{Name: "a", Hash: "h1-1", Number: 2}, {Name: "b", Hash: "h1-1", Number: 1}}, "h1-1", "b"},
		"of equals the first": {[]rollout.Revision{
			{Name: "a", Hash: "h", Pods: 1, Number: 2}, {Name: "b", Hash: "h", Pods: 1, Number: 2}, {Name: "c", Hash: "h", Number: 1},
		}, "h", "a"},
	} {
		got, ok := rollout.ObservedWorkload{Revisions: tc.revisions}.Find(tc.hash)
		if got.Name != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: found %q (%t), want %q", name, got.Name, ok, tc.want)
		}
	}
}

// TestAmount checks that RoundUp (maxSurge) rounds up and RoundDown (maxUnavailable) rounds down, as in Kubernetes.
func TestAmount(t *testing.T) {
	type rounded struct {
		up, down int
		text     string
	}
	for _, tc := range []struct {
		a    rollout.Amount
		n    int
		want rounded
	}{
		{rollout.Amount{25, true}, 10, rounded{3, 2, "25%"}}, {rollout.Amount{25, true}, 1, rounded{1, 0, "25%"}},
		{rollout.Amount{100, true}, 7, rounded{7, 7, "100%"}}, {rollout.Amount{25, true}, 0, rounded{0, 0, "25%"}},
		{rollout.Amount{0, true}, 10, rounded{0, 0, "0%"}}, {rollout.Amount{3, false}, 10, rounded{3, 3, "3"}},
	} {
		if got := (rounded{tc.a.RoundUp(tc.n), tc.a.RoundDown(tc.n), tc.a.String()}); got != tc.want {
			t.Errorf("%s of %d is %+v, want %+v", tc.a, tc.n, got, tc.want)
		}
	}
}

// TestUnavailable checks that a percentage is rounded up for DaemonSets, and down for other workloads. A StatefulSet's limit is 0 if the
// API server has dropped maxUnavailable.
func TestUnavailable(t *testing.T) {
	for kind, want := range map[string]int{
		"": 2, "StatefulSet": 0, "DaemonSet": 3, "DaemonSet.apps.kruise.io": 3, "CloneSet.apps.kruise.io": 2,
	} {
		spec := rollout.Spec{Workload: rollout.Workload{Kind: kind}, MaxUnavailable: rollout.Amount{25, true}}
		if ref := spec.Workload.Ref(); ref.Group == "apps.kruise.io" {
			spec.Partition, _ = rollout.FindPartitioned(nil, "apps.kruise.io/v1alpha1", ref.Kind)
		}
		compare.CheckNamed(t, kind, want, spec.Unavailable(rollout.ObservedWorkload{}, 10))
	}
	set := rollout.Spec{Workload: rollout.Workload{Kind: "StatefulSet"}, MaxUnavailable: rollout.Amount{25, true}}
	compare.CheckNamed(t, "the API server knows the field", 2, set.Unavailable(rollout.ObservedWorkload{Room: true}, 10))
}

func TestInvalidErrorText(t *testing.T) {
	for want, err := range map[string]rollout.InvalidError{
		"a.yaml: spec.x: is wrong; use y": {File: "a.yaml", Field: "spec.x", Msg: "is wrong", Fix: "use y"},
		"spec.x: is wrong":                {Field: "spec.x", Msg: "is wrong"},
		"core/Service/shop/web: spec.x: is wrong": {
			About: rollout.Ref{Kind: "Service", Namespace: "shop", Name: "web"}, Field: "spec.x", Msg: "is wrong",
		},
		"is wrong": {Msg: "is wrong"},
	} {
		compare.Check(t, want, err.Error())
	}
}

func TestRenderRelease(t *testing.T) {
	templates := map[rollout.Workload]rollout.Hash{web: "h1-1", api: "h1-2"}
	compare.CheckNamed(t, "an unstaged workload is not part of it", rollout.Hash("h1-1"),
		(&rollout.Render{Specs: []rollout.Spec{{Workload: web}}, Templates: templates}).Release())
	compare.CheckNamed(t, "without Rollout documents", rollout.Hash(""), (&rollout.Render{Templates: templates}).Release())
	compare.CheckNamed(t, "short ids", "0123456abc", (rollout.Commit{ID: "0123456789"}).Short()+rollout.ShortID("abc"))
	both := rollout.Render{Specs: []rollout.Spec{{Name: "a", Workload: web}, {Name: "b", Workload: api}}, Templates: templates}
	if s, ok := both.Spec(api); !ok || s.Name != "b" {
		t.Errorf("%+v, %t", s, ok)
	}
	if _, ok := both.Spec(rollout.Workload{Name: "none"}); ok {
		t.Error("an unknown workload has a spec")
	}
	if _, ok := (&rollout.Render{Specs: both.Specs[:1], Templates: templates}).Spec(api); ok {
		t.Error("an unstaged workload has a spec")
	}
}

func TestStateLookups(t *testing.T) {
	s := fullState()
	if r, ok := s.IsRejected("h1-2222222222"); !ok || r.Reason != "errors" {
		t.Errorf("IsRejected = %v, %t", r, ok)
	}
	if _, ok := s.IsRejected("h1-1111111111"); ok {
		t.Error("stable is rejected")
	}
	if p, ok := s.ProgressOf(web); !ok || p.Step != 1 {
		t.Errorf("ProgressOf = %v, %t", p, ok)
	}
	if _, ok := s.ProgressOf(api); ok {
		t.Error("a workload that does not change has progress")
	}
	compare.Check(t, rollout.Hash("h1-0000000002"), s.StableHash(api))
	compare.CheckNamed(t, "without a stable release", rollout.Hash(""), (&rollout.State{}).StableHash(api))
	compare.Check(t, rollout.App{Name: "shop", Formerly: strings.Join(s.Formerly, " ")}, s.Named(rollout.App{Name: "shop"}))
	compare.Check(t, rollout.App{Formerly: "a b"}, (&rollout.State{Formerly: []string{"a", "b"}}).Named(rollout.App{}))
}

// TestShown checks that a Healthy app with a recorded problem is shown as Degraded, and that other phases are shown unchanged.
func TestShown(t *testing.T) {
	compare.Check(t, rollout.Healthy, (&rollout.State{Phase: rollout.Healthy}).Shown())
	compare.CheckNamed(t, "with a problem", rollout.Degraded, (&rollout.State{Phase: rollout.Healthy, Unhealthy: "0 of 5"}).Shown())
	compare.CheckNamed(t, "another phase", rollout.Paused, (&rollout.State{Phase: rollout.Paused, Unhealthy: "0 of 5"}).Shown())
}

// TestWaits checks that Waits is true for an app that a closed window holds, and false for an app that a policy holds.
func TestWaits(t *testing.T) {
	if (*rollout.Held)(nil).Waits() || (&rollout.Held{Reason: rollout.HeldPolicy}).Waits() ||
		!(&rollout.Held{Reason: rollout.HeldClosed}).Waits() {
		t.Error("want only a release held by a closed calendar to wait")
	}
}

func TestReasonOf(t *testing.T) {
	compare.Check(t, rollout.HeldInvalidInput, rollout.ReasonOf(errors.New("x")))
	compare.Check(t, rollout.HeldPolicy, rollout.ReasonOf(fmt.Errorf("about: %w", &rollout.InvalidError{Reason: rollout.HeldPolicy})))
	compare.CheckNamed(t, "no reason", rollout.HeldInvalidInput, rollout.ReasonOf(&rollout.InvalidError{}))
}

// TestNewestSerial checks that Serial returns the highest serial of all workloads. It also checks the Pin that PodHash returns.
func TestNewestSerial(t *testing.T) {
	seen := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: {Serial: 3}, api: {Serial: 7}}}
	compare.Check(t, 7, seen.Serial())
	compare.CheckNamed(t, "a pin without a value", rollout.Pin{}, rollout.PodHash(""))
	compare.CheckNamed(t, "a pin", rollout.Pin{rollout.LabelPodHash, "a"}, rollout.PodHash("a"))
}

func TestTemplateOfAnExperiment(t *testing.T) {
	e := &rollout.Experiment{Templates: []rollout.ExperimentTemplate{
		{Name: "a", SpecRef: "stable"}, {Name: "b", SpecRef: "canary"}, {Name: "c", SpecRef: "canary"},
	}}
	if got, ok := e.RunsOn("canary"); !ok || got.Name != "b" {
		t.Errorf("%+v, %t", got, ok)
	}
	if _, ok := e.RunsOn("other"); ok {
		t.Error("a version without a template has one")
	}
}

// TestSameRun checks that runs are the same only if name, release and start are equal. It also checks Done and Last.
func TestSameRun(t *testing.T) {
	run := rollout.AnalysisRun{Name: "a", Release: "h", Started: noon}
	other := []rollout.AnalysisRun{{Name: "b", Release: "h", Started: noon}, {Name: "a", Release: "i", Started: noon},
		{Name: "a", Release: "h"}}
	for _, o := range other {
		if run.Same(o) {
			t.Errorf("%+v is the same", o)
		}
	}
	if !run.Same(rollout.AnalysisRun{Name: "a", Release: "h", Started: noon.In(time.FixedZone("", 3600)), Phase: rollout.AnalysisFailed}) {
		t.Error("a run is not itself")
	}
	for phase, want := range map[rollout.AnalysisPhase]bool{
		"": false, rollout.AnalysisPending: false, rollout.AnalysisRunning: false, rollout.AnalysisFailed: true, rollout.AnalysisStopped: true,
	} {
		compare.CheckNamed(t, "end of "+string(phase), want, phase.Done())
	}
	if _, any := (rollout.MetricProgress{}).Last(); any {
		t.Error("nothing was measured, and something was last")
	}
	if last, any := (rollout.MetricProgress{Measurements: []rollout.Measurement{{Value: "1"}, {Value: "2"}}}).Last(); !any ||
		last.Value != "2" {
		t.Errorf("the last is %+v", last)
	}
}

// TestMergeDoes checks that Does is true only for a clean merge with exactly the given edits.
func TestMergeDoes(t *testing.T) {
	edits := map[string][]byte{"a": []byte("x"), "gone": nil, "empty": {}}
	for _, c := range []struct {
		merge rollout.Merge
		want  bool
	}{
		{rollout.Merge{edits, true}, true}, {rollout.Merge{edits, false}, false},
		{rollout.Merge{map[string][]byte{"a": []byte("x"), "gone": nil}, true}, false},
		{rollout.Merge{map[string][]byte{"a": []byte("y"), "gone": nil, "empty": {}}, true}, false},
		{rollout.Merge{map[string][]byte{"a": []byte("x"), "gone": {}, "empty": {}}, true}, false},
		{rollout.Merge{map[string][]byte{"a": []byte("x"), "gone": nil, "empty": nil}, true}, false},
	} {
		if got := c.merge.Does(edits); got != c.want {
			t.Errorf("%+v: %t", c.merge, got)
		}
	}
}
