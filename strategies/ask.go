package strategies

import (
	"cmp"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Ask is a question to the cluster before a decision is carried out. Exactly one field is set.
type Ask struct {
	Heal      bool             // apply the objects of State and observe the cluster again
	Foreign   []rollout.Object // does another manager own any of these?
	Adoptable []rollout.Object // would an apply of each restart no pod?
	Endpoints []Need           // does each version have a ready endpoint?
	Jobs      []HookJob        // the states of these Jobs, once they are made or removed
	Accept    string           // would the API server accept the objects of Decision.State at this commit?
}

// Need is a version that the proxies behind a Service must know.
type Need struct {
	Service rollout.Ref
	PodHash string // pod-template-hash of its pods
}

// Answers holds the answers of one pass, a field for each of Ask. An answer is set once, with an entry for each item.
type Answers struct {
	Healed    *bool
	Foreign   *[]rollout.Foreign
	Adoptable map[rollout.Workload]bool
	Endpoints map[Need]bool
	Jobs      map[string]rollout.JobState // by HookJob.Key
	Accepted  map[string]error            // by commit: nil, or why the API server refuses it
}

// IsHealed reports whether the cluster holds the state's objects.
func (a Answers) IsHealed() bool { return a.Healed != nil && *a.Healed }

// HeadErr returns why the head cannot be followed: unreadable, refused by the API server, or without any object.
func (in Input) HeadErr() error {
	if in.Head.Err != nil {
		return in.Head.Err
	}
	if err := Emptied(in.Head.Render, len(in.State.Inventory)); err != nil {
		return err
	}
	return cmp.Or(slices.Collect(maps.Values(in.Answers.Accepted))...)
}

// Emptied refuses a render without objects for an app that has some, as from a generator's empty file. Argo CD's
// automated sync does too unless allowEmpty is set.
func Emptied(r *rollout.Render, has int) error {
	if r == nil || len(r.Objects) > 0 || has == 0 {
		return nil
	}
	return rollout.Invalidf(r.App.Path, "", "has no object any more, and the app has %d: none of them is deleted", has).
		WithFix("put them back, or remove the whole folder if the app is to go")
}

// withQuestion adds a decision's next question; a rollback and a stale decision have none. Heal comes first: other
// answers describe the healed cluster. Accept is last, as other answers may keep the app at its commit.
func withQuestion(in Input, d Decision) Decision {
	a := in.Answers
	switch source := d.State.Source; {
	case d.Rollback || d.Stale:
		d.Ask = nil
	case a.Healed == nil:
		d.Ask = &Ask{Heal: true}
	case d.Ask != nil:
	case source != in.State.Source && !hasKey(a.Accepted, source):
		d.Ask = &Ask{Accept: source}
	}
	return d
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, has := m[key]
	return has
}

// askAdoptable asks which running workloads without a recorded hash already match Git. It is nil when that is known.
func askAdoptable(in Input) *Ask {
	var objects []rollout.Object
	for _, w := range takenOver(in.Head.Render) {
		live, exists := in.Observed.Workloads[w]
		if !exists || live.Hash != "" || hasKey(in.Answers.Adoptable, w) {
			continue
		}
		if o, found := workloads.WorkloadOf(in.Head.Render, w); found {
			objects = append(objects, o)
		}
	}
	if objects == nil {
		return nil
	}
	return &Ask{Adoptable: objects}
}

// askEndpoints asks for the endpoints of versions that get requests next. It is nil when all are known.
func askEndpoints(in Input, needs []Need) *Ask {
	needs = slices.DeleteFunc(needs, func(n Need) bool { return hasKey(in.Answers.Endpoints, n) })
	if len(needs) == 0 {
		return nil
	}
	return &Ask{Endpoints: needs}
}
