package reconciler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// step is what one pass does for one app.
type step struct {
	app      *app
	before   rollout.State // on record when the pass looked at the app
	input    strategies.Input
	decision strategies.Decision
	changed  bool  // the state is to be recorded
	recorded bool  // and has been
	refused  bool  // the cluster says no: ask again later
	err      error // what went wrong with this app
}

// decideAll heals and decides each app, several at once. Retreats are applied
// here, before anything is recorded.
func (r *Reconciler) decideAll(ctx context.Context, work []*app, now time.Time) []*step {
	steps := make([]*step, len(work))
	for i, a := range work {
		steps[i] = &step{app: a, before: a.state}
	}
	forEach(r.Workers, steps, func(s *step) {
		ctx, end := r.begin(ctx, PartDecide, s.app.Name)
		r.decide(ctx, s, now)
		end(s.err)
	})
	return steps
}

// decide brings the cluster to what the recorded state asks for, looks at it,
// and decides. A state whose objects the cluster does not accept does not
// advance, and a retreat does not wait for them.
//
// What is to be known, and in which order, the decision says: whether to go back
// comes first, because after a crash between a retreat and its record the
// recorded state would start the canary's pods anew.
func (r *Reconciler) decide(ctx context.Context, s *step, now time.Time) {
	a := s.app
	state := a.state
	if a.pending != nil {
		state = a.pending.State
	}
	promotion, refused, unknown := r.approved(ctx, a, state)
	s.input = strategies.Input{
		Now: now, App: a.App, Head: r.headOf(a, refused, unknown), State: state, Pending: a.pending,
		Promotion: promotion, Calendar: a.calendar,
	}
	s.input.Source, _ = r.renderAt(ctx, a, state.Source) // nil if it is gone: the state then follows the head
	s.input.Applied = a.routedSince(state, s.input.Source, now)
	s.input.Observed = r.observe(a, state) // last: to read a commit takes time
	r.takeMeasurements(s)
	s.decision = strategies.Decide(s.input)
	for s.decision.Ask != nil {
		if err := r.answer(ctx, s, *s.decision.Ask); err != nil {
			s.err = errors.Join(s.err, err)
			return
		}
		s.decision = strategies.Decide(s.input)
	}
	next := &s.decision.State
	if s.decision.Stale {
		s.changed = !next.Equal(&a.state)
		return
	}
	if unknown != nil { // nobody knows what is asked for, so nothing but a retreat happens
		if s.err = errors.Join(s.err, unknown); !s.decision.Retreat {
			s.decision = strategies.Decision{State: a.state}
			return
		}
	}
	switch {
	case s.decision.Retreat:
		s.err = errors.Join(s.err, r.applyState(ctx, a, *next, now))
	case s.input.Answers.IsSettled():
		r.prune(ctx, s)
	}
	if next.Source != "" {
		if objects, err := r.desired(ctx, a, *next, now); err == nil {
			next.Inventory, next.Generated = strategies.Inventory(*next, objects), strategies.Generated(*next, objects)
		}
	}
	if s.changed = !next.Equal(&a.state); s.changed && s.decision.Subject == "" {
		s.decision.Subject = a.Name + " lists its objects again"
	}
	// It may hold what people wrote, which must not reach the commit's trailers.
	s.decision.Subject = strings.Join(strings.Fields(s.decision.Subject), " ")
}

// answer looks up what a decision depends on.
func (r *Reconciler) answer(ctx context.Context, s *step, ask strategies.Ask) (err error) {
	a, answers := s.app, &s.input.Answers
	switch {
	case ask.Settle:
		s.err = r.applyState(ctx, a, s.input.State, s.input.Now)
		answers.Settled = new(s.err == nil)
		s.input.Observed = r.observe(a, s.input.State)
	case ask.Adoptable != nil:
		answers.Adoptable, err = r.adoptable(ctx, ask.Adoptable)
	case ask.Endpoints != nil:
		answers.Endpoints, err = r.serving(ctx, ask.Endpoints)
	case ask.Accept != "":
		answers.Accepted, err = r.accepted(ctx, s, ask.Accept)
	}
	return err
}

// serving asks which versions proxies can know of, because their Service has an
// endpoint of them.
func (r *Reconciler) serving(ctx context.Context, needs []strategies.Need) (map[strategies.Need]bool, error) {
	serving := map[strategies.Need]bool{}
	for _, need := range needs {
		is, err := r.Observer.Serves(ctx, need.Service, need.PodHash)
		if err != nil {
			return nil, fmt.Errorf("look for the endpoints of Service %s/%s: %w", need.Service.Namespace, need.Service.Name, err)
		}
		serving[need] = is
	}
	return serving, nil
}

// observe is what the cluster shows of an app at a state.
func (r *Reconciler) observe(a *app, s rollout.State) rollout.Observed {
	var routes []rollout.Ref
	if a.head.Render != nil {
		routes = strategies.Watched(a.head.Render)
	} else if source := a.renders[s.Source]; source != nil {
		routes = strategies.Watched(source)
	}
	return r.Observer.Observe(a.Name, workloads(a, s), routes)
}

// accepted asks the cluster about a commit that the app is about to follow,
// before anything is recorded or applied. What the server refuses holds the app,
// like any other bad input.
func (r *Reconciler) accepted(ctx context.Context, s *step, commit string) (map[string]error, error) {
	objects, err := r.desired(ctx, s.app, s.decision.State, s.input.Now)
	if err != nil {
		return nil, err
	}
	source, err := r.renderAt(ctx, s.app, commit)
	if err != nil {
		return nil, err
	}
	later, err := strategies.Ahead(source)
	if err != nil {
		return nil, err
	}
	err = r.Applier.Check(ctx, s.app.Name, append(objects, later...))
	var refused *rollout.InvalidError
	if errors.As(err, &refused) {
		s.refused = true
		return map[string]error{commit: refused}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask the cluster about %s: %w", rollout.ShortID(commit), err)
	}
	return map[string]error{commit: nil}, nil
}

// headOf is the head with what is wrong with it or with the promotion file, if
// anything: nobody who may has signed it, or it cannot be read.
func (r *Reconciler) headOf(a *app, unapproved *rollout.InvalidError, unknown error) strategies.Head {
	head := a.head
	switch {
	case a.refused != nil:
		head.Err = a.refused
		if r.heads.Refused != nil {
			head.Commit = rollout.Commit{ID: r.heads.Refused.Commit}
		}
	case head.Err != nil:
	case a.promotionErr != nil:
		head.Err = a.promotionErr
	case unapproved != nil:
		head.Err = unapproved
	case unknown != nil:
		head.Err = unknown
	}
	if head.Err != nil {
		head.Render = nil
	}
	if head.Commit.ID == "" && r.main != nil {
		head.Commit = r.main.Commit()
	}
	return head
}

// adoptable asks which of the workloads that run already are what Git says.
func (r *Reconciler) adoptable(ctx context.Context, objects []rollout.Object) (map[rollout.Workload]bool, error) {
	same := map[rollout.Workload]bool{}
	for _, o := range objects {
		w := rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}
		is, err := r.Observer.SameTemplate(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("compare Deployment %s with Git: %w", w, err)
		}
		same[w] = is
	}
	return same, nil
}

// workloads are all Deployments that the app has in Git or had before.
func workloads(a *app, s rollout.State) []rollout.Workload {
	set := map[string]rollout.Workload{}
	if a.head.Render != nil {
		for w := range a.head.Render.Templates {
			set[w.String()] = w
		}
	}
	for _, ref := range s.Inventory {
		if w, is := rollout.WorkloadOf(ref); is {
			set[w.String()] = w
		}
	}
	all := make([]rollout.Workload, 0, len(set))
	for _, name := range sortedKeys(set) {
		all = append(all, set[name])
	}
	return all
}

// applyState makes the cluster hold what a state asks for, which is nothing
// before the app has followed a commit. In a retreat, an object that the cluster
// does not take keeps neither requests nor pods from going back.
func (r *Reconciler) applyState(ctx context.Context, a *app, s rollout.State, now time.Time) (err error) {
	if s.Source == "" {
		return nil
	}
	ctx, end := r.begin(ctx, PartApply, a.Name)
	defer func() { end(err) }()
	objects, err := r.desired(ctx, a, s, now)
	if err != nil {
		return err
	}
	err = r.Applier.Apply(ctx, a.Name, objects)
	if source, known := r.renderAt(ctx, a, s.Source); err == nil && known == nil {
		a.routing.held = strategies.Routing(s, source)
	}
	if gone := strategies.Leftover(s, objects); len(gone) > 0 {
		_, failed := r.Applier.Prune(ctx, a.Name, gone)
		err = errors.Join(err, failed)
	}
	if err == nil || s.Phase != rollout.Aborting {
		return err
	}
	routed := map[rollout.Ref]bool{}
	if source, failed := r.renderAt(ctx, a, s.Source); failed == nil {
		later, _ := strategies.Ahead(source) // what cannot be laid has been refused before
		for _, o := range later {
			routed[o.Ref()] = true
		}
	}
	for _, o := range objects {
		if o.Kind() != "Service" && o.Kind() != "Deployment" && !routed[o.Ref()] {
			continue
		}
		again := r.Applier.Apply(ctx, a.Name, []rollout.Object{o})
		if again != nil && again.Error() != err.Error() {
			err = errors.Join(err, again)
		}
		// Pods go only after requests. Somebody else's object sends none by our leave.
		var others *rollout.InvalidError
		if again != nil && !errors.As(again, &others) {
			break
		}
	}
	return err
}

// desired computes what a state asks for from the commits that it names and
// what the cluster shows now.
func (r *Reconciler) desired(ctx context.Context, a *app, s rollout.State, now time.Time) ([]rollout.Object, error) {
	source, err := r.renderAt(ctx, a, s.Source)
	if err != nil {
		return nil, fmt.Errorf("commit %s that the app is at: %w", rollout.ShortID(s.Source), err)
	}
	view := strategies.View{Now: now, Applied: a.routedSince(s, source, now), Source: source, Observed: r.observe(a, s)}
	if strategies.NeedsStable(s, view) {
		if view.Stable, err = r.renderAt(ctx, a, s.Stable.Commit); err != nil {
			return nil, fmt.Errorf("commit %s that is stable: %w", rollout.ShortID(s.Stable.Commit), err)
		}
	}
	return strategies.Desired(s, view)
}

// renderAt returns the app as of a commit. Those that the state names are kept.
func (r *Reconciler) renderAt(ctx context.Context, a *app, commit string) (*rollout.Render, error) {
	if commit == "" {
		return nil, errors.New("no commit is recorded")
	}
	if head := a.head.Render; head != nil && head.Commit.ID == commit {
		return head, nil
	}
	if known := a.renders[commit]; known != nil {
		return known, nil
	}
	snapshot, err := r.Repository.Snapshot(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("read it from Git (was the branch's history rewritten?): %w; commit its files again to go back to it, or promote another version fully", err)
	}
	built, err := r.render(ctx, snapshot, r.appAt(snapshot, a.App), snapshot.Commit())
	if err != nil {
		return nil, err
	}
	for known := range a.renders {
		if known != a.state.Source && (a.state.Stable == nil || known != a.state.Stable.Commit) {
			delete(a.renders, known)
		}
	}
	a.renders[commit] = built
	return built, nil
}

// applyAll applies the recorded states and sets when each app is due again.
func (r *Reconciler) applyAll(ctx context.Context, steps []*step, now time.Time) {
	forEach(r.Workers, steps, func(s *step) {
		a := s.app
		if s.recorded && !s.decision.Stale {
			s.err = errors.Join(s.err, r.applyState(ctx, a, a.state, now))
			a.dirty = true // the next transition may be due at once
		}
		if s.recorded || s.decision.Retreat {
			r.announce(ctx, s)
		}
		r.measure(s)
		a.due = s.decision.Requeue
		if s.err == nil && !s.refused && (!s.changed || s.recorded) {
			a.failures = 0
			return
		}
		a.failures++
		a.due = soonest(a.due, now.Add(backoff(a.failures)))
	})
}

// backoff is how long an app that failed waits for its next try: 1 s, 2 s, 4 s
// … 1 min. A change in Git or in the cluster does not wait for it.
func backoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 6), time.Minute)
}

func soonest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
