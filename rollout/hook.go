package rollout

import "time"

// HookWhen is at which time of a release a Job runs.
type HookWhen string

// The times.
const (
	HookBefore HookWhen = "before" // before any pod or request moves
	HookAfter  HookWhen = "after"  // when all pods are new and serve, and the stable version is still on record
	HookAbort  HookWhen = "abort"  // after requests and pods are back on the stable version
)

// HookPhase is how far a Job has come, as it is on record.
type HookPhase string

// The phases.
const (
	HookRunning   HookPhase = "Running" // it is to be made, if it is not there yet
	HookSucceeded HookPhase = "Succeeded"
	HookFailed    HookPhase = "Failed"
)

// AnnotationHookLog on a hook, with the value "record", has the end of its log recorded with its verdict: at most
// MaxHookLog bytes.
const (
	AnnotationHookLog = "gitrollout.dev/hook-log"
	MaxHookLog        = 2048
)

// HookRun is one Job around a release. It is on record before it is made, so that it is made once.
type HookRun struct {
	Name    string    `json:"name"` // namespace/name in Git
	When    HookWhen  `json:"when"`
	Release Hash      `json:"release"`
	Job     string    `json:"job"` // its name in the cluster
	Phase   HookPhase `json:"phase"`
	Since   time.Time `json:"since"` // of the phase
	Attempt int       `json:"attempt"`
	Content Hash      `json:"content,omitempty"` // of it in Git, when it was made
	Message string    `json:"message,omitempty"` // what the cluster says of its end
	Log     string    `json:"log,omitempty"`     // the last lines of its log, where the hook asks for them
	// Interrupt: it makes room for a newer release, as it said when it was made.
	Interrupt bool `json:"interrupt,omitempty"`
	Past      bool `json:"past,omitempty"` // of a try of the release that is over: it decides nothing any more
	// App is the app's name when the Job was made, "" for the present one.
	App string `json:"app,omitempty"`
}

// JobState is how a Job stands.
type JobState struct {
	Complete bool   // its condition Complete is true
	Failed   bool   // its condition Failed is true
	Gone     bool   // it had begun, and is not there any more
	Refused  bool   // the cluster does not take it, however often it is asked
	Stuck    string // why it cannot be made, or a container of it cannot start; "" if it can
	Message  string // of the condition, or of what it is stuck with
	Idle     bool   // and no container of it runs
	Log      string // the last lines of its log, once it has ended, where it asks for them
	Waits    string // why no pod of it runs, though that may come; "" if one does, or nobody knows
	UID      string // of it in the cluster
	Anew     bool   // it is another one than was seen before, which somebody has deleted
	Taken    bool   // a Job with its name is of another run

	Started   time.Time // when its deadline began, zero before that
	Suspended bool      // its deadline has not begun, or begins anew later
}
