package strategies

import (
	"cmp"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// Ask is what has to be known before a decision is carried out. Exactly one of its fields is set.
type Ask struct {
	Heal      bool             // does the cluster take the objects that State asks for? Apply them, and observe it again
	Foreign   []rollout.Object // has somebody else any of them in hand?
	Adoptable []rollout.Object // would applying each of them restart no pod?
	Endpoints []Need           // has each of them a ready endpoint?
	Jobs      []HookJob        // how do they stand, once they are made or removed?
	Accept    string           // would the API server take the objects that Decision.State asks for as of this commit?
}

// Need is a version that must be known to the proxies behind a Service.
type Need struct {
	Service rollout.Ref
	PodHash string // pod-template-hash of its pods
}

// Answers are what earlier decisions of the pass have asked for: one field for each of Ask's. The zero value answers
// nothing. What is asked is asked as a whole, so an answer is set once and has an entry for all that was asked.
type Answers struct {
	Healed    *bool
	Foreign   *[]rollout.Foreign
	Adoptable map[rollout.Workload]bool
	Endpoints map[Need]bool
	Jobs      map[string]rollout.JobState // by HookJob.Key
	Accepted  map[string]error            // by commit: nil, or why the API server refuses it
}

// IsHealed reports whether the cluster is known to hold what the state asks for.
func (a Answers) IsHealed() bool { return a.Healed != nil && *a.Healed }

// HeadErr is why the head cannot be followed: it cannot be read, the API server refuses it, or nothing would be left of
// the app. It is nil if nothing is known to be wrong.
func (in Input) HeadErr() error {
	if in.Head.Err != nil {
		return in.Head.Err
	}
	if err := Emptied(in.Head.Render, len(in.State.Inventory)); err != nil {
		return err
	}
	return cmp.Or(slices.Collect(maps.Values(in.Answers.Accepted))...)
}

// Emptied refuses a render without objects of an app that has some: a file that a generator left empty would delete a
// service. Argo CD's automated sync does so, too, unless it is told allowEmpty.
func Emptied(r *rollout.Render, has int) error {
	if r == nil || len(r.Objects) > 0 || has == 0 {
		return nil
	}
	return rollout.Invalidf(r.App.Path, "", "has no object any more, and the app has %d: none of them is deleted", has).
		WithFix("put them back, or remove the whole folder if the app is to go")
}

// withQuestion puts the question that a decision depends on next. A retreat asks nobody, and neither does what is not
// carried out. First the cluster is made what the state asks for, so that all else is asked of what it shows then; the
// commit to follow is last, because the other answers may keep the app from it.
func withQuestion(in Input, d Decision) Decision {
	a := in.Answers
	switch source := d.State.Source; {
	case d.Retreat || d.Stale:
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

// askAdoptable asks which workloads that run and that nobody has marked are what
// Git says already. It is nil when that is known.
func askAdoptable(in Input) *Ask {
	var objects []rollout.Object
	for _, w := range takenOver(in.Head.Render) {
		live, exists := in.Observed.Workloads[w]
		if !exists || live.Hash != "" || hasKey(in.Answers.Adoptable, w) {
			continue
		}
		if o, found := workloadOf(in.Head.Render, w); found {
			objects = append(objects, o)
		}
	}
	if objects == nil {
		return nil
	}
	return &Ask{Adoptable: objects}
}

// askEndpoints asks about what is to be given requests. It is nil when all of it is known.
func askEndpoints(in Input, needs []Need) *Ask {
	needs = slices.DeleteFunc(needs, func(n Need) bool { return hasKey(in.Answers.Endpoints, n) })
	if len(needs) == 0 {
		return nil
	}
	return &Ask{Endpoints: needs}
}
