package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
)

// committer pushes all queued transitions in one commit.
type committer struct {
	*Options
	*outbox
	preparer
	current func() *gitView
	poll    func()
	stats   *counters

	batches int               // number of refused pushes
	stale   map[string]stale  // unwanted branches
	shown   *rollout.Forge    // forge of the last full report
	told    map[string]string // commit that the forge knows, by joint branch
}

// flush records the due transitions. "refused" joins the errors of refused transitions, and "err" concerns the whole
// push. After ErrConflict, all apps must decide again.
func (r *committer) flush(ctx context.Context, now time.Time) (refused, err error) {
	all := r.dequeue(now)
	if len(all) == 0 {
		return nil, nil
	}
	done, err := r.push(ctx, all, now)
	var own map[string]error
	if err != nil && !isLater(ctx, err) {
		done, own, err = r.apart(ctx, all, now, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isBehind = errors.Is(err, rollout.ErrConflict); r.isBehind {
		r.stats.lost.Add(1)
	}
	for _, t := range all {
		app := t.app.Name
		delete(r.pushing, app)
		result := recorded{transition: t, after: t.before, unpushed: own[app]}
		if result.unpushed != nil {
			refused = errors.Join(refused, fmt.Errorf("app %s: %w", app, result.unpushed))
			since := cmp.Or(r.refused[app].since, now)
			r.refused[app] = refusal{since, now.Add(r.Spread(backoff(now.Sub(since))))}
		} else if !r.isBehind && r.Only == nil {
			result.unpushed = err
		}
		r.answered[app] = result
		r.touch(app)
	}
	for _, t := range done {
		r.answered[t.app.Name] = t
		delete(r.refused, t.app.Name)
	}
	return refused, err
}

func isLater(ctx context.Context, err error) bool {
	return errors.Is(err, rollout.ErrConflict) || errors.Is(err, rollout.ErrUnreachable) || ctx.Err() != nil
}

// maxRefused is the number of single refused transitions after which the committer assumes that the server refuses all.
const maxRefused = 3

func (r *committer) apart(
	ctx context.Context, all []transition, now time.Time, together error,
) (done []recorded, own map[string]error, err error) {
	// The server may refuse a single transition for ever, for example because its text looks like a credential. So each
	// transition is pushed alone, and each flush begins with another transition. "err" is set if the push must be
	// repeated, or if the server refuses all transitions, at least one for the first time.
	r.batches++
	own = map[string]error{}
	for _, t := range all {
		own[t.app.Name] = together
	}
	isNew := r.isNewRefusal(all)
	for i := 0; i < len(all) && len(all) > 1 && (len(done) > 0 || i < maxRefused); i++ {
		t := all[(r.batches+i)%len(all)]
		one, err := r.push(ctx, []transition{t}, now)
		switch {
		case err == nil:
			done = append(done, one...)
			delete(own, t.app.Name)
		case isLater(ctx, err):
			return done, nil, err
		default:
			own[t.app.Name] = err
		}
	}
	if len(done) == 0 && isNew {
		return nil, nil, together
	}
	return done, own, nil
}

func (r *committer) after(ctx context.Context, now time.Time) error {
	r.pushReverts(ctx)
	r.resume(ctx, now)
	r.renewProposals(ctx)
	joint{r}.renew(ctx, now)
	return r.tidy(ctx, now)
}

func (r *committer) push(ctx context.Context, all []transition, now time.Time) (done []recorded, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
		if err != nil {
			done, err = nil, fmt.Errorf("record in Git: %w", err)
		}
	}()
	defer r.states.begin()()
	v, on := r.current(), r.states.draft()
	on.version = v.settings(r.Cluster).APIVersion
	edits, states, err := r.edits(on, all)
	if err != nil {
		return nil, err
	}
	// The state branch is last: if only a part is pushed, a proposal without its transition does no harm.
	var updates []rollout.Update
	removed, awaiting := map[string][]rollout.Proposal{}, r.states.awaiting(v, all)
	for _, s := range all {
		wanted := r.proposals(ctx, v, s, awaiting)
		updates, removed[s.app.Name] = append(updates, wanted...), removedBy(wanted)
	}
	branch := v.settings(r.Cluster).StateBranch
	updates = append(updates, rollout.Update{
		Branch: branch, Old: on.head, Parent: on.head, Edits: edits,
		Message: r.message(v, on, all), When: rollout.Second(now),
	})
	commits, err := r.send(ctx, updates)
	if err != nil {
		return nil, err
	}
	r.stats.commits.Add(1)
	r.states.setProposals(updates[:len(updates)-1], commits)
	r.states.setRecorded(on, commits[branch], states)
	r.cohorts.wake()
	commit := rollout.StateCommit{ID: commits[branch], Parent: on.head, When: rollout.Second(now)}
	for _, s := range all {
		after := states[s.app.Name]
		if s.leaves {
			after = s.before
		} else {
			commit.Apps = append(commit.Apps, rollout.RecordedApp{App: s.app.Name, Before: s.before, After: after})
		}
		done = append(done, recorded{transition: s, after: after, commit: commit.ID})
	}
	shown := r.forgeUpdates(ctx, v, all, removed)
	r.Tell(report.Report{Config: v.branch.Config, Head: commit.ID, Commit: &commit, Forge: shown})
	return done, nil
}

func (r *committer) send(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	if r.Only != nil { // so that no release advances
		return nil, fmt.Errorf("%w: this process only rolls back, and writes no records", rollout.ErrUnreachable)
	}
	ctx, end := r.begin(ctx, report.PartPush, "")
	commits, err := r.Repository.Push(ctx, updates)
	end(err)
	return commits, err
}

func (r *committer) edits(on draft, all []transition) (map[string][]byte, map[string]rollout.State, error) {
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
	of := rollout.Cluster{APIVersion: on.version, Cluster: r.Cluster, UID: r.UID, Source: r.Source, Writer: on.writer}
	data, err := of.Encode()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", rollout.ClusterPath, err)
	}
	files[rollout.ClusterPath] = data
	return files, states, nil
}

// message returns the commit message for the state branch.
//
//	prod-eu: shop step 3/8 setWeight 40 (20% -> 40%) (+2 more)
//
//	Gitrollout-Cluster: prod-eu
//	Gitrollout-Epoch: 3
//	Gitrollout-Source: 9f31c0…
//	Gitrollout-App: shop phase=Progressing release=h1-7b4e2a91d0 step=3/8 weight=40
func (r *committer) message(v *gitView, on draft, all []transition) string {
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
