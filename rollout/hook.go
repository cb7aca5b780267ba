package rollout

import "time"

// HookWhen is when a hook's Job runs.
type HookWhen string

const (
	HookBefore HookWhen = "before" // before pods or requests move to the new version
	HookAfter  HookWhen = "after"  // after all pods and requests moved, before the release is stable
	HookAbort  HookWhen = "abort"  // after a rollback, with requests and pods on stable
)

// HookPhase is the recorded state of a hook's Job.
type HookPhase string

const (
	HookRunning   HookPhase = "Running" // the Job runs, or is about to be created
	HookSucceeded HookPhase = "Succeeded"
	HookFailed    HookPhase = "Failed"
)

// AnnotationHookLog is "record" to record the end of a Job's log, at most MaxHookLog bytes.
const (
	AnnotationHookLog = "gitrollout.dev/hook-log"
	MaxHookLog        = 2048
)

// HookRun records a run of a hook. The run is recorded before its Job exists, so that no second Job is created.
type HookRun struct {
	Name    string    `json:"name"` // the hook's namespace/name in Git
	When    HookWhen  `json:"when"`
	Release Hash      `json:"release"`
	Job     string    `json:"job"` // the Job's name in the cluster
	Phase   HookPhase `json:"phase"`
	Since   time.Time `json:"since"` // start of the phase
	Attempt int       `json:"attempt"`
	Content Hash      `json:"content,omitempty"` // hash of the hook's manifest at the start
	Message string    `json:"message,omitempty"` // why the Job failed, was deleted or created again
	Log     string    `json:"log,omitempty"`     // the log's last lines, with AnnotationHookLog
	// Interrupt means that a newer release with the same hook deletes the running Job.
	Interrupt bool `json:"interrupt,omitempty"`
	Past      bool `json:"past,omitempty"` // no longer counts: another attempt, release or run followed
	// App is the app's former name if the run began under that name, else "".
	App string `json:"app,omitempty"`
}

// JobState is the observed state of a Job.
type JobState struct {
	Complete bool
	Failed   bool
	Gone     bool   // created before, and no longer exists
	Refused  bool   // invalid for the API server: a retry is useless
	Stuck    string // why the Job cannot be created or its container cannot start, or ""
	Message  string // the condition's message, or details about Stuck
	Idle     bool   // Stuck or Waits is set, and no container runs
	Log      string // an ended Job's last lines, if the hook requests them
	Waits    string // why no pod runs yet, such as spec.suspend, or ""
	UID      string // metadata.uid
	Anew     bool   // replaces a Job that was deleted before its end
	Taken    bool   // another run created the Job of this name

	Started   time.Time // status.startTime or, without it, the creation time; the deadline counts from then
	Suspended bool      // spec.suspend: the deadline begins when the Job resumes
}
