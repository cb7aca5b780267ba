package rollout

import (
	"maps"
	"reflect"
	"slices"
)

// ForgeUpdate reports one recorded change of an app's state to a forge.
type ForgeUpdate struct {
	Cluster   string
	Subject   string // the change, in one line; "" if the state is reported again, such as after a restart
	Before    State  // the zero value if the state is reported again
	After     State
	Proposals []Proposal // existing proposals, and proposals that this change has removed
}

// ProposalKind is the effect of merging a proposal.
type ProposalKind string

// The kinds of proposals.
const (
	ProposePromotion ProposalKind = "promote" // lets a waiting release continue
	ProposeRevert    ProposalKind = "revert"  // reverts a rejected release in Git
)

// Proposal is a branch with one commit that users may merge.
type Proposal struct {
	Kind     ProposalKind
	Branch   string     // short name
	Commit   string     // "" if the branch was removed
	Gate     int        // only for a promotion: index of the step at which the release waits
	Standing []Standing // one for each workload that the release changes
	Changes  []Change   // promotion: from stable version to release; revert: from newest commit to stable version
	Sharers  []string   // other apps that use the files that the merge changes
	Retries  bool       // only for a revert: instead of a merge, users may retry the rejected release
}

// Standing has the progress of one workload in a release.
type Standing struct {
	Progress
	Ready    int    // Ready pods of the new version
	Replicas int    // the workload's replicas
	Problem  string // why a pod of the new version is not Ready, "" without such a pod
}

// Change is one object that differs between two renders.
type Change struct {
	Ref    Ref
	Verb   string        // added, removed or changed
	Images []ImageChange // containers whose image differs
}

// ImageChange is the change of one container's image.
type ImageChange struct {
	Container string
	From, To  string // the images; "" in a version without the container
}

// Changes lists the objects that differ, sorted. A nil render has no objects.
func Changes(from, to *Render) []Change {
	olds, news := from.ByRef(), to.ByRef()
	var changes []Change
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
	containers, _ := o.Map("spec", "template", "spec")[list].([]any)
	found := make(map[string]string, len(containers))
	for _, c := range containers {
		if m, ok := c.(map[string]any); ok {
			found[text(m, "name")] = text(m, "image")
		}
	}
	return found
}
