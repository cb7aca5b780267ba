package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestServing(t *testing.T) {
	r := Revision{ReadySince: []time.Time{noon.Add(-time.Minute), noon.Add(-10 * time.Second), noon}}
	for name, tc := range map[string]struct {
		reason   string
		now      time.Time
		minReady time.Duration
		want     int
	}{
		"None":      {"no minReadySeconds: ready is serving", noon, 0, 3},
		"Some":      {"the two old ones", noon, 10 * time.Second, 2},
		"AllButOne": {"just before the second one's time", noon.Add(-time.Second), 10 * time.Second, 1},
		"Later":     {"all have waited", noon.Add(10 * time.Second), 10 * time.Second, 3},
		"ClockBack": {"a clock that was set back counts nothing that it has not seen", noon.Add(-time.Hour), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.Serving(tc.now, tc.minReady); got != tc.want {
				t.Errorf("%s: Serving = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFindRevision(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		w      ObservedWorkload
		hash   Hash
		want   string
	}{
		"None":    {"nothing has it", ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1"}}}, "h1-2", ""},
		"Unknown": {"no hash is not a hash to find", ObservedWorkload{Revisions: []Revision{{Name: "a"}}}, "", ""},
		"Current": {"the one that the Deployment matches wins",
			ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1", Pods: 5}, {Name: "b", Hash: "h1-1", Current: true}}}, "h1-1", "b"},
		"MostPods": {"then most pods",
			ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1", Pods: 1}, {Name: "b", Hash: "h1-1", Pods: 2}}}, "h1-1", "b"},
		"OldestLast": {"then the oldest",
			ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1", Number: 2}, {Name: "b", Hash: "h1-1", Number: 1}}}, "h1-1", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := tc.w.Find(tc.hash)
			if got.Name != tc.want || ok != (tc.want != "") {
				t.Errorf("%s: found %q (%t), want %q", tc.reason, got.Name, ok, tc.want)
			}
		})
	}
}

// TestAmount checks that maxSurge rounds up and maxUnavailable down, as in Kubernetes.
func TestAmount(t *testing.T) {
	for name, tc := range map[string]struct {
		a        Amount
		n        int
		up, down int
		text     string
	}{
		"QuarterOf10": {Amount{25, true}, 10, 3, 2, "25%"},
		"QuarterOf1":  {Amount{25, true}, 1, 1, 0, "25%"},
		"AllOf7":      {Amount{100, true}, 7, 7, 7, "100%"},
		"NoneOf0":     {Amount{25, true}, 0, 0, 0, "25%"},
		"Zero":        {Amount{0, true}, 10, 0, 0, "0%"},
		"Three":       {Amount{3, false}, 10, 3, 3, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.RoundUp(tc.n); got != tc.up {
				t.Errorf("RoundUp(%d) = %d, want %d", tc.n, got, tc.up)
			}
			if got := tc.a.RoundDown(tc.n); got != tc.down {
				t.Errorf("RoundDown(%d) = %d, want %d", tc.n, got, tc.down)
			}
			if got := tc.a.String(); got != tc.text {
				t.Errorf("String() = %s, want %s", got, tc.text)
			}
		})
	}
}

func TestInvalidErrorText(t *testing.T) {
	for name, tc := range map[string]struct {
		err  InvalidError
		want string
	}{
		"All":    {InvalidError{File: "a.yaml", Field: "spec.x", Msg: "is wrong", Fix: "use y"}, "a.yaml: spec.x: is wrong; use y"},
		"NoFile": {InvalidError{Field: "spec.x", Msg: "is wrong"}, "spec.x: is wrong"},
		"About": {InvalidError{About: Ref{Kind: "Service", Namespace: "shop", Name: "web"}, Field: "spec.x", Msg: "is wrong"},
			"core/Service/shop/web: spec.x: is wrong"},
		"Message": {InvalidError{Msg: "is wrong"}, "is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRenderRelease(t *testing.T) {
	r := Render{
		Specs:     []Spec{{Workload: web}},
		Templates: map[Workload]Hash{web: "h1-1", api: "h1-2"},
	}
	if got := r.Release(); got != "h1-1" {
		t.Errorf("release is %q, want h1-1: an unstaged workload is not part of it", got)
	}
	if _, ok := r.Spec(api); ok {
		t.Error("a workload without a Rollout document has a spec")
	}
	if got := (&Render{Templates: r.Templates}).Release(); got != "" {
		t.Errorf("release of a render without Rollout documents is %q, want none", got)
	}
	if got := (Commit{ID: "0123456789"}).Short() + ShortID("abc"); got != "0123456abc" {
		t.Errorf("short ids are %q", got)
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
	if got := s.StableHash(api); got != "h1-0000000002" {
		t.Errorf("StableHash = %q", got)
	}
	if got := s.Named(App{Name: "shop"}); got.Formerly != strings.Join(s.Formerly, " ") || got.Name != "shop" {
		t.Errorf("Named = %+v", got)
	}
	if got := (&State{Formerly: []string{"a", "b"}}).Named(App{}); got.Formerly != "a b" {
		t.Errorf("Named = %+v", got)
	}
	if got := (&State{}).StableHash(api); got != "" {
		t.Errorf("StableHash without a stable release = %q", got)
	}
}

// TestShown checks that an app with a problem is not shown as Healthy, and that other phases are shown unchanged.
func TestShown(t *testing.T) {
	for _, c := range []struct {
		s    State
		want Phase
	}{
		{State{Phase: Healthy}, Healthy}, {State{Phase: Healthy, Unhealthy: "0 of 5"}, Degraded},
		{State{Phase: Paused, Unhealthy: "0 of 5"}, Paused},
	} {
		if got := c.s.Shown(); got != c.want {
			t.Errorf("%+v is shown as %s", c.s, got)
		}
	}
}

// TestWaits checks that only a release held by a closed calendar waits without a problem.
func TestWaits(t *testing.T) {
	if (*Held)(nil).Waits() || (&Held{Reason: HeldPolicy}).Waits() || !(&Held{Reason: HeldClosed}).Waits() {
		t.Error("want only a release held by a closed calendar to wait")
	}
}

func TestReasonOf(t *testing.T) {
	for want, err := range map[HeldReason]error{
		HeldInvalidInput: errors.New("x"), HeldPolicy: fmt.Errorf("about: %w", &InvalidError{Reason: HeldPolicy}),
	} {
		if got := ReasonOf(err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
	if got := ReasonOf(&InvalidError{}); got != HeldInvalidInput {
		t.Errorf("no reason is %q", got)
	}
}

// TestNewestSerial checks that the newest serial of all workloads is used.
func TestNewestSerial(t *testing.T) {
	if got := (Observed{Workloads: map[Workload]ObservedWorkload{web: {Serial: 3}, api: {Serial: 7}}}).Serial(); got != 7 {
		t.Errorf("serial %d", got)
	}
	if PodHash("") != (Pin{}) || PodHash("a") != (Pin{LabelPodHash, "a"}) {
		t.Error("a pin without a value pins something")
	}
}

// TestTheFirstOfEqualRevisions checks that the first of several equal revisions of a hash is found.
func TestTheFirstOfEqualRevisions(t *testing.T) {
	w := ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h", Pods: 1, Number: 2}, {Name: "b", Hash: "h", Pods: 1, Number: 2},
		{Name: "c", Hash: "h", Number: 1}}}
	if got, _ := w.Find("h"); got.Name != "a" {
		t.Errorf("found %s", got.Name)
	}
}

// TestSpecsOfARender checks that a workload has its own spec, and another one has none.
func TestSpecsOfARender(t *testing.T) {
	r := Render{Specs: []Spec{{Name: "a", Workload: web}, {Name: "b", Workload: api}}}
	if s, ok := r.Spec(api); !ok || s.Name != "b" {
		t.Errorf("%+v, %t", s, ok)
	}
	if _, ok := r.Spec(Workload{Name: "none"}); ok {
		t.Error("an unknown workload has a spec")
	}
}

func TestTemplateOfAnExperiment(t *testing.T) {
	e := &Experiment{Templates: []ExperimentTemplate{{Name: "a", SpecRef: "stable"}, {Name: "b", SpecRef: "canary"},
		{Name: "c", SpecRef: "canary"}}}
	if got, ok := e.RunsOn("canary"); !ok || got.Name != "b" {
		t.Errorf("%+v, %t", got, ok)
	}
	if _, ok := e.RunsOn("other"); ok {
		t.Error("a version without a template has one")
	}
}

// TestSameRun compares runs by name, release and start.
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
	for phase, want := range map[AnalysisPhase]bool{"": false, AnalysisPending: false, AnalysisRunning: false, AnalysisFailed: true,
		AnalysisStopped: true} {
		if phase.Done() != want {
			t.Errorf("%q is done: %t", phase, !want)
		}
	}
	if _, any := (MetricProgress{}).Last(); any {
		t.Error("nothing was measured, and something was last")
	}
	if last, any := (MetricProgress{Measurements: []Measurement{{Value: "1"}, {Value: "2"}}}).Last(); !any || last.Value != "2" {
		t.Errorf("the last is %+v", last)
	}
}

// TestMergeDoes checks that only a clean merge of exactly these files counts.
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

// TestParseVendor accepts folders beside the file, and none above it.
func TestParseVendor(t *testing.T) {
	for into, want := range map[string]string{
		"a": "", "a/b": "", "..": "x", "../a": "x", "/a": "x", "a/": "x", "a/../b": "x", "./a": "x", "..a": "", ".": "x",
	} {
		for kind, source := range map[string]string{"git": "git: {url: https://example.com/r, ref: v1}",
			"chart": "chart: {repo: https://example.com, name: c, version: ~1.0}"} {
			_, err := ParseVendor("vendor.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\n"+
				"sources: [{git: {url: https://example.com/r, ref: v1}, into: ok}, {"+source+", into: "+into+"}]\n"))
			refused := want != "" && !(into == "." && kind == "chart")
			if (err != nil) != refused || err != nil && err.Error() != fmt.Sprintf("vendor.yaml: sources[1].into: %q is no folder beside it; "+
				"write a path without .., and no slash around it", into) {
				t.Errorf("%s into %s: %v", kind, into, err)
			}
		}
	}
	if _, err := ParseVendor("vendor.yaml", []byte("kind: Config\n")); err == nil {
		t.Error("another kind is read")
	}
	for _, c := range []struct {
		s           VendorSource
		name, wants string
	}{
		{VendorSource{Into: "x/y", Chart: &VendorChart{Repo: "r", Name: "n", Version: "~1"}}, "n", "chart r n ~1"},
		{VendorSource{Into: "x/y", Git: &VendorGit{URL: "u", Ref: "v1", Path: "p"}}, "y", "git u v1 p"},
		{VendorSource{Into: "x/y", OCI: &VendorOCI{URL: "u", Tag: "t"}}, "y", "oci u t"},
		{VendorSource{Into: "z", OCI: &VendorOCI{URL: "u", Semver: "~1"}}, "z", "oci u ~1"},
	} {
		if c.s.Name() != c.name || c.s.Wants() != c.wants {
			t.Errorf("%q, %q, want %q, %q", c.s.Name(), c.s.Wants(), c.name, c.wants)
		}
	}
}
