package rollout

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// APIVersion is the version of every document that gitrollout reads or writes.
const APIVersion = "gitrollout.dev/v1alpha1"

// Phase says where an app's release stands.
type Phase string

// The phases. A release goes Progressing and Paused in turn through its steps, then Promoting, then Healthy; or
// Aborting, then Healthy (Git was reverted) or Degraded (Git still asks for what was rejected).
const (
	Pending     Phase = "Pending"     // nothing is deployed yet
	Progressing Phase = "Progressing" // pods are moving to what the step asks for
	Paused      Phase = "Paused"      // a pause step, or somebody's hold
	Stalled     Phase = "Stalled"     // no progress for longer than the deadline; heals by itself
	Promoting   Phase = "Promoting"   // all steps are done: the user's own rolling update finishes it
	Aborting    Phase = "Aborting"    // on the way back to stable
	Degraded    Phase = "Degraded"    // stable serves, and Git asks for a rejected release; shown of what is not well, too
	Healthy     Phase = "Healthy"     // what Git asks for is what serves
)

// Phases lists all phases.
func Phases() []Phase {
	return []Phase{Pending, Progressing, Paused, Stalled, Promoting, Aborting, Degraded, Healthy}
}

// State is the record of one app: apps/<group>/<app>.yaml on the state branch. Together with the users' branch it
// determines what the cluster should hold. A change of a field whose tag says serial:"yes" is a transition of a
// release, and Serial counts it. What only follows a commit, is held, or lists its objects again costs no write on each
// Deployment.
type State struct {
	APIVersion string        `json:"apiVersion" serial:"no"` // always APIVersion
	Kind       string        `json:"kind" serial:"no"`       // always RolloutState
	App        string        `json:"app" serial:"no"`
	Path       string        `json:"path" serial:"no"`
	Formerly   []string      `json:"formerly,omitempty" serial:"yes"` // names that the app had before, the last one first
	Serial     int           `json:"serial" serial:"no"`              // counts the transitions of releases
	Written    int           `json:"written,omitempty" serial:"no"`   // see Mark
	Seal       string        `json:"seal,omitempty" serial:"no"`      // only in the file: an edit by hand does not match it
	Phase      Phase         `json:"phase" serial:"yes"`
	Reason     string        `json:"reason,omitempty" serial:"yes"`   // one sentence: why the phase is what it is
	Unhealthy  string        `json:"unhealthy,omitempty" serial:"no"` // what has not been well at rest, beyond its deadline
	Kept       string        `json:"kept,omitempty" serial:"no"`      // what left Git and is not deleted, and the way out
	Ignored    string        `json:"ignored,omitempty" serial:"no"`   // why a policy ignores the promotion file
	Held       *Held         `json:"held,omitempty" serial:"no"`      // what is wrong; the app stays as it is meanwhile
	Source     string        `json:"source,omitempty" serial:"no"`    // commit whose render is in the cluster
	Stable     *Release      `json:"stable,omitempty" serial:"yes"`   // the last release that all users were on
	Former     *Former       `json:"former,omitempty" serial:"yes"`   // what served before Stable, while its pods are kept
	Release    *Release      `json:"release,omitempty" serial:"yes"`
	Progress   []Progress    `json:"progress,omitempty" serial:"yes"` // one for each staged workload of Release
	Analyses   []AnalysisRun `json:"analyses,omitempty" serial:"yes"` // of Release, what is stable, or was rejected last
	Retreat    *Retreat      `json:"retreat,omitempty" serial:"yes"`  // only while Aborting
	Rejected   []Rejection   `json:"rejected,omitempty" serial:"yes"` // newest first, at most MaxHistory
	Verified   []Hash        `json:"verified,omitempty" serial:"yes"` // newest first, at most MaxHistory
	Adopts     Hash          `json:"adopts,omitempty" serial:"yes"`   // taken over from another controller, as people said
	Pong       []Workload    `json:"pong,omitempty" serial:"yes"`     // their stable version is behind the pong Service
	Replicas   []Replicas    `json:"replicas,omitempty" serial:"yes"` // what Git says since Stable.Commit; Source may not
	// digest of the promotion file that is no key any more: it was there at an earlier try of its release, or before
	// the steps changed that it would open
	Spent string `json:"spent,omitempty" serial:"no"`
	// of Inventory, what is made for the release in flight and not in Git
	Generated []Ref     `json:"generated,omitempty" serial:"yes"`
	Inventory []Ref     `json:"inventory,omitempty" serial:"no"`
	Hooks     []HookRun `json:"hooks,omitempty" serial:"no"` // Jobs around releases, the newest last
}

// Shown is the phase for people: nobody is told Healthy of what has not been well for longer than its deadline.
func (s *State) Shown() Phase {
	if s.Phase == Healthy && s.Unhealthy != "" {
		return Degraded
	}
	return s.Phase
}

// MaxHistory bounds the rejected and verified lists.
const MaxHistory = 10

// Held says why an app is left as it is.
type Held struct {
	Reason  HeldReason `json:"reason"`
	Message string     `json:"message"`          // one sentence with file, field, value and the fix
	Commit  string     `json:"commit,omitempty"` // the commit that is not followed
}

// HeldReason is why an app is left as it is, in one word for machines.
type HeldReason string

// The reasons.
const (
	HeldInvalidInput   HeldReason = "InvalidInput"      // what Git asks for cannot be read, or the API server refuses it
	HeldForbidden      HeldReason = "Forbidden"         // Git asks for what the configuration does not let the app touch
	HeldUndecryptable  HeldReason = "Undecryptable"     // a file of Git is encrypted, and no key of the app opens it
	HeldPolicy         HeldReason = "Policy"            // Git asks for what the policy of the cluster refuses
	HeldContested      HeldReason = "Contested"         // Git has an object in this app that another app has
	HeldRolloutRemoved HeldReason = "RolloutRemoved"    // a Rollout document is gone while its release is in flight
	HeldRenamed        HeldReason = "Renamed"           // another version came under another name
	HeldAdoption       HeldReason = "Adoption"          // something else runs already, and nothing is on record
	HeldForeign        HeldReason = "ForeignController" // another controller has objects of an app that is not on record
	HeldNoStable       HeldReason = "NothingToReturnTo" // a first deployment must go back
	HeldRolledBack     HeldReason = "StateRolledBack"   // the record is older than the cluster's
	HeldClosed         HeldReason = "ReleasesClosed"    // a window or a freeze: nothing is wrong
	HeldHook           HeldReason = "HookRuns"          // a Job that runs before the release: nothing is wrong
	HeldHookFailed     HeldReason = "HookFailed"        // such a Job of a first deployment has failed
)

// Waits reports whether nothing is wrong, and only the time has not come.
func (h *Held) Waits() bool { return h.Is(HeldClosed, HeldHook) }

// Is reports whether an app is held for one of some reasons.
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

// Same reports whether two are the same attempt, and not a later one at the same version.
func (r *Release) Same(o *Release) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Hash == o.Hash && r.Since.Equal(o.Since)
}

// Former is the version from which all users have moved to the stable one, and whose pods are still there.
type Former struct {
	Release  Release    `json:"release"`  // as it was stable
	Progress []Progress `json:"progress"` // of the release of the version that is stable now
}

// Progress is how far one staged workload has come.
type Progress struct {
	Workload Workload  `json:"workload"`
	Step     int       `json:"step"` // index of the step in progress; equal to Of when all are done
	Of       int       `json:"of"`
	Name     string    `json:"name"`             // the step in words: setWeight 20, pause 10m0s …
	Weight   int       `json:"weight"`           // asked for at this step: percent, or a share of Traffic.MaxWeight
	Plan     string    `json:"plan"`             // digest of the step list: a changed list is noticed
	Entered  time.Time `json:"entered"`          // when the step began: the clock of its pause
	Opened   string    `json:"opened,omitempty"` // who let it pass the last gate
	Routed   *Routing  `json:"routed,omitempty"` // what the routers were asked for last; nil: all traffic to stable

	// Services that had a role when the release began, or since, and have lost it: until it is over they select what
	// the Service does that users come through.
	Left []string `json:"left,omitempty"`

	// It was to have no pods when that was recorded: its step begins when it is to have some.
	Suspended bool `json:"suspended,omitempty"`

	// The most pods of the new version that were ready, once a step lasts: pods that come back are no progress.
	Peak *Peak `json:"peak,omitempty"`

	// When all pods of the step's experiment were available: the clock of the experiment. Nil before that.
	Available *time.Time `json:"available,omitempty"`
}

// Peak is the most pods of a version that were ready at a step.
type Peak struct {
	Ready int       `json:"ready"`
	At    time.Time `json:"at"` // when the last of them became so
}

// Replicas is how many pods Git asks for of a workload.
type Replicas struct {
	Workload Workload `json:"workload"`
	Count    *int     `json:"count,omitempty"` // nil: an autoscaler says
}

// Retreat says how the way back goes.
type Retreat struct {
	Reject bool      `json:"reject,omitempty"` // the release's hash is not to be tried again
	Routed time.Time `json:"routed"`           // when traffic went back to stable
	Drain  time.Time `json:"drain"`            // from when canary pods may go
	To     string    `json:"to"`               // the commit to go back to
	Late   bool      `json:"late,omitempty"`   // it has made no progress for its deadline, and somebody was told
}

// Rejection is a hash that is not tried again before a retry, or a change of the content.
type Rejection struct {
	Hash      Hash      `json:"hash"`
	Commit    string    `json:"commit"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
	Promotion string    `json:"promotion,omitempty"` // digest of the promotion file then: only a different one can retry
	Hook      string    `json:"hook,omitempty"`      // namespace/name of the one that failed, if one did
	Content   Hash      `json:"content,omitempty"`   // of that hook in Git: with another one it is tried again
}

// Named is an app with the names that it had before, as the record knows them.
func (s *State) Named(a App) App {
	a.Formerly = strings.Join(s.Formerly, " ")
	return a
}

// IsRejected returns the rejection of a hash.
func (s *State) IsRejected(h Hash) (Rejection, bool) {
	return Find(s.Rejected, func(r Rejection) bool { return r.Hash == h })
}

// Mark returns the serial of the newest transition that moved pods or routes. The workloads carry it.
func (s *State) Mark() int { return cmp.Or(s.Written, s.Serial) }

// ProgressOf returns how far a workload has come in the release.
func (s *State) ProgressOf(w Workload) (Progress, bool) {
	return Find(s.Progress, func(p Progress) bool { return p.Workload == w })
}

// StableHash returns the hash of the stable template of a workload, "" if it has none.
func (s *State) StableHash(w Workload) Hash {
	if s.Stable == nil {
		return ""
	}
	return s.Stable.Templates[w]
}

// Workloads are those that the app has had, as its inventory says, or a release for what is one by its document alone.
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
