package reconciler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// memory is what a process remembers of one app between visits. All of it can be had again. It is
// written to by the visits of its app alone, of which there is one at a time.
type memory struct {
	runs    []rollout.AnalysisRun // the record's, with what was measured since
	health  strategies.Health     // since when the app is well, or is not
	routing routing               // what the cluster was made to route
	pending *strategies.Decision  // a retreat that was applied, and that Git has not recorded yet
	on      rollout.State         // the record that pending is a retreat from
	told    bool                  // about pending
	failing time.Time             // since when each visit has ended with an error; zero: the last one did not
	kept    error                 // why objects that left Git could not be deleted the last time
}

// visit is what is done for one app at one time.
type visit struct {
	app      *appView
	memory   *memory
	view     *view
	before   rollout.State // on record when the app was looked at
	input    strategies.Input
	decision strategies.Decision
	changed  bool         // the state is to be recorded
	recorded bool         // and has been
	leaves   bool         // the record itself is to go: nothing of the app is left
	inherits *inheritance // nil, or the record of another name that the app goes on with
	now      time.Time
	commit   string // that recorded it
	after    rollout.State
	refused  bool  // the cluster says no: ask again later
	err      error // what went wrong with this app
	unpushed error // why the Git server does not take its transition
}

// visit looks at an app, brings the cluster to what its record asks for, and decides. It is nil for an app that is
// no more, or whose record cannot be read. A retreat is applied here, before anything is recorded.
func (r *Reconciler) visit(ctx context.Context, name string, now time.Time) (s *visit) {
	v := r.in.current()
	if v == nil {
		return nil
	}
	a := v.apps[name]
	if a == nil {
		r.forget(name, v)
		return nil
	}
	e, known := r.record.of(name)
	if e.err != nil || !known || a.unlisted != nil && e.state.App == "" {
		return nil
	}
	if app := e.state.Named(a.App); app != a.App {
		named := *a
		named.App = app
		a = &named
	}
	r.stats.decided.Add(1)
	s = &visit{app: a, memory: r.memoryOf(name), view: v, before: e.state, after: e.state, now: now}
	ctx, end := r.begin(ctx, report.PartDecide, name)
	defer func() { end(s.err) }()
	defer r.rescue(s)
	r.decide(ctx, s, now)
	return s
}

// rescue holds an app whose visit has panicked: it is that app's trouble alone.
func (r *Reconciler) rescue(s *visit) {
	problem := recover()
	if problem == nil {
		return
	}
	r.complain.ofPanic(s.app.Name, problem, debug.Stack())
	err := panicked("app "+s.app.Name, problem)
	state := s.before
	state.App, state.Path = s.app.Name, s.app.Path
	state.Phase = cmp.Or(state.Phase, rollout.Pending)
	if h := state.Held; h == nil || h.Reason != "Panicked" || h.Message != err.Error() {
		state.Held = &rollout.Held{Reason: "Panicked", Message: err.Error(), Commit: s.view.main()}
	}
	s.err = err
	s.decision = strategies.Decision{State: state, Subject: s.app.Name + " held: " + err.Error(), Waiting: err.Error()}
	s.changed = !state.Equal(&s.before)
}

// decide asks the strategies what comes next, answers what they ask, and prepares what is to be recorded.
func (r *Reconciler) decide(ctx context.Context, s *visit, now time.Time) {
	if r.heirs.await(s) {
		return
	}
	r.heirs.inherit(s)
	unknown, err := r.gather(ctx, s, now)
	if s.changed = s.inherits != nil; s.changed {
		return
	}
	if err != nil {
		s.err = err
		s.decision = strategies.Decision{State: s.before}
		return
	}
	s.decision = strategies.Decide(s.input)
	for s.decision.Ask != nil {
		if err := r.answer(ctx, s, *s.decision.Ask); err != nil {
			s.err = errors.Join(s.err, err)
			return
		}
		s.decision = strategies.Decide(s.input)
	}
	next := &s.decision.State
	if held := s.before.Held; s.refused && held != nil && next.Held != nil && held.Reason == next.Held.Reason &&
		held.Commit == next.Held.Commit && rollout.SameText(held.Message, next.Held.Message) {
		next.Held = held // the server's words differ at each try
	}
	if s.decision.Stale {
		s.changed = !next.Equal(&s.before)
		return
	}
	if (s.follows() || s.isHeldAtHead()) && !r.renders.isTraced(s.app.Name, s.before.Source, s.view.main()) {
		unknown = errors.Join(unknown, fmt.Errorf("what changed since commit %s %w",
			rollout.ShortID(s.before.Source), source.ErrNotReady))
	}
	if unknown != nil && !s.decision.Retreat && !s.comesToRest() { // nothing but a way back happens
		s.err = errors.Join(s.err, unknown)
		s.decision = strategies.Decision{State: s.before, Requeue: s.decision.Requeue, Measure: strategies.Due(s.input)}
		return
	}
	switch {
	case s.decision.Retreat:
		s.err = errors.Join(s.err, r.apply(ctx, s, *next, now))
	case s.input.Answers.IsHealed():
		r.prune(ctx, s)
	}
	r.list(ctx, s)
	s.changed = s.leaves || !next.Equal(&s.before)
	if s.changed && s.decision.Subject == "" {
		s.decision.Subject = s.app.Name + " lists its objects again"
	}
}

// comesToRest reports whether a decision ends a retreat that is seen to have ended, and begins nothing.
func (s *visit) comesToRest() bool {
	return s.input.State.Phase == rollout.Aborting && s.decision.State.Release == nil && s.input.Observed.Unseen == ""
}

// list notes in the next state which objects it asks for.
func (k *keeper) list(ctx context.Context, s *visit) {
	next := &s.decision.State
	if next.Source == "" || s.app.unlisted != nil {
		return
	}
	if objects, err := k.desired(ctx, s, *next, s.input.Now); err == nil {
		next.Inventory, next.Generated = strategies.Inventory(*next, objects), strategies.Generated(*next, objects)
	}
}

// gather puts together what the decision depends on. Unknown is why nobody can say what Git asks for now: then
// nothing but a retreat happens. The error is that what the app is at is still being read: nobody can
// say then what a retreat must wait for, such as proxies.
func (r *Reconciler) gather(ctx context.Context, s *visit, now time.Time) (unknown, err error) {
	m, a, state := s.memory, s.app, s.before
	if m.pending != nil && !m.on.Equal(&s.before) {
		m.pending = nil // Git says something else since
	}
	switch {
	case m.pending != nil:
		state = m.pending.State
	case s.inherits != nil:
		state = s.inherits.state
	}
	if a.unread { // where its objects are
		return nil, fmt.Errorf("commit %s that the app is at %w", rollout.ShortID(state.Source), source.ErrNotReady)
	}
	head, ready := r.headAt(s)
	if !ready {
		unknown = fmt.Errorf("commit %s %w", rollout.ShortID(s.view.main()), source.ErrNotReady)
	}
	promotion, refused, err := r.approvals.of(s.view, a, head.Render, state)
	unknown = errors.Join(unknown, err)
	if s.view.behind != nil {
		unknown = errors.Join(unknown, fmt.Errorf("nothing advances: %w", s.view.behind))
	}
	s.input, err = r.gatherer(r.renders).Gather(ctx, source.App{
		App: a.App, Head: s.headOf(head, refused, unknown), Promotion: promotion, Calendar: a.calendar, State: state,
	}, now)
	if err != nil {
		return nil, err
	}
	if promotion != nil { // not before the commit is here that a retreat needs
		s.input.Promotion, err = r.renders.signed(a, s.input)
		unknown = errors.Join(unknown, err)
	}
	if why := s.input.Observed.Unseen; why != "" {
		unknown = errors.Join(unknown, fmt.Errorf("nothing advances while the cluster is not seen: %s", why))
	}
	s.input.Pending, s.input.Ends, s.input.Handed = m.pending, r.Ends, r.out.handed(a.Name, s.before.Serial)
	m.health = m.health.Seen(s.input)
	s.input.Health = m.health
	m.routing.looked(now)
	if a.unlisted == nil || state.Phase == rollout.Aborting { // else nothing is applied that proxies could learn of
		s.input.Applied = m.routing.since(state, s.input.Source, now)
	}
	s.takeMeasurements(r.Analyzer)
	return unknown, nil
}

// headAt is what the users' branch asks for. It is not ready while it is being rendered.
func (r *Reconciler) headAt(s *visit) (head strategies.Head, ready bool) {
	switch a := s.app; {
	case a.head != nil:
		return *a.head, true
	case a.unlisted != nil:
		return strategies.Head{Commit: a.left, Err: a.unlisted}, true
	case a.unread:
		return strategies.Head{}, false
	default:
		if head, ready = r.renders.head(s.view, a.App); !ready {
			return head, ready
		}
		return r.in.settled(s.view, a.Name, head)
	}
}

// headOf is the head with what is wrong with it or with the promotion file, if anything: nobody who may has
// signed it, or it cannot be read. That the head is known not to be the newest does not make it
// unreadable: what it takes back is taken back.
func (s *visit) headOf(
	head strategies.Head, unapproved *rollout.InvalidError, unknown error,
) strategies.Head {
	a := s.app
	switch {
	case a.refused != nil:
		head.Err = a.refused
		if s.view.refused != nil {
			head.Commit = rollout.Commit{ID: s.view.refused.Commit}
		}
	case head.Err != nil:
	case a.promotion.Err != nil:
		head.Err, head.Commit = a.promotion.Err, a.promotion.By
	case unapproved != nil:
		head.Err, head.Commit = unapproved, a.promotion.By
	case head.Render == nil && unknown != nil:
		head.Err = unknown
	}
	if head.Err != nil {
		head.Render = nil
	}
	return head
}

// answer looks up what a decision depends on.
func (r *Reconciler) answer(ctx context.Context, s *visit, ask strategies.Ask) (err error) {
	answers := &s.input.Answers
	switch {
	case ask.Heal:
		s.err = r.apply(ctx, s, s.input.State, s.input.Now)
		if !errors.Is(s.err, source.ErrNotReady) {
			s.memory.health = s.memory.health.Applied(errors.Join(s.err, s.memory.kept), s.input.Now)
			s.input.Health = s.memory.health
		}
		r.gatherer(r.renders).Look(&s.input)
		if strategies.OrdersNodes(s.input) {
			var nodes error
			s.input.Observed.Nodes, nodes = r.Nodes(ctx)
			s.err = errors.Join(s.err, nodes)
		}
		for _, e := range strategies.Evictions(s.input) {
			s.err = errors.Join(s.err, r.Applier.Evict(ctx, e.Namespace, e.Pod))
		}
		answers.Healed = new(s.err == nil)
	case ask.Foreign != nil:
		var foreign []rollout.Foreign
		var refused *rollout.InvalidError
		switch foreign, err = r.Observer.Foreign(ctx, s.app.Name, ask.Foreign, s.input.Now); {
		case err == nil:
			answers.Foreign, s.refused = &foreign, len(foreign) > 0 // they may let go
		case errors.As(err, &refused): // such as a kind that may not even be looked at
			s.input.Head.Render, s.input.Head.Err, s.refused, err = nil, refused, true, nil
		}
	case ask.Adoptable != nil:
		answers.Adoptable, err = adoptable(ctx, r.Observer, ask.Adoptable)
	case ask.Endpoints != nil:
		answers.Endpoints, err = serving(ctx, r.Observer, ask.Endpoints)
	case ask.Jobs != nil:
		s.askJobs(ctx, &r.Options, &r.complain, ask.Jobs)
	case ask.Accept != "":
		answers.Accepted, err = r.accepted(ctx, s, ask.Accept)
	}
	return err
}

// adoptable asks which of the workloads that run already are what Git says.
func adoptable(ctx context.Context, in Observer, objects []rollout.Object) (map[rollout.Workload]bool, error) {
	same := map[rollout.Workload]bool{}
	for _, o := range objects {
		w, _ := rollout.WorkloadOf(o.Ref())
		is, err := in.SameTemplate(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("compare %s %s with Git: %w", o.Kind(), w, err)
		}
		same[w] = is
	}
	return same, nil
}

// serving asks which versions proxies can know of, because their Service has an endpoint of them.
func serving(ctx context.Context, in Observer, needs []strategies.Need) (map[strategies.Need]bool, error) {
	serving := map[strategies.Need]bool{}
	for _, need := range needs {
		is, err := in.Serves(ctx, need.Service, need.PodHash)
		if err != nil {
			return nil, fmt.Errorf("look for the endpoints of Service %s/%s: %w", need.Service.Namespace, need.Service.Name, err)
		}
		serving[need] = is
	}
	return serving, nil
}

// accepted asks the cluster about a commit that the app is about to follow, before anything is recorded or
// applied. What the server refuses holds the app, like any other bad input.
func (k *keeper) accepted(ctx context.Context, s *visit, commit string) (map[string]error, error) {
	objects, err := k.desired(ctx, s, s.decision.State, s.input.Now)
	if err != nil {
		return nil, err
	}
	rendered, err := k.renders.render(ctx, s.app.App, commit)
	if err != nil {
		return nil, err
	}
	ahead, err := strategies.Ahead(rendered, objects)
	if err != nil {
		return nil, err
	}
	if err = k.Applier.Check(ctx, s.app.Name, append(objects, ahead...)); err == nil {
		err = s.checkJobs(ctx, k.Jobs, rendered)
	}
	known := map[string]error{}
	maps.Copy(known, s.input.Answers.Accepted)
	var refused *rollout.InvalidError
	switch {
	case errors.As(err, &refused):
		s.refused = true
		known[commit] = refused
	case err != nil:
		return nil, fmt.Errorf("ask the cluster about %s: %w", rollout.ShortID(commit), err)
	default:
		known[commit] = nil
	}
	return known, nil
}

// takeMeasurements adds to what is known of an app's analyses what has been measured since the last visit. Only what
// a restart must not forget becomes part of the state, with the decision that follows.
func (s *visit) takeMeasurements(by Analyzer) {
	if by == nil {
		return
	}
	s.input.Runs = s.memory.runs
	for _, got := range by.Measured(s.app.Name) {
		s.input.Runs = strategies.Record(s.input, got)
	}
	s.memory.runs = s.input.Runs
}

// measure begins what is due of the analyses that Git has on record, and ends what is under way for others. A run that
// is not recorded yet may start another time.
func (r *Reconciler) measure(s *visit) {
	if r.Analyzer == nil || s.decision.Stale {
		return
	}
	due := slices.DeleteFunc(slices.Clone(s.decision.Measure), func(m strategies.Measure) bool {
		return r.collects || !slices.ContainsFunc(s.after.Analyses, func(run rollout.AnalysisRun) bool {
			return run.Same(rollout.AnalysisRun{Name: m.Run, Release: m.Release, Started: m.Started})
		})
	})
	r.Analyzer.Measure(s.app.App, strategies.Going(s.decision.State), due)
}
