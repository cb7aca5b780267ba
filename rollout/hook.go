package rollout

import "time"

// HookWhen is when a hook's Job runs.
type HookWhen string

// The times of hooks.
const (
	HookBefore HookWhen = "before" // before any pod or request moves to the new version
	HookAfter  HookWhen = "after"  // after all pods and requests have moved, before the release becomes stable
	HookAbort  HookWhen = "abort"  // after a rollback, when requests and pods are back on the stable version
)

// HookPhase is the recorded state of a hook's Job.
type HookPhase string

// The phases of hooks.
const (
	HookRunning   HookPhase = "Running" // the Job runs, or is about to be created
	HookSucceeded HookPhase = "Succeeded"
	HookFailed    HookPhase = "Failed"
)

// AnnotationHookLog with "record" makes gitrollout record the end of a Job's log, at most MaxHookLog bytes.
const (
	AnnotationHookLog = "gitrollout.dev/hook-log"
	MaxHookLog        = 2048
)

// HookRun is one run of a hook, recorded before its Job is created, so that the Job is created once.
type HookRun struct {
	Name    string    `json:"name"` // namespace/name of the hook in Git
	When    HookWhen  `json:"when"`
	Release Hash      `json:"release"`
	Job     string    `json:"job"` // the Job's name in the cluster
	Phase   HookPhase `json:"phase"`
	Since   time.Time `json:"since"` // start of the phase
	Attempt int       `json:"attempt"`
	Content Hash      `json:"content,omitempty"` // hash of the hook's manifest when the run began
	Message string    `json:"message,omitempty"` // why the Job failed, was deleted, or was created again
	Log     string    `json:"log,omitempty"`     // the last lines of the Job's log, if the hook requests to record them
	// Interrupt means that the running Job is deleted if a newer release has the same hook.
	Interrupt bool `json:"interrupt,omitempty"`
	Past      bool `json:"past,omitempty"` // the result no longer counts: another attempt, release or run followed
	// App is the former name of the app if the run began under that name, else "".
	App string `json:"app,omitempty"`
}

// JobState is the observed state of a Job.
type JobState struct {
	Complete bool   // the Job's condition Complete is true
	Failed   bool   // the Job's condition Failed is true
	Gone     bool   // the Job was created before, and no longer exists
	Refused  bool   // the API server refuses the Job as invalid, so a retry is useless
	Stuck    string // why the Job cannot be created or its container cannot start; "" if no reason is known
	Message  string // the message of the condition, or details about Stuck
	Idle     bool   // Stuck or Waits is set, and no container runs
	Log      string // the last lines of the log of an ended Job, if the hook requests them
	Waits    string // why no pod of the Job runs yet, such as spec.suspend; "" if unknown
	UID      string // the Job's metadata.uid
	Anew     bool   // the Job replaces an earlier Job that was deleted before its end
	Taken    bool   // another run has created the existing Job of this name

	Started   time.Time // the Job's status.startTime, else its creation time; the deadline begins then
	Suspended bool      // spec.suspend is true, so the deadline begins only when the Job resumes
}
