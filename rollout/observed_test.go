package rollout

import (
	"testing"
	"time"
)

func TestServing(t *testing.T) {
	r := Revision{ReadySince: []time.Time{noon.Add(-time.Minute), noon.Add(-10 * time.Second), noon}}
	cases := map[string]struct {
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
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := r.Serving(tc.now, tc.minReady); got != tc.want {
				t.Errorf("%s: Serving = %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFindRevision(t *testing.T) {
	cases := map[string]struct {
		reason string
		w      ObservedWorkload
		hash   Hash
		want   string
	}{
		"None":       {"nothing has it", ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1"}}}, "h1-2", ""},
		"Unknown":    {"no hash is not a hash to find", ObservedWorkload{Revisions: []Revision{{Name: "a"}}}, "", ""},
		"Current":    {"the one that the Deployment matches wins", ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1", Pods: 5}, {Name: "b", Hash: "h1-1", Current: true}}}, "h1-1", "b"},
		"MostPods":   {"then most pods", ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1", Pods: 1}, {Name: "b", Hash: "h1-1", Pods: 2}}}, "h1-1", "b"},
		"OldestLast": {"then the oldest", ObservedWorkload{Revisions: []Revision{{Name: "a", Hash: "h1-1", Number: 2}, {Name: "b", Hash: "h1-1", Number: 1}}}, "h1-1", "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := tc.w.Find(tc.hash)
			if got.Name != tc.want || ok != (tc.want != "") {
				t.Errorf("%s: found %q (%t), want %q", tc.reason, got.Name, ok, tc.want)
			}
		})
	}
}

// Kubernetes rounds maxSurge up and maxUnavailable down.
func TestAmount(t *testing.T) {
	cases := map[string]struct {
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
	}
	for name, tc := range cases {
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
	cases := map[string]struct {
		err  InvalidError
		want string
	}{
		"All":     {InvalidError{File: "a.yaml", Field: "spec.x", Msg: "is wrong", Fix: "use y"}, "a.yaml: spec.x: is wrong; use y"},
		"NoFile":  {InvalidError{Field: "spec.x", Msg: "is wrong"}, "spec.x: is wrong"},
		"Message": {InvalidError{Msg: "is wrong"}, "is wrong"},
	}
	for name, tc := range cases {
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
		t.Errorf("release is %q, want h1-1: what is not staged is not part of it", got)
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
	if got := (&State{}).StableHash(api); got != "" {
		t.Errorf("StableHash without a stable release = %q", got)
	}
}
