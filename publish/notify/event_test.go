package notify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

var (
	start = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	web   = rollout.Workload{Namespace: "shop", Name: "web"}
)

func release(hash string) *rollout.Release {
	return &rollout.Release{Hash: rollout.Hash(hash), Commit: strings.Repeat("c", 40), Author: "Ann <ann@example.com>",
		Subject: "Cheaper", Since: start}
}

// atStep returns the state of a release of v2 at a step. The last argument is the promotion's author, or "" without a promotion.
func atStep(phase rollout.Phase, step int, opened string) rollout.State {
	names := []string{"setWeight 20", "pause", "setWeight 60", "promote"}
	return rollout.State{App: "shop", Phase: phase, Stable: release("v1"), Release: release("v2"),
		Progress: []rollout.Progress{{Workload: web, Step: step, Of: 3, Name: names[step], Weight: 20 * (step + 1), Opened: opened}}}
}

func with(s rollout.State, change func(*rollout.State)) rollout.State {
	change(&s)
	return s
}

func healthy(hash string) rollout.State {
	return rollout.State{App: "shop", Phase: rollout.Healthy, Stable: release(hash)}
}

// retreating returns the state during the rollback of a release of v2. The argument tells whether v2 was rejected.
func retreating(reject bool) rollout.State {
	return with(atStep(rollout.Aborting, 1, ""), func(s *rollout.State) {
		s.Reason, s.Rollback = "it is bad", &rollout.Rollback{Reject: reject}
		if reject {
			s.Rejected = []rollout.Rejection{{Hash: "v2"}}
		}
	})
}

func degraded() rollout.State {
	return with(healthy("v1"), func(s *rollout.State) {
		s.Phase, s.Rejected = rollout.Degraded, []rollout.Rejection{{Hash: "v2"}}
	})
}

func held(reason rollout.HeldReason, message string) func(*rollout.State) {
	return func(s *rollout.State) {
		s.Held = &rollout.Held{Reason: reason, Message: message, Commit: "abc", Author: "Bob"}
	}
}

func run(phase rollout.AnalysisPhase) func(*rollout.State) {
	return func(s *rollout.State) {
		s.Analyses = []rollout.AnalysisRun{{Name: "step-1", Started: start, Phase: phase, Metrics: []rollout.MetricProgress{{
			Metric: "errors", Phase: phase, Measurements: []rollout.Measurement{{Value: "[0.2]"}},
		}}}}
	}
}

type kinds = []rollout.EventKind

func TestKinds(t *testing.T) {
	stalled := with(atStep(rollout.Stalled, 0, ""), func(s *rollout.State) { s.Reason = "late" })
	unwell := with(healthy("v1"), func(s *rollout.State) { s.Unhealthy = "Deployment shop/web: 0 of 5 pods are ready" })
	measured, wrong := with(atStep(rollout.Progressing, 1, ""), run(rollout.AnalysisRunning)),
		with(healthy("v1"), held("InvalidInput", "x.yaml: bad"))
	begun, paused := atStep(rollout.Progressing, 0, ""), atStep(rollout.Paused, 1, "")
	third := with(begun, func(s *rollout.State) { s.Release = release("v3") })
	late := with(retreating(true), func(s *rollout.State) { s.Rollback.Late = true })
	for _, c := range []struct {
		name          string
		before, after rollout.State
		want          kinds
	}{
		{"the first deployment starts", rollout.State{}, rollout.State{Phase: rollout.Progressing, Release: release("v1")}, kinds{"started"}},
		{"and completes", rollout.State{Phase: rollout.Progressing, Release: release("v1")}, healthy("v1"), kinds{"completed"}},
		{"an app is adopted", rollout.State{}, healthy("v1"), nil},
		{"a release starts", healthy("v1"), begun, kinds{"started"}},
		{"a release starts with a pause", healthy("v1"), paused, kinds{"paused", "started"}},
		{"it goes on", begun, atStep(rollout.Progressing, 2, ""), kinds{"stepCompleted"}},
		{"it pauses", begun, paused, kinds{"paused", "stepCompleted"}},
		{"it is promoted", paused, atStep(rollout.Progressing, 2, "Ann"), kinds{"promoted", "stepCompleted"}},
		{"it is through its steps", atStep(rollout.Progressing, 2, ""), atStep(rollout.Promoting, 3, ""), kinds{"stepCompleted"}},
		{"it completes", atStep(rollout.Promoting, 3, ""), healthy("v2"), kinds{"completed"}},
		{"it is aborted", paused, retreating(true), kinds{"aborted"}},
		{"it is reverted", paused, retreating(false), kinds{"rolledBack"}},
		{"the reverted one is gone", retreating(false), healthy("v1"), kinds{"restored"}},
		{"the rejected one is gone", retreating(true), degraded(), kinds{"restored"}},
		{"Git agrees again", degraded(), healthy("v1"), kinds{"recovered"}},
		{"a new version after a rejected one", degraded(), third, kinds{"started", "recovered"}},
		{"a superseded one is gone", retreating(false), third, kinds{"started", "restored"}},
		{"it stalls", begun, stalled, kinds{"stalled"}},
		{"it goes on by itself", stalled, begun, kinds{"recovered"}},
		{"it stalls and is aborted", stalled, retreating(true), kinds{"aborted"}},
		{"a promotion is late", atStep(rollout.Promoting, 3, ""),
			with(atStep(rollout.Stalled, 3, ""), func(s *rollout.State) { s.Reason = "late" }), kinds{"stalled"}},
		{"it serves, and is not well", healthy("v1"), unwell, kinds{"degraded"}},
		{"it is still not well", unwell, unwell, nil},
		{"it is well again", unwell, healthy("v1"), kinds{"recovered"}},
		{"a release begins while it is not well", unwell, begun, kinds{"started"}},
		{"a rollback is late", retreating(true), late, kinds{"stalled"}},
		{"it is still late", late, late, nil},
		{"it is back, late", late, degraded(), kinds{"restored"}},
		{"Git is wrong", healthy("v1"), wrong, kinds{"held"}},
		{"in another way", wrong, with(healthy("v1"), held("InvalidInput", "y.yaml: bad")), kinds{"held"}},
		{"Git is right again", wrong, healthy("v1"), kinds{"recovered"}},
		{"a version waits for a window", healthy("v1"), with(healthy("v1"), held(rollout.HeldClosed, "until Monday")), kinds{"waiting"}},
		{"an analysis starts", begun, measured, kinds{"stepCompleted", "analysisStarted"}},
		{"and fails", measured, with(retreating(true), run(rollout.AnalysisFailed)), kinds{"aborted", "analysisFailed"}},
		{"cannot measure", measured, with(retreating(true), run(rollout.AnalysisErrored)), kinds{"aborted", "analysisError"}},
		{"or says neither", measured, with(paused, run(rollout.AnalysisInconclusive)), kinds{"analysisInconclusive", "paused"}},
		{"a measurement is recorded", measured, with(atStep(rollout.Progressing, 1, ""), func(s *rollout.State) {
			run(rollout.AnalysisRunning)(s)
			s.Analyses[0].Metrics[0].Count = 1
		}), nil},
		{"the app is removed", healthy("v1"), rollout.State{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			compare.CheckNamed(t, "kinds", append(kinds{}, c.want...), notify.Kinds(c.before, c.after))
		})
	}
}

// states returns the states from which the tests form transitions.
func states() []rollout.State {
	return []rollout.State{
		{}, healthy("v1"), healthy("v2"), degraded(), retreating(true), retreating(false), atStep(rollout.Progressing, 0, ""),
		atStep(rollout.Paused, 1, ""),
		atStep(rollout.Stalled, 1, ""), atStep(rollout.Promoting, 3, "Ann"),
		with(atStep(rollout.Stalled, 3, ""), func(s *rollout.State) { s.Reason = "late" }),
		with(healthy("v1"), held("InvalidInput", "bad")), with(degraded(), held("InvalidInput", "bad")),
		with(atStep(rollout.Paused, 1, ""), held(rollout.HeldClosed, "until Monday")),
		with(retreating(true), run(rollout.AnalysisFailed)), with(atStep(rollout.Progressing, 1, ""), run(rollout.AnalysisRunning)),
	}
}

// recorded returns a commit on the state branch with a transition of the app shop.
func recorded(before, after rollout.State) rollout.StateCommit {
	return rollout.StateCommit{ID: "id", When: start, Apps: []rollout.RecordedApp{{App: "shop", Before: before, After: after}}}
}

// TestEqualStatesAreNoNews checks that a transition between equal states has no event. Any other transition's events must have a title and
// an outcome.
func TestEqualStatesAreNoNews(t *testing.T) {
	for i, before := range states() {
		compare.CheckNamed(t, fmt.Sprintf("state %d and itself", i), "[]", fmt.Sprint(notify.Kinds(before, before)))
		for j, after := range states() {
			for _, e := range notify.Events("prod", recorded(before, after), notify.Links{}) {
				if e.Title == "" || e.Outcome == "" || !slices.Contains(e.Kinds, e.Kind) || e.ID != "id/shop" {
					t.Errorf("states %d and %d: %+v", i, j, e)
				}
			}
		}
	}
}

// TestTroubleEndsOnce checks random sequences of states. If an event began a problem and no later event ended it, the newest state must
// have the problem.
func TestTroubleEndsOnce(t *testing.T) {
	all := states()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		open := map[string]bool{}
		before := rollout.State{}
		for range 50 {
			after := all[random.IntN(len(all))]
			for _, e := range notify.Events("prod", recorded(before, after), notify.Links{}) {
				for _, over := range e.Over {
					delete(open, over)
				}
				if e.Is(rollout.TroubleKinds()...) {
					open[e.Trouble] = true
				}
			}
			for trouble := range open {
				if !slices.Contains(notify.Troubles("prod/shop/", after), trouble) {
					t.Fatalf("seed %d: %s is open, and the state is %+v", seed, trouble, after)
				}
			}
			before = after
		}
	}
}

// TestEventSaysWhatToDo checks the most important fields of the event for each type of transition.
func TestEventSaysWhatToDo(t *testing.T) {
	links := notify.Links{Commit: func(id string) string { return "https://git/c/" + id },
		Branch: func(name string) string { return "https://git/b/" + name }}
	begun, paused, stalled := atStep(rollout.Progressing, 0, ""), atStep(rollout.Paused, 1, ""), atStep(rollout.Stalled, 1, "")
	unwell := with(healthy("v1"), func(s *rollout.State) { s.Unhealthy = "0 of 5 pods are ready" })
	ofCommit := strings.Repeat("c", 40)
	measured := with(atStep(rollout.Progressing, 1, ""), run(rollout.AnalysisRunning))
	judged := func(phase rollout.AnalysisPhase) rollout.State {
		s := with(retreating(false), run(phase))
		s.Reason, s.Analyses[0].Metrics[0].Message = "", "no answer"
		return s
	}
	for name, c := range map[string]struct {
		before, after rollout.State
		want          func(*rollout.Event)
	}{
		"paused": {begun, paused, func(e *rollout.Event) {
			e.Title, e.Text = "shop in prod: paused at step 2/3 (weight 40)", "Waits for a promotion: merge gitrollout/promote/prod/shop"
			e.ProposalURL, e.CommitURL = "https://git/b/gitrollout/promote/prod/shop", "https://git/c/"+ofCommit
		}},
		"paused by the clock": {begun, with(paused, func(s *rollout.State) {
			s.Progress = []rollout.Progress{{Workload: web, Step: 1, Of: 3, Name: "pause 10m0s"}}
		}), func(e *rollout.Event) { e.Text, e.Proposal = "Waits for 10m0s to pass", "" }},
		"through its steps": {atStep(rollout.Paused, 2, ""), atStep(rollout.Promoting, 3, "Ann"),
			func(e *rollout.Event) { e.Title = "shop in prod: promoted, now through its steps" }},
		"an analysis failed": {measured, with(retreating(true), run(rollout.AnalysisFailed)), func(e *rollout.Event) {
			e.Text = "it is bad\nWaits for Git to agree with the stable version: merge gitrollout/revert/prod/shop, or push a new version\n" +
				"Metric errors: Failed, last [0.2]"
			e.Trouble = "prod/shop/v2"
		}},
		"an analysis without an answer": {measured, judged(rollout.AnalysisErrored), func(e *rollout.Event) {
			e.Text, e.Analyses = "Metric errors: Error, last [0.2]: no answer", e.Analyses[:1:1]
		}},
		"an inconclusive analysis": {measured, judged(rollout.AnalysisInconclusive), func(e *rollout.Event) {
			e.Text, e.Analyses = "Metric errors: Inconclusive, last [0.2]: no answer", e.Analyses[:1:1]
		}},
		"a successful analysis": {measured, judged(rollout.AnalysisSuccessful),
			func(e *rollout.Event) { e.Text, e.Analyses = "", e.Analyses[:1:1] }},
		"a window is shut": {healthy("v1"), with(healthy("v1"), held(rollout.HeldClosed, "until Monday")), func(e *rollout.Event) {
			e.Text, e.Waiting, e.Commit, e.Stable, e.Release = "until Monday", "until Monday", "abc", "v1", "v1"
			e.Author, e.Subject = "Bob", ""
		}},
		"Git is wrong": {stalled, with(stalled, held("InvalidInput", "x.yaml: bad")), func(e *rollout.Event) {
			e.Text, e.Waiting, e.Commit, e.Trouble, e.Release = "x.yaml: bad", "", ofCommit, "prod/shop/held", "v2"
		}},
		"Git is wrong, by no commit": {healthy("v1"), with(healthy("v1"), func(s *rollout.State) {
			s.Held = &rollout.Held{Reason: "InvalidInput", Message: "x.yaml: bad"}
		}), func(e *rollout.Event) { e.Commit = ofCommit }},
		"not well": {healthy("v1"), unwell,
			func(e *rollout.Event) { e.Text, e.Trouble = "0 of 5 pods are ready", "prod/shop/unhealthy" }},
		"removed": {unwell, rollout.State{}, func(e *rollout.Event) { e.Release, e.Kind = "v1", rollout.EventRecovered }},
		"adopted": {rollout.State{}, unwell, func(e *rollout.Event) { e.Release, e.Stable = "v1", "v1" }},
		"several workloads": {atStep(rollout.Progressing, 2, ""), with(atStep(rollout.Stalled, 2, ""), func(s *rollout.State) {
			s.Progress = append(s.Progress, rollout.Progress{Step: 0, Of: 4, Name: "first"}, rollout.Progress{Step: 0, Of: 9, Name: "later"},
				rollout.Progress{Step: 5, Of: 5})
		}), func(e *rollout.Event) { e.Title = "shop in prod: release stalled at step 1/4" }},
		"the first deployment": {rollout.State{}, rollout.State{Phase: rollout.Progressing, Release: release("v1")},
			func(e *rollout.Event) { e.Title, e.Stable, e.Step = "shop in prod: release started", "", 0 }},
	} {
		events := notify.Events("prod", recorded(c.before, c.after), links)
		if len(events) != 1 {
			t.Fatalf("%s: %d events", name, len(events))
		}
		want := events[0]
		c.want(&want)
		compare.CheckNamed(t, name, want, events[0])
	}
	again := notify.Events("prod", recorded(begun, paused), links)[0]
	again.Repeat = true
	compare.Check(t, "shop in prod: release started (perhaps sent before)", notify.EventAs(again, rollout.EventStarted).Title)
	bare := notify.Events("prod", rollout.StateCommit{ID: "id", Apps: []rollout.RecordedApp{
		{App: "shop", Before: healthy("v1"), After: atStep(rollout.Progressing, 0, "")},
		{App: "cart", Before: atStep(rollout.Progressing, 0, ""), After: atStep(rollout.Paused, 1, "")}, {App: "same"}}}, notify.Links{})
	if len(bare) != 2 || bare[0].App != "cart" || bare[0].CommitURL != "" || bare[0].ProposalURL != "" {
		t.Errorf("got %+v", bare)
	}
}

// TestOneTroubleBecomesAnother checks that an event lists all problems that its transition ends, even if another problem begins.
func TestOneTroubleBecomesAnother(t *testing.T) {
	for i, before := range states() {
		for j, after := range states() {
			now := notify.Troubles("prod/shop/", after)
			gone := slices.DeleteFunc(notify.Troubles("prod/shop/", before), func(trouble string) bool { return slices.Contains(now, trouble) })
			events := notify.Events("prod", recorded(before, after), notify.Links{})
			if len(gone) > 0 && (len(events) != 1 || !slices.Equal(events[0].Over, gone)) {
				t.Errorf("states %d and %d: %v is over, told %+v", i, j, gone, events)
			}
		}
	}
}

func TestFor(t *testing.T) {
	e := notify.EventAs(rollout.Event{App: "shop", Cluster: "prod", Kinds: kinds{rollout.EventPaused, rollout.EventStepCompleted},
		Author: "Ann"},
		rollout.EventPaused)
	parse := func(text string) *template.Template { return template.Must(template.New("t").Parse(text)) }
	for _, c := range []struct {
		name string
		r    rollout.Receiver
		ok   bool
		want string // the title
		err  bool
	}{
		{name: "defaults", ok: true, want: "shop in prod: paused"},
		{name: "another kind of the same transition", r: rollout.Receiver{On: kinds{rollout.EventStepCompleted}}, ok: true,
			want: "shop in prod: now"},
		{name: "not asked for", r: rollout.Receiver{On: kinds{rollout.EventAborted}}},
		{name: "another app", r: rollout.Receiver{Apps: []string{"cart-*"}}},
		{name: "this app", r: rollout.Receiver{Apps: []string{"sh*"}}, ok: true, want: "shop in prod: paused"},
		{name: "template", r: rollout.Receiver{Title: parse("{{.App}} by {{.Author}} is {{.Kind}}")}, ok: true, want: "shop by Ann is paused"},
		{name: "a template that fails", r: rollout.Receiver{Title: parse("{{index .Analyses 3}}")}, ok: true,
			want: "shop in prod: paused", err: true},
		{name: "a template that does not end", r: rollout.Receiver{Title: parse(`{{define "u"}}{{range .Kinds}}xxxxxxxx{{end}}{{template "u" ` +
			`.}}{{end}}{{template "u" .}}`)}, ok: true, want: "shop in prod: paused", err: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, ok, err := notify.MessageFor(c.r, notify.Profile{Defaults: kinds{rollout.EventPaused}}, e)
			compare.Check(t, []any{c.ok, c.want, c.err}, []any{ok, m.Title, err != nil})
		})
	}
}

// TestMessagesHaveTheFacts checks that messages have the most important facts, and that long texts are cut.
func TestMessagesHaveTheFacts(t *testing.T) {
	profile := notify.Profile{Defaults: rollout.EventKinds()}
	facts := func(e rollout.Event) string {
		m, ok, err := notify.MessageFor(rollout.Receiver{}, profile, e)
		if !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		return strings.Join(rollout.Mapped(m.Facts, func(f notify.Fact) string { return f.Name + " " + f.Value }), "; ")
	}
	sample := notify.Sample("prod", rollout.EventPaused, start)
	compare.Check(t, "Release h1-7b4e2a91d0; Commit 9f31c0d a sample; Author gitrollout notify test; Stable h1-0123456789; "+
		"Step 2/4 pause", facts(sample))
	done := notify.EventAs(sample, rollout.EventCompleted)
	done.Kinds, done.Stable, done.Subject = []rollout.EventKind{rollout.EventCompleted}, done.Release, strings.Repeat("x", 101)
	compare.Check(t, "Release h1-7b4e2a91d0; Commit 9f31c0d "+strings.Repeat("x", 99)+"…; Author gitrollout notify test", facts(done))
	compare.Check(t, "Step 1/2 ", facts(notify.EventAs(rollout.Event{Kinds: kinds{rollout.EventHeld}, Step: 1, Steps: 2}, rollout.EventHeld)))
	compare.Check(t, "", facts(notify.EventAs(rollout.Event{Kinds: kinds{rollout.EventHeld}}, rollout.EventHeld)))
	parse := func(text string) *template.Template { return template.Must(template.New("t").Parse(text)) }
	long := rollout.Receiver{Title: parse(strings.Repeat("a\nb", 100)), Text: parse("  " + strings.Repeat("é", 4000) + "\n")}
	m, _, err := notify.MessageFor(long, profile, sample)
	if err != nil || len([]rune(m.Title)) != 200 || strings.Contains(m.Title, "\n") || len([]rune(m.Text)) != 2500 ||
		!strings.HasPrefix(m.Text, "é") {
		t.Errorf("%d of title, %d of text, %v", len([]rune(m.Title)), len([]rune(m.Text)), err)
	}
	short, _, _ := notify.MessageFor(rollout.Receiver{Text: parse(" x \n")}, profile, sample)
	compare.CheckNamed(t, "text", "x", short.Text)
}

// TestEndsAreToldToThoseWhoKeepTroublesOpen checks which receivers get a message when a problem ends: services that
// show a problem until a message resolves it, and receivers that have selected the event.
func TestEndsAreToldToThoseWhoKeepTroublesOpen(t *testing.T) {
	over := notify.Sample("prod", rollout.EventRecovered, start)
	compare.CheckNamed(t, "ends", []string{"prod/sample/h1-7b4e2a91d0"}, over.Over)
	compare.CheckNamed(t, "trouble, and since", []any{"", start.Add(-time.Minute)}, []any{over.Trouble, over.Since})
	bad := notify.Sample("prod", rollout.EventAborted, start)
	compare.CheckNamed(t, "the trouble", []any{over.Over[0], 0, "sample-20261120T093000Z/sample"}, []any{bad.Trouble, len(bad.Over), bad.ID})
	aborted := []rollout.EventKind{rollout.EventAborted}
	for _, c := range []struct {
		name     string
		profile  notify.Profile
		e        rollout.Event
		ok, ends bool
	}{
		{"a trouble that it asked for", notify.Profile{Defaults: aborted, Resolves: true}, bad, true, false},
		{"a trouble that is over", notify.Profile{Defaults: aborted, Resolves: true}, over, true, true},
		{"an end that it asked for", notify.Profile{Defaults: over.Kinds, Resolves: true}, over, true, false},
		{"a trouble that is over, without resolves", notify.Profile{Defaults: aborted}, over, false, false},
		{"a trouble that it did not ask for", notify.Profile{Defaults: over.Kinds, Resolves: true}, bad, false, false},
	} {
		if m, ok, _ := notify.MessageFor(rollout.Receiver{}, c.profile, c.e); ok != c.ok || m.Ends != c.ends && ok {
			t.Errorf("%s: told %t, as an end %t", c.name, ok, m.Ends)
		}
	}
}

// TestPendingIsBounded checks that Pending keeps only the newest MaxPending events.
func TestPendingIsBounded(t *testing.T) {
	var line []rollout.StateCommit
	for i := range notify.MaxPending + 2 {
		line = append(line,
			rollout.StateCommit{ID: strconv.Itoa(i), When: start, Apps: []rollout.RecordedApp{{App: "cart", After: healthyStart("cart")}}})
	}
	profile := notify.Profile{Defaults: []rollout.EventKind{rollout.EventStarted}}
	b := notify.Pending("prod", rollout.Receiver{}, profile, rollout.Cursor{Told: "x"}, "", line, notify.Links{}, start.Add(notify.MaxAge))
	if len(b.Due) != notify.MaxPending || b.Dropped != 2 || b.Due[0].ID != "2/cart" {
		t.Errorf("%d are due, %d dropped, the first is %s", len(b.Due), b.Dropped, b.Due[0].ID)
	}
	b = notify.Pending("prod", rollout.Receiver{}, profile, rollout.Cursor{}, "", line[2:], notify.Links{}, start.Add(notify.MaxAge))
	compare.CheckNamed(t, "due, and dropped", [2]int{notify.MaxPending, 0}, [2]int{len(b.Due), b.Dropped})
	failing := rollout.Receiver{Name: "team", Title: template.Must(template.New("t").Parse("{{index .Analyses 3}}"))}
	if b := notify.Pending("prod", failing, profile, rollout.Cursor{}, "", line[:1], notify.Links{}, start); b.Err == nil || len(b.Due) != 1 {
		t.Errorf("got %+v", b)
	}
}

func TestPending(t *testing.T) {
	line := []rollout.StateCommit{
		{ID: "2", Parent: "1", When: start,
			Apps: []rollout.RecordedApp{{App: "cart", After: healthyStart("cart")}, {App: "shop", After: healthyStart("shop")}}},
		{ID: "3", Parent: "2", When: start.Add(23 * time.Hour), Apps: []rollout.RecordedApp{{App: "cart", After: healthyStart("cart")}}},
	}
	profile := notify.Profile{Defaults: []rollout.EventKind{rollout.EventStarted}}
	at := rollout.Cursor{Told: "1", App: "cart"}
	b := notify.Pending("prod", rollout.Receiver{}, profile, at, "2", line, notify.Links{}, start)
	if len(b.Due) != 2 || !b.Due[0].Repeat || b.Due[1].Repeat || b.Due[0].After != (rollout.Cursor{Told: "1", App: "shop"}) {
		t.Errorf("got %+v", b)
	}
	late := notify.Pending("prod", rollout.Receiver{}, profile, at, "", line, notify.Links{}, start.Add(25*time.Hour))
	compare.CheckNamed(t, "due, and dropped a day later", [2]int{1, 1}, [2]int{len(late.Due), late.Dropped})
}

func healthyStart(app string) rollout.State {
	return rollout.State{App: app, Phase: rollout.Progressing, Release: release("v1")}
}
