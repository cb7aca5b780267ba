package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

func TestServing(t *testing.T) {
	r := Revision{ReadySince: []time.Time{noon.Add(-time.Minute), noon.Add(-10 * time.Second), noon}}
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
		revisions []Revision
		hash      Hash
		want      string
	}{
		"nothing has it":                {[]Revision{{Name: "a", Hash: "h1-1"}}, "h1-2", ""},
		"no hash is not a hash to find": {[]Revision{{Name: "a"}}, "", ""},
		"the one that the Deployment matches wins": {
			[]Revision{{Name: "a", Hash: "h1-1", Pods: 5}, {Name: "b", Hash: "h1-1", Current: true}}, "h1-1", "b",
		},
		"then most pods":  {[]Revision{{Name: "a", Hash: "h1-1", Pods: 1}, {Name: "b", Hash: "h1-1", Pods: 2}}, "h1-1", "b"},
		"then the oldest": {[]Revision{{Name: "a", Hash: "h1-1", Number: 2}, {Name: "b", Hash: "h1-1", Number: 1}}, "h1-1", "b"},
		"of equals the first": {[]Revision{
			{Name: "a", Hash: "h", Pods: 1, Number: 2}, {Name: "b", Hash: "h", Pods: 1, Number: 2}, {Name: "c", Hash: "h", Number: 1},
		}, "h", "a"},
	} {
		got, ok := ObservedWorkload{Revisions: tc.revisions}.Find(tc.hash)
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
		a    Amount
		n    int
		want rounded
	}{
		{Amount{25, true}, 10, rounded{3, 2, "25%"}}, {Amount{25, true}, 1, rounded{1, 0, "25%"}},
		{Amount{100, true}, 7, rounded{7, 7, "100%"}}, {Amount{25, true}, 0, rounded{0, 0, "25%"}},
		{Amount{0, true}, 10, rounded{0, 0, "0%"}}, {Amount{3, false}, 10, rounded{3, 3, "3"}},
	} {
		if got := (rounded{tc.a.RoundUp(tc.n), tc.a.RoundDown(tc.n), tc.a.String()}); got != tc.want {
			t.Errorf("%s of %d is %+v, want %+v", tc.a, tc.n, got, tc.want)
		}
	}
}

// TestUnavailable checks that a percentage of nodes is rounded up, and a percentage of other pods down. The limit of a StatefulSet is 0 if
// the API server has dropped the field.
func TestUnavailable(t *testing.T) {
	for kind, want := range map[string]int{
		"": 2, "StatefulSet": 0, "DaemonSet": 3, "DaemonSet.apps.kruise.io": 3, "CloneSet.apps.kruise.io": 2,
	} {
		spec := Spec{Workload: Workload{Kind: kind}, MaxUnavailable: Amount{25, true}}
		if ref := spec.Workload.Ref(); ref.Group == "apps.kruise.io" {
			spec.Partition, _ = FindPartitioned(nil, "apps.kruise.io/v1alpha1", ref.Kind)
		}
		compare.CheckNamed(t, kind, want, spec.Unavailable(ObservedWorkload{}, 10))
	}
	set := Spec{Workload: Workload{Kind: "StatefulSet"}, MaxUnavailable: Amount{25, true}}
	compare.CheckNamed(t, "the API server knows the field", 2, set.Unavailable(ObservedWorkload{Room: true}, 10))
}

func TestInvalidErrorText(t *testing.T) {
	for want, err := range map[string]InvalidError{
		"a.yaml: spec.x: is wrong; use y": {File: "a.yaml", Field: "spec.x", Msg: "is wrong", Fix: "use y"},
		"spec.x: is wrong":                {Field: "spec.x", Msg: "is wrong"},
		"core/Service/shop/web: spec.x: is wrong": {
			About: Ref{Kind: "Service", Namespace: "shop", Name: "web"}, Field: "spec.x", Msg: "is wrong",
		},
		"is wrong": {Msg: "is wrong"},
	} {
		compare.Check(t, want, err.Error())
	}
}

func TestRenderRelease(t *testing.T) {
	templates := map[Workload]Hash{web: "h1-1", api: "h1-2"}
	compare.CheckNamed(t, "an unstaged workload is not part of it", Hash("h1-1"),
		(&Render{Specs: []Spec{{Workload: web}}, Templates: templates}).Release())
	compare.CheckNamed(t, "without Rollout documents", Hash(""), (&Render{Templates: templates}).Release())
	compare.CheckNamed(t, "short ids", "0123456abc", (Commit{ID: "0123456789"}).Short()+ShortID("abc"))
	both := Render{Specs: []Spec{{Name: "a", Workload: web}, {Name: "b", Workload: api}}, Templates: templates}
	if s, ok := both.Spec(api); !ok || s.Name != "b" {
		t.Errorf("%+v, %t", s, ok)
	}
	if _, ok := both.Spec(Workload{Name: "none"}); ok {
		t.Error("an unknown workload has a spec")
	}
	if _, ok := (&Render{Specs: both.Specs[:1], Templates: templates}).Spec(api); ok {
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
	compare.Check(t, Hash("h1-0000000002"), s.StableHash(api))
	compare.CheckNamed(t, "without a stable release", Hash(""), (&State{}).StableHash(api))
	compare.Check(t, App{Name: "shop", Formerly: strings.Join(s.Formerly, " ")}, s.Named(App{Name: "shop"}))
	compare.Check(t, App{Formerly: "a b"}, (&State{Formerly: []string{"a", "b"}}).Named(App{}))
}

// TestShown checks that a Healthy app with a recorded problem is shown as Degraded, and that other phases are shown unchanged.
func TestShown(t *testing.T) {
	compare.Check(t, Healthy, (&State{Phase: Healthy}).Shown())
	compare.CheckNamed(t, "with a problem", Degraded, (&State{Phase: Healthy, Unhealthy: "0 of 5"}).Shown())
	compare.CheckNamed(t, "another phase", Paused, (&State{Phase: Paused, Unhealthy: "0 of 5"}).Shown())
}

// TestWaits checks that Waits is true for an app that a closed window holds, and false for an app that a policy holds.
func TestWaits(t *testing.T) {
	if (*Held)(nil).Waits() || (&Held{Reason: HeldPolicy}).Waits() || !(&Held{Reason: HeldClosed}).Waits() {
		t.Error("want only a release held by a closed calendar to wait")
	}
}

func TestReasonOf(t *testing.T) {
	compare.Check(t, HeldInvalidInput, ReasonOf(errors.New("x")))
	compare.Check(t, HeldPolicy, ReasonOf(fmt.Errorf("about: %w", &InvalidError{Reason: HeldPolicy})))
	compare.CheckNamed(t, "no reason", HeldInvalidInput, ReasonOf(&InvalidError{}))
}

// TestNewestSerial checks that Serial returns the highest serial of all workloads. It also checks the pins of PodHash.
func TestNewestSerial(t *testing.T) {
	seen := Observed{Workloads: map[Workload]ObservedWorkload{web: {Serial: 3}, api: {Serial: 7}}}
	compare.Check(t, 7, seen.Serial())
	compare.CheckNamed(t, "a pin without a value", Pin{}, PodHash(""))
	compare.CheckNamed(t, "a pin", Pin{LabelPodHash, "a"}, PodHash("a"))
}

func TestTemplateOfAnExperiment(t *testing.T) {
	e := &Experiment{Templates: []ExperimentTemplate{
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
	run := AnalysisRun{Name: "a", Release: "h", Started: noon}
	other := []AnalysisRun{{Name: "b", Release: "h", Started: noon}, {Name: "a", Release: "i", Started: noon}, {Name: "a", Release: "h"}}
	for _, o := range other {
		if run.Same(o) {
			t.Errorf("%+v is the same", o)
		}
	}
	if !run.Same(AnalysisRun{Name: "a", Release: "h", Started: noon.In(time.FixedZone("", 3600)), Phase: AnalysisFailed}) {
		t.Error("a run is not itself")
	}
	for phase, want := range map[AnalysisPhase]bool{
		"": false, AnalysisPending: false, AnalysisRunning: false, AnalysisFailed: true, AnalysisStopped: true,
	} {
		compare.CheckNamed(t, "end of "+string(phase), want, phase.Done())
	}
	if _, any := (MetricProgress{}).Last(); any {
		t.Error("nothing was measured, and something was last")
	}
	if last, any := (MetricProgress{Measurements: []Measurement{{Value: "1"}, {Value: "2"}}}).Last(); !any || last.Value != "2" {
		t.Errorf("the last is %+v", last)
	}
}

// TestMergeDoes checks that Does is true only for a clean merge with exactly the given edits.
func TestMergeDoes(t *testing.T) {
	edits := map[string][]byte{"a": []byte("x"), "gone": nil, "empty": {}}
	for _, c := range []struct {
		merge Merge
		want  bool
	}{
		{Merge{edits, true}, true}, {Merge{edits, false}, false}, {Merge{map[string][]byte{"a": []byte("x"), "gone": nil}, true}, false},
		{Merge{map[string][]byte{"a": []byte("y"), "gone": nil, "empty": {}}, true}, false},
		{Merge{map[string][]byte{"a": []byte("x"), "gone": {}, "empty": {}}, true}, false},
		{Merge{map[string][]byte{"a": []byte("x"), "gone": nil, "empty": nil}, true}, false},
	} {
		if got := c.merge.Does(edits); got != c.want {
			t.Errorf("%+v: %t", c.merge, got)
		}
	}
}
