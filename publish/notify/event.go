package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Links has functions that return the URLs of a forge's pages. A nil function gives no URL.
type Links struct {
	Commit func(id string) string
	Branch func(name string) string
}

// Events returns the events of a state commit, sorted by app.
func Events(cluster string, commit rollout.StateCommit, links Links) (events []rollout.Event) {
	for _, app := range commit.Apps {
		if e, ok := eventOf(cluster, commit, app, links); ok {
			events = append(events, e)
		}
	}
	slices.SortFunc(events, func(a, b rollout.Event) int { return strings.Compare(a.App, b.App) })
	return events
}

func eventOf(cluster string, commit rollout.StateCommit, app rollout.RecordedApp, links Links) (rollout.Event, bool) {
	before, after := app.Before, app.After
	prefix := cluster + "/" + app.App + "/"
	now := troubles(prefix, after)
	over := slices.DeleteFunc(troubles(prefix, before), func(t string) bool { return slices.Contains(now, t) })
	kinds := Kinds(before, after)
	if len(kinds) == 0 && len(over) == 0 {
		return rollout.Event{}, false
	}
	if len(kinds) == 0 { // only a problem ended
		kinds = []rollout.EventKind{rollout.EventRecovered}
	}
	e := rollout.Event{
		ID: commit.ID + "/" + app.App, Kinds: kinds, At: commit.When, Cluster: cluster, App: app.App, Reason: after.Reason,
		Over: over,
	}
	if len(now) > 0 {
		e.Trouble = now[0]
		if kinds[0] == rollout.EventHeld {
			e.Trouble = now[len(now)-1]
		}
		if kinds[0] == rollout.EventDegraded {
			e.Trouble, e.Reason = prefix+unhealthy, after.Unhealthy
		}
	}
	about := before // only the previous state has a release that ended
	if after.Release != nil {
		about = after
	}
	describeRelease(&e, about, after)
	describeWait(&e, cluster, after)
	if links.Commit != nil && e.Commit != "" {
		e.CommitURL = links.Commit(e.Commit)
	}
	if links.Branch != nil && e.Proposal != "" {
		e.ProposalURL = links.Branch(e.Proposal)
	}
	return eventAs(e, kinds[0]), true
}

func eventAs(e rollout.Event, kind rollout.EventKind) rollout.Event {
	e.Kind, e.Outcome = kind, told[kind].outcome
	e.Title, e.Text = title(e), text(e)
	return e
}

func describeRelease(e *rollout.Event, about, after rollout.State) {
	if release := cmp.Or(about.Release, about.Stable, after.Stable); release != nil {
		e.Release, e.Commit, e.Author, e.Subject, e.Since = release.Hash, release.Commit, release.Author, release.Subject,
			release.Since
	}
	if after.Stable != nil {
		e.Stable = after.Stable.Hash
	}
	if after.Held != nil && after.Held.Commit != "" && after.Release == nil {
		e.Commit, e.Author, e.Subject = after.Held.Commit, after.Held.Author, ""
	}
	for i, p := range about.Progress {
		if step := min(p.Step+1, p.Of); i == 0 || step < e.Step {
			e.Step, e.Steps, e.StepName, e.Weight = step, p.Of, p.Name, p.Weight
		}
	}
	for _, run := range after.Analyses {
		for _, m := range run.Metrics {
			a := rollout.EventAnalysis{Run: run.Name, Metric: m.Metric, Phase: m.Phase, Message: m.Message}
			if last, ok := m.Last(); ok {
				a.Value = last.Value
			}
			e.Analyses = append(e.Analyses, a)
		}
	}
}

func describeWait(e *rollout.Event, cluster string, after rollout.State) {
	switch {
	case after.Held != nil:
		e.Reason = after.Held.Message
		if after.Held.Waits() {
			e.Waiting = after.Held.Message
		}
	case after.Phase == rollout.Paused && e.StepName == "pause":
		e.Proposal = rollout.ProposalBranch(rollout.ProposePromotion, cluster, e.App)
		e.Waiting = "a promotion: merge " + e.Proposal
	case after.Phase == rollout.Paused && strings.HasPrefix(e.StepName, "pause "):
		e.Waiting = strings.TrimPrefix(e.StepName, "pause ") + " to pass"
	case after.Phase == rollout.Degraded, after.Rollback != nil && after.Rollback.Reject:
		e.Proposal = rollout.ProposalBranch(rollout.ProposeRevert, cluster, e.App)
		e.Waiting = "Git to agree with the stable version: merge " + e.Proposal + ", or push a new version"
	}
}

var told = map[rollout.EventKind]struct {
	outcome rollout.Outcome
	what    string
	atStep  bool
}{
	rollout.EventStarted:              {rollout.OutcomeNews, "release started", false},
	rollout.EventStepCompleted:        {rollout.OutcomeNews, "now", true},
	rollout.EventPaused:               {rollout.OutcomeWarning, "paused", true},
	rollout.EventPromoted:             {rollout.OutcomeNews, "promoted, now", true},
	rollout.EventCompleted:            {rollout.OutcomeGood, "release completed", false},
	rollout.EventAborted:              {rollout.OutcomeBad, "release aborted, going back to stable", false},
	rollout.EventRolledBack:           {rollout.OutcomeWarning, "release rolled back", false},
	rollout.EventRestored:             {rollout.OutcomeGood, "back at stable", false},
	rollout.EventAnalysisStarted:      {rollout.OutcomeNews, "analysis started", false},
	rollout.EventAnalysisFailed:       {rollout.OutcomeBad, "analysis failed", false},
	rollout.EventAnalysisError:        {rollout.OutcomeBad, "analysis could not measure", false},
	rollout.EventAnalysisInconclusive: {rollout.OutcomeWarning, "analysis inconclusive", false},
	rollout.EventStalled:              {rollout.OutcomeBad, "release stalled", true},
	rollout.EventHeld:                 {rollout.OutcomeBad, "held", false},
	rollout.EventWaiting:              {rollout.OutcomeWarning, "release waits", false},
	rollout.EventDegraded:             {rollout.OutcomeBad, "not well", false},
	rollout.EventRecovered:            {rollout.OutcomeGood, "recovered", false},
}

// title returns "shop in prod-eu: paused at step 2/8 (weight 20)" or similar.
func title(e rollout.Event) string {
	title := e.App + " in " + e.Cluster + ": " + told[e.Kind].what
	switch atStep := told[e.Kind].atStep && e.Step > 0; {
	case atStep && e.StepName == "promote":
		title += " through its steps"
	case atStep:
		title += fmt.Sprintf(" at step %d/%d", e.Step, e.Steps)
		if e.Weight > 0 {
			title += fmt.Sprintf(" (weight %d)", e.Weight)
		}
	}
	if e.Repeat {
		title += " (perhaps sent before)"
	}
	return title
}

func text(e rollout.Event) string {
	var lines []string
	if e.Reason != "" {
		lines = append(lines, e.Reason)
	}
	if e.Waiting != "" && e.Waiting != e.Reason {
		lines = append(lines, "Waits for "+e.Waiting)
	}
	for _, a := range e.Analyses {
		if _, isBad := analysisEvents[a.Phase]; !isBad {
			continue
		}
		line := fmt.Sprintf("Metric %s: %s", a.Metric, a.Phase)
		if a.Value != "" {
			line += ", last " + a.Value
		}
		if a.Message != "" {
			line += ": " + a.Message
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Kinds returns the kinds of event in a transition, most important first.
func Kinds(before, after rollout.State) []rollout.EventKind {
	is := map[rollout.EventKind]bool{}
	releaseKinds(is, before, after)
	analysisKinds(is, before, after)
	b, a := before.Held, after.Held
	isNew := a != nil && (b == nil || b.Reason != a.Reason || b.Message != a.Message)
	is[rollout.EventHeld] = isNew && !a.Waits()
	// Many apps wait for a cohort or stage, so these waits are no events.
	is[rollout.EventWaiting] = a.Waits() && !a.Is(rollout.HeldCohort, rollout.HeldStage) &&
		(!b.Waits() || b.Commit != a.Commit)
	is[rollout.EventDegraded] = before.Unhealthy == "" && after.Unhealthy != ""
	isOver := len(troubles("", before)) > 0 && len(troubles("", after)) == 0
	is[rollout.EventRecovered] = isOver && (before.Unhealthy == "" || after.Release == nil)
	return slices.DeleteFunc(rollout.EventKinds(), func(kind rollout.EventKind) bool { return !is[kind] })
}

func releaseKinds(is map[rollout.EventKind]bool, before, after rollout.State) {
	same := before.Release.Same(after.Release)
	stepped, opened := false, false // the release reached a later step; a promotion opened a gate
	for _, p := range after.Progress {
		if was, found := before.ProgressOf(p.Workload); found && p.Step > was.Step {
			stepped, opened = same && after.Phase != rollout.Aborting, opened || p.Opened != ""
		}
	}
	turned := after.Phase != before.Phase
	aborts := turned && after.Phase == rollout.Aborting
	is[rollout.EventStarted] = !same && after.Release != nil && !aborts
	is[rollout.EventStepCompleted] = stepped
	is[rollout.EventPromoted] = stepped && opened
	is[rollout.EventPaused] = after.Phase == rollout.Paused && (turned || stepped || !same)
	is[rollout.EventCompleted] = after.Release == nil && before.Release != nil && before.Phase != rollout.Aborting &&
		after.Stable != nil && after.Stable.Hash == before.Release.Hash
	is[rollout.EventAborted] = aborts && after.Rollback != nil && after.Rollback.Reject
	is[rollout.EventRolledBack] = aborts && !is[rollout.EventAborted]
	is[rollout.EventRestored] = turned && before.Phase == rollout.Aborting
	is[rollout.EventStalled] = stalls(after) && !(same && stalls(before))
}

func stalls(s rollout.State) bool {
	return s.Phase == rollout.Stalled || (s.Rollback != nil && s.Rollback.Late)
}

var analysisEvents = map[rollout.AnalysisPhase]rollout.EventKind{
	rollout.AnalysisFailed: rollout.EventAnalysisFailed, rollout.AnalysisErrored: rollout.EventAnalysisError,
	rollout.AnalysisInconclusive: rollout.EventAnalysisInconclusive,
}

func analysisKinds(is map[rollout.EventKind]bool, before, after rollout.State) {
	for _, run := range after.Analyses {
		i := slices.IndexFunc(before.Analyses, run.Same)
		if i < 0 {
			is[rollout.EventAnalysisStarted] = true
		}
		if kind, bad := analysisEvents[run.Phase]; bad && (i < 0 || before.Analyses[i].Phase != run.Phase) {
			is[kind] = true
		}
	}
}

const unhealthy = "unhealthy"

// troubles returns the ids of at most three problems. The release's problem is first. This problem keeps one id while
// the release is stalled, rolled back and rejected.
func troubles(prefix string, s rollout.State) (all []string) {
	switch {
	case s.Phase == rollout.Degraded && len(s.Rejected) > 0:
		all = append(all, prefix+string(s.Rejected[0].Hash))
	case s.Release != nil && (stalls(s) || (s.Phase == rollout.Aborting && s.Rollback != nil && s.Rollback.Reject)):
		all = append(all, prefix+string(s.Release.Hash))
	}
	if s.Unhealthy != "" {
		all = append(all, prefix+unhealthy)
	}
	if s.Held != nil && !s.Held.Waits() {
		all = append(all, prefix+"held")
	}
	return all
}
