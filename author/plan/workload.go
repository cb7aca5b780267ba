package plan

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Workload is one workload's release.
type Workload struct {
	Workload rollout.Workload `json:"workload"`
	Kind     string           `json:"kind"`
	// Strategy is canary, blueGreen or rollingUpdate (without steps). If Staged is false, the manifest sets Strategy.
	Strategy string `json:"strategy"`
	Staged   bool   `json:"staged"`
	Replicas int    `json:"replicas"`
	// Sized names the source of Replicas, or is "" for the manifest.
	Sized  string  `json:"sized,omitempty"`
	Routed bool    `json:"routed,omitempty"` // weights are shares of requests, not of pods
	Full   int     `json:"full,omitempty"`   // the weight that means all requests
	Stages []Stage `json:"stages,omitempty"`

	Watch   Span `json:"watch,omitempty"`   // how long analyses can roll back an ended release
	WayBack Span `json:"wayBack,omitempty"` // the longest duration of such a rollback, if pods become ready in time
}

// Name returns NAMESPACE/NAME.
func (w Workload) Name() string { return w.Workload.Namespace + "/" + w.Workload.Name }

// Stage is a release's stage.
type Stage struct {
	Name      string    `json:"name,omitempty"`
	Text      string    `json:"text"`
	Weight    int       `json:"weight"`
	Canary    int       `json:"canary"` // pods of the new version
	Stable    int       `json:"stable"`
	Wait      string    `json:"wait,omitempty"` // the reason: pods, promotion, time or analysis
	AtLeast   Span      `json:"atLeast,omitempty"`
	Enters    time.Time `json:"enters,omitzero"` // earliest time; zero if unknown
	Shut      string    `json:"shut,omitempty"`  // the window or freeze that delays the stage
	Timeout   Span      `json:"timeout,omitempty"`
	OnTimeout string    `json:"onTimeout,omitempty"`
}

func (a *App) workloads(in Input) {
	begins, ends, known := in.Now, in.Now, true
	for _, spec := range in.Head.Render.Specs {
		was := stableTemplate(in, spec.Workload)
		if a.Change == Apply || a.Change == Rejected || a.Change == Rollback ||
			was == in.Head.Render.Templates[spec.Workload] {
			continue
		}
		n, sized := size(in.Head.Render, spec)
		p := strategies.Planned{
			Spec: spec, Replicas: n, Fast: a.Change == Fast, First: a.Change == First || was == "", Calendar: in.Calendar,
			Now: in.Now,
		}
		f := strategies.Predict(p)
		a.Workloads = append(a.Workloads, stagesOf(f, sized))
		a.Detection = append(a.Detection, strategies.Detections(in.Head.Render.Specs, p, in.runs(spec.Workload))...)
		a.AtLeast, a.Gates = max(a.AtLeast, Span(f.AtLeast)), a.Gates+f.Gates
		known = known && !f.Ends.IsZero()
		begins, ends = rollout.Later(begins, f.Begins), rollout.Later(ends, f.Ends)
	}
	if len(a.Workloads) > 0 && known {
		a.Begins, a.Ends = begins, ends
	}
	a.Workloads = append(a.Workloads, unstaged(in)...)
}

// runs returns the recorded analyses and, if no release runs, an analysis of the present traffic. It uses the base's
// metrics, because a pull request must not choose the servers that get the queries.
func (in Input) runs(w rollout.Workload) (runs []rollout.AnalysisRun) {
	if in.State != nil {
		runs = slices.Clip(in.State.Analyses)
	}
	if in.Traffic != nil && in.Base.Render != nil && (in.State == nil || in.State.Release == nil) {
		if spec, is := in.Base.Render.Spec(w); is {
			runs = append(runs, in.Traffic(spec))
		}
	}
	return runs
}

// Detections returns the differences that an app's comparisons detect. traffic is like Sides.Traffic.
func Detections(r *rollout.Render, traffic func(rollout.Spec) rollout.AnalysisRun) (all []strategies.Detection) {
	in := Input{Traffic: traffic, Base: Side{Render: r}}
	for _, spec := range r.Specs {
		n, _ := size(r, spec)
		all = append(all, strategies.Detections(r.Specs, strategies.Planned{Spec: spec, Replicas: n},
			in.runs(spec.Workload))...)
	}
	return all
}

func stableTemplate(in Input, w rollout.Workload) rollout.Hash {
	if templates := standing(in); len(templates) > 0 {
		return templates[w]
	}
	switch {
	case in.State != nil && in.State.Phase != "":
		return in.State.StableHash(w)
	case in.Base.Render == nil:
		return ""
	default:
		return in.Base.Render.Templates[w]
	}
}

func stagesOf(f strategies.Forecast, sized string) Workload {
	w := Workload{Workload: f.Workload, Kind: f.Workload.Ref().Kind, Strategy: string(f.Strategy), Staged: true,
		Replicas: f.Replicas, Sized: sized, Routed: f.Routed, Full: f.Full, Watch: Span(f.Watch), WayBack: Span(f.WayBack)}
	for _, s := range f.Stages {
		w.Stages = append(w.Stages, Stage{
			Name: s.Name, Text: s.Text, Weight: s.Weight, Canary: s.Canary, Stable: s.Stable, Wait: s.Wait,
			AtLeast: Span(s.AtLeast), Enters: s.Enters, Shut: s.Shut, Timeout: Span(s.Timeout), OnTimeout: s.OnTimeout,
		})
	}
	return w
}

func size(r *rollout.Render, spec rollout.Spec) (n int, sized string) {
	if spec.Replicas != nil {
		return *spec.Replicas, ""
	}
	if spec.OnNodes() {
		return 10, "an example, because the number of nodes is not in Git"
	}
	for _, o := range r.Objects {
		target := o.Map("spec", "scaleTargetRef")
		if target == nil || target["name"] != spec.Workload.Name || o.Namespace() != spec.Workload.Namespace {
			continue
		}
		least, field := o.Map("spec")["minReplicas"], "minReplicas"
		if o.Kind() == "ScaledObject" {
			least, field = o.Map("spec")["minReplicaCount"], "minReplicaCount"
		}
		if n, ok := least.(int64); ok && n > 0 {
			return int(n), field + " of " + o.Kind() + " " + o.Name()
		}
		return 1, o.Kind() + " " + o.Name() + ", which sets no " + field + " above 0"
	}
	return 1, "Kubernetes' default, because the manifest has no replicas"
}
