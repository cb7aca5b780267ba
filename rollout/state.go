package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// APIVersion is the apiVersion of gitrollout's documents. Some Promotions have StepsVersion.
const APIVersion = "gitrollout.dev/v1alpha1"

// Phase is the state of an app's release.
type Phase string

// A release alternates between Progressing and Paused, then is Promoting, then Healthy. A rollback is Aborting, then
// Healthy or, while the newest commit has the rejected version, Degraded.
const (
	Pending     Phase = "Pending"     // no version is deployed yet
	Progressing Phase = "Progressing" // pods are moving to the numbers of a step
	Paused      Phase = "Paused"      // all workloads wait for users, for a time or for a window
	Stalled     Phase = "Stalled"     // no progress for longer than the deadline; the release may still continue
	Promoting   Phase = "Promoting"   // all steps are done, and the user's own rolling update replaces the remaining pods
	Aborting    Phase = "Aborting"    // the release is being rolled back to the stable version
	Degraded    Phase = "Degraded"    // the newest commit is rejected, and the stable version serves; see also Shown
	Healthy     Phase = "Healthy"     // the version of the newest commit serves
)

// Phases lists all phases.
func Phases() []Phase {
	return []Phase{Pending, Progressing, Paused, Stalled, Promoting, Aborting, Degraded, Healthy}
}

// State is the record of one app: the file apps/<group>/<app>.yaml on the state branch. The record and the users'
// branch determine the app's objects. Serial is also a label on the workloads, so it counts only changes of fields with
// the tag serial:"yes".
type State struct {
	APIVersion string        `json:"apiVersion" serial:"no"` // always APIVersion
	Kind       string        `json:"kind" serial:"no"`       // always RolloutState
	App        string        `json:"app" serial:"no"`
	Path       string        `json:"path" serial:"no"`
	Formerly   []string      `json:"formerly,omitempty" serial:"yes"` // former names of the app, newest first
	Serial     int           `json:"serial" serial:"no"`              // number of transitions so far (IsTransition)
	Written    int           `json:"written,omitempty" serial:"no"`   // Serial in the workloads' labels, if lower; else 0
	Seal       string        `json:"seal,omitempty" serial:"no"`      // reveals edits by hand; set only in the file
	Phase      Phase         `json:"phase" serial:"yes"`
	Reason     string        `json:"reason,omitempty" serial:"yes"`   // why the app is in this phase, as one sentence
	Unhealthy  string        `json:"unhealthy,omitempty" serial:"no"` // problem that outlasted its deadline while no release ran
	Kept       string        `json:"kept,omitempty" serial:"no"`      // why objects that have left Git still exist, with the fix
	Ignored    string        `json:"ignored,omitempty" serial:"no"`   // the policy's reason to ignore the promotion file, or ""
	Held       *Held         `json:"held,omitempty" serial:"no"`      // why the newest commit is not applied, nil if it is applied
	Source     string        `json:"source,omitempty" serial:"no"`    // the commit whose render is applied in the cluster
	Stable     *Release      `json:"stable,omitempty" serial:"yes"`   // the newest version that became stable
	Draining   *Draining     `json:"former,omitempty" serial:"yes"`   // the version before Stable, while its pods still run
	Release    *Release      `json:"release,omitempty" serial:"yes"`
	Progress   []Progress    `json:"progress,omitempty" serial:"yes"` // one for each changed workload of Release
	Analyses   []AnalysisRun `json:"analyses,omitempty" serial:"yes"` // runs for Release, Stable or the last rejected release
	Rollback   *Rollback     `json:"retreat,omitempty" serial:"yes"`  // the present rollback; set only while Aborting
	Watch      *Watch        `json:"watch,omitempty" serial:"yes"`    // of Stable, after its release; set only while Healthy
	Rejected   []Rejection   `json:"rejected,omitempty" serial:"yes"` // rejected versions, newest first, at most MaxHistory
	Verified   []Hash        `json:"verified,omitempty" serial:"yes"` // versions that were stable, newest first, at most MaxHistory
	Adopts     Hash          `json:"adopts,omitempty" serial:"yes"`   // version to adopt from another controller
	Pong       []Workload    `json:"pong,omitempty" serial:"yes"`     // workloads whose stable Service is now the pong Service
	Replicas   []Replicas    `json:"replicas,omitempty" serial:"yes"` // replicas of the head, where Source has other replicas
	// digest of the promotion file, if it has no effect now: it is for an earlier attempt or for other steps
	Spent string `json:"spent,omitempty" serial:"no"`
	// objects in Inventory that gitrollout generated for the release, so that they are not in Git
	Generated []Ref     `json:"generated,omitempty" serial:"yes"`
	Inventory []Ref     `json:"inventory,omitempty" serial:"no"`
	Hooks     []HookRun `json:"hooks,omitempty" serial:"no"` // runs of Jobs before or after releases, newest last
}

// Shown returns the phase to display: Degraded for Healthy if Unhealthy is set.
func (s *State) Shown() Phase {
	if s.Phase == Healthy && s.Unhealthy != "" {
		return Degraded
	}
	return s.Phase
}

// AtRest returns a copy with a phase and reason, without a release in flight or a rollback.
func (s State) AtRest(phase Phase, reason string) State {
	s.Phase, s.Reason, s.Release, s.Progress, s.Rollback = phase, reason, nil, nil, nil
	return s
}

// MaxHistory bounds Rejected and Verified.
const MaxHistory = 10

// Held says why the newest commit is not applied.
type Held struct {
	Reason  HeldReason `json:"reason"`
	Message string     `json:"message"`          // one sentence, for an error with file, field, value and fix
	Commit  string     `json:"commit,omitempty"` // the commit that is not applied
	Author  string     `json:"author,omitempty"` // author of Commit
}

// HeldReason is a word for programs: why an app is not updated.
type HeldReason string

const (
	HeldInvalidInput   HeldReason = "InvalidInput"      // the head cannot be read, or the API server refuses it
	HeldForbidden      HeldReason = "Forbidden"         // the configuration or the API server forbids objects of the head
	HeldUndecryptable  HeldReason = "Undecryptable"     // encrypted values in Git cannot be decrypted with the app's keys
	HeldPolicy         HeldReason = "Policy"            // the cluster's policy forbids objects of the head
	HeldContested      HeldReason = "Contested"         // another app owns an object that this app's head has
	HeldRolloutRemoved HeldReason = "RolloutRemoved"    // Git removed a Rollout document during its release
	HeldRenamed        HeldReason = "Renamed"           // the head renames a staged workload: all pods would start at once
	HeldAdoption       HeldReason = "Adoption"          // the running version is not recorded, so steps are impossible
	HeldForeign        HeldReason = "ForeignController" // another controller owns objects of an app without a state file
	HeldNoStable       HeldReason = "NothingToReturnTo" // a first deployment has failed, and there is no stable version
	HeldRolledBack     HeldReason = "StateRolledBack"   // the state file is older than LabelSerial in the cluster
	HeldClosed         HeldReason = "ReleasesClosed"    // a window, a freeze or a user's hold delays the release; no error
	HeldHook           HeldReason = "HookRuns"          // a hook's Job must end before the release begins; no error
	HeldHookFailed     HeldReason = "HookFailed"        // a hook has failed, before a first deployment or between releases
)

// Waits reports whether the app is held without an error.
func (h *Held) Waits() bool { return h.Is(HeldClosed, HeldHook) }

// Is reports whether the app is held for any of the reasons.
func (h *Held) Is(reasons ...HeldReason) bool { return h != nil && slices.Contains(reasons, h.Reason) }

// Release is one version of an app.
type Release struct {
	Commit    string            `json:"commit"`
	Hash      Hash              `json:"hash"`
	Author    string            `json:"author"`
	Subject   string            `json:"subject,omitempty"`
	Since     time.Time         `json:"since"`          // start of the attempt; in Stable, the time when it became stable
	Fast      bool              `json:"fast,omitempty"` // the version was verified before, so its steps are skipped
	Templates map[Workload]Hash `json:"templates"`
	Serial    int               `json:"serial,omitempty"` // lowest Serial of a state with this release; 0 in older states
	Images    []string          `json:"images,omitempty"` // see Render.Images; absent in older states
}

// Same reports whether two releases, perhaps nil, are the same attempt at the same version.
func (r *Release) Same(o *Release) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Hash == o.Hash && r.Since.Equal(o.Since)
}

// Watch is the period after a release in which a failed analysis returns the app to the former version.
type Watch struct {
	Until  time.Time `json:"until"`
	Began  time.Time `json:"began"`  // when the release began
	Former Release   `json:"former"` // the version before the release
}

// Draining is the previous stable version, while its pods exist without requests.
type Draining struct {
	Release  Release    `json:"release"`  // the previous stable release
	Progress []Progress `json:"progress"` // the progress of the release that replaced this version
}

// Progress is one staged workload's progress in a release.
type Progress struct {
	Workload Workload  `json:"workload"`
	Step     int       `json:"step"` // index of the current step; equal to Of after the last step
	Of       int       `json:"of"`
	Name     string    `json:"name"`             // the step as text, such as "setWeight 20" or "pause 10m0s"
	Weight   int       `json:"weight"`           // the step's weight: a percentage, or a share of Traffic.MaxWeight
	Plan     string    `json:"plan"`             // digest of the step list, to detect changes
	Entered  time.Time `json:"entered"`          // when the step, and so its pause, began
	Opened   string    `json:"opened,omitempty"` // by whom or why the last gate was opened
	Routed   *Routing  `json:"routed,omitempty"` // newest routing; nil: all traffic goes to stable

	// PodHash and StablePodHash are the values of Revision.Pin at the last change of the step, for later backtests.
	PodHash       string `json:"podHash,omitempty"`
	StablePodHash string `json:"stablePodHash,omitempty"`

	// Left lists Services that have lost their role. Until the release ends, they select the pods of the main Service.
	Left []string `json:"left,omitempty"`

	// Suspended means that the workload has 0 replicas. Its step begins when the workload gets replicas.
	Suspended bool `json:"suspended,omitempty"`

	// Peak is recorded only at a long step. With it, a pod that becomes ready again after a crash is no progress.
	Peak *Peak `json:"peak,omitempty"`

	// Available is when all pods of the step's experiment became available, so that the experiment began. Nil before that.
	Available *time.Time `json:"available,omitempty"`
}

// Peak is the largest number of new pods that were ready together during a step.
type Peak struct {
	Ready int       `json:"ready"`
	At    time.Time `json:"at"` // the time when the last pod among them became ready
}

// Replicas has a workload's replicas in Git, or its autoscaler's limits in Git.
type Replicas struct {
	Workload Workload `json:"workload"`
	Count    *int     `json:"count,omitempty"` // nil if an autoscaler sets the number
	Least    *int     `json:"least,omitempty"` // the autoscaler's lower limit; Count is then its upper limit
}

// Rollback is the progress of a rollback to stable.
type Rollback struct {
	Reject bool      `json:"reject,omitempty"` // the version is rejected, so it is not released again
	Routed time.Time `json:"routed"`           // when all traffic was routed to the stable version
	Drain  time.Time `json:"drain"`            // the earliest time at which canary pods may be removed
	To     string    `json:"to"`               // the commit to which the app returns
	Late   bool      `json:"late,omitempty"`   // the rollback missed its deadline, and this was reported
}

// Rejection records a version that is not released again, until a retry or a change of the failed hook.
type Rejection struct {
	Hash      Hash      `json:"hash"`
	Commit    string    `json:"commit"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
	Promotion string    `json:"promotion,omitempty"` // digest of the promotion file at that time; a retry needs another file
	Hook      string    `json:"hook,omitempty"`      // namespace/name of the hook whose failure caused the rejection, if any
	Content   Hash      `json:"content,omitempty"`   // hash of the failed hook in Git; if the hook changes, the version is retried
}

// Named returns the app with the former names from the state file.
func (s *State) Named(a App) App {
	a.Formerly = strings.Join(s.Formerly, " ")
	return a
}

// IsRejected returns the rejection of a version, or false.
func (s *State) IsRejected(h Hash) (Rejection, bool) {
	return Find(s.Rejected, func(r Rejection) bool { return r.Hash == h })
}

// Mark returns the value of LabelSerial: the Serial of the newest transition that moved pods or routes.
func (s *State) Mark() int { return cmp.Or(s.Written, s.Serial) }

// ProgressOf returns a workload's progress.
func (s *State) ProgressOf(w Workload) (Progress, bool) {
	return Find(s.Progress, func(p Progress) bool { return p.Workload == w })
}

// StableHash returns a workload's template hash in the stable version, or "".
func (s *State) StableHash(w Workload) Hash {
	if s.Stable == nil {
		return ""
	}
	return s.Stable.Templates[w]
}

// Workloads returns the objects in Inventory of WorkloadKinds, or with a template in Stable or Release.
func (s *State) Workloads() []Workload {
	staged := func(release *Release, w Workload) bool { return release != nil && release.Templates[w] != "" }
	var all []Workload
	for _, ref := range s.Inventory {
		if w, is := WorkloadOf(ref); is || staged(s.Stable, w) || staged(s.Release, w) {
			all = append(all, w)
		}
	}
	return all
}
