// Package status describes an app's state for the commands "get" and "list" and for the dashboard. The types define the
// JSON output. A new version can add fields, but never changes or removes a field. The package has no side effects.
// Package strategies explains decisions. cmd/gitrollout and views/dashboard show the App.
package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Listing is the JSON or YAML output of the commands "list" and "get" (without a name).
type Listing struct {
	Cluster string `json:"cluster"`
	Note    string `json:"note,omitempty"` // why the cluster is not shown
	Apps    []App  `json:"apps"`
}

// App is one app's state, and the JSON or YAML output of the command "get". It has no ages and countdowns, so that it
// changes only if something happens. The views compute ages and countdowns.
type App struct {
	App       string          `json:"app"`
	Cluster   string          `json:"cluster"`
	Path      string          `json:"path"`
	Phase     rollout.Phase   `json:"phase"`
	Reason    string          `json:"reason,omitempty"`
	Held      *rollout.Held   `json:"held,omitempty"`
	Release   *Release        `json:"release,omitempty"`
	Stable    *Release        `json:"stable,omitempty"`
	Coming    *Release        `json:"coming,omitempty"`   // a release that waits for its hooks and has not begun
	Rejected  *Rejected       `json:"rejected,omitempty"` // the head's version, if it was rejected
	Source    *rollout.Commit `json:"source,omitempty"`   // the commit whose objects are in the cluster
	Workloads []Workload      `json:"workloads,omitempty"`
	// Analyses belong to the release in flight or last rejected. The reconciler adds measurements that are not in Git yet.
	Analyses []rollout.AnalysisRun `json:"analyses,omitempty"`
	Hooks    []rollout.HookRun     `json:"hooks,omitempty"`   // Jobs of the newest release with Jobs
	Waiting  string                `json:"waiting,omitempty"` // the condition for which the app waits
	Due      *time.Time            `json:"due,omitempty"`     // when a timed wait ends
	Next     []Next                `json:"next,omitempty"`    // suggested commands
	Actions  []propose.Action      `json:"actions,omitempty"` // the actions that fit the app's state
	Warnings []string              `json:"warnings,omitempty"`
	Note     string                `json:"note,omitempty"` // why the cluster is not shown
}

// Release is a version with its author.
type Release struct {
	Hash    rollout.Hash `json:"hash"`
	Commit  string       `json:"commit"`
	Author  string       `json:"author"`
	Subject string       `json:"subject,omitempty"`
	Since   time.Time    `json:"since,omitzero"`
	Fast    bool         `json:"fast,omitempty"`
}

// Rejected is a rejected version, which is not retried automatically.
type Rejected struct {
	Hash   rollout.Hash `json:"hash"`
	Commit string       `json:"commit"`
	Reason string       `json:"reason"`
	At     time.Time    `json:"at"`
}

// Workload is one workload. Strategy is canary, blueGreen, rollingUpdate (a release without steps), plain (without a
// Rollout document) or experiment (created for a step of another workload).
type Workload struct {
	Workload   string     `json:"workload"`
	Strategy   string     `json:"strategy"`
	Replicas   int        `json:"replicas"`
	Ready      int        `json:"ready"`
	Step       int        `json:"step,omitempty"`   // the current step, from 1; the last if all are done; 0 at rest
	Unread     bool       `json:"unread,omitempty"` // the cluster was not read: ready and realWeight are omitted
	Moving     bool       `json:"moving"`
	Entered    *time.Time `json:"entered,omitempty"` // time at which the step began
	Opened     string     `json:"opened,omitempty"`  // the user who opened the last gate
	Weight     int        `json:"weight"`            // desired weight of the new version; at most fullWeight
	Pods       int        `json:"pods,omitempty"`    // desired pods of the new version, if set by setCanaryScale
	FullWeight int        `json:"fullWeight"`        // weight of all requests, 100 unless trafficRouting sets it
	RealWeight int        `json:"realWeight"`        // percent of requests, or of ready pods without a router
	Routed     bool       `json:"routed,omitempty"`  // requests are split, not only pods
	Surplus    string     `json:"surplus,omitempty"` // why the new version has more pods than desired
	Routes     []string   `json:"routes,omitempty"`  // names of managed routes in force; "match" for a match step's routes
	Steps      []Step     `json:"steps,omitempty"`
	Waiting    string     `json:"waiting,omitempty"`
	Due        *time.Time `json:"due,omitempty"`
	Revisions  []Revision `json:"revisions,omitempty"`
}

// Step is a release's step with its status.
type Step struct {
	Name   string `json:"name,omitempty"`
	Text   string `json:"text"`
	Weight int    `json:"weight"`
	Status string `json:"status,omitempty"` // done, current or pending; "" at rest and in a rollback
}

// Revision is one ReplicaSet or ControllerRevision. Role is stable, canary, active, preview or "".
type Revision struct {
	Name    string       `json:"name"`
	Role    string       `json:"role,omitempty"`
	Hash    rollout.Hash `json:"hash,omitempty"`
	PodHash string       `json:"podHash"`
	Current bool         `json:"current,omitempty"` // it has the workload's current template
	Desired int          `json:"desired"`
	Ready   int          `json:"ready"`
	Problem string       `json:"problem,omitempty"`
	Pods    []Pod        `json:"pods,omitempty"`
}

// Pod is a pod of a revision.
type Pod struct {
	Name     string    `json:"name"`
	Status   string    `json:"status"`
	Ready    bool      `json:"ready"`
	Restarts int       `json:"restarts"`
	Created  time.Time `json:"created"`
}

// Of returns the state of an app. proposals are the existing proposal branches.
func Of(in strategies.Input, cluster string, proposals map[string]string) App {
	s := in.State
	a := App{App: in.App.Name, Cluster: cluster, Path: in.App.Path, Phase: s.Phase, Reason: s.Reason}
	if a.Phase == "" {
		a.Phase, a.Reason = rollout.Pending, "gitrollout has not recorded this app yet; check that gitrollout run is running"
	}
	a.showHealth(in)
	if a.Held = heldOf(in); a.Phase == rollout.Healthy && a.Held != nil && !a.Waits() {
		a.Reason = cmp.Or(a.Reason, "the objects applied last stay, and new commits are not applied while the app is held")
	}
	a.Release, a.Stable, a.Coming = releaseOf(s.Release), releaseOf(s.Stable), releaseOf(strategies.Coming(in))
	if r, ok := strategies.Rejection(in); ok && strategies.CanRetry(in) {
		a.Rejected = &Rejected{Hash: r.Hash, Commit: r.Commit, Reason: r.Reason, At: r.At}
	} else if a.Coming != nil && s.Phase == rollout.Degraded {
		a.Reason = "" // Git no longer has the rejected version
	}
	if in.Head.Render != nil {
		a.Warnings = in.Head.Render.Warnings
	}
	if s.Kept != "" {
		a.Warnings = append(slices.Clone(a.Warnings), s.Kept)
	}
	if why := strategies.Ignored(in); why != "" {
		path := rollout.PromotionPath(cluster, in.App.Name)
		a.Warnings = append(slices.Clone(a.Warnings), "ignored: "+path+": "+why)
	}
	for _, h := range strategies.Disregarded(in) {
		a.Warnings = append(slices.Clone(a.Warnings), fmt.Sprintf("hook %s (%s) failed, and %s continued nevertheless: "+
			"the hook's hook-failure is continue", h.Name, h.When, h.Release))
	}
	if s.Source != "" {
		a.Source = &rollout.Commit{ID: s.Source}
		if in.Source != nil {
			a.Source = &in.Source.Commit
		}
	}
	staged := func(e strategies.Explanation) Workload { return workloadOf(in, e) }
	a.Workloads = append(rollout.Mapped(strategies.Explain(in), staged), plainWorkloads(in)...)
	a.Analyses = strategies.Runs(in)
	a.Hooks = hooksOf(in.State)
	a.Waiting, a.Due = waitingOf(in, a)
	a.Next, a.Actions = nextSteps(in, cluster, proposals), propose.Possible(in)
	return a
}

// showHealth sets the phase of an unhealthy app at rest: Degraded if the record has the problem, otherwise Progressing.
func (a *App) showHealth(in strategies.Input) {
	ailing := strategies.Ailing(in)
	switch unhealthy := in.State.Unhealthy; {
	case unhealthy != "":
		a.Phase, a.Reason = rollout.Degraded, strings.TrimPrefix(a.Reason+"; "+cmp.Or(ailing, unhealthy), "; ")
	case a.Phase == rollout.Healthy && ailing != "":
		a.Phase, a.Reason = rollout.Progressing, ailing
	}
}

func heldOf(in strategies.Input) *rollout.Held {
	if err := in.HeadErr(); in.State.Held == nil && err != nil { // the record does not have this error yet
		return &rollout.Held{Reason: rollout.ReasonOf(err), Message: err.Error()}
	}
	return in.State.Held
}

// Waits reports whether the app waits only for a time or a Job.
func (a App) Waits() bool { return a.Held.Waits() }

// WhyHeld explains in one line why the app is held. It names the Job or condition for which the app waits now.
func (a App) WhyHeld() string {
	what, until, waits := strings.Cut(a.Held.Message, " waits ")
	isLive := a.Held.Is(rollout.HeldHook) || strings.HasPrefix(until, "for the end of decision: ")
	if waits && isLive && a.Waits() && a.Waiting != "" {
		return what + " waits for " + a.Waiting
	}
	return a.Held.Message
}

// HeldText returns a held app's short label.
func (a App) HeldText() string {
	switch {
	case a.Held != nil && a.Held.Reason == rollout.HeldHook:
		return "running hooks"
	case a.Waits():
		return "waiting"
	}
	return "held"
}

func releaseOf(r *rollout.Release) *Release {
	if r == nil {
		return nil
	}
	return &Release{Hash: r.Hash, Commit: r.Commit, Author: r.Author, Subject: r.Subject, Since: r.Since, Fast: r.Fast}
}

func workloadOf(in strategies.Input, e strategies.Explanation) Workload {
	w := Workload{
		Workload: e.Workload.String(), Strategy: string(e.Strategy), Replicas: e.Replicas, Ready: e.Ready,
		Weight: e.Weight, Pods: e.Pods, FullWeight: e.Full, RealWeight: e.Real, Routed: e.Routed,
		Unread: in.Observed.Workloads == nil, Routes: e.Routes, Surplus: e.Surplus, Waiting: e.Waiting, Due: timeOrNil(e.Due),
	}
	if pr, ok := in.State.ProgressOf(e.Workload); ok && in.State.Release != nil {
		w.Moving, w.Entered, w.Opened = true, timeOrNil(pr.Entered), pr.Opened
		w.Step = min(e.Step+1, len(e.Steps))
	}
	for i, s := range e.Steps {
		step := Step{Name: s.Name, Text: s.Text, Weight: s.Weight}
		switch {
		case !w.Moving:
		case i < e.Step:
			step.Status = "done"
		case in.State.Phase == rollout.Aborting:
		case i == e.Step:
			step.Status = "current"
		default:
			step.Status = "pending"
		}
		w.Steps = append(w.Steps, step)
	}
	for _, r := range e.Revisions {
		w.Revisions = append(w.Revisions, revisionOf(r.Revision, string(r.Role)))
	}
	return w
}

func revisionOf(r rollout.Revision, role string) Revision {
	out := Revision{
		Name: r.Name, Role: role, Hash: r.Hash, PodHash: r.Pin.Value, Current: r.Current, Desired: r.Desired,
		Ready: r.Ready(), Problem: r.Problem,
	}
	for _, p := range r.Members {
		out.Pods = append(out.Pods, Pod{Name: p.Name, Status: p.Status, Ready: p.Ready, Restarts: p.Restarts,
			Created: p.Created})
	}
	return out
}

// plainWorkloads returns the live workloads without a Rollout document.
func plainWorkloads(in strategies.Input) []Workload {
	source := cmp.Or(in.Source, in.Head.Render)
	var out []Workload
	workloads := slices.SortedFunc(maps.Keys(in.Observed.Workloads), func(a, b rollout.Workload) int {
		return strings.Compare(a.String(), b.String())
	})
	for _, w := range workloads {
		live := in.Observed.Workloads[w]
		if source != nil {
			if _, staged := source.Spec(w); staged {
				continue
			}
		}
		p := Workload{Workload: w.String(), Strategy: "plain", Replicas: live.Replicas}
		if slices.Contains(in.State.Generated, w.Ref()) {
			p.Strategy = "experiment"
		}
		for _, r := range live.Revisions {
			if r.Pods > 0 || r.Desired > 0 || r.Current {
				p.Ready += r.Ready()
				p.Revisions = append(p.Revisions, revisionOf(r, ""))
			}
		}
		out = append(out, p)
	}
	return out
}

// waitingOf returns the condition for which the app waits, and the due time. It returns "" if the app does not wait.
func waitingOf(in strategies.Input, a App) (string, *time.Time) {
	isBusy := slices.ContainsFunc(in.State.Hooks, IsRunning)
	var due *time.Time
	for _, w := range a.Workloads {
		if w.Due != nil && (due == nil || w.Due.Before(*due)) {
			due = w.Due
		}
	}
	switch {
	case in.State.Held.Waits():
		if d := strategies.Decide(in); d.State.Held.Waits() {
			if d.State.Held.Reason == rollout.HeldHook { // gitrollout polls Jobs, so d.Requeue is no due time
				return d.Waiting, nil
			}
			return d.Waiting, timeOrNil(d.Requeue)
		}
		return "", nil
	case a.Held != nil && in.State.Phase != rollout.Aborting:
		return "", nil // the held message has the reason; neither a promotion nor time ends the hold
	case stepsWait(a.Workloads) != "" && !isBusy:
		return stepsWait(a.Workloads), due
	case in.State.Phase == "" || in.State.Phase == rollout.Pending ||
		(in.State.Release != nil && in.Observed.Workloads == nil && !isBusy): // only a wait for a Job is known
		return "", nil
	}
	d := strategies.Decide(in)
	switch {
	case d.Subject != "":
		return "", nil
	case a.Rejected == nil || len(in.State.Stable.Templates) == 0: // without stages, every new commit is tried
	case in.State.Phase == rollout.Degraded && in.Head.Commit.ID != a.Rejected.Commit:
		return d.Waiting + "; until then, a push can only change replicas", nil
	}
	return d.Waiting, nil
}

// stepsWait returns the conditions of the workloads' steps. If the conditions differ, it adds the workloads' names.
func stepsWait(all []Workload) string {
	all = slices.DeleteFunc(slices.Clone(all), func(w Workload) bool { return w.Waiting == "" })
	if same := slices.Compact(rollout.Mapped(all, func(w Workload) string { return w.Waiting })); len(same) < 2 {
		return strings.Join(same, "")
	}
	return strings.Join(rollout.Mapped(all, func(w Workload) string { return w.Workload + ": " + w.Waiting }), "; ")
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Full returns the weight of all requests.
func (w Workload) Full() int { return cmp.Or(w.FullWeight, 100) }

// MarshalJSON omits ready and realWeight if the cluster was not read. Without Git, it also omits realWeight.
func (w Workload) MarshalJSON() ([]byte, error) {
	type all Workload
	shown := struct {
		all
		Ready      *int `json:"ready,omitempty"`
		RealWeight *int `json:"realWeight,omitempty"`
	}{all: all(w)}
	if !w.Unread {
		shown.Ready = &w.Ready
	}
	if !w.Unread && w.Strategy != "" {
		shown.RealWeight = &w.RealWeight
	}
	return json.Marshal(shown)
}

// Current returns the step in progress, or nil if there is none.
func (w Workload) Current() *Step {
	if i := w.Step - 1; w.Moving && i >= 0 && i < len(w.Steps) && w.Steps[i].Status == "current" {
		return &w.Steps[i]
	}
	return nil
}

// Desired returns the number of desired pods of both versions. In blue-green, the number is twice the replicas.
func (w Workload) Desired() int {
	total := 0
	for _, r := range w.Revisions {
		total += r.Desired
	}
	return cmp.Or(total, w.Replicas)
}

// Share formats a weight.
func (w Workload) Share(weight int) string { return rollout.Share(weight, w.Full()) }

// Asked formats the new version's desired pods or weight.
func (w Workload) Asked() string {
	if w.Pods > 0 {
		return rollout.Count(w.Pods, "pod")
	}
	return w.Share(w.Weight)
}

// SetNote sets the note of the listing and of each app: why the cluster is not shown.
func (l *Listing) SetNote(note string) {
	l.Note = note
	for i := range l.Apps {
		l.Apps[i].Note = note
	}
}
