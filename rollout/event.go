package rollout

import (
	"slices"
	"time"
)

// EventKind says what a transition means to people who follow a release.
type EventKind string

// The kinds of events. Those that Argo Rollouts has a trigger for are named
// after it: on-rollout-step-completed is StepCompleted.
const (
	EventStarted       EventKind = "started"       // a release begins: on-rollout-updated
	EventStepCompleted EventKind = "stepCompleted" // a workload moves on to its next step
	EventPaused        EventKind = "paused"        // the release waits for people or for the clock
	EventPromoted      EventKind = "promoted"      // somebody let it pass a step
	EventCompleted     EventKind = "completed"     // the release is the stable version now
	EventAborted       EventKind = "aborted"       // back to stable; the version is not tried again
	// Back to stable, because Git was reverted or has a newer version.
	EventRolledBack           EventKind = "rolledBack"
	EventRestored             EventKind = "restored"             // the way back has ended: stable serves alone
	EventAnalysisStarted      EventKind = "analysisStarted"      // on-analysis-run-running
	EventAnalysisFailed       EventKind = "analysisFailed"       // on-analysis-run-failed
	EventAnalysisError        EventKind = "analysisError"        // on-analysis-run-error
	EventAnalysisInconclusive EventKind = "analysisInconclusive" //
	EventStalled              EventKind = "stalled"              // no progress for longer than the deadline
	EventHeld                 EventKind = "held"                 // something is wrong with what Git asks for
	// A new version waits for a window to open or for a freeze to end.
	EventWaiting   EventKind = "waiting"
	EventDegraded  EventKind = "degraded"  // what serves has not been well for longer than its deadline
	EventRecovered EventKind = "recovered" // nothing is wrong any more
)

// EventKinds lists all kinds, the most telling first: one transition may be
// several, and is told once, as the first of them that somebody asked for.
func EventKinds() []EventKind {
	return []EventKind{
		EventAborted, EventRolledBack, EventCompleted, EventStalled, EventDegraded, EventHeld,
		EventAnalysisFailed, EventAnalysisError, EventAnalysisInconclusive,
		EventPaused, EventPromoted, EventStarted, EventStepCompleted, EventRestored, EventRecovered,
		EventWaiting, EventAnalysisStarted,
	}
}

// Outcome is how good the news of an event is.
type Outcome string

// The outcomes, for colours and severities.
const (
	OutcomeGood    Outcome = "good"
	OutcomeBad     Outcome = "bad"
	OutcomeWarning Outcome = "warning" // somebody has to look, or to decide
	OutcomeNews    Outcome = "news"
)

// Event is one transition of an app as people are told of it. Its fields are what templates may use.
type Event struct {
	ID      string      `json:"-"`     // the state commit and the app, the same whenever it is told: 9f31c0…/shop
	Kind    EventKind   `json:"-"`     // the most telling one
	Kinds   []EventKind `json:"kinds"` // all, the most telling first
	Outcome Outcome     `json:"outcome"`
	At      time.Time   `json:"-"` // when it was recorded
	Cluster string      `json:"cluster"`
	App     string      `json:"app"`

	Title  string `json:"title"`            // one line: what happened to which app where
	Text   string `json:"text,omitempty"`   // why, and what is expected of whom; may be empty
	Reason string `json:"reason,omitempty"` // of the phase or of what is held, as recorded

	Release  Hash      `json:"release,omitempty"` // that it is about, "" if none
	Commit   string    `json:"commit,omitempty"`
	Author   string    `json:"author,omitempty"`
	Subject  string    `json:"subject,omitempty"` // of the commit
	Since    time.Time `json:"since,omitzero"`
	Stable   Hash      `json:"stable,omitempty"` // that serves besides, or alone
	Step     int       `json:"step,omitempty"`   // from 1, of the workload furthest behind; 0: there are no steps
	Steps    int       `json:"steps,omitempty"`
	StepName string    `json:"stepName,omitempty"` // setWeight 20, pause 10m0s …
	Weight   int       `json:"weight,omitempty"`   // that is asked for

	Waiting  string          `json:"waiting,omitempty"`  // what it waits for, "" if for nothing
	Proposal string          `json:"proposal,omitempty"` // the branch to merge, "" if there is none
	Analyses []EventAnalysis `json:"analyses,omitempty"` // of the release

	CommitURL   string `json:"-"` // on the forge, "" if it is not known
	ProposalURL string `json:"-"`

	Trouble string   `json:"trouble,omitempty"` // what is wrong, the same while it is: prod/shop/h1-7b4e2a91d0
	Over    []string `json:"over,omitempty"`    // the Troubles that this ends
	Repeat  bool     `json:"repeat,omitempty"`  // it may have been told before: the process that did was killed meanwhile
}

// EventAnalysis is one metric of a release's analyses.
type EventAnalysis struct {
	Run     string        `json:"run"`
	Metric  string        `json:"metric"`
	Phase   AnalysisPhase `json:"phase"`
	Value   string        `json:"value,omitempty"` // the newest measurement
	Message string        `json:"message,omitempty"`
}

// Is reports whether the event is of one of the kinds.
func (e *Event) Is(kinds ...EventKind) bool {
	return slices.ContainsFunc(kinds, func(k EventKind) bool { return slices.Contains(e.Kinds, k) })
}

// RecordedApp is one app in a commit of the state branch.
type RecordedApp struct {
	App           string
	Before, After State // the zero value where there is no file
}

// Recorded is one commit of the state branch and what it changed, by app.
type Recorded struct {
	ID     string
	Parent string // "" for the first one
	When   time.Time
	Apps   []RecordedApp
}
