package rollout

import (
	"slices"
	"time"
)

// EventKind is a kind of change that notifications report.
type EventKind string

const (
	EventStarted              EventKind = "started"         // a release begins (on-rollout-updated)
	EventStepCompleted        EventKind = "stepCompleted"   // a workload has reached its next step
	EventPaused               EventKind = "paused"          // the release waits for a user or a time
	EventPromoted             EventKind = "promoted"        // a user let the release continue
	EventCompleted            EventKind = "completed"       // the release is stable
	EventAborted              EventKind = "aborted"         // a rollback begins; the release is rejected
	EventRolledBack           EventKind = "rolledBack"      // a rollback without rejection begins, as after a revert
	EventRestored             EventKind = "restored"        // the rollback has ended
	EventAnalysisStarted      EventKind = "analysisStarted" // on-analysis-run-running
	EventAnalysisFailed       EventKind = "analysisFailed"  // on-analysis-run-failed
	EventAnalysisError        EventKind = "analysisError"   // on-analysis-run-error
	EventAnalysisInconclusive EventKind = "analysisInconclusive"
	EventStalled              EventKind = "stalled"   // no progress within the deadline
	EventHeld                 EventKind = "held"      // an error stops updates (State.Held)
	EventWaiting              EventKind = "waiting"   // a window, freeze, Job or hold delays a new version
	EventDegraded             EventKind = "degraded"  // the serving version stayed unhealthy until the deadline
	EventRecovered            EventKind = "recovered" // a problem has ended
)

// EventKinds lists all kinds, the most important first. A receiver gets an event once, with the first kind that the
// receiver requested.
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

const (
	OutcomeGood    Outcome = "good"
	OutcomeBad     Outcome = "bad"
	OutcomeWarning Outcome = "warning" // a user should look or decide
	OutcomeNews    Outcome = "news"
)

// Event is a change of an app's state, for notifications.
type Event struct {
	ID      string      `json:"-"`     // state commit and app, such as 9f31c0…/shop; the same at each delivery
	Kind    EventKind   `json:"-"`     // the kind that the receiver gets
	Kinds   []EventKind `json:"kinds"` // all kinds, the most important first
	Outcome Outcome     `json:"outcome"`
	At      time.Time   `json:"-"` // time of the state commit
	Cluster string      `json:"cluster"`
	App     string      `json:"app"`

	Title  string `json:"title"`            // one line: app, cluster and change
	Text   string `json:"text,omitempty"`   // reason, awaited condition and bad measurements; may be ""
	Reason string `json:"reason,omitempty"` // State.Reason, State.Unhealthy or Held.Message

	Release  Hash      `json:"release,omitempty"` // hash of the release or, without a release, of stable
	Commit   string    `json:"commit,omitempty"`
	Author   string    `json:"author,omitempty"`
	Subject  string    `json:"subject,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Stable   Hash      `json:"stable,omitempty"`
	Step     int       `json:"step,omitempty"` // step of the least advanced workload, counted from 1; 0 without steps
	Steps    int       `json:"steps,omitempty"`
	StepName string    `json:"stepName,omitempty"` // setWeight 20, pause 10m0s …
	Weight   int       `json:"weight,omitempty"`   // requested by the step

	Waiting  string          `json:"waiting,omitempty"`  // the awaited condition, or ""
	Proposal string          `json:"proposal,omitempty"` // branch to merge, or ""
	Analyses []EventAnalysis `json:"analyses,omitempty"` // metrics of recorded analyses

	CommitURL   string `json:"-"` // the commit's page on the forge, or ""
	ProposalURL string `json:"-"`

	Trouble string   `json:"trouble,omitempty"` // the main problem's id, constant while it lasts: prod/shop/h1-7b4e2a91d0
	Over    []string `json:"over,omitempty"`    // ids of ended problems
	Repeat  bool     `json:"repeat,omitempty"`  // a killed process may have sent the event already
}

// EventAnalysis is one metric of an app's analyses.
type EventAnalysis struct {
	Run     string        `json:"run"`
	Metric  string        `json:"metric"`
	Phase   AnalysisPhase `json:"phase"`
	Value   string        `json:"value,omitempty"` // newest measurement
	Message string        `json:"message,omitempty"`
}

// Is reports whether the event has a kind.
func (e *Event) Is(kinds ...EventKind) bool {
	return slices.ContainsFunc(kinds, func(k EventKind) bool { return slices.Contains(e.Kinds, k) })
}

// RecordedApp is the change of one state file.
type RecordedApp struct {
	App           string
	Before, After State // zero if the commit adds or deletes the file
}

// StateCommit is one commit of the state branch.
type StateCommit struct {
	ID     string
	Parent string // "" for the first commit
	When   time.Time
	Apps   []RecordedApp
}
