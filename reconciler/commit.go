package reconciler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// commit records all transitions of a pass in one commit and one push, together
// with the proposals that they call for. Until it has succeeded no advance is
// applied.
func (r *Reconciler) commit(ctx context.Context, steps []*step, now time.Time) error {
	var changed []*step
	for _, s := range steps {
		if s.changed {
			changed = append(changed, s)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	edits, err := r.stateEdits(changed)
	if err != nil {
		return err
	}
	// The state comes last: where pushes are not atomic, a proposal without its
	// transition is harmless, and a transition without its proposal is not.
	var updates []Update
	for _, s := range changed {
		updates = append(updates, r.proposals(ctx, s)...)
	}
	branch := r.config.StateBranch
	updates = append(updates, Update{
		Branch: branch, Old: r.heads.State, Parent: r.heads.State, Edits: edits,
		Message: r.message(changed), When: rollout.Second(now),
	})
	commits, err := r.Repository.Push(ctx, updates)
	if err != nil {
		keepRetreats(changed)
		return err
	}
	r.stats.Commits++
	r.heads.State, r.clusterFile = commits[branch], true
	for _, u := range updates[:len(updates)-1] {
		if delete(r.heads.Proposals, u.Branch); commits[u.Branch] != "" {
			r.heads.Proposals[u.Branch] = commits[u.Branch]
		}
	}
	for _, s := range changed {
		s.app.state, s.app.pending, s.recorded = s.decision.State, nil, true
	}
	return nil
}

// keepRetreats remembers retreats that Git could not record: they have been
// applied, and must not be undone by the older state that Git still has.
func keepRetreats(steps []*step) {
	for _, s := range steps {
		if s.decision.Retreat {
			s.app.pending = &s.decision
		}
	}
}

func (r *Reconciler) stateEdits(changed []*step) (map[string][]byte, error) {
	edits := make(map[string][]byte, len(changed)+1)
	for _, s := range changed {
		data, err := s.decision.State.Encode()
		if err != nil {
			return nil, fmt.Errorf("state of %s: %w", s.app.Name, err)
		}
		edits[rollout.StatePath(s.app.Name)] = data
	}
	if !r.clusterFile {
		data, err := rollout.Cluster{Cluster: r.Cluster, UID: r.UID, Source: r.Source}.Encode()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rollout.ClusterPath, err)
		}
		edits[rollout.ClusterPath] = data
	}
	return edits, nil
}

// message is a subject for people and trailers for machines.
//
//	prod-eu: shop step 3/8 setWeight 40 (20% -> 40%) (+2 more)
//
//	Gitrollout-Cluster: prod-eu
//	Gitrollout-Source: 9f31c0…
//	Gitrollout-App: shop phase=Progressing release=h1-7b4e2a91d0 step=3/8 weight=40
func (r *Reconciler) message(changed []*step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Cluster, changed[0].decision.Subject)
	if more := len(changed) - 1; more > 0 {
		fmt.Fprintf(&b, " (+%d more)", more)
	}
	b.WriteString("\n\n")
	for _, s := range changed[1:] {
		fmt.Fprintf(&b, "- %s\n", s.decision.Subject)
	}
	if len(changed) > 1 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "Gitrollout-Cluster: %s\nGitrollout-Source: %s\n", r.Cluster, r.heads.Main)
	for _, s := range changed {
		b.WriteString("Gitrollout-App: " + trailer(s.decision.State) + "\n")
	}
	return b.String()
}

func trailer(s rollout.State) string {
	text := fmt.Sprintf("%s phase=%s", s.App, s.Phase)
	if s.Release != nil {
		text += " release=" + string(s.Release.Hash)
	} else if s.Stable != nil {
		text += " stable=" + string(s.Stable.Hash)
	}
	for _, p := range s.Progress {
		text += fmt.Sprintf(" step=%d/%d weight=%d", min(p.Step+1, p.Of), p.Of, p.Weight)
	}
	if s.Held != nil {
		text += " held=" + s.Held.Reason
	}
	return text
}

// proposals returns the branches that the transition of one app calls for: a
// promotion to merge while a gate is shut, a revert to merge while Git asks for
// what was rejected, and the removal of those that are no longer wanted.
func (r *Reconciler) proposals(ctx context.Context, s *step) []Update {
	var updates []Update
	next := s.input
	next.State = s.decision.State
	promote := "gitrollout/promote/" + r.Cluster + "/" + s.app.Name
	gate, shut := strategies.Gate(next)
	_, exists := r.heads.Proposals[promote]
	switch was, wasShut := strategies.Gate(s.input); {
	case shut && exists && wasShut && was == gate:
	case shut:
		if u, ok := r.promotionProposal(promote, s, gate); ok {
			updates = append(updates, u)
		}
	case exists:
		updates = append(updates, Update{Branch: promote, Old: r.heads.Proposals[promote], Delete: true})
	}
	revert := "gitrollout/revert/" + r.Cluster + "/" + s.app.Name
	wanted := s.decision.State.Phase == rollout.Degraded || (s.decision.State.Retreat != nil && s.decision.State.Retreat.Reject)
	_, exists = r.heads.Proposals[revert]
	switch {
	case wanted && !exists:
		if u, ok := r.revertProposal(ctx, revert, s); ok {
			updates = append(updates, u)
		}
	case !wanted && exists:
		updates = append(updates, Update{Branch: revert, Old: r.heads.Proposals[revert], Delete: true})
	}
	return updates
}

func (r *Reconciler) promotionProposal(branch string, s *step, gate int) (Update, bool) {
	state := s.decision.State
	p := rollout.Promotion{Release: state.Release.Hash, Through: fmt.Sprint(gate), Decision: rollout.Promote}
	data, err := p.Encode()
	if err != nil {
		return Update{}, false
	}
	var at time.Time
	var steps []string
	for _, pr := range state.Progress {
		at = pr.Entered
		steps = append(steps, fmt.Sprintf("%s is at step %d/%d (%s), %d%%", pr.Workload, pr.Step+1, pr.Of, pr.Name, pr.Weight))
	}
	message := fmt.Sprintf("Promote %s past step %d in %s\n\nRelease %s of %s by %s:\n%s\n\n%s.\n\nMerge this commit to let the release go on.\n",
		s.app.Name, gate+1, r.Cluster, state.Release.Hash, rollout.ShortID(state.Release.Commit), state.Release.Author,
		state.Release.Subject, strings.Join(steps, "\n"))
	return Update{
		Branch: branch, Old: r.heads.Proposals[branch], Parent: r.heads.Main, Message: message, When: at,
		Edits: map[string][]byte{rollout.PromotionPath(r.Cluster, s.app.Name): data},
	}, true
}

// revertProposal undoes in Git what was rejected: the files that the app is
// built from, as of the stable commit. It is made only while the head still
// asks for the rejected release.
func (r *Reconciler) revertProposal(ctx context.Context, branch string, s *step) (Update, bool) {
	state, head := s.decision.State, s.app.head.Render
	if head == nil || state.Stable == nil || len(state.Rejected) == 0 || head.Release() != state.Rejected[0].Hash {
		return Update{}, false
	}
	stable, err := r.renderAt(ctx, s.app, state.Stable.Commit)
	if err != nil {
		return Update{}, false
	}
	tree, err := r.Repository.Snapshot(ctx, state.Stable.Commit)
	if err != nil {
		return Update{}, false
	}
	edits, err := differing(r.main, tree, append(append([]string{}, head.Files...), stable.Files...))
	if err != nil || len(edits) == 0 {
		return Update{}, false
	}
	rejection := state.Rejected[0]
	message := fmt.Sprintf("Revert %s in %s to %s\n\nRelease %s of %s was rejected:\n%s\n\n%s serves. Merging this commit makes Git agree.\n",
		s.app.Name, r.Cluster, rollout.ShortID(state.Stable.Commit), rejection.Hash, rollout.ShortID(rejection.Commit), rejection.Reason, state.Stable.Hash)
	if others := r.sharers(s.app, edits); len(others) > 0 {
		message += "\nIt also changes files of: " + strings.Join(others, ", ") + "\n"
	}
	return Update{Branch: branch, Parent: r.heads.Main, Edits: edits, Message: message, When: rejection.At}, true
}

// differing returns the edits that make the paths in from what they are in to.
func differing(from, to Snapshot, paths []string) (map[string][]byte, error) {
	edits := map[string][]byte{}
	for _, path := range paths {
		a, inA, err := from.Lookup(path)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", path, err)
		}
		b, inB, err := to.Lookup(path)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", path, err)
		}
		switch {
		case inA == inB && a.ID == b.ID:
		case !inB:
			edits[path] = nil
		default:
			if edits[path], err = to.ReadBlob(b.ID); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
		}
	}
	return edits, nil
}

// sharers are the other apps that are built from any of the edited files.
func (r *Reconciler) sharers(a *app, edits map[string][]byte) []string {
	var others []string
	for _, name := range sortedKeys(r.apps) {
		other := r.apps[name]
		if other == a || other.head.Render == nil {
			continue
		}
		for _, file := range other.head.Render.Files {
			if _, touched := edits[file]; touched {
				others = append(others, name)
				break
			}
		}
	}
	return others
}
