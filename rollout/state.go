package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Phase is the state of an app's release.
type Phase string

// A release is Progressing or Paused, then Promoting, then Healthy. A rollback is Aborting, then Degraded if the newest
// commit is rejected, else Healthy.
const (
	Pending     Phase = "Pending"     // no version is deployed
	Progressing Phase = "Progressing" // pods start or stop for a step
	Paused      Phase = "Paused"      // all workloads wait for users, a time or a window
	Stalled     Phase = "Stalled"     // no progress within the deadline; the release may continue
	Promoting   Phase = "Promoting"   // all steps are done; the controller replaces the remaining pods
	Aborting    Phase = "Aborting"    // the release is being rolled back to stable
	Degraded    Phase = "Degraded"    // the newest commit is rejected, and stable serves; see Shown
	Healthy     Phase = "Healthy"     // the newest commit's version serves
)

// Phases lists all phases.
func Phases() []Phase {
	return []Phase{Pending, Progressing, Paused, Stalled, Promoting, Aborting, Degraded, Healthy}
}

// State is the record of one app: apps/<group>/<app>.yaml on the state branch. This record and the users' branch
// determine the app's objects.
type State struct {
	APIVersion string        `json:"apiVersion" serial:"no"` // as in the configuration; "": AlphaVersion
	Kind       string        `json:"kind" serial:"no"`       // always RolloutState
	App        string        `json:"app" serial:"no"`
	Path       string        `json:"path" serial:"no"`
	Formerly   []string      `json:"formerly,omitempty" serial:"yes"` // former names, newest first
	Serial     int           `json:"serial" serial:"no"`              // number of transitions (IsTransition)
	Written    int           `json:"written,omitempty" serial:"no"`   // LabelSerial of workloads; 0 if equal to Serial
	Seal       string        `json:"seal,omitempty" serial:"no"`      // reveals edits by hand; set only in the file
	Phase      Phase         `json:"phase" serial:"yes"`
	Reason     string        `json:"reason,omitempty" serial:"yes"`   // why the app is in this phase, as one sentence
	Unhealthy  string        `json:"unhealthy,omitempty" serial:"no"` // problem that outlasted its deadline while no release ran
	Kept       string        `json:"kept,omitempty" serial:"no"`      // why objects removed from Git still exist, and the fix
	Ignored    string        `json:"ignored,omitempty" serial:"no"`   // the policy's reason to ignore the promotion file, or ""
	Held       *Held         `json:"held,omitempty" serial:"no"`
	Source     string        `json:"source,omitempty" serial:"no"`    // commit whose render is applied
	Entered    *Entered      `json:"entered,omitempty" serial:"no"`   // the last change of shared files that the app took
	Soaked     []Soaked      `json:"soaked,omitempty" serial:"no"`    // evidence for other clusters, newest first
	SoaksSince time.Time     `json:"soaksSince,omitzero" serial:"no"` // when the app became Healthy at Source; zero: no soak
	Stable     *Release      `json:"stable,omitempty" serial:"yes"`   // the newest version that became stable
	Draining   *Draining     `json:"former,omitempty" serial:"yes"`   // the version before Stable, while its pods still run
	Release    *Release      `json:"release,omitempty" serial:"yes"`
	Progress   []Progress    `json:"progress,omitempty" serial:"yes"` // one for each changed workload of Release
	Analyses   []AnalysisRun `json:"analyses,omitempty" serial:"yes"` // runs for Release, Stable or the last rejected release
	Rollback   *Rollback     `json:"retreat,omitempty" serial:"yes"`  // set only while Aborting
	Watch      *Watch        `json:"watch,omitempty" serial:"yes"`    // the watch of Stable; set only while Healthy
	Rejected   []Rejection   `json:"rejected,omitempty" serial:"yes"` // rejected versions, newest first, at most MaxHistory
	Verified   []Hash        `json:"verified,omitempty" serial:"yes"` // stable versions, newest first, at most MaxHistory
	Adopts     Hash          `json:"adopts,omitempty" serial:"yes"`   // version to adopt from another controller
	Pong       []Workload    `json:"pong,omitempty" serial:"yes"`     // workloads whose stable Service is the pong Service
	Replicas   []Replicas    `json:"replicas,omitempty" serial:"yes"` // the head's replicas that differ from Source's
	// digest of a promotion file without effect: the file names an earlier attempt, other steps or the serving version
	Spent string `json:"spent,omitempty" serial:"no"`
	// the objects in Inventory that gitrollout generates
	Generated []Ref     `json:"generated,omitempty" serial:"yes"`
	Inventory []Ref     `json:"inventory,omitempty" serial:"no"`
	Hooks     []HookRun `json:"hooks,omitempty" serial:"no"` // runs of hooks' Jobs, newest last
}

// Entered records when an app took a change of files that many apps read.
type Entered struct {
	At     time.Time `json:"at"`
	Commit string    `json:"commit"`
	Was    string    `json:"was,omitempty"` // the previous commit; a return to that commit's files does not wait
	Well   time.Time `json:"well,omitzero"` // when the app was healthy with the change; zero for a new version
	Place
}

// Place is an app's cohort in a shared change.
type Place struct {
	File   string `json:"file,omitempty"`
	ID     string `json:"id,omitempty"`     // short ID of the file's content
	Cohort int    `json:"cohort,omitempty"` // counted from 1
	Of     int    `json:"of,omitempty"`     // number of cohorts
}

// String returns "base/web.yaml (5832d1e), cohort 2 of 3" or the like.
func (p Place) String() string {
	return fmt.Sprintf("%s (%s), cohort %d of %d", p.File, p.ID, p.Cohort, p.Of)
}

// Same reports whether two places are in the same change.
func (p Place) Same(o Place) bool { return p.File == o.File && p.ID == o.ID }

// Soaked records that an app was Healthy at a commit for the stage's soak time.
type Soaked struct {
	Commit string    `json:"commit"`
	At     time.Time `json:"at"`
}

// HasSoaked reports whether an app has soaked at a commit.
func (s *State) HasSoaked(commit string) bool {
	return slices.ContainsFunc(s.Soaked, func(e Soaked) bool { return e.Commit == commit })
}

// IsNewSince reports whether a version became stable at or after a time.
func (s *State) IsNewSince(t time.Time) bool { return s.Stable != nil && !s.Stable.Since.Before(t) }

// Shown returns the phase to display: Degraded instead of Healthy if Unhealthy is set.
func (s *State) Shown() Phase {
	if s.Phase == Healthy && s.Unhealthy != "" {
		return Degraded
	}
	return s.Phase
}

// AtRest returns a copy with phase and reason, without release or rollback.
func (s State) AtRest(phase Phase, reason string) State {
	s.Phase, s.Reason, s.Release, s.Progress, s.Rollback = phase, reason, nil, nil, nil
	return s
}

// MaxHistory bounds Rejected, Verified and Soaked.
const MaxHistory = 10

// Held says why the newest commit is not applied.
type Held struct {
	Reason  HeldReason `json:"reason"`
	Message string     `json:"message"`          // one sentence; an error has file, field, value and fix
	Commit  string     `json:"commit,omitempty"` // the commit not applied
	Author  string     `json:"author,omitempty"`
}

// HeldReason says, for programs, why an app is not updated.
type HeldReason string

const (
	HeldInvalidInput   HeldReason = "InvalidInput" // the head is unreadable, or refused by the API server
	HeldForbidden      HeldReason = "Forbidden"    // the configuration or API server forbids objects of the head
	HeldUndecryptable  HeldReason = "Undecryptable"
	HeldPolicy         HeldReason = "Policy"
	HeldContested      HeldReason = "Contested"         // another app owns an object of the head
	HeldRolloutRemoved HeldReason = "RolloutRemoved"    // Git removed a Rollout during its release
	HeldRenamed        HeldReason = "Renamed"           // the head renames a staged workload: all pods would start at once
	HeldAdoption       HeldReason = "Adoption"          // the running version is not recorded: steps are impossible
	HeldForeign        HeldReason = "ForeignController" // another controller owns objects, and there is no state file
	HeldNoStable       HeldReason = "NothingToReturnTo" // a first deployment failed: there is no stable version
	HeldRolledBack     HeldReason = "StateRolledBack"   // the state file is older than LabelSerial in the cluster
	HeldClosed         HeldReason = "ReleasesClosed"    // a window, a freeze or a user's hold delays the release
	HeldCohort         HeldReason = "WaitsForCohort"    // a change that many apps share has not reached this app
	HeldShared         HeldReason = "ChangeStopped"     // only a user can let more apps take a change; this app is next
	HeldStage          HeldReason = "Stage"             // the previous stage has not proven the change
	HeldFleet          HeldReason = "Fleet"             // fleet.yaml is unusable, so the order of clusters is unknown
	HeldHook           HeldReason = "HookRuns"          // a hook's Job must end before the release begins
	HeldHookFailed     HeldReason = "HookFailed"        // a hook has failed, before a first deployment or between releases
)

// Waits reports whether the app is held without an error.
func (h *Held) Waits() bool { return h.Is(HeldClosed, HeldHook, HeldCohort, HeldStage) }

// Is reports whether the app is held for one of the reasons.
func (h *Held) Is(reasons ...HeldReason) bool { return h != nil && slices.Contains(reasons, h.Reason) }

// Release is one version of an app.
type Release struct {
	Commit    string            `json:"commit"`
	Hash      Hash              `json:"hash"`
	Author    string            `json:"author"`
	Subject   string            `json:"subject,omitempty"`
	Since     time.Time         `json:"since"`          // start of the attempt; in Stable, when the version became stable
	Fast      bool              `json:"fast,omitempty"` // verified before, so steps are skipped
	Templates map[Workload]Hash `json:"templates"`
	Serial    int               `json:"serial,omitempty"` // first State.Serial of this release; 0 in older states
	Images    []string          `json:"images,omitempty"` // see Render.Images; absent in older states
}

// Same reports whether two releases are the same attempt. Both may be nil.
func (r *Release) Same(o *Release) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Hash == o.Hash && r.Since.Equal(o.Since)
}

// Watch is the period after a release. During this period, a failed analysis rolls the app back.
type Watch struct {
	Until  time.Time `json:"until"`
	Began  time.Time `json:"began"`
	Former Release   `json:"former"`
}

// Draining is the previous stable version, while its pods exist without requests.
type Draining struct {
	Release  Release    `json:"release"`  // previous stable release
	Progress []Progress `json:"progress"` // progress of the release that replaced the version
}

// Progress is a staged workload's progress in a release.
type Progress struct {
	Workload Workload  `json:"workload"`
	Step     int       `json:"step"` // index of the current step; equals Of after the last step
	Of       int       `json:"of"`
	Name     string    `json:"name"`             // such as "setWeight 20" or "pause 10m0s"
	Weight   int       `json:"weight"`           // a percentage, or a share of Traffic.MaxWeight
	Plan     string    `json:"plan"`             // digest of the steps, to detect changes
	Entered  time.Time `json:"entered"`          // start of the step, and so of its pause
	Opened   string    `json:"opened,omitempty"` // who or what ended the previous step's wait
	Routed   *Routing  `json:"routed,omitempty"` // newest routing; nil: all traffic to stable

	// PodHash and StablePodHash have Revision.Pin's values at the last step change, for backtests.
	PodHash       string `json:"podHash,omitempty"`
	StablePodHash string `json:"stablePodHash,omitempty"`

	// Left lists Services that lost their role in an edit of the Rollout. Until the release ends, these Services select
	// the main Service's pods.
	Left []string `json:"left,omitempty"`

	// Suspended means 0 replicas. The step begins when the workload gets replicas.
	Suspended bool `json:"suspended,omitempty"`

	// Peak is recorded only if half the progress deadline has passed since the step's start or the last Peak. A
	// recovered pod makes no new peak.
	Peak *Peak `json:"peak,omitempty"`

	// Available is when all pods of the step's experiment became available.
	Available *time.Time `json:"available,omitempty"`
}

// Peak is the largest number of new pods ready together during a step.
type Peak struct {
	Ready int       `json:"ready"`
	At    time.Time `json:"at"` // when the last of these pods became ready
}

// Replicas has a workload's replicas, or an autoscaler's limits, in Git.
type Replicas struct {
	Workload Workload `json:"workload"`
	Count    *int     `json:"count,omitempty"` // replicas or upper limit; nil if an autoscaler sets the replicas
	Least    *int     `json:"least,omitempty"` // an autoscaler's lower limit
}

// Rollback is the progress of a rollback to stable.
type Rollback struct {
	Reject bool      `json:"reject,omitempty"` // the version is rejected
	Routed time.Time `json:"routed"`           // when all traffic was routed to stable
	Drain  time.Time `json:"drain"`            // earliest removal of canary pods
	To     string    `json:"to"`               // commit to which the app returns
	Late   bool      `json:"late,omitempty"`   // the missed deadline was reported
}

// Rejection is a rejected version. Only a retry, or a change of the failed hook, releases the version again.
type Rejection struct {
	Hash      Hash      `json:"hash"`
	Commit    string    `json:"commit"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
	Promotion string    `json:"promotion,omitempty"` // the promotion file's digest; a retry needs a different file
	Hook      string    `json:"hook,omitempty"`      // namespace/name of the hook whose failure rejected the version
	Content   Hash      `json:"content,omitempty"`   // hash of the failed hook in Git; a change retries the version
}

// Named returns the app with the state file's former names.
func (s *State) Named(a App) App {
	a.Formerly = strings.Join(s.Formerly, " ")
	return a
}

// IsRejected returns a version's rejection, or false.
func (s *State) IsRejected(h Hash) (Rejection, bool) {
	return Find(s.Rejected, func(r Rejection) bool { return r.Hash == h })
}

// Mark returns LabelSerial: the Serial of the newest transition that moved pods or routes.
func (s *State) Mark() int { return cmp.Or(s.Written, s.Serial) }

// ProgressOf returns a workload's progress.
func (s *State) ProgressOf(w Workload) (Progress, bool) {
	return Find(s.Progress, func(p Progress) bool { return p.Workload == w })
}

// StableHash returns a workload's template hash in stable, or "".
func (s *State) StableHash(w Workload) Hash {
	if s.Stable == nil {
		return ""
	}
	return s.Stable.Templates[w]
}

// Workloads returns Inventory's objects that are of WorkloadKinds or have a template in Stable or Release.
func (s *State) Workloads() (all []Workload) {
	staged := func(release *Release, w Workload) bool { return release != nil && release.Templates[w] != "" }
	for _, ref := range s.Inventory {
		if w, is := WorkloadOf(ref); is || staged(s.Stable, w) || staged(s.Release, w) {
			all = append(all, w)
		}
	}
	return all
}
