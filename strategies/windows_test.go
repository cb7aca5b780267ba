package strategies

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// calendarOf returns the calendar of a configuration's windows.
func calendarOf(windows string) rollout.Calendar {
	config, err := rollout.ParseConfig(rollout.ConfigPath("test"),
		[]byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: a}]\nwindows: "+windows+"\n"))
	if err != nil {
		panic(err)
	}
	return config.CalendarOf(testApp.Name, nil)
}

// randomCalendar mostly returns an empty calendar; otherwise one with windows within hours, or with a freeze.
func randomCalendar(rng *rand.Rand) rollout.Calendar {
	switch rng.IntN(8) {
	case 0:
		return calendarOf(fmt.Sprintf("[{kind: allow, schedule: '*/%d * * * *', duration: %dm}]", 5+rng.IntN(40), 1+rng.IntN(5)))
	case 1:
		return calendarOf(fmt.Sprintf("[{kind: deny, schedule: '%d * * * *', duration: %dm}]", rng.IntN(60), 1+rng.IntN(50)))
	case 2:
		return rollout.Calendar{Freeze: &rollout.Freeze{Reason: "a test"}}
	default:
		return rollout.Calendar{}
	}
}

// TestWindows asks for each kind of change while the calendar is closed.
func TestWindows(t *testing.T) {
	office := calendarOf("[{kind: allow, schedule: '0 9 * * *', duration: 1h}]") // the tests' clock is at noon
	opens := time.Date(noon.Year(), noon.Month(), noon.Day()+1, 9, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		in       func() Input
		phase    rollout.Phase
		held     bool
		waits    string
		subject  string
		released bool
	}{
		"at rest, a new release": {func() Input {
			h := oneWeb(nil)
			h.push(version("v2"))
			return world(h, set(h, commitID(0), 4, 4))
		}, rollout.Healthy, true, "a release window, until " + opens.Format(time.RFC3339), "waits until", false},
		"at rest, configuration": {func() Input {
			h := oneWeb(nil)
			h.push(func(s *source) { s.config++ })
			return world(h, set(h, commitID(0), 4, 4))
		}, rollout.Healthy, false, "", "follows", false},
		"at rest, a version that served before": {func() Input {
			h := oneWeb(nil)
			h.push(version("v2"))
			in := world(h, set(h, commitID(0), 4, 4))
			in.State.Verified = []rollout.Hash{in.State.Stable.Hash, in.Head.Render.Release()}
			return in
		}, rollout.Promoting, false, "", "verified before", true},
		"in flight, promoted": {func() Input {
			h := oneWeb(nil)
			h.push(version("v2"))
			h.push(func(s *source) {
				s.promotion = &rollout.Promotion{Release: h.at(commitID(1)).Release(), Decision: rollout.Promote, Through: rollout.Full}
			})
			in := inFlight(h, 1, set(h, commitID(0), 4, 4), set(h, commitID(1), 1, 1))
			in.Promotion = h.head().promotion
			return in
		}, rollout.Paused, false, "a release window", "", true},
		"in flight, aborted": {func() Input {
			h := oneWeb(nil)
			h.push(version("v2"))
			in := inFlight(h, 1, set(h, commitID(0), 4, 4), set(h, commitID(1), 1, 1))
			in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort}
			return in
		}, rollout.Aborting, false, "", "back to", true},
		"in flight, superseded": {func() Input {
			h := oneWeb(nil)
			h.push(version("v2"))
			in := inFlight(h, 1, set(h, commitID(0), 4, 4), set(h, commitID(1), 1, 1))
			h.push(version("v3"))
			in.Head = h.headInput()
			return in
		}, rollout.Aborting, false, "", "superseded", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := tt.in()
			in.Calendar = office
			d := Decide(in)
			if d.State.Phase != tt.phase || d.State.Held.Waits() != tt.held || (d.State.Release != nil) != tt.released {
				t.Errorf("%s, held %+v, release %+v", d.State.Phase, d.State.Held, d.State.Release)
			}
			if !strings.Contains(d.Waiting, tt.waits) || !strings.Contains(d.Subject, tt.subject) {
				t.Errorf("waits for %q, subject %q", d.Waiting, d.Subject)
			}
			if tt.waits != "" && !d.Requeue.Equal(opens) {
				t.Errorf("looks again at %s, want %s", d.Requeue, opens)
			}
			again := in
			again.State, again.Now = d.State, in.Now.Add(time.Hour)
			if d2 := Decide(again); tt.held && d2.Subject != "" {
				t.Errorf("an hour later it records %q", d2.Subject)
			}
			other := again
			other.Head.Commit = rollout.Commit{ID: commitID(9), Author: "Bob"}
			if d2 := Decide(other); tt.held && (d2.Subject != "" || !d2.State.Equal(&d.State)) {
				t.Errorf("a new process, which takes a later commit for the release's, records %q: %+v", d2.Subject, d2.State.Held)
			}
			again.Now = opens
			if d2 := Decide(again); tt.held && (d2.State.Held != nil || d2.State.Release == nil) {
				t.Errorf("when it opens: %s, %+v", d2.State.Phase, d2.State.Held)
			}
		})
	}
}

// TestStepsThatWaitLetPodsCome checks a new list of steps that waits for a window. The app is requeued when the next
// pod has been ready for minReadySeconds, since pods follow the old list.
func TestStepsThatWaitLetPodsCome(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) { s.MinReadySeconds = 30 })
	h.push(version("v2"))
	fresh := set(h, commitID(1), 1, 1)
	in := inFlight(h, 0, set(h, commitID(0), 9, 9), fresh)
	fresh.ReadySince[0] = in.Now.Add(-10 * time.Second)
	in.Calendar = calendarOf("[{kind: allow, schedule: '0 9 * * *', duration: 1h}]")
	h.push(func(s *source) {
		s.workloads[0].spec.Canary = &rollout.Canary{Steps: []rollout.Step{{SetWeight: new(50)}, {Pause: &rollout.Pause{}}}}
	})
	in.Head = h.headInput()
	d := Decide(in)
	if want := in.Now.Add(20 * time.Second); !d.State.Held.Waits() || !d.Requeue.Equal(want) {
		t.Errorf("held %+v, looks again at %s, want %s", d.State.Held, d.Requeue, want)
	}
}

// TestPauseUntil checks a pause until a scheduled moment after the start of its step.
func TestPauseUntil(t *testing.T) {
	h := oneWeb(func(s *rollout.Spec) {
		one := 25
		s.Canary.Steps = []rollout.Step{{SetWeight: &one}, {Pause: &rollout.Pause{Until: "30 8 * * *", TimeZone: "Europe/Berlin"}}}
	})
	h.push(version("v2"))
	in := inFlight(h, 1, set(h, commitID(0), 4, 4), set(h, commitID(1), 1, 1))
	due := time.Date(noon.Year(), noon.Month(), noon.Day()+1, 8, 30, 0, 0, mustZone(t, "Europe/Berlin"))
	d := Decide(in)
	if d.State.Phase != rollout.Paused || !d.Requeue.Equal(due) || !strings.Contains(d.Waiting, "pause until 30 8 * * * Europe/Berlin") {
		t.Errorf("%s, waits for %s, looks again at %s, want %s", d.State.Phase, d.Waiting, d.Requeue, due)
	}
	in.Now = due
	if d := Decide(in); !strings.Contains(d.Subject, "promoting") {
		t.Errorf("then: %q, waits for %s", d.Subject, d.Waiting)
	}
	in.Now = in.State.Progress[0].Entered
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Promote, Through: "2", Author: "Ann"}
	if d := Decide(in); !strings.Contains(d.Subject, "promoted by Ann") {
		t.Errorf("promoted: %q, waits for %s", d.Subject, d.Waiting)
	}
}

func mustZone(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestWindowsKeepHooks checks that no hook begins while the calendar is closed, neither of a release nor of a commit
// that changes only the hook.
func TestWindowsKeepHooks(t *testing.T) {
	migrate := func(n int) []rollout.Object {
		return []rollout.Object{{"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"completions": int64(n)},
			"metadata": map[string]any{"name": "migrate", "namespace": testApp.Namespace, "annotations": map[string]any{hook.Annotation: "before"}}}}
	}
	for name, change := range map[string]func(*source){
		"of a release":     version("v2"),
		"that has changed": func(s *source) { s.hooks = migrate(2) },
	} {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(nil)
			h.commits[0].hooks = migrate(1)
			h.push(change)
			in := world(h, set(h, commitID(0), 4, 4))
			in.Answers.Accepted = map[string]error{in.Head.Commit.ID: nil}
			// The tests' clock is at noon.
			in.Calendar = calendarOf("[{kind: allow, schedule: '0 9 * * *', duration: 1h}]")
			if d := Decide(in); len(d.State.Hooks) > 0 || !d.State.Held.Waits() {
				t.Errorf("while it is shut: %+v, held %+v", d.State.Hooks, d.State.Held)
			}
			in.Now = time.Date(noon.Year(), noon.Month(), noon.Day()+1, 9, 0, 0, 0, time.UTC)
			if d := Decide(in); len(d.State.Hooks) != 1 || d.State.Hooks[0].Phase != rollout.HookRunning {
				t.Errorf("when it opens: %+v, held %+v, waits for %q", d.State.Hooks, d.State.Held, d.Waiting)
			}
		})
	}
}
