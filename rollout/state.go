package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// APIVersion is the version of all gitrollout's documents.
const APIVersion = "gitrollout.dev/v1alpha1"

// Phase is the state of an app's release.
type Phase string

// A release alternates between Progressing and Paused, then it is Promoting, then Healthy. After Aborting it is
// Healthy (Git was reverted) or Degraded (the head is still rejected).
const (
	Pending     Phase = "Pending"     // nothing is deployed yet
	Progressing Phase = "Progressing" // pods are moving to the step's weight
	Paused      Phase = "Paused"      // a pause step, or a user's hold
	Stalled     Phase = "Stalled"     // no progress for longer than the deadline; it may recover
	Promoting   Phase = "Promoting"   // all steps are done: the user's own rolling update finishes it
	Aborting    Phase = "Aborting"    // rolling back to stable
	Degraded    Phase = "Degraded"    // stable serves, and the head was rejected; Shown also uses it for unhealthy apps
	Healthy     Phase = "Healthy"     // the head serves
)

// Phases lists all phases.
func Phases() []Phase {
	return []Phase{Pending, Progressing, Paused, Stalled, Promoting, Aborting, Degraded, Healthy}
}

// State is the record of one app: apps/<group>/<app>.yaml on the state branch. With the users' branch it determines
// the app's objects. A change of a field with serial:"yes" is a transition, counted by Serial. Changes of other fields,
// such as Source, Held or Inventory, write to no Deployment.
type State struct {
	APIVersion string        `json:"apiVersion" serial:"no"` // always APIVersion
	Kind       string        `json:"kind" serial:"no"`       // always RolloutState
	App        string        `json:"app" serial:"no"`
	Path       string        `json:"path" serial:"no"`
	Formerly   []string      `json:"formerly,omitempty" serial:"yes"` // former names of the app, the last one first
	Serial     int           `json:"serial" serial:"no"`              // counts the transitions of releases
	Written    int           `json:"written,omitempty" serial:"no"`   // see Mark
	Seal       string        `json:"seal,omitempty" serial:"no"`      // only in the file: an edit by hand does not match it
	Phase      Phase         `json:"phase" serial:"yes"`
	Reason     string        `json:"reason,omitempty" serial:"yes"`   // one sentence: why it has this phase
	Unhealthy  string        `json:"unhealthy,omitempty" serial:"no"` // the problem at rest, if beyond its deadline
	Kept       string        `json:"kept,omitempty" serial:"no"`      // undeleted objects that left Git, with the fix
	Ignored    string        `json:"ignored,omitempty" serial:"no"`   // why a policy ignores the promotion file
	Held       *Held         `json:"held,omitempty" serial:"no"`      // the error; the app stays as it is meanwhile
	Source     string        `json:"source,omitempty" serial:"no"`    // commit whose render is in the cluster
	Stable     *Release      `json:"stable,omitempty" serial:"yes"`   // the last release that was fully promoted
	Draining   *Draining     `json:"former,omitempty" serial:"yes"`   // the version before Stable, while its pods are kept
	Release    *Release      `json:"release,omitempty" serial:"yes"`
	Progress   []Progress    `json:"progress,omitempty" serial:"yes"` // one for each staged workload of Release
	Analyses   []AnalysisRun `json:"analyses,omitempty" serial:"yes"` // of Release, of Stable, or of the last rejection
	Rollback   *Rollback     `json:"retreat,omitempty" serial:"yes"`  // only while Aborting
	Rejected   []Rejection   `json:"rejected,omitempty" serial:"yes"` // newest first, at most MaxHistory
	Verified   []Hash        `json:"verified,omitempty" serial:"yes"` // newest first, at most MaxHistory
	Adopts     Hash          `json:"adopts,omitempty" serial:"yes"`   // adopted from another controller by a user
	Pong       []Workload    `json:"pong,omitempty" serial:"yes"`     // their stable version is behind the pong Service
	Replicas   []Replicas    `json:"replicas,omitempty" serial:"yes"` // in Git since Stable.Commit; Source may differ
	// digest of a used-up promotion file: from an earlier try of its release, or before its steps changed
	Spent string `json:"spent,omitempty" serial:"no"`
	// of Inventory, the release's objects that are not in Git
	Generated []Ref     `json:"generated,omitempty" serial:"yes"`
	Inventory []Ref     `json:"inventory,omitempty" serial:"no"`
	Hooks     []HookRun `json:"hooks,omitempty" serial:"no"` // Jobs around releases, the newest last
}

// Shown returns the phase to display: Degraded instead of Healthy if unhealthy beyond the deadline.
func (s *State) Shown() Phase {
	if s.Phase == Healthy && s.Unhealthy != "" {
		return Degraded
	}
	return s.Phase
}

// AtRest returns the state without a release or a rollback.
func (s State) AtRest(phase Phase, reason string) State {
	s.Phase, s.Reason, s.Release, s.Progress, s.Rollback = phase, reason, nil, nil, nil
	return s
}

// MaxHistory bounds the rejected and verified lists.
const MaxHistory = 10

// Held is the error that holds an app.
type Held struct {
	Reason  HeldReason `json:"reason"`
	Message string     `json:"message"`          // one sentence with file, field, value and the fix
	Commit  string     `json:"commit,omitempty"` // the commit that is not followed
}

// HeldReason is why an app is held, as one word for programs.
type HeldReason string

const (
	HeldInvalidInput   HeldReason = "InvalidInput"      // the head cannot be read, or the API server refuses it
	HeldForbidden      HeldReason = "Forbidden"         // the head has objects that the configuration does not allow
	HeldUndecryptable  HeldReason = "Undecryptable"     // a file in Git is encrypted, and no key of the app decrypts it
	HeldPolicy         HeldReason = "Policy"            // the cluster's policy refuses the head
	HeldContested      HeldReason = "Contested"         // Git has an object in this app that another app owns
	HeldRolloutRemoved HeldReason = "RolloutRemoved"    // a Rollout document is gone while its release is in flight
	HeldRenamed        HeldReason = "Renamed"           // another version has another name
	HeldAdoption       HeldReason = "Adoption"          // another version runs already, and there is no record
	HeldForeign        HeldReason = "ForeignController" // another controller owns objects of an app without a record
	HeldNoStable       HeldReason = "NothingToReturnTo" // a first deployment would have to be rolled back
	HeldRolledBack     HeldReason = "StateRolledBack"   // the record is older than the cluster's serial
	HeldClosed         HeldReason = "ReleasesClosed"    // a window or a freeze: no error
	HeldHook           HeldReason = "HookRuns"          // a Job runs before the release: no error
	HeldHookFailed     HeldReason = "HookFailed"        // a Job before a first deployment has failed
)

// Waits reports whether the app waits for a time or a Job, without an error.
func (h *Held) Waits() bool { return h.Is(HeldClosed, HeldHook) }

// Is reports whether an app is held for any of the reasons.
func (h *Held) Is(reasons ...HeldReason) bool { return h != nil && slices.Contains(reasons, h.Reason) }

// Release is one version of an app.
type Release struct {
	Commit    string            `json:"commit"`
	Hash      Hash              `json:"hash"`
	Author    string            `json:"author"`
	Subject   string            `json:"subject,omitempty"`
	Since     time.Time         `json:"since"`          // when it started or, as Stable, became stable
	Fast      bool              `json:"fast,omitempty"` // verified before: no pauses, no weights
	Templates map[Workload]Hash `json:"templates"`
}

// Same reports whether two are the same try of a version.
func (r *Release) Same(o *Release) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Hash == o.Hash && r.Since.Equal(o.Since)
}

// Draining is the version before stable, whose pods still exist but get no requests.
type Draining struct {
	Release  Release    `json:"release"`  // as it was stable
	Progress []Progress `json:"progress"` // of the release that is stable now
}

// Progress is one staged workload's progress.
type Progress struct {
	Workload Workload  `json:"workload"`
	Step     int       `json:"step"` // index of the step in progress; equal to Of when all are done
	Of       int       `json:"of"`
	Name     string    `json:"name"`             // the step in words: setWeight 20, pause 10m0s …
	Weight   int       `json:"weight"`           // requested by this step: percent, or a share of Traffic.MaxWeight
	Plan     string    `json:"plan"`             // digest of the step list, to detect changes
	Entered  time.Time `json:"entered"`          // when the step began: the start of its pause
	Opened   string    `json:"opened,omitempty"` // the user who opened the last gate
	Routed   *Routing  `json:"routed,omitempty"` // the last routing; nil: all traffic to stable

	// Services that lost their role since the release began. Until its end they select the users' Service's pods.
	Left []string `json:"left,omitempty"`

	// It had no replicas then: its step begins when it has some.
	Suspended bool `json:"suspended,omitempty"`

	// The most ready pods of the new version at a lasting step: pods that recover are no progress.
	Peak *Peak `json:"peak,omitempty"`

	// When all pods of the step's experiment were available: its duration's start, nil before.
	Available *time.Time `json:"available,omitempty"`
}

// Peak is a version's largest number of ready pods at a step.
type Peak struct {
	Ready int       `json:"ready"`
	At    time.Time `json:"at"` // when the last pod became ready
}

// Replicas is an object's number of replicas in Git, or an autoscaler's limits.
type Replicas struct {
	Workload Workload `json:"workload"`
	Count    *int     `json:"count,omitempty"` // nil: an autoscaler sets the number
	Least    *int     `json:"least,omitempty"` // an autoscaler's lower limit; Count is the upper one
}

// Rollback is a rollback's progress.
type Rollback struct {
	Reject bool      `json:"reject,omitempty"` // the release's hash is rejected
	Routed time.Time `json:"routed"`           // when traffic went back to stable
	Drain  time.Time `json:"drain"`            // when canary pods may be removed
	To     string    `json:"to"`               // the commit to go back to
	Late   bool      `json:"late,omitempty"`   // it made no progress within its deadline, and was reported
}

// Rejection is a hash not to try again before a retry or a change of content.
type Rejection struct {
	Hash      Hash      `json:"hash"`
	Commit    string    `json:"commit"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
	Promotion string    `json:"promotion,omitempty"` // digest of the promotion file then: only another one can retry
	Hook      string    `json:"hook,omitempty"`      // namespace/name of the failed hook, if any
	Content   Hash      `json:"content,omitempty"`   // of that hook in Git: another content is tried again
}

// Named returns an app with its recorded former names.
func (s *State) Named(a App) App {
	a.Formerly = strings.Join(s.Formerly, " ")
	return a
}

// IsRejected returns the rejection of a hash.
func (s *State) IsRejected(h Hash) (Rejection, bool) {
	return Find(s.Rejected, func(r Rejection) bool { return r.Hash == h })
}

// Mark returns the serial of the newest transition that moved pods or routes, for the workloads to carry.
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

// Workloads returns the inventory's workloads: of WorkloadKinds, or with a template in Stable or Release.
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
