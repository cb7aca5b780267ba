package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// APIVersion is the apiVersion of gitrollout's documents. Some promotions have StepsVersion instead.
const APIVersion = "gitrollout.dev/v1alpha1"

// Phase is the state of an app's release.
type Phase string

// A release alternates between Progressing and Paused. After the last step it is Promoting, then Healthy. During a
// rollback it is Aborting. Then it is Healthy if Git was reverted, or Degraded if the newest commit is still rejected.
const (
	Pending     Phase = "Pending"     // nothing is deployed yet
	Progressing Phase = "Progressing" // pods are moving to the step's weight
	Paused      Phase = "Paused"      // at a pause step, or held by a user
	Stalled     Phase = "Stalled"     // no progress for longer than the deadline; it may recover
	Promoting   Phase = "Promoting"   // all steps are done; the user's own rolling update replaces the remaining pods
	Aborting    Phase = "Aborting"    // rolling back to the stable version
	Degraded    Phase = "Degraded"    // the newest commit is rejected, and the stable version serves; see also Shown
	Healthy     Phase = "Healthy"     // the newest commit serves
)

// Phases lists all phases.
func Phases() []Phase {
	return []Phase{Pending, Progressing, Paused, Stalled, Promoting, Aborting, Degraded, Healthy}
}

// State is the record of one app: the file apps/<group>/<app>.yaml on the state branch. The record and the users'
// branch determine the app's objects. Serial is also a label on the workloads. So Serial counts only changes of fields
// with the tag serial:"yes". A change of another field, such as Held or Inventory, needs no new label.
type State struct {
	APIVersion string        `json:"apiVersion" serial:"no"` // always APIVersion
	Kind       string        `json:"kind" serial:"no"`       // always RolloutState
	App        string        `json:"app" serial:"no"`
	Path       string        `json:"path" serial:"no"`
	Formerly   []string      `json:"formerly,omitempty" serial:"yes"` // former names of the app, newest first
	Serial     int           `json:"serial" serial:"no"`              // counts the transitions of releases
	Written    int           `json:"written,omitempty" serial:"no"`   // older Serial in the workloads' labels; 0 for none
	Seal       string        `json:"seal,omitempty" serial:"no"`      // detects edits by hand; set only in the file
	Phase      Phase         `json:"phase" serial:"yes"`
	Reason     string        `json:"reason,omitempty" serial:"yes"`   // why the app is in this phase, as one sentence
	Unhealthy  string        `json:"unhealthy,omitempty" serial:"no"` // problem that lasts too long while no release runs
	Kept       string        `json:"kept,omitempty" serial:"no"`      // why objects deleted in Git still exist, with fix
	Ignored    string        `json:"ignored,omitempty" serial:"no"`   // why a policy ignores the promotion file
	Held       *Held         `json:"held,omitempty" serial:"no"`      // why the newest commit is not used; nil if it is
	Source     string        `json:"source,omitempty" serial:"no"`    // commit whose render is in the cluster
	Stable     *Release      `json:"stable,omitempty" serial:"yes"`   // the last release that was fully promoted
	Draining   *Draining     `json:"former,omitempty" serial:"yes"`   // the version before Stable, while its pods are kept
	Release    *Release      `json:"release,omitempty" serial:"yes"`
	Progress   []Progress    `json:"progress,omitempty" serial:"yes"` // one for each staged workload of Release
	Analyses   []AnalysisRun `json:"analyses,omitempty" serial:"yes"` // for Release, Stable or the last rejected release
	Rollback   *Rollback     `json:"retreat,omitempty" serial:"yes"`  // only while Aborting
	Rejected   []Rejection   `json:"rejected,omitempty" serial:"yes"` // newest first, at most MaxHistory
	Verified   []Hash        `json:"verified,omitempty" serial:"yes"` // newest first, at most MaxHistory
	Adopts     Hash          `json:"adopts,omitempty" serial:"yes"`   // version at which gitrollout takes over the app
	Pong       []Workload    `json:"pong,omitempty" serial:"yes"`     // workloads whose stable Service is the pong Service
	Replicas   []Replicas    `json:"replicas,omitempty" serial:"yes"` // from the head commit, if Source has other replicas
	// digest of a promotion file that has no effect now, such as a file for an earlier attempt or for other steps
	Spent string `json:"spent,omitempty" serial:"no"`
	// objects in Inventory that are not in Git: gitrollout made them for the release
	Generated []Ref     `json:"generated,omitempty" serial:"yes"`
	Inventory []Ref     `json:"inventory,omitempty" serial:"no"`
	Hooks     []HookRun `json:"hooks,omitempty" serial:"no"` // Jobs before or after releases, newest last
}

// Shown returns the phase to display: Degraded instead of Healthy if the app has been unhealthy past its deadline.
func (s *State) Shown() Phase {
	if s.Phase == Healthy && s.Unhealthy != "" {
		return Degraded
	}
	return s.Phase
}

// AtRest returns a copy of the state with a phase and a reason, and without a release or a rollback.
func (s State) AtRest(phase Phase, reason string) State {
	s.Phase, s.Reason, s.Release, s.Progress, s.Rollback = phase, reason, nil, nil, nil
	return s
}

// MaxHistory bounds the rejected and verified lists.
const MaxHistory = 10

// Held is why an app does not follow the users' branch: an error, a closed window, a freeze or a running Job.
type Held struct {
	Reason  HeldReason `json:"reason"`
	Message string     `json:"message"`          // one sentence with file, field, value and the fix
	Commit  string     `json:"commit,omitempty"` // the commit that is not followed
	Author  string     `json:"author,omitempty"` // of Commit
}

// HeldReason is the reason why an app is held, as one word for programs.
type HeldReason string

const (
	HeldInvalidInput   HeldReason = "InvalidInput"      // the head cannot be read, or the API server refuses it
	HeldForbidden      HeldReason = "Forbidden"         // the head has objects that the configuration does not allow
	HeldUndecryptable  HeldReason = "Undecryptable"     // a file in Git is encrypted, and no key of the app decrypts it
	HeldPolicy         HeldReason = "Policy"            // the cluster's policy refuses the head
	HeldContested      HeldReason = "Contested"         // another app owns an object that Git has in this app
	HeldRolloutRemoved HeldReason = "RolloutRemoved"    // a Rollout document was removed during its release
	HeldRenamed        HeldReason = "Renamed"           // the head renames a staged workload: all pods would start at once
	HeldAdoption       HeldReason = "Adoption"          // pods of another version run, and there is no record of them
	HeldForeign        HeldReason = "ForeignController" // another controller owns objects of an app without a record
	HeldNoStable       HeldReason = "NothingToReturnTo" // a first deployment has failed, and no stable version exists
	HeldRolledBack     HeldReason = "StateRolledBack"   // the record is older than LabelSerial in the cluster
	HeldClosed         HeldReason = "ReleasesClosed"    // a window or a freeze forbids the release; no error
	HeldHook           HeldReason = "HookRuns"          // a Job must end before the release begins; no error
	HeldHookFailed     HeldReason = "HookFailed"        // a Job before a first deployment has failed
)

// Waits reports whether the app is held without an error, until a window opens, a freeze ends or a Job ends.
func (h *Held) Waits() bool { return h.Is(HeldClosed, HeldHook) }

// Is reports whether an app is held for any of the reasons.
func (h *Held) Is(reasons ...HeldReason) bool { return h != nil && slices.Contains(reasons, h.Reason) }

// Release is one version of an app.
type Release struct {
	Commit    string            `json:"commit"`
	Hash      Hash              `json:"hash"`
	Author    string            `json:"author"`
	Subject   string            `json:"subject,omitempty"`
	Since     time.Time         `json:"since"`          // start of the release; in Stable, time of promotion
	Fast      bool              `json:"fast,omitempty"` // the hash was verified before; skip the steps
	Templates map[Workload]Hash `json:"templates"`
	Serial    int               `json:"serial,omitempty"` // the least Serial of the record with the release; 0 in older records
	Images    []string          `json:"images,omitempty"` // see Render.Images; absent in records of older programs
}

// Same reports whether two releases, which may be nil, are the same attempt at the same version.
func (r *Release) Same(o *Release) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Hash == o.Hash && r.Since.Equal(o.Since)
}

// Draining is the former stable version while its pods still exist. These pods get no requests.
type Draining struct {
	Release  Release    `json:"release"`  // the former stable release
	Progress []Progress `json:"progress"` // progress of the release that replaced this version
}

// Progress is one staged workload's progress.
type Progress struct {
	Workload Workload  `json:"workload"`
	Step     int       `json:"step"` // index of the current step; equal to Of after the last step
	Of       int       `json:"of"`
	Name     string    `json:"name"`             // the step as text, such as "setWeight 20" or "pause 10m0s"
	Weight   int       `json:"weight"`           // the step's weight: a percentage, or a share of Traffic.MaxWeight
	Plan     string    `json:"plan"`             // digest of the step list, to detect changes
	Entered  time.Time `json:"entered"`          // when the step (and its pause) began
	Opened   string    `json:"opened,omitempty"` // the user who opened the last gate
	Routed   *Routing  `json:"routed,omitempty"` // the last routing; nil: all traffic to stable

	// Left lists Services that lost their role. Until the release ends, these Services select the main Service's pods.
	Left []string `json:"left,omitempty"`

	// Suspended means that the workload has 0 replicas. The step begins when the workload is scaled up.
	Suspended bool `json:"suspended,omitempty"`

	// Peak is recorded at a long step. With Peak, a pod that is ready again after a crash does not look like progress.
	Peak *Peak `json:"peak,omitempty"`

	// Available is the experiment's start: the time when all its pods became available. It is nil before the start.
	Available *time.Time `json:"available,omitempty"`
}

// Peak is the largest number of pods of the new version that were ready at the same time during a step.
type Peak struct {
	Ready int       `json:"ready"`
	At    time.Time `json:"at"` // when the last pod became ready
}

// Replicas has the replicas that Git sets for a workload, or the limits that Git sets for its autoscaler.
type Replicas struct {
	Workload Workload `json:"workload"`
	Count    *int     `json:"count,omitempty"` // nil: an autoscaler sets the number
	Least    *int     `json:"least,omitempty"` // an autoscaler's lower limit; Count is the upper limit
}

// Rollback is the progress of a rollback to stable.
type Rollback struct {
	Reject bool      `json:"reject,omitempty"` // the hash is not tried again
	Routed time.Time `json:"routed"`           // when all traffic was routed to stable
	Drain  time.Time `json:"drain"`            // the earliest time to remove canary pods
	To     string    `json:"to"`               // the commit to go back to
	Late   bool      `json:"late,omitempty"`   // the rollback passed its deadline, which was reported once
}

// Rejection records a hash that is not tried again, unless a user retries it or changes the failed hook.
type Rejection struct {
	Hash      Hash      `json:"hash"`
	Commit    string    `json:"commit"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
	Promotion string    `json:"promotion,omitempty"` // promotion file's digest at rejection; a retry needs another file
	Hook      string    `json:"hook,omitempty"`      // namespace/name of the failed hook, if any
	Content   Hash      `json:"content,omitempty"`   // hash of the failed hook in Git; users may change the hook to retry
}

// Named sets the app's former names to the names in the record.
func (s *State) Named(a App) App {
	a.Formerly = strings.Join(s.Formerly, " ")
	return a
}

// IsRejected returns the rejection of a hash, false if the hash is not rejected.
func (s *State) IsRejected(h Hash) (Rejection, bool) {
	return Find(s.Rejected, func(r Rejection) bool { return r.Hash == h })
}

// Mark returns the value for LabelSerial: the serial of the newest transition that moved pods or routes.
func (s *State) Mark() int { return cmp.Or(s.Written, s.Serial) }

// ProgressOf returns the progress of a workload in the release.
func (s *State) ProgressOf(w Workload) (Progress, bool) {
	return Find(s.Progress, func(p Progress) bool { return p.Workload == w })
}

// StableHash returns the hash of a workload's stable template, "" if none.
func (s *State) StableHash(w Workload) Hash {
	if s.Stable == nil {
		return ""
	}
	return s.Stable.Templates[w]
}

// Workloads returns each object in Inventory that is one of WorkloadKinds or has a template in Stable or Release.
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
