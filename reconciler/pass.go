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
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

// appCache holds values that a new process computes again. Only the app's passes write them, one at a time.
type appCache struct {
	runs    []rollout.AnalysisRun // recorded runs with later measurements
	health  strategies.Health
	routing routing
	pending *strategies.Decision // applied but unrecorded rollback, or nil
	on      *rollout.State       // pending was decided from this record; the pointer saves memory
	told    bool
	failing time.Time // start of the failed passes, or zero
	kept    error     // error of the last prune
	fought  error     // another writer changed the release's objects
	refused error     // first refusal to set pods' metadata by role
}

type pass struct {
	transition
	cache *appCache
}

// pass applies an app's recorded state, observes the app and decides. It returns nil for an unreadable record, or a
// removed app without a record.
func (r *Reconciler) pass(ctx context.Context, name string, now time.Time) (s *pass) {
	v := r.in.current()
	if v == nil {
		return nil
	}
	a := v.apps[name]
	if a == nil {
		r.forget(name, v)
		return nil
	}
	e, known := r.states.of(name)
	if e.err != nil || !known || a.removed != nil && e.state.App == "" {
		r.cohorts.forget(name, false) // another app compares the answers
		r.peers.forget(name)
		return nil
	}
	r.stats.decided.Add(1)
	s = &pass{transition: transition{app: a.named(e.state), view: v, before: e.state}, cache: r.cacheOf(name)}
	ctx, end := r.begin(ctx, report.PartDecide, name)
	defer func() { end(s.err) }()
	defer r.rescue(&s.transition)
	r.decide(ctx, s, now)
	if r.Only == nil { // otherwise no record is written
		s.setVersion(v.settings(r.Cluster).APIVersion, r.states.draft().version)
	}
	r.setRoles(ctx, s)
	return s
}

// setVersion sets the record's version. If the configuration returns to the alpha version, it also rewrites an
// unchanged record for an older program. It discards a decided state that awaits an answer of the cluster.
func (s *pass) setVersion(version, ofCluster string) {
	isNewer := s.before.APIVersion == rollout.APIVersion || ofCluster == rollout.APIVersion && s.before.App != ""
	if isNewer && version == rollout.AlphaVersion && !s.changed && !s.decision.Rollback && !s.decision.Stale {
		s.changed, s.decision.State = true, s.before
		s.decision.Subject = s.app.Name + " is recorded in " + version + " again"
	}
	s.decision.State.APIVersion = cmp.Or(version, s.decision.State.APIVersion)
}

// A pass patches at most maxRoles pods. The changes of these pods start another pass.
const maxRoles, maxRefusals, rolesWithin = 100, 5, 2 * time.Second

// setRoles sets pods' labels and annotations by role, in passes without a new transition. Errors stop no transition.
func (r *Reconciler) setRoles(ctx context.Context, s *pass) {
	waits := s.decision.Subject != "" && s.input.Pending == nil
	if r.Annotations == nil || r.Only != nil || s.app.removed != nil || s.decision.Stale || waits {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rolesWithin)
	defer cancel()
	var first error
	refused, set := 0, 0
	all := strategies.PodRoles(s.input)
	for _, p := range all[:min(len(all), maxRoles)] {
		if err := r.Annotations.SetRole(ctx, p.Namespace, p.Pod, p.Metadata); err == nil {
			set++
		} else if first = cmp.Or(first, err); ctx.Err() != nil && set > 0 {
			return
		} else if refused++; refused == maxRefusals {
			break
		}
	}
	if first == nil || s.cache.refused == nil && errors.Is(first, rollout.ErrUnlabelled) {
		s.cache.refused = first // later refusals name other pods
	}
	s.err = errors.Join(s.err, first)
}

func (r *Reconciler) rescue(s *transition) {
	problem := recover()
	if problem == nil {
		return
	}
	r.errorLog.ofPanic(s.app.Name, problem, debug.Stack())
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

func (r *Reconciler) decide(ctx context.Context, s *pass, now time.Time) {
	a, err := r.settled(s.view, s.app, s.before)
	if err != nil {
		s.err, s.decision = err, strategies.Decision{State: s.before, Requeue: now.Add(time.Second)}
		return
	}
	s.app, s.renamedFrom = a, r.formerName(s.view, a, s.before)
	if former := s.renamedFrom; former != nil {
		s.app = a.named(former.state) // older commits have the old name
		s.decision = strategies.Decision{State: former.state, Subject: fmt.Sprintf(
			"%s is the new name of %s, and continues the old name's record", a.Name, former.from)}
	}
	unknown, err := r.gather(ctx, s, now)
	if s.changed = s.renamedFrom != nil; s.changed {
		return
	}
	if err != nil {
		s.err, s.decision = err, strategies.Decision{State: s.before}
		return
	}
	if s.decision = strategies.Decide(s.input); r.Only != nil && !s.goesBack() {
		s.decision = strategies.Decision{State: s.before, Waiting: s.decision.Waiting}
		return
	}
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
		next.Held = held // the server words one refusal differently each time
	}
	if s.decision.Stale {
		s.changed = !next.Equal(&s.before)
		return
	}
	unknown = errors.Join(unknown, r.withheld(s))
	isComplete := s.input.State.Phase == rollout.Aborting && next.Release == nil && s.input.Observed.Unseen == ""
	if unknown != nil && !s.decision.Rollback && !isComplete { // only a rollback may begin or end
		s.err = errors.Join(s.err, unknown)
		s.decision = strategies.Decision{State: s.before, Requeue: s.decision.Requeue, Measure: strategies.Due(s.input)}
		return
	}
	if s.decision.Rollback {
		s.err = errors.Join(s.err, r.apply(ctx, s.transition, s.cache, *next, now), r.evict(ctx, s))
	}
	r.list(ctx, s)
	s.changed = s.leaves || !next.Equal(&s.before)
	if s.changed && s.decision.Subject == "" {
		s.decision.Subject = s.app.Name + " lists its objects again"
	}
}

// goesBack reports whether a decision begins or continues a rollback. A stale decision counts, because it applies
// nothing.
func (s *pass) goesBack() bool {
	return s.decision.Rollback || s.decision.Stale || s.before.Phase == rollout.Aborting
}

func (r *Reconciler) withheld(s *pass) (why error) {
	was, next, head := &s.before, &s.decision.State, s.input.Head
	isNext := head.Render != nil && next.Source == head.Render.Commit.ID && next.Source != was.Source
	isHeld := next.Held != nil && next.Held != was.Held && next.Held.Commit == head.Commit.ID // for the head's error
	project, _ := s.view.branch.Policy.ProjectOf(s.app.Name)
	isNew := was.Source == "" && project != nil && len(project.Rollouts.ByAuthor) > 0
	needsAuthor := isNew || was.Source != "" && (isHeld || isNext && !s.decision.Rollback)
	if needsAuthor && !r.renders.isBlamed(s.app.Name, was.Source, s.view.main()) {
		why = fmt.Errorf("the history since commit %s %w", rollout.ShortID(was.Source), source.ErrNotReady)
	}
	if s.view.behind != nil && !s.stays() {
		why = errors.Join(why, fmt.Errorf("nothing advances: %w", s.view.behind))
	}
	return why
}

// stays reports whether a decision keeps the release, its steps and the app's commit, and starts no hook.
func (s *pass) stays() bool {
	next, was := s.decision.State, s.before
	begins := slices.ContainsFunc(next.Hooks, func(run rollout.HookRun) bool {
		isIt := func(h rollout.HookRun) bool { return h.Job == run.Job }
		return run.Phase == rollout.HookRunning && !slices.ContainsFunc(was.Hooks, isIt)
	})
	was.Phase, was.Reason, was.Held, was.Rejected = next.Phase, next.Reason, next.Held, next.Rejected
	was.Replicas, was.Hooks, was.Spent, was.Ignored = next.Replicas, next.Hooks, next.Spent, next.Ignored
	return s.decision.Subject != "" && !begins && was.Equal(&next)
}

// list records the objects of the decided state. If the apply succeeded and there is no transition, it first prunes the
// undesired objects.
func (r *Reconciler) list(ctx context.Context, s *pass) {
	next, objects := &s.decision.State, []rollout.Object(nil)
	lists := next.Source != "" && s.app.removed == nil
	if lists {
		var err error
		if objects, _, err = r.desired(ctx, new(s.transition), s.cache, *next, s.input.Now); err != nil {
			return // apply reports the error
		}
	}
	if !s.decision.Rollback && s.input.Answers.IsHealed() && s.decision.Subject == "" {
		s.decision, s.leaves, s.cache.kept = r.prune(ctx, s.transition, objects)
		s.err = errors.Join(s.err, s.cache.kept)
	}
	if lists {
		next.Inventory, next.Generated = strategies.Inventory(*next, objects), strategies.Generated(*next, objects)
	}
}

// gather sets the pass's input. If "unknown" is set, the head, an approval or the cluster is unknown, so only a
// rollback is allowed. If err is set, the recorded commit is not read, and no rollback is possible.
func (r *Reconciler) gather(ctx context.Context, s *pass, now time.Time) (unknown, err error) {
	m, a, state := s.cache, s.app, s.before
	if m.pending != nil && !m.on.Equal(&s.before) {
		m.pending = nil // Git's record has changed
	}
	if m.pending != nil {
		state = m.pending.State
	} else if s.renamedFrom != nil {
		state = s.renamedFrom.state
	}
	if a.unread {
		return nil, fmt.Errorf("the app's commit %s %w", rollout.ShortID(state.Source), source.ErrNotReady)
	}
	app, unknown := r.prepare(s.view, a, state, now)
	if s.input, err = r.gatherer(r.renders).Gather(ctx, app, now); err != nil {
		return nil, err
	}
	if app.Promotion != nil { // after Gather, which reads the commit for a rollback
		s.input.Promotion, err = r.blame.withAuthor(a, s.input)
		unknown = errors.Join(unknown, err)
	}
	if why := s.input.Observed.Unseen; why != "" {
		unknown = errors.Join(unknown, fmt.Errorf("nothing advances while the cluster's state is unknown: %s", why))
	}
	s.input.Pending, s.input.Ends, s.input.Handed = m.pending, r.Ends, r.out.queued(a.Name, s.before.Serial)
	m.health = m.health.Seen(s.input)
	s.input.Health = m.health
	m.routing.looked(now)
	if a.removed == nil || state.Phase == rollout.Aborting { // other removed apps get no routing
		s.input.Applied = m.routing.since(state, s.input.Source, now)
	}
	if r.Analyzer != nil {
		s.input.Runs = m.runs
		for _, got := range r.Analyzer.Measured(a.Name) {
			s.input.Runs = strategies.Record(s.input, got)
		}
		m.runs = s.input.Runs // Git records only measurements that a restart needs
	}
	return unknown, nil
}

func (r *Reconciler) answer(ctx context.Context, s *pass, ask strategies.Ask) (err error) {
	answers := &s.input.Answers
	switch {
	case ask.Heal:
		s.err = r.apply(ctx, s.transition, s.cache, s.input.State, s.input.Now)
		r.gatherer(r.renders).Look(&s.input)
		if strategies.OrdersNodes(s.input) {
			var nodes error
			s.input.Observed.Nodes, nodes = r.Nodes(ctx)
			s.err = errors.Join(s.err, nodes)
		}
		s.err = errors.Join(s.err, r.evict(ctx, s))
		if !errors.Is(s.err, source.ErrNotReady) {
			m := s.cache
			m.health = m.health.Applied(errors.Join(m.fought, m.refused), errors.Join(s.err, m.kept), s.input.Now)
			s.input.Health = s.cache.health
		}
		answers.Healed = new(s.err == nil) // even if Unannotate fails below
		if r.Annotations != nil {
			for _, g := range strategies.FinishedRequests(s.input) {
				s.err = errors.Join(s.err, r.Annotations.Unannotate(ctx, g.Workload.Ref(), rollout.AnnotationBreakGlass, g.Value))
			}
		}
	case ask.Foreign != nil:
		var foreign []rollout.Foreign
		var refused *rollout.InvalidError
		switch foreign, err = r.Observer.OtherOwners(ctx, s.app.Name, ask.Foreign, s.input.Now); {
		case err == nil:
			answers.Foreign, s.refused = &foreign, len(foreign) > 0 // owners may give up objects later
		case errors.As(err, &refused): // such as an unreadable kind
			s.input.Head.Render, s.input.Head.Err, s.refused, err = nil, refused, true, nil
		}
	case ask.Adoptable != nil:
		answers.Adoptable, err = adoptable(ctx, r.Observer, ask.Adoptable)
	case ask.Endpoints != nil:
		answers.Endpoints, err = serving(ctx, r.Observer, ask.Endpoints)
	case ask.Jobs != nil:
		answers.Jobs = r.askJobs(ctx, s.app, answers.Jobs, ask.Jobs)
	case ask.Accept != "":
		answers.Accepted, err = r.accepted(ctx, s, ask.Accept)
	}
	return err
}

// evict deletes pods that controllers do not replace. A rollback's first pass deletes no pod, because the cluster still
// has the step's objects. After a failed apply, a restart deletes no pod, because replacements may not start.
func (r *Reconciler) evict(ctx context.Context, s *pass) (err error) {
	isAborted := s.decision.Rollback || strategies.RequestedAbort(s.input) != ""
	begins := isAborted && s.input.State.Phase != rollout.Aborting
	if begins || s.input.State.Release == nil && (s.err != nil || s.app.removed != nil) {
		return nil
	}
	for _, e := range strategies.Evictions(s.input) {
		err = errors.Join(err, r.Applier.Evict(ctx, e.Namespace, e.Pod))
	}
	return err
}

func adoptable(ctx context.Context, in Observer, objects []rollout.Object) (same map[rollout.Workload]bool, err error) {
	same = map[rollout.Workload]bool{}
	for _, o := range objects {
		w, _ := rollout.WorkloadOf(o.Ref())
		if same[w], err = in.SameTemplate(ctx, o); err != nil {
			return nil, fmt.Errorf("compare %s %s with Git: %w", o.Kind(), w, err)
		}
	}
	return same, nil
}

func serving(ctx context.Context, in Observer, needs []strategies.Need) (all map[strategies.Need]bool, err error) {
	all = map[strategies.Need]bool{}
	for _, need := range needs {
		if all[need], err = in.Serves(ctx, need.Service, need.PodHash); err != nil {
			return nil, fmt.Errorf("look for the endpoints of Service %s/%s: %w", need.Service.Namespace, need.Service.Name, err)
		}
	}
	return all, nil
}

// accepted sends a dry run of a commit's objects before the commit is recorded. A refusal holds the app.
func (k *applier) accepted(ctx context.Context, s *pass, commit string) (map[string]error, error) {
	objects, rendered, err := k.desired(ctx, new(s.transition), s.cache, s.decision.State, s.input.Now)
	if err != nil {
		return nil, err
	}
	ahead, err := strategies.Ahead(rendered, objects)
	if err != nil {
		return nil, err
	}
	err = k.Applier.Check(ctx, s.app.Name, append(objects, ahead...))
	for _, job := range hook.Jobs(s.app.Name, rendered.Objects, rendered.Release()) {
		if err == nil && k.Jobs != nil {
			err = k.Jobs.CheckJob(ctx, job) // no release begins with a bad Job
		}
	}
	known := map[string]error{commit: nil}
	maps.Copy(known, s.input.Answers.Accepted)
	if refused, is := errors.AsType[*rollout.InvalidError](err); is {
		known[commit], s.refused = refused, true
	} else if err != nil {
		return nil, fmt.Errorf("ask the cluster about %s: %w", rollout.ShortID(commit), err)
	}
	return known, nil
}

// measure starts due measurements of recorded analyses. Unrecorded analyses wait, because their start time may change.
func (r *Reconciler) measure(s transition, record rollout.State) {
	if r.Analyzer == nil || s.decision.Stale {
		return
	}
	due := slices.DeleteFunc(slices.Clone(s.decision.Measure), func(m strategies.Measure) bool {
		return r.collects || !slices.ContainsFunc(record.Analyses, func(run rollout.AnalysisRun) bool {
			return run.Same(rollout.AnalysisRun{Name: m.Run, Release: m.Release, Started: m.Started})
		})
	})
	r.Analyzer.Measure(s.app.App, strategies.Going(s.decision.State), due)
}
