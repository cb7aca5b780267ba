// Package status describes an app's state for commands and dashboard, without side effects. Its types define the JSON
// output. New versions of gitrollout may add fields, but never change or remove fields.
package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Listing is the output of "list", and of "get" without a name.
type Listing struct {
	Cluster string `json:"cluster"`
	Note    string `json:"note,omitempty"` // which data is missing or outdated, and why
	Apps    []App  `json:"apps"`

	Changes []SharedChange `json:"sharedChanges,omitempty"` // changes that some apps do not run yet
}

// App is an app's state, and the output of "get". It has no ages or countdowns, so that it changes only with the state.
type App struct {
	App       string            `json:"app"`
	Cluster   string            `json:"cluster"`
	Path      string            `json:"path"`
	Namespace string            `json:"namespace,omitempty"` // the first staged workload's
	Labels    map[string]string `json:"labels,omitempty"`    // labels of the workloads in the newest commit
	Phase     rollout.Phase     `json:"phase"`
	Reason    string            `json:"reason,omitempty"`
	Held      *rollout.Held     `json:"held,omitempty"`
	Shared    *Shared           `json:"shared,omitempty"` // newest shared change that the app waits for or took
	Release   *Release          `json:"release,omitempty"`
	Stable    *Release          `json:"stable,omitempty"`
	Coming    *Release          `json:"coming,omitempty"`   // hooks run before this release begins
	Rejected  *Rejected         `json:"rejected,omitempty"` // version of the newest commit, if rejected
	Source    *rollout.Commit   `json:"source,omitempty"`   // commit of the objects in the cluster
	Images    []string          `json:"images,omitempty"`   // for an app without stages: images at Source
	Workloads []Workload        `json:"workloads,omitempty"`
	// Analyses are the analyses of the release that is in flight or was last rejected. Git may not have the newest
	// measurements yet.
	Analyses []Analysis        `json:"analyses,omitempty"`
	Metrics  []Metric          `json:"metrics,omitempty"` // metrics of Analyses
	Watch    *Watch            `json:"watch,omitempty"`   // watch of Stable; Analyses have the progress
	Links    json.RawMessage   `json:"links,omitempty"`   // rollout.App.Links
	Hooks    []rollout.HookRun `json:"hooks,omitempty"`   // Jobs of the newest release that has Jobs
	Waiting  string            `json:"waiting,omitempty"` // condition for which the app waits
	Due      *time.Time        `json:"due,omitempty"`     // end of a timed wait
	Next     []Next            `json:"next,omitempty"`    // suggested commands
	Actions  []propose.Action  `json:"actions,omitempty"` // actions that the state allows
	Warnings []string          `json:"warnings,omitempty"`
	Note     string            `json:"note,omitempty"`
}

// Release is a version with its commit and author.
type Release struct {
	Images  []string     `json:"images,omitempty"`
	Hash    rollout.Hash `json:"hash"`
	Commit  string       `json:"commit"`
	Author  string       `json:"author"`
	Subject string       `json:"subject,omitempty"`
	Since   time.Time    `json:"since,omitzero"`
	Fast    bool         `json:"fast,omitempty"`
}

// Watch is the period after a release in which a failed analysis restores the previous version.
type Watch struct {
	Until  time.Time `json:"until"`
	Former *Release  `json:"former"`
}

// Rejected is a version that gitrollout does not retry automatically.
type Rejected struct {
	Images  []string     `json:"images,omitempty"`
	Hash    rollout.Hash `json:"hash"`
	Commit  string       `json:"commit"`
	Author  string       `json:"author,omitempty"` // Author and Subject are absent if Commit is not the newest commit
	Subject string       `json:"subject,omitempty"`
	Reason  string       `json:"reason"`
	At      time.Time    `json:"at"`
}

// Metric describes how an analysis measures. Analyses at different steps may have different queries.
type Metric struct {
	Metric   string `json:"metric"`
	Provider string `json:"provider"`
	Query    string `json:"query,omitempty"` // "" if the provider has no query
	Limits   string `json:"limits"`          // conditions and tolerated failures
}

func metricsOf(in strategies.Input, runs []rollout.AnalysisRun, workloads []Workload) (all []Metric) {
	source, measured := cmp.Or(in.Source, in.Head.Render), map[string]analysis.Known{}
	for _, r := range runs {
		release := cmp.Or(in.State.Release, &rollout.Release{Since: r.Started})
		of := analysis.Known{Since: r.Started, ReleaseSince: release.Since}
		if r.IsWatch() && in.State.Watch != nil {
			of.ReleaseSince = in.State.Watch.Began
		}
		for _, p := range r.Metrics {
			last, _ := p.Last()
			known := of
			if known.At = last.At; p.Evidence != nil {
				known.Since = p.Evidence.Since
			}
			measured[p.Metric] = known
		}
	}
	if source == nil || len(measured) == 0 {
		return nil
	}
	for _, spec := range source.Specs {
		w, _ := rollout.Find(workloads, func(w Workload) bool { return w.Workload == spec.Workload.String() })
		for _, m := range spec.Metrics() {
			known, is := measured[m.Name]
			known.Since = rollout.Later(known.Since, *cmp.Or(w.Entered, &time.Time{}))
			for _, query := range queriesOf(m, w) {
				if !known.At.IsZero() {
					query = known.WithElapsed(query)
				}
				shown := Metric{Metric: m.Name, Provider: m.Provider, Query: query, Limits: limitsOf(m)}
				if is && !slices.Contains(all, shown) {
					all = append(all, shown)
				}
			}
		}
	}
	return all
}

// queriesOf returns both versions' queries for a comparison.
func queriesOf(m rollout.Metric, w Workload) (all []string) {
	queries, _ := m.Config["queries"].(map[string]any)
	if len(queries) == 0 {
		queries = map[string]any{"query": m.Config["query"]}
	}
	versions := []Version{New}
	if m.Compare != nil {
		versions = append(versions, Stable)
	}
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		text, isText := queries[name].(string)
		if data, err := json.Marshal(queries[name]); err == nil && !isText && queries[name] != nil {
			text = string(data)
		}
		for _, v := range versions {
			of, query := map[string]string{"Latest": w.podHash(v), "Stable": w.podHash(Stable)}, text
			for arg, version := range m.Pods {
				placeholder := "{{args." + arg + "}}"
				query = strings.ReplaceAll(query, placeholder, cmp.Or(of[version], placeholder))
			}
			all = append(all, query)
		}
	}
	return all
}

func limitsOf(m rollout.Metric) (limits string) {
	if m.SuccessCondition != "" {
		limits += "successCondition: " + m.SuccessCondition + "; "
	}
	if m.FailureCondition != "" {
		limits += "failureCondition: " + m.FailureCondition + "; "
	}
	if m.Compare != nil {
		limits += fmt.Sprintf("compare: maxIncrease %g; ", m.Compare.MaxIncrease)
	}
	return limits + fmt.Sprintf("failureLimit: %d", m.FailureLimit)
}

func rejectedOf(in strategies.Input) *Rejected {
	r, is := strategies.Retryable(in)
	if !is {
		return nil
	}
	rejected := &Rejected{Hash: r.Hash, Commit: r.Commit, Reason: r.Reason, At: r.At}
	if in.Head.Render.Release() == r.Hash {
		rejected.Images = in.Head.Render.Images()
	}
	if c := in.Head.Render.Commit; c.ID == r.Commit {
		rejected.Author, rejected.Subject = c.Author, c.Subject
	}
	return rejected
}

// Of returns an app's state. The keys of proposals are existing branches.
func Of(in strategies.Input, cluster string, proposals map[string]string) App {
	s := in.State
	a := App{App: in.App.Name, Cluster: cluster, Path: in.App.Path, Namespace: namespaceOf(in), Phase: s.Phase,
		Reason: s.Reason, Held: s.Held, Shared: sharedOf(in), Hooks: hooksOf(s), Actions: propose.Possible(in)}
	if a.Phase == "" {
		a.Phase, a.Reason = rollout.Pending, "gitrollout has not recorded this app yet; check that gitrollout run is running"
	}
	a.showHealth(in)
	if err := in.HeadErr(); a.Held == nil && err != nil { // the record does not have the error yet
		a.Held = &rollout.Held{Reason: rollout.ReasonOf(err), Message: err.Error()}
	}
	if a.Phase == rollout.Healthy && a.Held != nil && !a.Waits() {
		a.Reason = cmp.Or(a.Reason, "the objects applied last stay, and new commits are not applied while the app is held")
	}
	a.Release, a.Stable, a.Coming = releaseOf(in, s.Release), releaseOf(in, s.Stable), releaseOf(in, strategies.Coming(in))
	if a.Rejected = rejectedOf(in); a.Rejected == nil && a.Coming != nil && s.Phase == rollout.Degraded {
		a.Reason = "" // Git no longer has the rejected version
	}
	if in.Head.Render != nil {
		a.Warnings, a.Labels = slices.Clone(in.Head.Render.Warnings), in.Head.Render.Labels()
	}
	if s.Kept != "" {
		a.Warnings = append(a.Warnings, s.Kept)
	}
	a.Warnings = append(a.Warnings, strategies.RequestWarnings(in)...)
	if why := strategies.Ignored(in); why != "" {
		path := rollout.PromotionPath(cluster, in.App.Name)
		a.Warnings = append(a.Warnings, "ignored: "+path+": "+why)
	}
	for _, h := range strategies.Disregarded(in) {
		a.Warnings = append(a.Warnings, fmt.Sprintf("hook %s (%s) failed, and %s continued nevertheless: "+
			"the hook's hook-failure is continue", h.Name, h.When, h.Release))
	}
	if s.Source != "" {
		a.Source = &rollout.Commit{ID: s.Source}
		if in.Source != nil {
			a.Source = new(in.Source.Commit) // a pointer into the render would keep its objects
			if s.Stable == nil && s.Release == nil {
				a.Images = in.Source.Images()
			}
		}
	}
	staged := func(e strategies.Explanation) Workload { return workloadOf(in, e) }
	a.Workloads = append(rollout.Mapped(strategies.Explain(in), staged), plainWorkloads(in)...)
	source := cmp.Or(in.Source, in.Head.Render, &rollout.Render{})
	a.Analyses = analysesOf(in, source.Specs, a.Workloads)
	a.Links = append(a.Links, in.App.Links...)
	a.Metrics = metricsOf(in, strategies.Runs(in), a.Workloads)
	a.Waiting, a.Due = waitingOf(in, a)
	if w := s.Watch; w != nil {
		a.Watch = &Watch{Until: w.Until, Former: releaseOf(in, &w.Former)}
	}
	a.Next = nextSteps(in, cluster, a.Actions, proposals)
	return a
}

func (a *App) showHealth(in strategies.Input) {
	ailing := strategies.Ailing(in)
	switch unhealthy := in.State.Unhealthy; {
	case unhealthy != "":
		a.Phase, a.Reason = rollout.Degraded, strings.TrimPrefix(a.Reason+"; "+cmp.Or(ailing, unhealthy), "; ")
	case a.Phase == rollout.Healthy && ailing != "":
		a.Phase, a.Reason = rollout.Progressing, ailing
	}
}

// Waits reports whether the app waits only for a time or a Job's end.
func (a App) Waits() bool { return a.Held.Waits() }

// NeedsPerson reports whether a user must act.
func (a App) NeedsPerson() bool {
	if a.Held != nil {
		return !a.Waits()
	}
	return a.Phase == rollout.Degraded || (a.Phase == rollout.Paused && a.Due == nil)
}

// WhyHeld returns why the app is held. If the app waits for hooks or a decision, WhyHeld names the current condition.
func (a App) WhyHeld() string {
	what, until, waits := strings.Cut(a.Held.Message, " waits ")
	isLive := a.Held.Is(rollout.HeldHook) || strings.HasPrefix(until, "for the end of decision: ")
	if waits && isLive && a.Waits() && a.Waiting != "" {
		return what + " waits for " + a.Waiting
	}
	return a.Held.Message
}

// HeldText describes a held app in one or two words.
func (a App) HeldText() string {
	switch {
	case a.Held != nil && a.Held.Reason == rollout.HeldHook:
		return "running hooks"
	case a.Waits():
		return "waiting"
	}
	return "held"
}

func waitingOf(in strategies.Input, a App) (string, *time.Time) {
	isBusy := slices.ContainsFunc(in.State.Hooks, IsRunning)
	isUnread := in.Observed.Workloads == nil || len(in.Observed.Unread) > 0
	var due time.Time
	for _, w := range a.Workloads {
		due = rollout.Soonest(due, *cmp.Or(w.Due, &time.Time{}))
	}
	switch {
	case in.State.Held.Waits():
		if d := strategies.Decide(in); d.State.Held.Waits() {
			if d.State.Held.Reason == rollout.HeldHook { // d.Requeue is the next check of the Job
				return d.Waiting, nil
			}
			return d.Waiting, timeOrNil(d.Requeue)
		}
		return "", nil
	case a.Held != nil && in.State.Phase != rollout.Aborting:
		return "", nil // neither time nor promotion ends the hold
	case stepsWait(a.Workloads) != "" && !isBusy:
		return stepsWait(a.Workloads), timeOrNil(due)
	case in.State.Phase == "" || in.State.Phase == rollout.Pending ||
		(in.State.Release != nil && isUnread && !isBusy): // if the cluster is not read, only the wait for a Job is known
		return "", nil
	}
	d := strategies.Decide(in)
	switch {
	case d.Subject != "":
		return "", nil
	case a.Rejected == nil || len(in.State.Stable.Templates) == 0: // without stages, the app follows each commit
	case in.State.Phase == rollout.Degraded && in.Head.Commit.ID != a.Rejected.Commit:
		return d.Waiting + "; until then, a push can only change replicas", nil
	}
	return d.Waiting, nil
}

func stepsWait(all []Workload) string {
	all = slices.DeleteFunc(slices.Clone(all), func(w Workload) bool { return w.Waiting == "" })
	if same := slices.Compact(rollout.Mapped(all, func(w Workload) string { return w.Waiting })); len(same) < 2 {
		return strings.Join(same, "")
	}
	return strings.Join(rollout.Mapped(all, func(w Workload) string { return w.Workload + ": " + w.Waiting }), "; ")
}

// SetNote sets the note of the listing and its apps.
func (l *Listing) SetNote(note string) {
	l.Note = note
	for i := range l.Apps {
		l.Apps[i].Note = note
	}
}
