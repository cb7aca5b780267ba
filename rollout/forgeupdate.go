package rollout

import (
	"maps"
	"reflect"
	"slices"
)

// ForgeUpdate reports a change of an app's state to a forge.
type ForgeUpdate struct {
	Cluster   string
	Subject   string // the change, in one line; "" if the state is reported again, as after a restart
	Before    State  // zero without Subject
	After     State
	Proposals []Proposal // proposals that exist, or that this change removed
}

// ProposalKind is the effect of merging a proposal.
type ProposalKind string

const (
	ProposePromotion ProposalKind = "promote" // lets a release continue
	ProposeRevert    ProposalKind = "revert"  // reverts a rejected release
)

// Proposal is a branch with one commit for users to merge.
type Proposal struct {
	Kind     ProposalKind
	Branch   string     // short name
	Commit   string     // "" if removed
	Gate     int        // promotion: index of the step that waits
	Standing []Standing // for each workload of the release
	Changes  []Change   // promotion: from stable to release; revert: from newest commit to stable
	Sharers  []string   // other apps that use the changed files
	Retries  bool       // revert: users may instead retry the release
	Enters   []string   // approval for a stage: the apps that enter
	Approves Commit     // approval for a stage: the commit
}

// Standing is a workload's progress in a release.
type Standing struct {
	Progress
	Ready    int // ready pods of the new version
	Replicas int
	Problem  string // why a new pod is not Ready, or ""
}

// Change is an object that differs between two renders.
type Change struct {
	Ref    Ref
	Verb   string        // added, removed or changed
	Images []ImageChange // containers with another image
}

// ImageChange is a container's change of image.
type ImageChange struct {
	Container string
	From, To  string // images; "" if the version lacks the container
}

// Changes lists differing objects, sorted. A nil render has no objects.
func Changes(from, to *Render) (changes []Change) {
	olds, news := from.ByRef(), to.ByRef()
	for ref, o := range olds {
		n, kept := news[ref]
		switch {
		case !kept:
			changes = append(changes, Change{Ref: ref, Verb: "removed"})
		case !reflect.DeepEqual(o, n):
			changes = append(changes, Change{Ref: ref, Verb: "changed", Images: imageChanges(o, n)})
		}
	}
	for ref := range news {
		if _, had := olds[ref]; !had {
			changes = append(changes, Change{Ref: ref, Verb: "added"})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return a.Ref.Compare(b.Ref) })
	return changes
}

func imageChanges(from, to Object) (changes []ImageChange) {
	for _, list := range []string{"initContainers", "containers"} {
		olds, news := images(from, list), images(to, list)
		both := maps.Clone(olds)
		maps.Copy(both, news)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			if olds[name] != news[name] {
				changes = append(changes, ImageChange{Container: name, From: olds[name], To: news[name]})
			}
		}
	}
	return changes
}

func images(o Object, list string) map[string]string {
	found := map[string]string{}
	for _, container := range o.Maps("spec", "template", "spec", list) {
		found[text(container, "name")] = text(container, "image")
	}
	return found
}
