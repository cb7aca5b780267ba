package reconciler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
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
	removed := map[string][]rollout.Proposal{}
	for _, s := range changed {
		wanted := r.proposals(ctx, s)
		updates = append(updates, wanted...)
		for _, u := range wanted {
			if u.Delete {
				removed[s.app.Name] = append(removed[s.app.Name], rollout.Proposal{Branch: u.Branch})
			}
		}
	}
	branch := r.config.StateBranch
	updates = append(updates, Update{
		Branch: branch, Old: r.heads.State, Parent: r.heads.State, Edits: edits,
		Message: r.message(changed), When: rollout.Second(now),
	})
	commits, err := r.push(ctx, updates)
	if err != nil {
		keepRetreats(changed)
		return err
	}
	r.stats.Commits++
	r.heads.State, r.clusterFile = commits[branch], true
	r.writer = r.nextWriter()
	r.epoch = r.writer.Epoch
	for _, u := range updates[:len(updates)-1] {
		if delete(r.heads.Proposals, u.Branch); commits[u.Branch] != "" {
			r.heads.Proposals[u.Branch] = commits[u.Branch]
		}
	}
	r.notifyOf(commits[branch], updates[len(updates)-1], changed)
	for _, s := range changed {
		s.app.state, s.app.pending, s.recorded = s.numbered(), nil, true
	}
	r.show(ctx, changed, removed)
	return nil
}

// numbered is the decided state with its serial, which counts the transitions of
// a release. What only follows a commit, is held, or lists its objects again has
// none of its own: it would cost a write on each Deployment. A retreat gets its
// serial when it is recorded, after it was applied, so that a process which has
// seen neither cannot take it back. An app without a record goes on from what
// the cluster carries.
func (s *step) numbered() rollout.State {
	state, was := s.decision.State, s.app.state
	if transition(was, state) {
		state.Serial = max(was.Serial, s.input.Observed.Serial()) + 1
	}
	return state
}

func transition(from, to rollout.State) bool {
	for _, s := range []*rollout.State{&from, &to} {
		s.Serial, s.App, s.Path, s.Source, s.Held, s.Inventory = 0, "", "", "", nil, nil
	}
	return !from.Equal(&to)
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
		state := s.numbered()
		data, err := state.Encode()
		if err != nil {
			return nil, fmt.Errorf("state of %s: %w", s.app.Name, err)
		}
		edits[rollout.StatePath(s.app.Name)] = data
	}
	if writer := r.nextWriter(); !r.clusterFile || writer != r.writer {
		data, err := rollout.Cluster{Cluster: r.Cluster, UID: r.UID, Source: r.Source, Writer: writer}.Encode()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rollout.ClusterPath, err)
		}
		edits[rollout.ClusterPath] = data
	}
	return edits, nil
}

// nextWriter is the writer of the next commit: this process, in the epoch that
// it has, or in a new one. A process that is started again on the same host goes
// on in the epoch of its predecessor.
func (r *Reconciler) nextWriter() rollout.Writer {
	switch {
	case r.epoch > 0:
		return rollout.Writer{ID: r.Writer, Epoch: r.epoch}
	case r.writer.ID == r.Writer && r.writer.Epoch > 0:
		return r.writer
	default:
		return rollout.Writer{ID: r.Writer, Epoch: r.writer.Epoch + 1}
	}
}

// message is a subject for people and trailers for machines.
//
//	prod-eu: shop step 3/8 setWeight 40 (20% -> 40%) (+2 more)
//
//	Gitrollout-Cluster: prod-eu
//	Gitrollout-Epoch: 3
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
	fmt.Fprintf(&b, "Gitrollout-Cluster: %s\nGitrollout-Epoch: %d\nGitrollout-Source: %s\n", r.Cluster, r.nextWriter().Epoch, r.heads.Main)
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
		text += " held=" + string(s.Held.Reason)
	}
	return text
}
