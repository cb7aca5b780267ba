package status_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// minute returns the time n minutes after 12:00 UTC on 2026-11-20.
func minute(n int) time.Time { return time.Date(2026, 11, 20, 12, n, 0, 0, time.UTC) }

func version(hash string, at int) *rollout.Release {
	return &rollout.Release{Hash: rollout.Hash(hash), Commit: hash + "-commit", Author: "Ann <ann@example.com>", Subject: "version " + hash,
		Since: minute(at)}
}

func moving(phase rollout.Phase, stable, release *rollout.Release, step int, opened string) rollout.State {
	return rollout.State{Phase: phase, Stable: stable, Release: release, Progress: []rollout.Progress{{Step: step, Of: 4, Opened: opened}}}
}

// TestStepsLeftOut checks that Past.Skipped counts the steps that a full promotion has skipped.
func TestStepsLeftOut(t *testing.T) {
	one, two := version("h1-1", 0), version("h1-2", 10)
	for want, states := range map[int][]rollout.State{
		2: {moving(rollout.Paused, one, two, 1, ""), moving(rollout.Promoting, one, two, 4, "Bob"),
			moving(rollout.Promoting, one, two, 4, "Bob")},
		0: {moving(rollout.Paused, one, two, 1, ""), moving(rollout.Progressing, one, two, 2, "Bob"), moving(rollout.Promoting, one, two, 4, "")},
	} {
		var events []status.Event
		for i, s := range states {
			events = append(events, status.Event{At: minute(10 + i), State: s})
		}
		p := status.Releases(events, true)[0]
		compare.CheckNamed(t, "steps left out, of", [2]int{want, 4}, [2]int{p.Skipped, p.Step})
	}
}

// TestWatchGoesBackInHistory checks that a watch's rollback belongs to the promoted release, and is no second release.
func TestWatchGoesBackInHistory(t *testing.T) {
	one, two := version("h1-1", 0), version("h1-2", 10)
	stable := *two
	stable.Since = minute(15)
	watched := rollout.State{Phase: rollout.Healthy, Stable: &stable, Watch: &rollout.Watch{Began: minute(10), Former: *one}}
	back := moving(rollout.Aborting, one, two, 4, "")
	back.Rejected = []rollout.Rejection{{Hash: "h1-2", Reason: "after the promotion", At: minute(20)}}
	over := rollout.State{Phase: rollout.Degraded, Stable: one, Rejected: back.Rejected}
	var got []string
	for _, p := range status.Releases([]status.Event{{At: minute(10), State: moving(rollout.Progressing, one, two, 1, "")},
		{At: minute(15), State: watched}, {At: minute(20), State: back}, {At: minute(21), State: over}}, true) {
		got = append(got, fmt.Sprintf("%s %s %d-%d: %s", p.Hash, p.Outcome, p.Started.Minute(), p.Ended.Minute(), p.Reason))
	}
	compare.Check(t, []string{"h1-2 rejected 10-20: after the promotion"}, got)
}

// TestNoStepDone checks that the JSON of a release has the field step even if no step is completed.
func TestNoStepDone(t *testing.T) {
	data, err := json.Marshal(status.Past{Of: 4})
	if err != nil || !strings.Contains(string(data), `"step":0,"of":4`) {
		t.Errorf("%s, %v", data, err)
	}
}

// inWords formats a release as one line.
func inWords(p status.Past) string {
	text := fmt.Sprintf("%s %s %d-", p.Hash, p.Outcome, p.Started.Minute())
	if p.Ended != nil {
		text += fmt.Sprint(p.Ended.Minute())
	}
	if p.Of > 0 {
		text += fmt.Sprintf(" %d/%d", p.Step, p.Of)
	}
	if len(p.PromotedBy) > 0 {
		text += " by " + strings.Join(p.PromotedBy, ",")
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	text += fmt.Sprintf(" (%d)", len(p.Transitions))
	for _, run := range p.Hooks {
		text += fmt.Sprintf(" %s %s", run.Job, run.Phase)
	}
	return text
}

func TestReleases(t *testing.T) {
	one, two := version("h1-1", 0), version("h1-2", 10)
	at := func(n int, s rollout.State) status.Event {
		return status.Event{Commit: fmt.Sprint("c", n), At: minute(n), State: s}
	}
	healthy := func(r rollout.Release, since int) rollout.State {
		r.Since = minute(since)
		return rollout.State{Phase: rollout.Healthy, Stable: &r}
	}
	rejectedAt := func(n int) rollout.State {
		s := rollout.State{Phase: rollout.Degraded, Stable: one, Rejected: []rollout.Rejection{{Hash: "h1-2", Reason: "too slow", At: minute(n)}}}
		return s
	}
	named := func(s rollout.State) rollout.State { s.App = "shop"; return s }
	held := func(s rollout.State) rollout.State {
		s.Hooks = []rollout.HookRun{{Name: "shop/migrate", Release: "h1-2", Phase: rollout.HookRunning, Since: minute(10)}}
		return s
	}
	waits := func(hash string, phase rollout.HookPhase) rollout.State {
		s := named(healthy(*one, 0))
		s.Held = &rollout.Held{Reason: rollout.HeldHook, Commit: hash + "-commit"}
		s.Hooks = []rollout.HookRun{{When: rollout.HookBefore, Release: rollout.Hash(hash), Job: "migrate-" + hash, Phase: phase,
			Since: minute(10)}}
		return s
	}
	left, leftAndOver := named(healthy(*one, 0)), named(healthy(*one, 0))
	left.Hooks, leftAndOver.Hooks = waits("h1-3", rollout.HookRunning).Hooks, waits("h1-3", rollout.HookSucceeded).Hooks
	failed := named(rejectedAt(12))
	failed.Hooks = waits("h1-2", rollout.HookFailed).Hooks
	failed.Hooks[0].Past = true
	aborting := moving(rollout.Aborting, one, two, 1, "")
	aborting.Reason, aborting.Rejected = "too slow", rejectedAt(12).Rejected
	back := moving(rollout.Aborting, one, two, 1, "")
	back.Reason = "Git went back to h1-1"
	room := moving(rollout.Aborting, one, two, 1, "")
	room.Reason, room.Rollback = "superseded by h1-3", &rollout.Rollback{To: one.Commit}
	reverted := room
	reverted.Rollback = &rollout.Rollback{To: "head"}
	atStep, atRest := at(10, moving(rollout.Progressing, one, two, 1, "")), at(0, named(healthy(*one, 0)))

	for name, c := range map[string]struct {
		events []status.Event
		whole  bool
		want   []string
	}{
		"nothing": {nil, true, []string{}},
		"first deployment, then a promoted release": {[]status.Event{
			at(0, rollout.State{Phase: rollout.Progressing, Release: one}),
			at(2, healthy(*one, 2)),
			at(10, moving(rollout.Progressing, one, two, 0, "")),
			at(11, moving(rollout.Paused, one, two, 1, "")),
			at(14, moving(rollout.Progressing, one, two, 2, "Bob")),
			at(15, moving(rollout.Promoting, one, two, 4, "Bob")),
			at(16, healthy(*two, 16)),
			at(30, healthy(*two, 16)), // this record is for a newer commit, which does not change the app
		}, true, []string{"h1-2 healthy 10-16 4/4 by Bob (5)", "h1-1 healthy 0-2 (2)"}},
		"rejected, and tried again": {[]status.Event{
			at(10, moving(rollout.Progressing, one, two, 0, "")), at(12, aborting), at(13, rejectedAt(12)),
			at(20, moving(rollout.Progressing, one, version("h1-2", 20), 0, "")),
		}, false, []string{"h1-2 inFlight 20- 0/4 (1)", "h1-2 rejected 10-12 1/4: too slow (3)"}},
		"reverted": {[]status.Event{atStep, at(12, back), at(13, healthy(*one, 0))}, false,
			[]string{"h1-2 reverted 10-13 1/4: Git went back to h1-1 (3)"}},
		"superseded": {[]status.Event{atStep, at(12, moving(rollout.Progressing, one, version("h1-3", 12), 0, ""))}, false,
			[]string{"h1-3 inFlight 12- 0/4 (1)", "h1-2 superseded 10-12 1/4 (2)"}},
		"superseded, and stable first": {[]status.Event{
			atStep, at(12, room), at(13, moving(rollout.Progressing, one, version("h1-3", 13), 0, "")),
		}, false, []string{"h1-3 inFlight 13- 0/4 (1)", "h1-2 superseded 10-13 1/4: superseded by h1-3 (3)"}},
		"superseded by no release": {[]status.Event{atStep, at(12, room), at(13, healthy(*one, 0))}, false,
			[]string{"h1-2 superseded 10-13 1/4: superseded by h1-3 (3)"}},
		"superseded, and reverted on the way": {[]status.Event{atStep, at(12, room), at(12, reverted), at(13, healthy(*one, 0))}, false,
			[]string{"h1-2 reverted 10-13 1/4: superseded by h1-3 (4)"}},
		"without stages": {[]status.Event{
			at(0, rollout.State{Phase: rollout.Healthy, Source: "aa"}), at(1, rollout.State{Phase: rollout.Healthy, Source: "aa"}),
			at(5, rollout.State{Phase: rollout.Healthy, Source: "bb"}),
		}, true, []string{" applied 5-5 (1)", " applied 0-0 (1)"}},
		"the record begins at rest": {[]status.Event{at(7, healthy(*one, 3))}, true, []string{"h1-1 recorded 3-3 (1)"}},
		"rejected in an earlier try, and reverted in this one": {[]status.Event{
			at(20, moving(rollout.Progressing, one, version("h1-2", 20), 1, "")), at(23, rejectedAt(12)),
		}, false, []string{"h1-2 reverted 20-23 1/4 (2)"}},
		"rejected before it began": {[]status.Event{
			atRest, at(10, named(held(healthy(*one, 0)))), at(12, named(rejectedAt(12))), at(13, named(rejectedAt(12))),
		}, true, []string{"h1-2 rejected 10-12: too slow (1)", "h1-1 recorded 0-0 (1)"}},
		"rejected as it began": {[]status.Event{at(10, moving(rollout.Progressing, one, two, 0, "")), at(11, rejectedAt(10))}, false,
			[]string{"h1-2 rejected 10-10 0/4: too slow (2)"}},
		"of two workloads the slower one counts": {[]status.Event{at(10,
			rollout.State{Phase: rollout.Progressing, Stable: one, Release: two, Progress: []rollout.Progress{
				{Step: 2, Of: 4}, {Step: 1, Of: 3, Opened: "Ann"}, {Step: 2, Of: 6, Opened: "Ann"}, {Step: 3, Of: 4, Opened: "Bob"}}})},
			false, []string{"h1-2 inFlight 10- 1/3 by Ann,Bob (1)"}},
		"without stages, from the middle": {[]status.Event{
			at(0, rollout.State{Phase: rollout.Healthy, Source: "aa"}), at(5, rollout.State{Phase: rollout.Healthy}),
			at(6, rollout.State{Phase: rollout.Healthy, Source: "bb"}),
		}, false, []string{" applied 6-6 (1)"}},
		"released without steps in one record": {[]status.Event{at(2, healthy(*one, 2)), at(16, healthy(*two, 16))}, false,
			[]string{"h1-2 healthy 16-16 (1)", "h1-1 recorded 2-2 (1)"}},
		"superseded by one that is reverted, before either began": {[]status.Event{
			atRest, at(10, waits("h1-2", rollout.HookRunning)), at(11, waits("h1-2", rollout.HookSucceeded)),
			at(12, waits("h1-3", rollout.HookRunning)), at(13, left), at(14, leftAndOver), at(15, named(healthy(*one, 0))),
		}, true, []string{"h1-3 reverted 10-13 (2) migrate-h1-3 Succeeded", "h1-2 superseded 10-12 (3) migrate-h1-2 Succeeded",
			"h1-1 recorded 0-0 (1)"}},
		"rejected by the hook before it": {[]status.Event{atRest, at(10, waits("h1-2", rollout.HookRunning)), at(12, failed)}, true,
			[]string{"h1-2 rejected 10-12: too slow (2) migrate-h1-2 Failed", "h1-1 recorded 0-0 (1)"}},
		"begun after the hook before it": {[]status.Event{
			atRest, at(10, waits("h1-2", rollout.HookRunning)), at(11, waits("h1-2", rollout.HookSucceeded)),
			at(12, moving(rollout.Progressing, one, version("h1-2", 12), 0, "")), at(13, healthy(*two, 13)),
		}, true, []string{"h1-2 healthy 12-13 0/4 (4) migrate-h1-2 Succeeded", "h1-1 recorded 0-0 (1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			compare.Check(t, c.want, rollout.Mapped(status.Releases(c.events, c.whole), inWords))
		})
	}
}

// TestWhatWasMeasuredStays checks that an ended release keeps its measurements. They are from the last record with measurements, because
// later records have none.
func TestWhatWasMeasuredStays(t *testing.T) {
	one, two := version("h1-1", 0), version("h1-2", 10)
	measured := moving(rollout.Progressing, one, two, 1, "")
	measured.Analyses = []rollout.AnalysisRun{{Name: "errors", Phase: rollout.AnalysisSuccessful}}
	healthy := *two
	all := status.Releases([]status.Event{
		{Commit: "a", At: minute(10), State: measured}, {Commit: "b", At: minute(11), State: moving(rollout.Progressing, one, two, 2, "")},
		{Commit: "c", At: minute(12), State: rollout.State{Phase: rollout.Healthy, Stable: &healthy}},
	}, false)
	if len(all) == 0 || len(all[0].Analyses) != 1 || all[0].Analyses[0].Name != "errors" {
		t.Errorf("the releases are %+v", all)
	}
}

// TestTransitions checks the texts of a release's transitions, and that their times are in UTC.
func TestTransitions(t *testing.T) {
	one, two := version("h1-1", 0), version("h1-2", 10)
	s := moving(rollout.Paused, one, two, 1, "")
	s.Progress[0].Name, s.Progress[0].Weight, s.Reason = "pause", 20, "waits"
	held := s
	held.Held = &rollout.Held{Message: "a typo"}
	over := moving(rollout.Promoting, nil, two, 4, "")
	zone := time.FixedZone("east", 3600)
	all := status.Releases([]status.Event{{At: minute(10).In(zone), State: s}, {At: minute(11), State: held}, {At: minute(12), State: over}},
		true)
	if len(all) != 1 || all[0].Took(minute(15)) != 5*time.Minute {
		t.Fatalf("%+v", all)
	}
	got := rollout.Mapped(all[0].Transitions, func(x status.Transition) string { return x.At.Format("15:04 MST ") + x.Text })
	const where = "Paused at step 2/4 (pause, 20%), release h1-2 of h1-2-co, stable h1-1 of h1-1-co"
	want := []string{"12:10 UTC " + where + ": waits", "12:11 UTC " + where + ", held: a typo",
		"12:12 UTC Promoting at step 4/4 (, 0%), release h1-2 of h1-2-co"}
	compare.Check(t, want, got)
	past := status.Releases([]status.Event{{At: minute(10), State: s}, {At: minute(13).In(zone), State: rollout.State{Stable: one}}}, true)
	if p := past[0]; p.Took(minute(50)) != 3*time.Minute || p.Ended.Location() != time.UTC {
		t.Errorf("%+v", p)
	}
}

// TestHistoryHasTheLogsOfEarlierRuns checks that a release has the logs of all its hook Jobs. The logs come from
// several records, because a record has only the newest Job's log.
func TestHistoryHasTheLogsOfEarlierRuns(t *testing.T) {
	one, two := version("h1-1", 0), version("h1-2", 10)
	failed := moving(rollout.Progressing, one, two, 0, "")
	failed.Hooks = []rollout.HookRun{{When: rollout.HookBefore, Release: two.Hash, Job: "migrate-1", Phase: rollout.HookFailed,
		Log: "relation missing"}}
	next := moving(rollout.Progressing, two, version("h1-3", 20), 0, "")
	next.Hooks = []rollout.HookRun{failed.Hooks[0], {When: rollout.HookBefore, Release: "h1-3", Job: "migrate-2", Phase: rollout.HookRunning}}
	next.Hooks[0].Log, next.Hooks[0].Past = "", true
	all := status.Releases([]status.Event{{At: minute(10), State: failed}, {At: minute(20), State: next}}, true)
	if len(all) != 2 || len(all[1].Hooks) != 1 || all[1].Hooks[0].Log != "relation missing" || len(all[0].Hooks) != 1 {
		t.Errorf("the releases are %+v", all)
	}
}
