package rollout

import (
	"slices"
	"time"
)

// EventKind is the kind of a change of an app's state. Users are notified about such changes.
type EventKind string

// The kinds of events are named like triggers in Argo Rollouts: on-rollout-step-completed is StepCompleted.
const (
	EventStarted       EventKind = "started"       // a release begins; on-rollout-updated
	EventStepCompleted EventKind = "stepCompleted" // a workload reaches its next step
	EventPaused        EventKind = "paused"        // the release waits for a user or for the clock
	EventPromoted      EventKind = "promoted"      // a user let the waiting release continue
	EventCompleted     EventKind = "completed"     // the release is stable now
	EventAborted       EventKind = "aborted"       // a rollback begins, and the version is rejected
	// EventRolledBack: a rollback begins, because Git was reverted or has a newer version.
	EventRolledBack           EventKind = "rolledBack"
	EventRestored             EventKind = "restored"             // the rollback has ended
	EventAnalysisStarted      EventKind = "analysisStarted"      // on-analysis-run-running
	EventAnalysisFailed       EventKind = "analysisFailed"       // on-analysis-run-failed
	EventAnalysisError        EventKind = "analysisError"        // on-analysis-run-error
	EventAnalysisInconclusive EventKind = "analysisInconclusive" //
	EventStalled              EventKind = "stalled"              // no progress for longer than the deadline
	EventHeld                 EventKind = "held"                 // the app is held by an error
	// EventWaiting: a new version waits until a window opens, or until a freeze or a Job ends.
	EventWaiting   EventKind = "waiting"
	EventDegraded  EventKind = "degraded"  // the serving version has been unhealthy for longer than its deadline
	EventRecovered EventKind = "recovered" // all problems are over
)

// EventKinds lists all kinds, most important first. For each event, a receiver gets the first kind that it requested.
func EventKinds() []EventKind {
	return []EventKind{
		EventAborted, EventRolledBack, EventCompleted, EventStalled, EventDegraded, EventHeld,
		EventAnalysisFailed, EventAnalysisError, EventAnalysisInconclusive,
		EventPaused, EventPromoted, EventStarted, EventStepCompleted, EventRestored, EventRecovered,
		EventWaiting, EventAnalysisStarted,
	}
}

// Outcome is the severity of an event.
type Outcome string

// The outcomes, for colours and severities.
const (
	OutcomeGood    Outcome = "good"
	OutcomeBad     Outcome = "bad"
	OutcomeWarning Outcome = "warning" // a user has to look, or to decide
	OutcomeNews    Outcome = "news"
)

// Event is one change of an app's state, for notifications and their templates.
type Event struct {
	ID      string      `json:"-"`     // state commit and app, such as 9f31c0…/shop; each delivery has the same ID
	Kind    EventKind   `json:"-"`     // the most important of Kinds
	Kinds   []EventKind `json:"kinds"` // all kinds, most important first
	Outcome Outcome     `json:"outcome"`
	At      time.Time   `json:"-"` // when it was recorded
	Cluster string      `json:"cluster"`
	App     string      `json:"app"`

	Title  string `json:"title"`            // one line: what happened to which app where
	Text   string `json:"text,omitempty"`   // why, and the expected action; may be empty
	Reason string `json:"reason,omitempty"` // State.Reason or Held.Message, as recorded

	Release  Hash      `json:"release,omitempty"` // "" without a release
	Commit   string    `json:"commit,omitempty"`
	Author   string    `json:"author,omitempty"`
	Subject  string    `json:"subject,omitempty"` // of the commit
	Since    time.Time `json:"since,omitzero"`
	Stable   Hash      `json:"stable,omitempty"` // hash of the stable version, "" before the first release
	Step     int       `json:"step,omitempty"`   // step of the workload with the least progress, from 1; 0 without steps
	Steps    int       `json:"steps,omitempty"`
	StepName string    `json:"stepName,omitempty"` // setWeight 20, pause 10m0s …
	Weight   int       `json:"weight,omitempty"`   // requested

	Waiting  string          `json:"waiting,omitempty"`  // the reason of a wait, "" without one
	Proposal string          `json:"proposal,omitempty"` // the branch to merge, "" if there is none
	Analyses []EventAnalysis `json:"analyses,omitempty"` // of the release

	CommitURL   string `json:"-"` // on the forge, "" if unknown
	ProposalURL string `json:"-"`

	Trouble string   `json:"trouble,omitempty"` // the problem's id, the same while it lasts: prod/shop/h1-7b4e2a91d0
	Over    []string `json:"over,omitempty"`    // the Troubles that this event ends
	Repeat  bool     `json:"repeat,omitempty"`  // a killed process may have sent the event before
}

// EventAnalysis is one metric of a release's analyses.
type EventAnalysis struct {
	Run     string        `json:"run"`
	Metric  string        `json:"metric"`
	Phase   AnalysisPhase `json:"phase"`
	Value   string        `json:"value,omitempty"` // the newest measurement
	Message string        `json:"message,omitempty"`
}

// Is reports whether the event has any of the kinds.
func (e *Event) Is(kinds ...EventKind) bool {
	return slices.ContainsFunc(kinds, func(k EventKind) bool { return slices.Contains(e.Kinds, k) })
}

// RecordedApp is the change of one app's record in a state commit.
type RecordedApp struct {
	App           string
	Before, After State // the zero value if there is no file
}

// StateCommit is one commit of the state branch with the changes of each app.
type StateCommit struct {
	ID     string
	Parent string // "" for the first one
	When   time.Time
	Apps   []RecordedApp
}
