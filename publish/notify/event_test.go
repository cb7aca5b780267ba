package notify

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
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

// atStep is a release of v2 at a step; opened names the author of the promotion.
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

// retreating is a release of v2 during its rollback.
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
	return func(s *rollout.State) { s.Held = &rollout.Held{Reason: reason, Message: message, Commit: "abc"} }
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
			compare.CheckNamed(t, "kinds", c.want, Kinds(c.before, c.after))
		})
	}
}

// states has all states of the table's transitions.
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

// TestEqualStatesAreNoNews sends no message for equal states, and one in words, with an outcome, for each transition in
// any order.
func TestEqualStatesAreNoNews(t *testing.T) {
	for i, before := range states() {
		if kinds := Kinds(before, before); len(kinds) > 0 {
			t.Errorf("state %d and itself: %v", i, kinds)
		}
		for j, after := range states() {
			commit := rollout.StateCommit{ID: "id", When: start, Apps: []rollout.RecordedApp{{App: "shop", Before: before, After: after}}}
			for _, e := range Events("prod", commit, Links{}) {
				if e.Title == "" || e.Outcome == "" || !slices.Contains(e.Kinds, e.Kind) || e.ID != "id/shop" {
					t.Errorf("states %d and %d: %+v", i, j, e)
				}
			}
		}
	}
}

// TestTroubleEndsOnce makes a random walk through states: each incident is closed exactly once, and none is open in a
// good state.
func TestTroubleEndsOnce(t *testing.T) {
	all := states()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		open := map[string]bool{}
		before := rollout.State{}
		for range 50 {
			after := all[random.IntN(len(all))]
			commit := rollout.StateCommit{ID: "id", When: start, Apps: []rollout.RecordedApp{{App: "shop", Before: before, After: after}}}
			for _, e := range Events("prod", commit, Links{}) {
				for _, over := range e.Over {
					delete(open, over)
				}
				if e.Is(rollout.TroubleKinds()...) {
					open[e.Trouble] = true
				}
			}
			for trouble := range open {
				if !slices.Contains(troubles("prod/shop/", after), trouble) {
					t.Fatalf("seed %d: %s is open, and the state is %+v", seed, trouble, after)
				}
			}
			before = after
		}
	}
}

func TestEventSaysWhatToDo(t *testing.T) {
	links := Links{Commit: func(id string) string { return "https://git/c/" + id },
		Branch: func(name string) string { return "https://git/b/" + name }}
	tell := func(before, after rollout.State) rollout.Event {
		events := Events("prod",
			rollout.StateCommit{ID: "id", When: start, Apps: []rollout.RecordedApp{{App: "shop", Before: before, After: after}}}, links)
		if len(events) != 1 {
			t.Fatalf("%d events", len(events))
		}
		return events[0]
	}
	paused := tell(atStep(rollout.Progressing, 0, ""), atStep(rollout.Paused, 1, ""))
	if paused.Title != "shop in prod: paused at step 2/3 (weight 40)" ||
		paused.Text != "Waits for a promotion: merge gitrollout/promote/prod/shop" ||
		paused.ProposalURL != "https://git/b/gitrollout/promote/prod/shop" || paused.CommitURL != "https://git/c/"+strings.Repeat("c", 40) {
		t.Errorf("got %+v", paused)
	}
	timed := tell(atStep(rollout.Progressing, 0, ""),
		with(atStep(rollout.Paused, 1, ""), func(s *rollout.State) { s.Progress[0].Name = "pause 10m0s" }))
	if timed.Text != "Waits for 10m0s to pass" || timed.Proposal != "" {
		t.Errorf("got %q, %q", timed.Text, timed.Proposal)
	}
	last := tell(atStep(rollout.Paused, 2, ""), atStep(rollout.Promoting, 3, "Ann"))
	if last.Title != "shop in prod: promoted, now through its steps" {
		t.Errorf("got %q", last.Title)
	}
	failed := tell(with(atStep(rollout.Progressing, 1, ""), run(rollout.AnalysisRunning)), with(retreating(true), run(rollout.AnalysisFailed)))
	want := "it is bad\nWaits for Git to agree with the stable version: merge gitrollout/revert/prod/shop, or push a new version\n" +
		"Metric errors: Failed, last [0.2]"
	if failed.Text != want || failed.Trouble != "prod/shop/v2" {
		t.Errorf("got %q, %q", failed.Text, failed.Trouble)
	}
	for phase, line := range map[rollout.AnalysisPhase]string{
		rollout.AnalysisErrored:      "Metric errors: Error, last [0.2]: no answer",
		rollout.AnalysisInconclusive: "Metric errors: Inconclusive, last [0.2]: no answer", rollout.AnalysisSuccessful: "",
	} {
		judged := with(retreating(false), run(phase))
		judged.Reason, judged.Analyses[0].Metrics[0].Message = "", "no answer"
		if e := tell(with(atStep(rollout.Progressing, 1, ""), run(rollout.AnalysisRunning)), judged); e.Text != line || len(e.Analyses) != 1 {
			t.Errorf("%s: %q, %+v", phase, e.Text, e.Analyses)
		}
	}
	closed := tell(healthy("v1"), with(healthy("v1"), held(rollout.HeldClosed, "until Monday")))
	if closed.Text != "until Monday" || closed.Waiting != "until Monday" || closed.Commit != "abc" || closed.Stable != "v1" ||
		closed.Release != "v1" {
		t.Errorf("got %+v", closed)
	}
	wrong := tell(atStep(rollout.Stalled, 1, ""), with(atStep(rollout.Stalled, 1, ""), held("InvalidInput", "x.yaml: bad")))
	if wrong.Text != "x.yaml: bad" || wrong.Waiting != "" || wrong.Commit != strings.Repeat("c", 40) ||
		!strings.HasSuffix(wrong.Trouble, "/held") || wrong.Release != "v2" {
		t.Errorf("got %+v", wrong)
	}
	noCommit := with(healthy("v1"), held("InvalidInput", "x.yaml: bad"))
	noCommit.Held.Commit = ""
	if e := tell(healthy("v1"), noCommit); e.Commit != strings.Repeat("c", 40) {
		t.Errorf("got %+v", e)
	}
	unwell := with(healthy("v1"), func(s *rollout.State) { s.Unhealthy = "0 of 5 pods are ready" })
	if e := tell(healthy("v1"), unwell); e.Text != "0 of 5 pods are ready" || e.Trouble != "prod/shop/unhealthy" {
		t.Errorf("got %+v", e)
	}
	if e := tell(unwell, rollout.State{}); e.Release != "v1" || e.Kind != rollout.EventRecovered {
		t.Errorf("of an app that was removed: %+v", e)
	}
	if e := tell(rollout.State{}, unwell); e.Release != "v1" || e.Stable != "v1" {
		t.Errorf("of an app that was adopted: %+v", e)
	}
	two := atStep(rollout.Stalled, 2, "")
	two.Progress = append(two.Progress, rollout.Progress{Step: 0, Of: 4, Name: "first"}, rollout.Progress{Step: 0, Of: 9, Name: "later"},
		rollout.Progress{Step: 5, Of: 5})
	if e := tell(atStep(rollout.Progressing, 2, ""), two); e.Title != "shop in prod: release stalled at step 1/4" {
		t.Errorf("got %q", e.Title)
	}
	first := tell(rollout.State{}, rollout.State{Phase: rollout.Progressing, Release: release("v1")})
	if first.Title != "shop in prod: release started" || first.Stable != "" || first.Step != 0 {
		t.Errorf("got %+v", first)
	}
	repeated := paused
	repeated.Repeat = true
	if got := eventAs(repeated, rollout.EventStarted).Title; got != "shop in prod: release started (perhaps told before)" {
		t.Errorf("got %q", got)
	}
	bare := Events("prod", rollout.StateCommit{ID: "id", Apps: []rollout.RecordedApp{
		{App: "shop", Before: healthy("v1"), After: atStep(rollout.Progressing, 0, "")},
		{App: "cart", Before: atStep(rollout.Progressing, 0, ""), After: atStep(rollout.Paused, 1, "")}, {App: "same"}}}, Links{})
	if len(bare) != 2 || bare[0].App != "cart" || bare[0].CommitURL != "" || bare[0].ProposalURL != "" {
		t.Errorf("got %+v", bare)
	}
}

// TestOneTroubleBecomesAnother checks that one event lists every incident that a transition ends, even without a new
// one.
func TestOneTroubleBecomesAnother(t *testing.T) {
	for i, before := range states() {
		for j, after := range states() {
			now := troubles("prod/shop/", after)
			gone := slices.DeleteFunc(troubles("prod/shop/", before), func(trouble string) bool { return slices.Contains(now, trouble) })
			commit := rollout.StateCommit{ID: "id", Apps: []rollout.RecordedApp{{App: "shop", Before: before, After: after}}}
			events := Events("prod", commit, Links{})
			if len(gone) > 0 && (len(events) != 1 || !slices.Equal(events[0].Over, gone)) {
				t.Errorf("states %d and %d: %v is over, told %+v", i, j, gone, events)
			}
		}
	}
}

func TestFor(t *testing.T) {
	e := eventAs(rollout.Event{App: "shop", Cluster: "prod", Kinds: kinds{rollout.EventPaused, rollout.EventStepCompleted}, Author: "Ann"},
		rollout.EventPaused)
	parse := func(text string) *template.Template { return template.Must(template.New("t").Parse(text)) }
	for _, c := range []struct {
		name string
		r    rollout.Receiver
		ok   bool
		want string // of the title
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
			m, ok, err := MessageFor(c.r, Profile{Defaults: kinds{rollout.EventPaused}}, e)
			if ok != c.ok || m.Title != c.want || (err != nil) != c.err {
				t.Errorf("got %q, %t, %v", m.Title, ok, err)
			}
		})
	}
}

// TestMessagesHaveTheFacts checks that messages have the important facts, and fit services' limits.
func TestMessagesHaveTheFacts(t *testing.T) {
	profile := Profile{Defaults: rollout.EventKinds()}
	facts := func(e rollout.Event) string {
		m, ok, err := MessageFor(rollout.Receiver{}, profile, e)
		if !ok || err != nil {
			t.Fatalf("%t, %v", ok, err)
		}
		var all []string
		for _, f := range m.Facts {
			all = append(all, f.Name+" "+f.Value)
		}
		return strings.Join(all, "; ")
	}
	sample := Sample("prod", rollout.EventPaused, start)
	if got, want := facts(sample), "Release h1-7b4e2a91d0; Commit 9f31c0d a sample; Author gitrollout notify test; Stable h1-0123456789; "+
		"Step 2/4 pause"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	done := eventAs(sample, rollout.EventCompleted)
	done.Kinds, done.Stable, done.Subject = []rollout.EventKind{rollout.EventCompleted}, done.Release, strings.Repeat("x", 101)
	if got, want := facts(done), "Release h1-7b4e2a91d0; Commit 9f31c0d "+strings.Repeat("x", 99)+
		"…; Author gitrollout notify test"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := facts(eventAs(rollout.Event{Kinds: []rollout.EventKind{rollout.EventHeld}, Step: 1, Steps: 2},
		rollout.EventHeld)); got != "Step 1/2 " {
		t.Errorf("got %s", got)
	}
	if got := facts(eventAs(rollout.Event{Kinds: []rollout.EventKind{rollout.EventHeld}}, rollout.EventHeld)); got != "" {
		t.Errorf("got %s", got)
	}
	parse := func(text string) *template.Template { return template.Must(template.New("t").Parse(text)) }
	long := rollout.Receiver{Title: parse(strings.Repeat("a\nb", 100)), Text: parse("  " + strings.Repeat("é", 4000) + "\n")}
	m, _, err := MessageFor(long, profile, sample)
	if err != nil || len([]rune(m.Title)) != 200 || strings.Contains(m.Title, "\n") || len([]rune(m.Text)) != maxText ||
		!strings.HasPrefix(m.Text, "é") {
		t.Errorf("%d of title, %d of text, %v", len([]rune(m.Title)), len([]rune(m.Text)), err)
	}
	if short, _, _ := MessageFor(rollout.Receiver{Text: parse(" x \n")}, profile, sample); short.Text != "x" {
		t.Errorf("the text is %q", short.Text)
	}
}

// TestEndsAreToldToThoseWhoKeepTroublesOpen reports ends to services with incidents, and otherwise only to receivers
// that subscribed.
func TestEndsAreToldToThoseWhoKeepTroublesOpen(t *testing.T) {
	over := Sample("prod", rollout.EventRecovered, start)
	if over.Trouble != "" || len(over.Over) != 1 || over.Over[0] != "prod/sample/h1-7b4e2a91d0" || over.Since != start.Add(-time.Minute) {
		t.Errorf("got %+v", over)
	}
	bad := Sample("prod", rollout.EventAborted, start)
	if bad.Trouble != over.Over[0] || len(bad.Over) != 0 || bad.ID != "sample-20261120T093000Z/sample" {
		t.Errorf("got %+v", bad)
	}
	aborted := []rollout.EventKind{rollout.EventAborted}
	for _, c := range []struct {
		name     string
		profile  Profile
		e        rollout.Event
		ok, ends bool
	}{
		{"a trouble that it asked for", Profile{Defaults: aborted, Resolves: true}, bad, true, false},
		{"a trouble that is over", Profile{Defaults: aborted, Resolves: true}, over, true, true},
		{"an end that it asked for", Profile{Defaults: over.Kinds, Resolves: true}, over, true, false},
		{"a trouble that is over, without resolves", Profile{Defaults: aborted}, over, false, false},
		{"a trouble that it did not ask for", Profile{Defaults: over.Kinds, Resolves: true}, bad, false, false},
	} {
		if m, ok, _ := MessageFor(rollout.Receiver{}, c.profile, c.e); ok != c.ok || m.Ends != c.ends && ok {
			t.Errorf("%s: told %t, as an end %t", c.name, ok, m.Ends)
		}
	}
}

// TestPendingIsBounded keeps only the newest of many waiting events.
func TestPendingIsBounded(t *testing.T) {
	var line []rollout.StateCommit
	for i := range MaxPending + 2 {
		line = append(line,
			rollout.StateCommit{ID: strconv.Itoa(i), When: start, Apps: []rollout.RecordedApp{{App: "cart", After: healthyStart("cart")}}})
	}
	profile := Profile{Defaults: []rollout.EventKind{rollout.EventStarted}}
	b := Pending("prod", rollout.Receiver{}, profile, rollout.Cursor{Told: "x"}, "", line, Links{}, start.Add(MaxAge))
	if len(b.Due) != MaxPending || b.Dropped != 2 || b.Due[0].ID != "2/cart" || b.End.Told != line[len(line)-1].ID {
		t.Errorf("%d are due, %d dropped, the first is %s", len(b.Due), b.Dropped, b.Due[0].ID)
	}
	if b := Pending("prod", rollout.Receiver{}, profile, rollout.Cursor{}, "", line[2:], Links{},
		start.Add(MaxAge)); len(b.Due) != MaxPending || b.Dropped != 0 {
		t.Errorf("%d are due, %d dropped", len(b.Due), b.Dropped)
	}
	failing := rollout.Receiver{Name: "team", Title: template.Must(template.New("t").Parse("{{index .Analyses 3}}"))}
	if b := Pending("prod", failing, profile, rollout.Cursor{}, "", line[:1], Links{}, start); b.Err == nil || len(b.Due) != 1 {
		t.Errorf("got %+v", b)
	}
	if b := Pending("prod", rollout.Receiver{}, profile, rollout.Cursor{Told: "x", App: "y"}, "", nil, Links{},
		start); b.End != (rollout.Cursor{Told: "x"}) {
		t.Errorf("nothing is after %+v", b.End)
	}
}

func TestPending(t *testing.T) {
	line := []rollout.StateCommit{
		{ID: "2", Parent: "1", When: start,
			Apps: []rollout.RecordedApp{{App: "cart", After: healthyStart("cart")}, {App: "shop", After: healthyStart("shop")}}},
		{ID: "3", Parent: "2", When: start.Add(23 * time.Hour), Apps: []rollout.RecordedApp{{App: "cart", After: healthyStart("cart")}}},
	}
	profile := Profile{Defaults: []rollout.EventKind{rollout.EventStarted}}
	at := rollout.Cursor{Told: "1", App: "cart"}
	b := Pending("prod", rollout.Receiver{}, profile, at, "2", line, Links{}, start)
	if len(b.Due) != 2 || !b.Due[0].Repeat || b.Due[1].Repeat || b.Due[0].After != (rollout.Cursor{Told: "1", App: "shop"}) ||
		b.End != (rollout.Cursor{Told: "3"}) {
		t.Errorf("got %+v", b)
	}
	if late := Pending("prod", rollout.Receiver{}, profile, at, "", line, Links{}, start.Add(25*time.Hour)); len(late.Due) != 1 ||
		late.Dropped != 1 {
		t.Errorf("a day later: %+v", late)
	}
}

func healthyStart(app string) rollout.State {
	return rollout.State{App: app, Phase: rollout.Progressing, Release: release("v1")}
}
