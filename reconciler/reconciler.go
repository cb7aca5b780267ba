package reconciler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// Options configures a Reconciler.
type Options struct {
	Cluster string         // also the name of the folder under .gitrollout/
	UID     string         // of the cluster; state branches with other UIDs are refused
	Source  rollout.Source // users' branch, as cluster.yaml names it

	Namespace  string   // no app may write there; default rollout.OwnNamespace
	Namespaces []string // in scope; default all
	Only       []string // if set, only roll back these apps, and record nothing

	As func(ctx context.Context, app rollout.App) context.Context

	Repository Repository
	Past       Past
	Renderer   Renderer
	Observer   Observer
	Applier    Applier
	Jobs       Jobs // nil if no Job can be created
	// Annotations may be nil.
	Annotations Annotations
	Believe     func(Snapshot) error                      // why a commit of the state branch is untrusted; nil trusts all
	Branches    Branches                                  // of other clusters; nil reads none
	BelievePeer func(cluster string, tree Snapshot) error // Believe for another cluster's state branch
	Approve     Approver                                  // nil approves all promotion files
	// Nodes returns the labels of nodes by name.
	Nodes func(ctx context.Context) (map[string]map[string]string, error)
	// Know is source.Gatherer's Know.
	Know func(kinds []rollout.Partitioned)

	// Policy returns the policy at a fetch's heads. An unchanged policy has the same pointer. After an error, the last
	// policy applies, and no app advances. Only one goroutine calls Policy. May be nil.
	Policy func(rollout.Heads) (*rollout.Policy, error)

	Analyzer   Analyzer            // nil if analyses stay pending
	Tell       func(report.Report) // several goroutines call Tell, which must not block; may be nil
	ShowsForge bool                // Tell publishes to the forge
	Trace      report.Tracer       // may be nil
	Ends       bool                // the process ends after RunOnce, so each pass records all measurements
	Log        *slog.Logger

	Writer    string // host or pod, for cluster.yaml
	Exclusive bool   // stand down for another writer, as in a leader election
	Workers   int    // apps at once; default 16

	// Spread lengthens intervals, so that processes do not fetch together. May be nil.
	Spread func(time.Duration) time.Duration
}

// Reconciler is the control loop of one cluster.
type Reconciler struct {
	Options
	*applier
	in       *poller
	out      *committer
	queue    *appQueue
	collects bool          // measurements do not start, because no later pass records them
	asked    chan bool     // requests for a fetch; true is urgent
	wanted   chan struct{} // requests for a commit, history or approval
	stats    counters
	errorLog errorLog
	watchdog watchdog

	mu     sync.Mutex
	caches map[string]*appCache
}

type counters struct{ passes, commits, decided, lost atomic.Int64 }

// New returns a Reconciler without state.
func New(o Options) *Reconciler {
	o.Workers = cmp.Or(o.Workers, 16)
	if o.Tell == nil {
		o.Tell = func(report.Report) {}
	}
	if o.As == nil {
		o.As = func(ctx context.Context, _ rollout.App) context.Context { return ctx }
	}
	if o.Spread == nil {
		o.Spread = func(d time.Duration) time.Duration { return d }
	}
	r := &Reconciler{
		Options: o, caches: map[string]*appCache{}, queue: newAppQueue(),
		asked: make(chan bool, 1), wanted: make(chan struct{}, 1), errorLog: errorLog{log: o.Log},
	}
	current := func() *gitView { return r.in.current() }
	reader := source.NewReader(o.Cluster, o.Renderer).In(cmp.Or(o.Namespace, rollout.OwnNamespace), o.Namespaces)
	states := &stateStore{
		Options: &r.Options, apps: map[string]appState{}, failed: map[string]bool{}, proposals: map[string]string{},
	}
	queue := &renderQueue{isInFlight: states.isInFlight, known: map[what]bool{}, busy: map[string]bool{}}
	queue.news = sync.NewCond(&queue.mu)
	blame := &blame{reader: reader, wanted: r.want, unblamed: map[string]string{}, authors: map[string]authorship{}}
	fetcher := &fetcher{
		Options: &r.Options, queue: queue, touch: r.touch, wanted: r.want,
		wants: map[string][]job{}, ours: map[string]bool{}, gone: map[string]string{},
	}
	renders := &renderCache{
		Options: &r.Options, reader: reader, states: states, blame: blame, log: &r.errorLog,
		fetcher: fetcher, queue: queue, touch: r.touch,
		heads: map[string]*headRender{}, at: map[string][]built{}, named: map[rollout.Ref][]string{},
		failed: map[string]bool{},
	}
	cohorts := &cohorts{
		renders: renders, states: states, fetcher: fetcher, touch: r.touch, waiting: map[string]*cohort.Entry{},
	}
	renders.wake = cohorts.wake
	peers := &peers{
		Options: &r.Options, current: current, touch: r.touch, wanted: make(chan struct{}, 1),
		clusters: map[string]*peer{}, asked: map[string][]peerRecord{},
	}
	stages := newStages(&r.Options, reader, renders, fetcher, peers.of)
	renders.inputs = stages.make
	known := preparer{
		states, renders, fetcher, blame, newApprovals(o.Approve, r.touch, r.want), cohorts, stages, peers,
	}
	r.applier = &applier{Options: &r.Options, preparer: known, current: current}
	r.out = &committer{
		Options: &r.Options, outbox: newOutbox(states, r.touch), preparer: known,
		current: current, poll: r.Poll, stats: &r.stats, stale: map[string]stale{}, told: map[string]string{},
	}
	cohorts.queued = r.out.queued
	r.in = &poller{Options: &r.Options, preparer: known, reader: reader, touch: r.touch, looked: r.out.looked}
	return r
}

// Stats returns counters.
func (r *Reconciler) Stats() report.Stats {
	return report.Stats{
		Passes: int(r.stats.passes.Load()), Commits: int(r.stats.commits.Load()),
		Decided: int(r.stats.decided.Load()), Lost: int(r.stats.lost.Load()),
	}
}

// ErrDeposed is an exclusive process's error after another writer took over.
var ErrDeposed = errors.New("another gitrollout has taken over")

func (r *Reconciler) reconcile(ctx context.Context, app string, clock func() time.Time) (decided bool, err error) {
	if !r.isOurs(app) {
		return false, nil
	}
	ctx, end := r.begin(ctx, report.PartPass, app)
	defer func() { end(err) }()
	ctx = r.As(ctx, r.App(app))
	if done, exists := r.out.result(app); exists {
		_ = r.applyRecorded(ctx, done, clock()) // the pass below applies again
	}
	now := clock()
	s := r.pass(ctx, app, now)
	if s == nil {
		return false, nil
	}
	t := s.transition
	if !t.changed {
		r.out.cancel(app)
		r.requeue(recorded{transition: t, after: t.before}, now)
		return true, t.err
	}
	if t.decision.Rollback {
		t.applied = &s.decision
		s.cache.pending, s.cache.on = t.applied, new(t.before)
	}
	r.measure(t, t.before)
	r.queue.at(app, rollout.Soonest(t.decision.Requeue, now.Add(whileWaiting)))
	r.out.enqueue(t)
	return true, t.err
}

// isOurs reports whether the app is known. A cluster object's label may name an unknown app.
func (r *Reconciler) isOurs(app string) bool {
	v := r.in.current()
	if v == nil || !r.mayHandle(app) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.apps[app] != nil || r.caches[app] != nil
}

func (o *Options) mayHandle(app string) bool { return o.Only == nil || slices.Contains(o.Only, app) }

// whileWaiting is the interval between an app's passes during the push of its transition. A rollback must not wait for
// the push.
const whileWaiting = time.Second

func (r *Reconciler) applyRecorded(ctx context.Context, done recorded, now time.Time) error {
	m, isRecorded := r.cacheOf(done.app.Name), done.commit != ""
	m.routing.looked(now)
	newer := m.pending != nil && m.pending != done.applied
	if newer && isRecorded && !done.decision.Rollback {
		// The newer rollback is not recorded yet, so it stays pending on the new record, done.after.
		m.on, m.pending.State.Serial = new(done.after), done.after.Serial
	}
	if isRecorded && !done.decision.Stale && !newer {
		func() {
			defer r.rescue(&done.transition)
			done.err = errors.Join(done.err, r.apply(ctx, done.transition, m, done.after, now))
		}()
	}
	r.requeue(done, now)
	return done.err
}

func (r *Reconciler) requeue(s recorded, now time.Time) {
	app, m := s.app.Name, r.cacheOf(s.app.Name)
	if errors.Is(s.err, source.ErrNotReady) && !s.changed { // due again after the render
		r.queue.at(app, s.decision.Requeue)
		return
	}
	next := s.decision.Requeue
	if s.err == nil && !s.refused && (!s.changed || s.commit != "") {
		m.failing = time.Time{}
	} else {
		m.failing = cmp.Or(m.failing, now)
		next = rollout.Soonest(next, now.Add(r.Spread(backoff(now.Sub(m.failing)))))
	}
	r.queue.at(app, next)
	r.measure(s.transition, s.after)
	r.out.wantRevert(s)
	r.out.wantProposals(s)
	r.report(s, m)
}

// backoff returns the wait before the next try. It is the time since the first failure, at least 1 s and at most 1 min.
func backoff(failing time.Duration) time.Duration {
	return min(max(failing, time.Second), time.Minute)
}

// Unreadable returns the errors of unreadable records. gitrollout leaves their apps unchanged.
func (r *Reconciler) Unreadable() error { return errors.Join(r.states.unreadable()...) }

// Touch makes an app due soon.
func (r *Reconciler) Touch(app string) { r.queue.after(app, debounce) }

func (r *Reconciler) touch(app string) { r.queue.after(app, 0) }

// Poll makes Run fetch soon. Poll does not block.
func (r *Reconciler) Poll() { offer(r.asked, false) }

func (r *Reconciler) want() { offer(r.wanted, struct{}{}) }

func offer[T any](to chan T, v T) {
	select {
	case to <- v:
	default:
	}
}

// NextDue returns when the next app or branch removal is due, for callers of RunOnce. Zero means never.
func (r *Reconciler) NextDue() time.Time { return rollout.Soonest(r.out.nextTidy(), r.queue.next()) }

func (r *Reconciler) cacheOf(app string) *appCache {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.caches[app]
	if m == nil {
		m = &appCache{}
		r.caches[app] = m
	}
	return m
}

func (r *Reconciler) forget(app string, v *gitView) {
	r.mu.Lock()
	_, known := r.caches[app]
	delete(r.caches, app)
	r.mu.Unlock()
	if v.apps[app] == nil {
		r.renders.forget(app)
		r.blame.forget(app)
		r.out.forget(app)
		r.approvals.forgetApp(app)
		r.cohorts.forget(app, true)
		r.peers.forget(app)
		r.errorLog.forget(app)
	}
	if known && r.Analyzer != nil {
		r.Analyzer.Measure(rollout.App{Name: app}, nil, nil)
	}
	if known {
		r.Tell(report.Report{Gone: []string{app}})
	}
}

func (o *Options) gatherer(from *renderCache) source.Gatherer {
	return source.Gatherer{RenderAt: from.render, Observe: o.Observer.Observe, Know: o.Know}
}

func (o *Options) begin(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
	Heartbeat(ctx)
	if o.Trace == nil {
		return ctx, func(error) {}
	}
	return o.Trace(ctx, part, app)
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), strings.Compare)
}
