// Package plan predicts a change's effect before users push. Its types are the JSON output of "gitrollout plan", in
// which fields may be added but not removed. The package reads neither Git nor a clock.
package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

// Plan is the effect of a change on the apps of one cluster.
type Plan struct {
	Cluster string    `json:"cluster"`
	Base    string    `json:"base"`
	Head    string    `json:"head"` // the commit, or "the working tree"
	At      time.Time `json:"at"`   // assumed time of the push
	// State names the source of the stable version (the state branch or the commit Base), and the reason.
	State     string                `json:"state,omitempty"`
	Error     *rollout.InvalidError `json:"error,omitempty"` // an error in the configuration; no app is planned
	Apps      []App                 `json:"apps"`            // changed apps, sorted by name
	Unchanged int                   `json:"unchanged"`
	Shared    []Shared              `json:"shared,omitempty"`
	Cohorts   []Cohort              `json:"cohorts,omitempty"` // for changes that many apps share, in order
	Errors    int                   `json:"errors"`            // number of apps with an error, or 1 for the configuration
}

// Shared is a changed file that several apps read.
type Shared struct {
	File string   `json:"file"`
	Apps []string `json:"apps"`
}

// App is a change's effect on one app.
type App struct {
	App     string                `json:"app"`
	Path    string                `json:"path"`
	Change  Change                `json:"change"`
	Summary string                `json:"summary"` // one sentence
	From    rollout.Hash          `json:"from,omitempty"`
	To      rollout.Hash          `json:"to,omitempty"`
	Error   *rollout.InvalidError `json:"error,omitempty"`
	// Workloads lists the workloads with changed pod templates.
	Workloads []Workload `json:"workloads,omitempty"`
	Objects   []Object   `json:"objects,omitempty"`
	// Detection has the differences that comparisons can detect.
	Detection []strategies.Detection `json:"detection,omitempty"`
	Notes     []Note                 `json:"notes,omitempty"`
	Files     []string               `json:"files,omitempty"`   // changed source files
	Enters    time.Time              `json:"enters,omitzero"`   // earliest entry into the cluster's stage, from Order
	Begins    time.Time              `json:"begins,omitzero"`   // earliest begin; zero if Begins or Ends is unknown
	Ends      time.Time              `json:"ends,omitzero"`     // earliest end; zero if unknown
	AtLeast   Span                   `json:"atLeast,omitempty"` // without release windows and promotions
	Gates     int                    `json:"gates,omitempty"`   // required promotions
}

// Change is a kind of change.
type Change string

const (
	First    Change = "first"    // deployed for the first time, without steps
	Release  Change = "release"  // a new version, with steps
	Fast     Change = "fast"     // a former stable version; no pauses, no weights
	Rollback Change = "rollback" // Git returns to the stable version during a release
	Apply    Change = "apply"    // no workload with steps changes; all objects are applied immediately
	Rejected Change = "rejected" // this version was rejected; only a retry releases it
	Gone     Change = "gone"     // removed from Git; its objects stay in the cluster
	Invalid  Change = "invalid"  // cannot be rendered or released; the app would be held
)

// Span is a duration, written in JSON as 1h30m0s.
type Span time.Duration

// MarshalText implements encoding.TextMarshaler.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String implements fmt.Stringer.
func (s Span) String() string { return time.Duration(s).String() }

// Side is an app at a commit.
type Side struct {
	Render *rollout.Render // nil if the app does not exist or Err is set
	Err    error
}

// Input has the inputs of one app's plan.
type Input struct {
	Now        time.Time
	App        rollout.App
	Base, Head Side
	State      *rollout.State // the app's record; if nil, Base's version is stable
	Calendar   rollout.Calendar
	Traffic    func(rollout.Spec) rollout.AnalysisRun // like Sides.Traffic
	Files      []string
}

// Of returns an app's plan. It returns false if nothing changes.
func Of(in Input) (App, bool) {
	a := App{App: in.App.Name, Path: in.App.Path, Files: in.Files}
	switch {
	case in.Head.Err != nil:
		a.Change, a.Error = Invalid, rollout.ProblemOf(in.Head.Err)
		a.Summary = "cannot be rendered: the app would be held as it is"
		if in.Base.Err != nil && in.Base.Err.Error() == in.Head.Err.Error() {
			a.Summary = "cannot be rendered, with or without this change"
		}
		return a, true
	case in.Head.Render == nil && in.Base.Render == nil:
		return a, false
	case in.Head.Render == nil:
		a.Change, a.From = Gone, in.Base.Render.Release()
		a.Summary = "is no longer listed: its objects stay in the cluster unchanged"
		return a, true
	case in.Base.Render != nil && in.Base.Render.Digest == in.Head.Render.Digest:
		a.Change, a.Summary = Apply, "nothing changes in the cluster: objects that are made once stay as they are"
		a.From, a.To, a.Notes = serving(in), in.Head.Render.Release(), madeOnce(in.Base.Render, in.Head.Render)
		return a, len(a.Notes) > 0
	}
	has := len(in.Base.Render.ByRef())
	if in.State != nil {
		has = len(in.State.Inventory)
	}
	if err := strategies.Emptied(in.Head.Render, has); err != nil {
		a.Change, a.Error = Invalid, rollout.ProblemOf(err)
		a.Summary = "has no objects any more: the app would be held as it is"
		return a, true
	}
	a.From, a.To = serving(in), in.Head.Render.Release()
	a.Change, a.Summary = judge(in, a.From, a.To)
	if in.Base.Err != nil && in.State == nil {
		a.Summary = "the base cannot be rendered, so the stable version is unknown: " +
			rollout.OneLine(in.Base.Err.Error())
	}
	if a.Objects = differences(in.Base.Render, in.Head.Render); len(a.Objects) == 0 && a.Change == Apply {
		a.Summary = "only its steps change: nothing is released"
		if in.State != nil && in.State.Release != nil && in.State.Release.Hash == a.To {
			a.Summary = fmt.Sprintf("release %s is in flight and goes on: only its steps change", in.State.Release.Hash)
		}
	}
	if a.Change != Invalid {
		a.workloads(in)
	}
	a.Notes = notes(in, a)
	return a, true
}

func serving(in Input) rollout.Hash {
	s, base, head := in.State, in.Base.Render, in.Head.Render
	isPlain := len(head.Specs) == 0
	if templates := standing(in); len(templates) > 0 {
		return rollout.ReleaseHash(templates)
	}
	switch {
	case s != nil && s.Stable != nil && (isPlain || len(s.Stable.Templates) > 0):
		return s.Stable.Hash
	case isPlain && head.Release() != "" && base != nil && (s == nil || s.Source != ""):
		return cmp.Or(base.Content, base.Release()) // "" without Specs and hooks
	case s != nil && s.Phase != "", base == nil:
		return ""
	default:
		return base.Release()
	}
}

// standing returns all workloads' stable hashes if a workload gets its first Rollout while no release runs. Otherwise,
// it returns nil. The hash of this workload is from Base.
func standing(in Input) map[rollout.Workload]rollout.Hash {
	s, base := in.State, in.Base.Render
	isKnown := s != nil && s.Phase != ""
	if base == nil || isKnown && (s.Source == "" || s.Release != nil || s.Stable == nil && len(base.Specs) > 0) {
		return nil
	}
	all := map[rollout.Workload]rollout.Hash{}
	for w, hash := range base.Templates {
		_, was := base.Spec(w)
		_, is := in.Head.Render.Spec(w)
		if is && !was && !byDocument(w) && (!isKnown || s.StableHash(w) == "") {
			all[w] = hash
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case !isKnown:
		maps.Copy(all, base.Staged())
	case s.Stable != nil:
		maps.Copy(all, s.Stable.Templates)
	}
	return all
}

// byDocument reports whether gitrollout treats w as a workload only because a Rollout names w. Without the Rollout, no
// record has a hash of w.
func byDocument(w rollout.Workload) bool {
	_, is := rollout.WorkloadOf(w.Ref())
	return !is
}

func unrecorded(in Input) (what string, is bool) {
	for _, spec := range in.Head.Render.Specs {
		w, isSame := spec.Workload, func(o rollout.Object) bool { return o.Ref() == spec.Workload.Ref() }
		_, was := in.Base.Render.Spec(w)
		if was || in.Base.Render == nil || !byDocument(w) || in.State != nil && in.State.StableHash(w) != "" {
			continue
		}
		before, had := rollout.Find(in.Base.Render.Objects, isSame)
		after, has := rollout.Find(in.Head.Render.Objects, isSame)
		if had && has && templateChanged(before, after) {
			return w.Title(), true
		}
	}
	return "", false
}

func renamed(in Input) (what string, is bool) {
	switch {
	case in.State != nil && in.State.Stable != nil:
		return strategies.Renamed(in.State.Stable.Templates, in.Head.Render)
	case in.State != nil && in.State.Phase != "", in.Base.Render == nil:
		return "", false
	default:
		return strategies.Renamed(in.Base.Render.Staged(), in.Head.Render)
	}
}

func judge(in Input, from, to rollout.Hash) (Change, string) {
	if name, is := renamed(in); is {
		return Invalid, name + ", and all its pods would start at the same time: the app would be held as it is; " +
			"push the new name first and then the version"
	}
	if name, is := unrecorded(in); is {
		return Invalid, name + " gets its Rollout document and another version in one change, and no stable version is " +
			"recorded for a rollback: the app would be held as it is; push the document first, and the version " +
			"when the app is Healthy"
	}
	if s := in.State; s != nil && s.Release != nil && s.Stable != nil {
		lost, isLost, isReverted := strategies.LacksDocument(*s, in.Head.Render)
		switch {
		case isLost:
			return Invalid, fmt.Sprintf("the Rollout document of %s is removed while release %s is in flight: the app would be "+
				"held as it is", lost.Title(), s.Release.Hash)
		case to == s.Release.Hash:
			return Apply, fmt.Sprintf("release %s is in flight and goes on: only other objects change", to)
		case to == from, isReverted:
			return Rollback, fmt.Sprintf("release %s is in flight: traffic goes back to %s immediately", s.Release.Hash, from)
		}
	}
	if s := in.State; s != nil {
		if r, is := s.IsRejected(to); is && to != from && !hook.Mended(r, in.Head.Render.Objects) {
			return Rejected, fmt.Sprintf("%s was rejected (%s): it is released again only by a promotion file with "+
				"decision: retry", to, r.Reason)
		}
	}
	switch {
	case to == "" || to == from:
		return Apply, "no staged version changes: applied immediately"
	case from == "":
		return First, fmt.Sprintf("first deployment of %s, without steps; if the workload runs already: adopted without a "+
			"restart with this template, held with another", to)
	case in.State != nil && strategies.IsFast(*in.State, in.Head.Render):
		return Fast, fmt.Sprintf("%s -> %s, which served before: no pauses and no weights", from, to)
	case in.State != nil && in.State.Release != nil:
		return Release, fmt.Sprintf("%s -> %s, which replaces the current release %s", from, to, in.State.Release.Hash)
	case len(in.Head.Render.Specs) == 0:
		return Release, fmt.Sprintf("%s -> %s, for all pods at the same time, with hooks before and after", from, to)
	default:
		return Release, fmt.Sprintf("%s -> %s", from, to)
	}
}

func (p *Plan) add(a App, changes bool) {
	if !changes {
		p.Unchanged++
		return
	}
	if a.Error != nil {
		p.Errors++
	}
	p.Apps = append(p.Apps, a)
}

func (p *Plan) finish() {
	slices.SortFunc(p.Apps, func(a, b App) int { return cmp.Compare(a.App, b.App) })
	by := map[string][]string{}
	for _, a := range p.Apps {
		for _, f := range a.Files {
			by[f] = append(by[f], a.App)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(by)) {
		if len(by[f]) > 1 {
			p.Shared = append(p.Shared, Shared{File: f, Apps: by[f]})
		}
	}
}

// Changes reports whether an app changes or the plan has an error.
func (p *Plan) Changes() bool { return len(p.Apps) > 0 || p.Error != nil }
