package rollout

import "time"

// HookWhen is the time in a release at which a Job runs.
type HookWhen string

// The times.
const (
	HookBefore HookWhen = "before" // before any pod or request moves
	HookAfter  HookWhen = "after"  // when all pods are new and serving, and the stable version is still on record
	HookAbort  HookWhen = "abort"  // after requests and pods are back on the stable version
)

// HookPhase is the recorded state of a Job.
type HookPhase string

// The phases.
const (
	HookRunning   HookPhase = "Running" // to be created, if it does not exist yet
	HookSucceeded HookPhase = "Succeeded"
	HookFailed    HookPhase = "Failed"
)

// AnnotationHookLog on a hook, as "record", records the end of its log with its verdict, at most MaxHookLog bytes.
const (
	AnnotationHookLog = "gitrollout.dev/hook-log"
	MaxHookLog        = 2048
)

// HookRun is one Job around a release, recorded before its creation, so that it is created once.
type HookRun struct {
	Name    string    `json:"name"` // namespace/name in Git
	When    HookWhen  `json:"when"`
	Release Hash      `json:"release"`
	Job     string    `json:"job"` // its name in the cluster
	Phase   HookPhase `json:"phase"`
	Since   time.Time `json:"since"` // of the phase
	Attempt int       `json:"attempt"`
	Content Hash      `json:"content,omitempty"` // hash of the hook in Git, at its creation
	Message string    `json:"message,omitempty"` // the cluster's message about its end
	Log     string    `json:"log,omitempty"`     // the last lines of its log, if the hook requests them
	// Interrupt means that it is deleted for a newer release.
	Interrupt bool `json:"interrupt,omitempty"`
	Past      bool `json:"past,omitempty"` // it belongs to a former try of the release: it decides nothing any more
	// App is the app's name at the Job's creation, "" for the present one.
	App string `json:"app,omitempty"`
}

// JobState is the observed state of a Job.
type JobState struct {
	Complete bool   // its condition Complete is true
	Failed   bool   // its condition Failed is true
	Gone     bool   // it had begun, and no longer exists
	Refused  bool   // the API server refuses it, also in a retry
	Stuck    string // why it cannot be created, or its container cannot start; "" if neither
	Message  string // of the condition, or of Stuck
	Idle     bool   // it is stuck, and no container runs
	Log      string // the last lines of its log, after its end, if the hook requests them
	Waits    string // why no pod runs, although one may follow; "" if one runs, or unknown
	UID      string // in the cluster
	Anew     bool   // the Job that was observed before was deleted, and this is another one
	Taken    bool   // a Job with its name belongs to another run

	Started   time.Time // when its deadline began, zero before that
	Suspended bool      // its deadline has not begun, or begins again later
}
