package rollout_test

import (
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	web  = rollout.Workload{Namespace: "shop", Name: "web"}
	api  = rollout.Workload{Namespace: "shop", Name: "api"}
)

// fullState returns the state in the golden file state.golden.yaml. Most of its fields are set.
func fullState() rollout.State {
	return rollout.State{
		App: "shop", Path: "apps/shop/overlays/prod", Phase: rollout.Aborting, Reason: "aborted by Ann: errors",
		Held:   &rollout.Held{Reason: "InvalidInput", Message: "apps/shop/kustomization.yaml: is not valid YAML", Commit: "cccccccc"},
		Source: "bbbbbbbb",
		Stable: &rollout.Release{
			Commit: "aaaaaaaa", Hash: "h1-1111111111", Author: "Ann <ann@example.com>", Subject: "web 1.0",
			Since: noon, Templates: map[rollout.Workload]rollout.Hash{web: "h1-0000000001", api: "h1-0000000002"},
		},
		Release: &rollout.Release{
			Commit: "bbbbbbbb", Hash: "h1-2222222222", Author: "Bob <bob@example.com>", Subject: "web: 1.1 # not a comment",
			Since: noon.Add(time.Hour), Fast: true, Templates: map[rollout.Workload]rollout.Hash{web: "h1-0000000003", api: "h1-0000000002"},
		},
		Progress: []rollout.Progress{{
			Workload: web, Step: 1, Of: 4, Name: "pause 10m0s", Weight: 20, Plan: "01234567",
			Entered: noon.Add(time.Hour), Opened: "Ann <ann@example.com>",
			Available: new(noon.Add(time.Hour + time.Minute)),
		}},
		Rollback:  &rollout.Rollback{Reject: true, Routed: noon.Add(2 * time.Hour), Drain: noon.Add(3 * time.Hour), To: "aaaaaaaa"},
		Rejected:  []rollout.Rejection{{Hash: "h1-2222222222", Commit: "bbbbbbbb", Reason: "errors", At: noon, Promotion: "89abcdef01"}},
		Verified:  []rollout.Hash{"h1-1111111111", "h1-3333333333"},
		Inventory: []rollout.Ref{{Kind: "Namespace", Name: "shop"}, web.Ref(), {Kind: "Service", Namespace: "shop", Name: "web"}},
	}
}

func TestStateGoldenFile(t *testing.T) {
	got, err := fullState().Encode()
	must(t, err)
	golden := filepath.Join("testdata", "state.golden.yaml")
	if *update {
		must(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	for range 50 { // because the iteration order of maps is random
		got, err = fullState().Encode()
		must(t, err)
		compare.CheckNamed(t, "the bytes of a state file are a promise to every older and newer version", string(want), string(got))
	}
	back, err := rollout.ParseState("state.yaml", got)
	must(t, err)
	wantState := fullState()
	wantState.APIVersion, wantState.Kind = rollout.AlphaVersion, "RolloutState"
	compare.CheckNamed(t, "round trip", wantState, *back)
}

// edit returns fullState's encoding after replacing the first occurrence of a text.
func edit(t *testing.T, old, with string) string {
	t.Helper()
	data, err := fullState().Encode()
	must(t, err)
	if !strings.Contains(string(data), old) {
		t.Fatalf("the state has no %q", old)
	}
	return strings.Replace(string(data), old, with, 1)
}

func TestParseStateRefuses(t *testing.T) {
	minimal := func(rest string) string {
		return "apiVersion: " + rollout.AlphaVersion + "\nkind: RolloutState\n" + rest
	}
	for name, tc := range map[string]struct {
		data, field string
		text        string // part of the expected message
	}{
		"a newer writer's field must not be dropped silently": {edit(t, "source:", "sources:"), "sources", "not a known field"},
		"the path says where":                        {edit(t, "subject: web 1.0", "topic: web 1.0"), "stable.topic", "not a known field"},
		"names are case-sensitive, as in Kubernetes": {edit(t, "app: shop", "App: shop"), "App", "not a known field"},
		"two values for one key are ambiguous":       {edit(t, "app: shop", "app: shop\napp: shop"), "", "already set"},
		"another document of ours is not a state":    {edit(t, "kind: RolloutState", "kind: Promotion"), "kind", "not RolloutState"},
		"an unknown version may mean something else": {edit(t, "v1alpha1", "v9"), "apiVersion", "not known"},
		"numbers are not text":                       {edit(t, "step: 1", "step: one"), "progress[0].step", "must be a whole number"},
		"the parser would drop a second document":    {edit(t, "verified:", "---\nverified:"), "", "more than one document"},
		"an empty file is a broken write":            {"", "apiVersion", "not known"},
		"a list is not a state":                      {"- a\n", "", "not a mapping"},
		"garbage":                                    {"a: [", "", "not valid YAML"},
		"nothing says whose state it is":             {minimal("path: x\nphase: Pending\n"), "app", "missing"},
		"phases are a closed set":                    {minimal("app: shop\npath: x\nphase: Resting\n"), "phase", "not a phase"},
		"a release in flight has a release":          {minimal("app: shop\npath: x\nphase: Paused\n"), "release", "missing"},
		"a rollback has an end":                      {edit(t, "retreat:", "retreats:"), "retreats", "not a known field"},
		"degraded means that stable serves":          {minimal("app: shop\npath: x\nphase: Degraded\n"), "stable", "missing"},
		"a step is within the plan":                  {edit(t, "step: 1", "step: 5"), "progress[0].step", "not within"},
		"a step is not negative":                     {edit(t, "step: 1", "step: -1"), "progress[0].step", "negative"},
		"workloads have a form": {
			edit(t, "workload: shop/web", "workload: web"), "progress[0].workload", "want namespace/name",
		},
		"references have a form": {
			edit(t, "- core/Namespace/-/shop", "- Namespace/shop"), "inventory[0]", "want group/Kind/namespace/name",
		},
		"a record is gitrollout's":                  {edit(t, "step: 1", "step: 2"), "seal", "edited by hand"},
		"a record has a seal":                       {minimal("app: shop\npath: x\nphase: Healthy\n"), "seal", "gitrollout state repair shop"},
		"serials count up":                          {edit(t, "serial: 0", "serial: -1"), "serial", "negative"},
		"the mark is of a transition":               {edit(t, "serial: 0", "serial: 0\nwritten: 1"), "written", "not within"},
		"a parser must not be a way to fill memory": {strings.Repeat("#", 4<<20+1), "", "more than"},
	} {
		got, err := rollout.ParseState("state.yaml", []byte(tc.data))
		var invalid *rollout.InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("%s: got state %v and error %v, want an InvalidError", name, got, err)
		}
		compare.CheckNamed(t, name, tc.field, invalid.Field)
		if !strings.Contains(err.Error(), tc.text) || !strings.HasPrefix(err.Error(), "state.yaml: ") {
			t.Errorf("%s: got %q, want the file and %q", name, err, tc.text)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the message has more than one line: %q", name, err)
		}
	}
}

// TestWatchIsRead checks that a state file with a watch is read as written. A watch is refused in a state without a stable version, with a
// release, or in a phase other than Healthy.
func TestWatchIsRead(t *testing.T) {
	s := fullState()
	s = s.AtRest(rollout.Healthy, "")
	s.Watch = &rollout.Watch{Until: noon.Add(24 * time.Hour), Began: noon, Former: *s.Stable}
	data, err := s.Encode()
	must(t, err)
	back, err := rollout.ParseState("state.yaml", data)
	must(t, err)
	s.APIVersion, s.Kind = rollout.AlphaVersion, "RolloutState"
	compare.CheckNamed(t, "round trip", s, *back)
	ended := s
	if ended.Watch = nil; !s.IsTransition(&ended) {
		t.Error("the end of a watch is no transition")
	}
	for name, change := range map[string]func(*rollout.State){
		"degraded":         func(s *rollout.State) { s.Phase = rollout.Degraded },
		"without stable":   func(s *rollout.State) { s.Stable = nil },
		"beside a release": func(s *rollout.State) { s.Release = fullState().Release },
	} {
		wrong := s
		change(&wrong)
		data, err := wrong.Encode()
		must(t, err)
		if _, err := rollout.ParseState("state.yaml", data); err == nil || !strings.Contains(err.Error(), "watch") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestManyDocuments(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		want bool
	}{
		"One":            {"a: 1\n", false},
		"Marked":         {"---\na: 1\n", false},
		"Directive":      {"%YAML 1.2\n---\na: 1\n", false},
		"Comments":       {"# licence\n---\n# more\na: 1\n---\n# the end\n", false},
		"Ended":          {"a: 1\n...\n", false},
		"Indented":       {"a: |\n  ---\n  text\n", false},
		"Word":           {"---a: 1\n---b: 1\n", false},
		"WindowsMarked":  {"---\r\na: 1\r\n", false},
		"Two":            {"a: 1\n---\nb: 1\n", true},
		"TwoWindows":     {"a: 1\r\n---\r\nb: 1\r\n", true},
		"InTheSameLine":  {"a: 1\n--- b\n", true},
		"FirstOnMarker":  {"--- {a: 1}\n---\nb: 1\n", true},
		"AfterTheEnd":    {"a: 1\n...\nb: 1\n", true},
		"AfterSpaces":    {"a: 1\n---\n   # the end\n", false},
		"SecondComment":  {"a: 1\n--- # the end\n", false},
		"SecondPercent":  {"a: 1\n---\n%b\n", true},
		"WithATab":       {"a: 1\n---\tb\n", true},
		"NoNewlineAtEnd": {"a: 1\n---\nb: 1", true},
	} {
		compare.CheckNamed(t, name, tc.want, rollout.ManyDocuments([]byte(tc.data)))
	}
}

func TestCluster(t *testing.T) {
	c := rollout.Cluster{Cluster: "prod-eu", UID: "1b9d", Source: rollout.Source{Repo: "https://git.example.com/shop.git", Branch: "main"},
		Writer: rollout.Writer{ID: "gitrollout-7d9f", Epoch: 3}}
	data, err := c.Encode()
	must(t, err)
	want := `apiVersion: gitrollout.dev/v1alpha1
cluster: prod-eu
kind: ClusterState
source:
  branch: main
  repo: https://git.example.com/shop.git
uid: 1b9d
writer:
  epoch: 3
  id: gitrollout-7d9f
`
	compare.CheckNamed(t, "cluster.yaml", want, string(data))
	back, err := rollout.ParseCluster(data)
	must(t, err)
	c.APIVersion, c.Kind = rollout.AlphaVersion, "ClusterState"
	compare.CheckNamed(t, "round trip", c, *back)
	if _, err := rollout.ParseCluster([]byte(strings.Replace(string(data), "uid:", "uuid:", 1))); err == nil {
		t.Error("an unknown field in cluster.yaml was accepted")
	}
}

func TestStatePath(t *testing.T) {
	for app, want := range map[string]string{"shop": "apps/8d/shop.yaml", "shop.checkout": "apps/18/shop.checkout.yaml"} {
		compare.CheckNamed(t, "a moved file is a lost state", want, rollout.StatePath(app))
	}
}

func TestSecond(t *testing.T) {
	east := time.FixedZone("east", 3600)
	if got := rollout.Second(time.Date(2026, 11, 20, 13, 0, 0, 999_999_999, east)); got != noon {
		t.Errorf("Second = %v, want %v", got, noon)
	}
}

func FuzzParseState(f *testing.F) {
	full, err := fullState().Encode()
	must(f, err)
	f.Add(full)
	f.Add([]byte("apiVersion: gitrollout.dev/v1alpha1\nkind: RolloutState\napp: a\npath: b\nphase: Healthy\n"))
	f.Add([]byte("apiVersion: gitrollout.dev/v1alpha1\nkind: RolloutState\napp: a\npath: b\nphase: Paused\nrelease: {templates: {a/b: h}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := rollout.ParseEditedState("state.yaml", data)
		if err != nil {
			var invalid *rollout.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("%T is not an InvalidError: %v", err, err)
			}
			return
		}
		once, err := s.Encode()
		must(t, err)
		back, err := rollout.ParseState("state.yaml", once)
		if err != nil {
			t.Fatalf("a state that was written cannot be read: %v\n%s", err, once)
		}
		twice, err := back.Encode()
		must(t, err)
		if string(once) != string(twice) {
			t.Fatalf("encoding is not stable:\n%s\n---\n%s", once, twice)
		}
		if !s.Equal(back) {
			t.Fatalf("round trip changed the state:\n%s", once)
		}
	})
}

// TestNextTenth checks that a time is rounded up to a tenth of a second, and that JSON keeps the rounded time exactly.
func TestNextTenth(t *testing.T) {
	for late, want := range map[time.Duration]time.Duration{
		0: 0, time.Nanosecond: 100 * time.Millisecond, 100 * time.Millisecond: 100 * time.Millisecond,
		101 * time.Millisecond: 200 * time.Millisecond, 999 * time.Millisecond: time.Second,
	} {
		got := rollout.NextTenth(noon.Add(late).In(time.FixedZone("elsewhere", 3600)))
		if !got.Equal(noon.Add(want)) || got.Location() != time.UTC {
			t.Errorf("%s after noon: %s", late, got)
		}
		data, err := json.Marshal(rollout.Rollback{Drain: got})
		must(t, err)
		var back rollout.Rollback
		if _ = json.Unmarshal(data, &back); !back.Drain.Equal(got) {
			t.Errorf("%s is read back as %s", got, back.Drain)
		}
	}
}

// TestExtremeEvidenceIsReadBack checks that a state with the largest counts and evidence, and with a watch, is encoded to the same bytes
// after decoding.
func TestExtremeEvidenceIsReadBack(t *testing.T) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1e-300, -1e-300, 709.9, 1e5, -1e5, 4e13, -4e13, 1e30, -1e30} {
		test := rollout.Test{Bound: 1e-9, Canary: 1e12, Stable: 9e15}
		for i := range test.Logs {
			test.Logs[i] = v
		}
		s := fullState()
		s.Phase, s.Release, s.Rollback = rollout.Healthy, nil, nil
		s.Watch = &rollout.Watch{Until: noon.Add(1 << 62), Began: noon.Add(123 * time.Millisecond), Former: *s.Stable}
		s.Analyses = []rollout.AnalysisRun{{Name: "web/watch", Release: s.Stable.Hash, Started: noon, Phase: rollout.AnalysisRunning,
			Metrics: []rollout.MetricProgress{{Metric: "errors", Phase: rollout.AnalysisRunning,
				Evidence: &rollout.Sequential{Since: noon.Add(123 * time.Millisecond),
					Canary: 1e12, Stable: 9e15, Past: []int{0, 9e15}, Tests: []rollout.Test{test, {Bound: 1e300}, {Bound: -2.5}},
					Limit: 1 / (0.5 * (1 - 0.9999999999999999)), Metrics: 8}}}}}
		data, err := s.Encode()
		must(t, err)
		back, err := rollout.ParseState("state.yaml", data)
		if err != nil {
			t.Errorf("evidence %g: %v", v, err)
			continue
		}
		again, err := back.Encode()
		must(t, err)
		compare.CheckNamed(t, "the bytes", string(data), string(again))
	}
}
