package rollout

import (
	"slices"
	"time"
)

// EventKind is the kind of a change that gitrollout notifies users about.
type EventKind string

// The kinds follow Argo Rollouts' triggers: stepCompleted is on-rollout-step-completed.
const (
	EventStarted       EventKind = "started"       // a release begins; named after on-rollout-updated
	EventStepCompleted EventKind = "stepCompleted" // a workload has reached its next step
	EventPaused        EventKind = "paused"        // the release waits for a user or for a time
	EventPromoted      EventKind = "promoted"      // a user has let the waiting release continue
	EventCompleted     EventKind = "completed"     // the release has become stable
	EventAborted       EventKind = "aborted"       // a rollback begins, and the release is rejected
	// EventRolledBack: a rollback begins without a rejection, for example after a revert in Git.
	EventRolledBack           EventKind = "rolledBack"
	EventRestored             EventKind = "restored"             // the rollback has ended
	EventAnalysisStarted      EventKind = "analysisStarted"      // an analysis run begins (on-analysis-run-running)
	EventAnalysisFailed       EventKind = "analysisFailed"       // an analysis run has failed (on-analysis-run-failed)
	EventAnalysisError        EventKind = "analysisError"        // an analysis run ended by errors (on-analysis-run-error)
	EventAnalysisInconclusive EventKind = "analysisInconclusive" // an analysis run has become Inconclusive
	EventStalled              EventKind = "stalled"              // no progress for longer than the deadline
	EventHeld                 EventKind = "held"                 // an error stops the updates of the app (State.Held)
	// EventWaiting: a new version waits until a window opens, or until a freeze, a Job or a user's hold ends.
	EventWaiting   EventKind = "waiting"
	EventDegraded  EventKind = "degraded"  // the serving version has been unhealthy for longer than its deadline
	EventRecovered EventKind = "recovered" // a problem of the app has ended
)

// EventKinds lists all kinds, most important first. Of an event's kinds, a receiver gets the first requested.
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

// Receivers show outcomes as colours or severities.
const (
	OutcomeGood    Outcome = "good"
	OutcomeBad     Outcome = "bad"
	OutcomeWarning Outcome = "warning" // a user should look at the app, or must decide
	OutcomeNews    Outcome = "news"
)

// Event is one change of an app's state, for notifications.
type Event struct {
	ID      string      `json:"-"`     // state commit and app, such as 9f31c0…/shop; the same at each delivery of the event
	Kind    EventKind   `json:"-"`     // the kind that is reported to a receiver
	Kinds   []EventKind `json:"kinds"` // all kinds, most important first
	Outcome Outcome     `json:"outcome"`
	At      time.Time   `json:"-"` // the time of the state commit
	Cluster string      `json:"cluster"`
	App     string      `json:"app"`

	Title  string `json:"title"`            // one line with the app, the cluster and the change
	Text   string `json:"text,omitempty"`   // reason, awaited condition and bad measurements; may be empty
	Reason string `json:"reason,omitempty"` // State.Reason, State.Unhealthy or Held.Message

	Release  Hash      `json:"release,omitempty"` // hash of the release or, without a release, of the stable version
	Commit   string    `json:"commit,omitempty"`
	Author   string    `json:"author,omitempty"`
	Subject  string    `json:"subject,omitempty"` // subject of the commit
	Since    time.Time `json:"since,omitzero"`
	Stable   Hash      `json:"stable,omitempty"` // hash of the stable version, "" if there is none
	Step     int       `json:"step,omitempty"`   // step of the workload with the least progress, from 1; 0 without steps
	Steps    int       `json:"steps,omitempty"`
	StepName string    `json:"stepName,omitempty"` // setWeight 20, pause 10m0s …
	Weight   int       `json:"weight,omitempty"`   // the weight that the step requests

	Waiting  string          `json:"waiting,omitempty"`  // the condition that the app waits for, "" if none
	Proposal string          `json:"proposal,omitempty"` // the branch to merge, "" if there is none
	Analyses []EventAnalysis `json:"analyses,omitempty"` // metrics of the recorded analyses

	CommitURL   string `json:"-"` // the commit's page on the forge, "" if unknown
	ProposalURL string `json:"-"`

	Trouble string   `json:"trouble,omitempty"` // id of the main problem, constant while it lasts: prod/shop/h1-7b4e2a91d0
	Over    []string `json:"over,omitempty"`    // ids of the problems that have ended
	Repeat  bool     `json:"repeat,omitempty"`  // a process that was killed may have sent the event before
}

// EventAnalysis is one metric of an app's analyses.
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

// RecordedApp is the change of one state file.
type RecordedApp struct {
	App           string
	Before, After State // the zero value if the commit has no file for the app
}

// StateCommit is one commit of the state branch.
type StateCommit struct {
	ID     string
	Parent string // "" for the first commit
	When   time.Time
	Apps   []RecordedApp
}
