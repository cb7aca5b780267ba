package strategies_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// calendarOf parses a list of windows in the form of the configuration.
func calendarOf(windows string) rollout.Calendar {
	config, err := rollout.ParseConfig(rollout.ConfigPath("test"),
		[]byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: a}]\nwindows: "+windows+"\n"))
	if err != nil {
		panic(err)
	}
	return config.CalendarOf(testApp.Name, nil)
}

// randomCalendar usually returns an empty calendar. Otherwise the calendar has windows of some minutes or a freeze.
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

// officeHours opens for an hour at 9:00, while the tests' clock begins at noon.
var officeHours = calendarOf("[{kind: allow, schedule: '0 9 * * *', duration: 1h}]")

// nextMorning is the next time at which officeHours opens.
var nextMorning = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// TestWindows checks which changes are delayed while the calendar is closed.
func TestWindows(t *testing.T) {
	rests := func(push func(*source)) strategies.Input {
		h := oneWeb(nil)
		h.push(push)
		return world(h)
	}
	served := rests(version("v2"))
	served.State.Verified = []rollout.Hash{served.State.Stable.Hash, served.Head.Render.Release()}
	_, promoted := atStep(nil, 1)
	promoted.Promotion = fileFor(promoted.State.Release.Hash, rollout.Full)
	_, aborted := atStep(nil, 1)
	aborted.Promotion = &rollout.Promotion{Release: aborted.State.Release.Hash, Decision: rollout.Abort}
	h, superseded := atStep(nil, 1)
	h.push(version("v3"))
	superseded.Head = h.headInput()
	tests := map[string]struct {
		in       strategies.Input
		phase    rollout.Phase
		held     bool
		waits    string
		subject  string
		released bool
	}{
		"at rest, a new release": {rests(version("v2")), rollout.Healthy, true,
			"a release window, until " + nextMorning.Format(time.RFC3339), "waits until", false},
		"at rest, configuration":                {rests(func(s *source) { s.config++ }), rollout.Healthy, false, "", "follows", false},
		"at rest, a version that served before": {served, rollout.Promoting, false, "", "verified before", true},
		"in flight, promoted":                   {promoted, rollout.Paused, false, "a release window", "", true},
		"in flight, aborted":                    {aborted, rollout.Aborting, false, "", "back to", true},
		"in flight, superseded":                 {superseded, rollout.Aborting, false, "", "superseded", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := tt.in
			in.Calendar = officeHours
			d := strategies.Decide(in)
			if d.State.Phase != tt.phase || d.State.Held.Waits() != tt.held || (d.State.Release != nil) != tt.released {
				t.Errorf("%s, held %+v, release %+v", d.State.Phase, d.State.Held, d.State.Release)
			}
			if !strings.Contains(d.Waiting, tt.waits) || !strings.Contains(d.Subject, tt.subject) {
				t.Errorf("waits for %q, subject %q", d.Waiting, d.Subject)
			}
			if tt.waits != "" && !d.Requeue.Equal(nextMorning) {
				t.Errorf("looks again at %s, want %s", d.Requeue, nextMorning)
			}
			if !tt.held {
				return
			}
			in.State, in.Now = d.State, in.Now.Add(time.Hour)
			if d := strategies.Decide(in); d.Subject != "" {
				t.Errorf("an hour later it records %q", d.Subject)
			}
			other := in
			other.Head.Commit = rollout.Commit{ID: commitID(9), Author: "Bob"}
			if d := strategies.Decide(other); d.Subject != "" || !d.State.Equal(&in.State) {
				t.Errorf("a new process, which takes a later commit for the release's, records %q: %+v", d.Subject, d.State.Held)
			}
			in.Now = nextMorning
			if d := strategies.Decide(in); d.State.Held != nil || d.State.Release == nil {
				t.Errorf("when it opens: %s, %+v", d.State.Phase, d.State.Held)
			}
		})
	}
}

// TestStepsThatWaitLetPodsCome checks an edit of the steps while the calendar is closed. Pods still follow the old steps, so the app is
// requeued for the time when the next pod becomes available.
func TestStepsThatWaitLetPodsCome(t *testing.T) {
	h := twoVersions(func(s *rollout.Spec) { s.MinReadySeconds = 30 })
	fresh := set(h, commitID(1), 1, 1)
	in := inFlight(h, 0, set(h, commitID(0), 9, 9), fresh)
	fresh.ReadySince[0] = in.Now.Add(-10 * time.Second)
	h.push(func(s *source) {
		s.workloads[0].spec.Canary = &rollout.Canary{Steps: []rollout.Step{weight(50), aPause}}
	})
	in.Calendar, in.Head = officeHours, h.headInput()
	d := strategies.Decide(in)
	if want := in.Now.Add(20 * time.Second); !d.State.Held.Waits() || !d.Requeue.Equal(want) {
		t.Errorf("held %+v, looks again at %s, want %s", d.State.Held, d.Requeue, want)
	}
}

// TestPauseUntil checks a pause that lasts until the first scheduled time after its start.
func TestPauseUntil(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	_, in := atStep(func(s *rollout.Spec) {
		s.Canary.Steps = []rollout.Step{weight(25), {Pause: &rollout.Pause{Until: "30 8 * * *", TimeZone: "Europe/Berlin"}}}
	}, 1)
	due := time.Date(noon.Year(), noon.Month(), noon.Day()+1, 8, 30, 0, 0, zone)
	d := strategies.Decide(in)
	if d.State.Phase != rollout.Paused || !d.Requeue.Equal(due) || !strings.Contains(d.Waiting, "pause until 30 8 * * * Europe/Berlin") {
		t.Errorf("%s, waits for %s, looks again at %s, want %s", d.State.Phase, d.Waiting, d.Requeue, due)
	}
	in.Now = due
	if d := strategies.Decide(in); !strings.Contains(d.Subject, "promoting") {
		t.Errorf("then: %q, waits for %s", d.Subject, d.Waiting)
	}
	in.Now = in.State.Progress[0].Entered
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Promote, Through: "2", Author: "Ann"}
	if d := strategies.Decide(in); !strings.Contains(d.Subject, "promoted by Ann") {
		t.Errorf("promoted: %q, waits for %s", d.Subject, d.Waiting)
	}
}

// TestWindowsKeepHooks checks that no hook begins while the calendar is closed. It checks a release, and a commit that changes only the
// hook.
func TestWindowsKeepHooks(t *testing.T) {
	changed := beforeHook("migrate")
	changed.Map("spec")["completions"] = int64(2)
	for name, change := range map[string]func(*source){
		"of a release":     version("v2"),
		"that has changed": func(s *source) { s.hooks = []rollout.Object{changed} },
	} {
		h := oneWeb(nil)
		h.commits[0].hooks = []rollout.Object{beforeHook("migrate")}
		h.push(change)
		in := world(h)
		in.Answers.Accepted = map[string]error{in.Head.Commit.ID: nil}
		in.Calendar = officeHours
		if d := strategies.Decide(in); len(d.State.Hooks) > 0 || !d.State.Held.Waits() {
			t.Errorf("%s: while it is shut: %+v, held %+v", name, d.State.Hooks, d.State.Held)
		}
		in.Now = nextMorning
		if d := strategies.Decide(in); len(d.State.Hooks) != 1 || d.State.Hooks[0].Phase != rollout.HookRunning {
			t.Errorf("%s: when it opens: %+v, held %+v, waits for %q", name, d.State.Hooks, d.State.Held, d.Waiting)
		}
	}
}
