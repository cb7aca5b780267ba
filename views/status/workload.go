package status

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Workload is a workload's state. Strategy is canary, blueGreen, rollingUpdate (no steps), plain (no Rollout),
// experiment (created by another workload's step), or "" if unknown.
type Workload struct {
	Workload   string         `json:"workload"`
	Strategy   string         `json:"strategy"`
	Replicas   int            `json:"replicas"`
	Ready      int            `json:"ready"`
	Step       int            `json:"step,omitempty"`   // from 1; the last step if all are done; 0 without steps
	Unread     bool           `json:"unread,omitempty"` // pods were not observed: ready and realWeight are omitted
	Moving     bool           `json:"moving"`
	Entered    *time.Time     `json:"entered,omitempty"` // start of the step
	Opened     string         `json:"opened,omitempty"`  // user who opened the last gate
	Weight     int            `json:"weight"`            // desired weight of the new version; at most fullWeight
	Pods       int            `json:"pods,omitempty"`    // desired pods of the new version, from setCanaryScale
	FullWeight int            `json:"fullWeight"`        // weight of all requests: 100, unless trafficRouting sets it
	RealWeight int            `json:"realWeight"`        // percent of requests or, without a router, of ready pods
	Routed     bool           `json:"routed,omitempty"`  // a router divides the requests
	Surplus    string         `json:"surplus,omitempty"` // why there are more new pods than desired
	Routes     []string       `json:"routes,omitempty"`  // managed routes in force; "match" for a match step
	Shares     map[string]int `json:"shares,omitempty"`  // applied weights of an experiment's Services, out of fullWeight
	Steps      []Step         `json:"steps,omitempty"`
	Waiting    string         `json:"waiting,omitempty"`
	Due        *time.Time     `json:"due,omitempty"`
	Revisions  []Revision     `json:"revisions,omitempty"`
}

// Step is a step with its status.
type Step struct {
	Name   string `json:"name,omitempty"`
	Text   string `json:"text"`
	Weight int    `json:"weight"`
	Status string `json:"status,omitempty"` // done, current or pending; in a rollback, only done; "" without a release
}

// Revision is a ReplicaSet or ControllerRevision. Role is stable, canary, active, preview or "".
type Revision struct {
	Name    string       `json:"name"`
	Role    string       `json:"role,omitempty"`
	Hash    rollout.Hash `json:"hash,omitempty"`
	PodHash string       `json:"podHash"`
	Current bool         `json:"current,omitempty"` // the revision has the workload's template
	Desired int          `json:"desired"`
	Ready   int          `json:"ready"`
	Problem string       `json:"problem,omitempty"`
	Pods    []Pod        `json:"pods,omitempty"`
}

// Pod is a revision's pod.
type Pod = rollout.Pod

func workloadOf(in strategies.Input, e strategies.Explanation) Workload {
	w := Workload{
		Workload: e.Workload.String(), Strategy: string(e.Strategy), Replicas: e.Replicas, Ready: e.Ready,
		Weight: e.Weight, Pods: e.Pods, FullWeight: e.Full, RealWeight: e.Real, Routed: e.Routed,
		Unread: !in.Observed.Read(e.Workload), Routes: e.Routes, Shares: e.Shares, Surplus: e.Surplus, Waiting: e.Waiting,
		Due: timeOrNil(e.Due),
	}
	if w.Unread {
		w.RealWeight = 0 // the recorded routes may not be in effect yet
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
	w.Revisions = rollout.Mapped(e.Revisions, func(r strategies.ExplainedRevision) Revision {
		return revisionOf(r.Revision, string(r.Role))
	})
	return w
}

func revisionOf(r rollout.Revision, role string) Revision {
	return Revision{
		Name: r.Name, Role: role, Hash: r.Hash, PodHash: r.Pin.Value, Current: r.Current, Desired: r.Desired,
		Ready: r.Ready(), Problem: r.Problem, Pods: r.Members,
	}
}

func namespaceOf(in strategies.Input) string {
	source := cmp.Or(in.Source, in.Head.Render, &rollout.Render{})
	for _, workloads := range []map[rollout.Workload]rollout.Hash{source.Staged(), source.Templates} {
		if len(workloads) > 0 {
			return slices.MinFunc(slices.Collect(maps.Keys(workloads)), rollout.Workload.Compare).Namespace
		}
	}
	return in.App.Namespace
}

func plainWorkloads(in strategies.Input) (out []Workload) {
	source := cmp.Or(in.Source, in.Head.Render)
	for _, w := range slices.SortedFunc(maps.Keys(in.Observed.Workloads), rollout.Workload.Compare) {
		live := in.Observed.Workloads[w]
		if _, staged := source.Spec(w); staged {
			continue
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

func timeOrNil(t time.Time) *time.Time { return orNil(!t.IsZero(), t) }

func orNil[T any](isKnown bool, v T) *T {
	if !isKnown {
		return nil
	}
	return &v
}

// Full returns the weight of all requests.
func (w Workload) Full() int { return cmp.Or(w.FullWeight, 100) }

// MarshalJSON omits numbers that are unknown because the cluster or Git was not read.
func (w Workload) MarshalJSON() ([]byte, error) {
	type all Workload
	return json.Marshal(struct {
		all
		Replicas   *int `json:"replicas,omitempty"` // omitted if Git lacks the number and the cluster was not read
		Ready      *int `json:"ready,omitempty"`
		Weight     *int `json:"weight,omitempty"`
		RealWeight *int `json:"realWeight,omitempty"`
	}{
		all(w), orNil(!w.Unread || w.Replicas > 0, w.Replicas), orNil(!w.Unread, w.Ready),
		orNil(w.Strategy != "", w.Weight), orNil(!w.Unread && w.Strategy != "", w.RealWeight),
	})
}

// Current returns the step in progress, or nil.
func (w Workload) Current() *Step {
	if i := w.Step - 1; w.Moving && i >= 0 && i < len(w.Steps) && w.Steps[i].Status == "current" {
		return &w.Steps[i]
	}
	return nil
}

// Desired returns the desired pods of all revisions. In a blue-green release, these may be twice the replicas.
func (w Workload) Desired() int {
	total := 0
	for _, r := range w.Revisions {
		total += r.Desired
	}
	return cmp.Or(total, w.Replicas)
}

// Share formats a weight as a share of all requests.
func (w Workload) Share(weight int) string { return rollout.Share(weight, w.Full()) }

// Asked formats the new version's desired pods or, if none are set, its weight.
func (w Workload) Asked() string {
	if w.Pods > 0 {
		return rollout.Count(w.Pods, "pod")
	}
	return w.Share(w.Weight)
}
