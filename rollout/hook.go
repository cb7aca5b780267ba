package rollout

import "time"

// HookWhen is the time in a release at which a Job runs.
type HookWhen string

// The times.
const (
	HookBefore HookWhen = "before" // before any pod or request moves
	HookAfter  HookWhen = "after"  // after all pods and requests have the new version, before the release becomes stable
	HookAbort  HookWhen = "abort"  // after requests and pods are back on the stable version
)

// HookPhase is the recorded state of a Job.
type HookPhase string

// The phases.
const (
	HookRunning   HookPhase = "Running" // the Job runs, or is about to be created
	HookSucceeded HookPhase = "Succeeded"
	HookFailed    HookPhase = "Failed"
)

// AnnotationHookLog with the value "record" makes gitrollout record the last MaxHookLog bytes of a Job's log.
const (
	AnnotationHookLog = "gitrollout.dev/hook-log"
	MaxHookLog        = 2048
)

// HookRun is one run of a hook. It is recorded before its Job is created, so that the Job is created only once.
type HookRun struct {
	Name    string    `json:"name"` // namespace/name in Git
	When    HookWhen  `json:"when"`
	Release Hash      `json:"release"`
	Job     string    `json:"job"` // the Job's name in the cluster
	Phase   HookPhase `json:"phase"`
	Since   time.Time `json:"since"` // start of the phase
	Attempt int       `json:"attempt"`
	Content Hash      `json:"content,omitempty"` // hash of the hook in Git when the run began
	Message string    `json:"message,omitempty"` // the cluster's message about the Job's end
	Log     string    `json:"log,omitempty"`     // the last lines of the Job's log, if the hook requests them
	// Interrupt means that the Job is deleted when a newer release is to begin.
	Interrupt bool `json:"interrupt,omitempty"`
	Past      bool `json:"past,omitempty"` // the run belongs to an earlier try of the release, and has no effect
	// App is the app's former name if the run began under that name, and otherwise "".
	App string `json:"app,omitempty"`
}

// JobState is the observed state of a Job.
type JobState struct {
	Complete bool   // its condition Complete is true
	Failed   bool   // its condition Failed is true
	Gone     bool   // the run had begun, and its Job does not exist
	Refused  bool   // the API server refuses the Job as invalid: a retry is useless
	Stuck    string // why the Job cannot be created, or why its container cannot start; otherwise ""
	Message  string // the condition's message, or details of Stuck
	Idle     bool   // Stuck or Waits is set, and no container runs
	Log      string // the last lines of the log of an ended Job, if the hook requests them
	Waits    string // why no pod runs yet, such as spec.suspend; "" if unknown
	UID      string // metadata.uid
	Anew     bool   // the Job replaces a Job that was deleted before its end
	Taken    bool   // the existing Job with this name belongs to another run

	Started   time.Time // when the Job's deadline began, zero before that
	Suspended bool      // spec.suspend is true, and the deadline begins when the Job resumes
}
