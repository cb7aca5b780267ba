package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
)

// committer is the last pump: it pushes all queued transitions in one commit, and each pass gets its result. Only
// outbox's methods may be called from other goroutines.
type committer struct {
	*Options
	*outbox
	preparer
	current func() *gitView
	poll    func()
	stats   *counters

	refused int              // batches that the server did not accept
	stale   map[string]stale // merged proposals, by branch
	shown   *rollout.Forge   // the configuration of the forge at the last full report
}

// flush records the queued transitions and publishes their results. The error is the push's; with ErrConflict the
// branch has moved and all decisions must be repeated.
func (r *committer) flush(ctx context.Context, now time.Time) error {
	v, all := r.current(), r.dequeue()
	if len(all) == 0 {
		return nil
	}
	err := r.together(ctx, v, all, now)
	later := errors.Is(err, rollout.ErrConflict) || errors.Is(err, rollout.ErrUnreachable) || ctx.Err() != nil
	if err != nil && len(all) > 1 && !later {
		err = r.apart(ctx, v, all, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isBehind = errors.Is(err, rollout.ErrConflict); r.isBehind {
		r.stats.lost.Add(1)
	}
	for _, s := range all {
		if !s.recorded && !r.isBehind {
			s.unpushed = err
		}
		name := s.app.Name
		delete(r.pushing, name)
		r.answered[name] = s
		r.touch(name)
	}
	return err
}

// together records transitions in one push, all or none. A panic becomes an error.
func (r *committer) together(ctx context.Context, v *gitView, all []*pass, now time.Time) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("record in Git: panic: %v", problem)
		}
	}()
	made, err := r.push(ctx, v, all, now)
	if err != nil {
		return fmt.Errorf("record in Git: %w", err)
	}
	for _, s := range all {
		s.recorded, s.commit = true, made
	}
	return nil
}

// maxRefused is how many single transitions may fail in a row before the server is taken to refuse all.
const maxRefused = 3

// apart records transitions one by one after the server refused them together: one may never be accepted, such as
// with text like a credential. Each call starts with another one.
func (r *committer) apart(ctx context.Context, v *gitView, all []*pass, now time.Time) (failed error) {
	r.refused++
	recorded := 0
	for i := range all {
		s := all[(r.refused+i)%len(all)]
		err := r.together(ctx, v, []*pass{s}, now)
		if err == nil {
			recorded++
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("app %s: %w", s.app.Name, err))
		if errors.Is(err, rollout.ErrConflict) || recorded == 0 && i+1 == maxRefused {
			break
		}
	}
	return failed
}

// after pushes reverts, reports to a newly configured forge, renews proposals and removes those merged a while ago.
func (r *committer) after(ctx context.Context, now time.Time) error {
	r.pushReverts(ctx)
	r.resume(ctx, now)
	r.renewProposals(ctx)
	return r.tidy(ctx, now)
}

// push records transitions and proposals in one commit and push, before any advance is applied.
func (r *committer) push(ctx context.Context, v *gitView, all []*pass, now time.Time) (made string, err error) {
	defer r.states.begin()()
	on := r.states.draft()
	edits, states, err := r.edits(on, all)
	if err != nil {
		return "", err
	}
	// The state branch comes last: where pushes are not atomic, only a proposal without its transition is harmless.
	var updates []rollout.Update
	removed := map[string][]rollout.Proposal{}
	for _, s := range all {
		wanted := r.proposals(ctx, v, s)
		updates, removed[s.app.Name] = append(updates, wanted...), removedBy(wanted)
	}
	branch := v.settings(r.Cluster).StateBranch
	updates = append(updates, rollout.Update{
		Branch: branch, Old: on.head, Parent: on.head, Edits: edits,
		Message: r.message(v, on, all), When: rollout.Second(now),
	})
	commits, err := r.send(ctx, updates)
	if err != nil {
		return "", err
	}
	r.stats.commits.Add(1)
	moved := map[string]string{}
	for _, u := range updates[:len(updates)-1] {
		moved[u.Branch] = commits[u.Branch]
	}
	r.states.setProposals(moved)
	r.states.setRecorded(on, commits[branch], states)
	commit := rollout.Recorded{ID: commits[branch], Parent: on.head, When: rollout.Second(now)}
	for _, s := range all {
		if s.leaves {
			continue
		}
		s.after = states[s.app.Name]
		commit.Apps = append(commit.Apps, rollout.RecordedApp{App: s.app.Name, Before: s.before, After: s.after})
	}
	shown := r.transitions(ctx, v, all, removed)
	r.tell(report.Report{Config: v.branch.Config, Head: commit.ID, Commit: &commit, Forge: shown})
	return commits[branch], nil
}

func (r *committer) send(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	ctx, end := r.begin(ctx, report.PartPush, "")
	commits, err := r.Repository.Push(ctx, updates)
	end(err)
	return commits, err
}

func (r *committer) edits(on draft, all []*pass) (map[string][]byte, map[string]rollout.State, error) {
	files := make(map[string][]byte, len(all)+1)
	states := make(map[string]rollout.State, len(all))
	for _, s := range all {
		if s.leaves {
			files[rollout.StatePath(s.app.Name)], states[s.app.Name] = nil, rollout.State{}
			continue
		}
		state := s.numbered()
		data, err := state.Encode()
		if err != nil {
			return nil, nil, fmt.Errorf("state of %s: %w", s.app.Name, err)
		}
		files[rollout.StatePath(s.app.Name)], states[s.app.Name] = data, state
		if s.renamedFrom != nil {
			files[rollout.StatePath(s.renamedFrom.from)], states[s.renamedFrom.from] = nil, rollout.State{}
		}
	}
	if on.claims {
		data, err := rollout.Cluster{Cluster: r.Cluster, UID: r.UID, Source: r.Source, Writer: on.writer}.Encode()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", rollout.ClusterPath, err)
		}
		files[rollout.ClusterPath] = data
	}
	return files, states, nil
}

// numbered returns the decided state with its serial. A rollback, applied before, gets it when recorded, so that a
// process that has seen neither cannot undo it. Without a record the cluster's serial continues.
func (s *pass) numbered() rollout.State {
	state := s.decision.State
	if s.before.IsTransition(&state) {
		state.Serial = max(s.before.Serial, state.Serial, s.input.Observed.Serial()) + 1
	}
	return state
}

// message returns a commit message: a subject for users and trailers for programs.
//
//	prod-eu: shop step 3/8 setWeight 40 (20% -> 40%) (+2 more)
//
//	Gitrollout-Cluster: prod-eu
//	Gitrollout-Epoch: 3
//	Gitrollout-Source: 9f31c0…
//	Gitrollout-App: shop phase=Progressing release=h1-7b4e2a91d0 step=3/8 weight=40
func (r *committer) message(v *gitView, on draft, all []*pass) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Cluster, all[0].decision.Subject)
	if more := len(all) - 1; more > 0 {
		fmt.Fprintf(&b, " (+%d more)", more)
	}
	b.WriteString("\n\n")
	for _, s := range all[1:] {
		fmt.Fprintf(&b, "- %s\n", s.decision.Subject)
	}
	if len(all) > 1 {
		b.WriteString("\n")
	}
	b.WriteString(rollout.Trailer(rollout.TrailerCluster, r.Cluster))
	b.WriteString(rollout.Trailer(rollout.TrailerEpoch, fmt.Sprint(on.writer.Epoch)))
	b.WriteString(rollout.Trailer(rollout.TrailerSource, v.main()))
	for _, s := range all {
		b.WriteString(rollout.Trailer(rollout.TrailerApp, trailer(s.decision.State)))
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
