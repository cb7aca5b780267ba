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
)

// Options says what to reconcile, and with what. They are complete before New.
type Options struct {
	Cluster string         // the folder under .gitrollout/
	UID     string         // of the cluster: a state for another one is refused
	Source  rollout.Source // what cluster.yaml says of the users' branch

	Namespace  string   // gitrollout's own, where no app may write; default rollout.OwnNamespace
	Namespaces []string // the only ones that it has; none: the whole cluster

	// As is the context of what is asked of the cluster for an app, and written; nil is that of everything else.
	As func(ctx context.Context, app rollout.App) context.Context

	Repository Repository
	Past       Past
	Renderer   Renderer
	Observer   Observer
	Applier    Applier
	Jobs       Jobs                 // nil: none can be made
	Believe    func(Snapshot) error // why a commit of the state branch is not to be believed; nil believes all
	Approve    Approver             // nil: every promotion file counts
	// Nodes are the labels of the cluster's nodes by name; asked where a release takes nodes by them.
	Nodes func(ctx context.Context) (map[string]map[string]string, error)
	// Know is told of kinds of workloads before the Observer is asked about them, as of source.Gatherer.
	Know func(kinds []rollout.Partitioned)

	// Policy is what the team that runs the cluster has laid down, as of a look at Git: the same pointer while it is the
	// same. It is asked by one goroutine. nil: there is none. After an error the last one counts, and nothing advances.
	Policy func(rollout.Heads) (*rollout.Policy, error)

	Analyzer   Analyzer            // nil: nothing is measured, and what waits for an analysis waits
	Tell       func(report.Report) // nil, or called with each result, from several goroutines; returns at once
	ShowsForge bool                // Tell shows people on a forge what is configured of one
	Trace      report.Tracer       // nil, or told of the parts of each pass
	Ends       bool                // after RunOnce: measurements are recorded or dropped, and only fetching begins more
	Log        *slog.Logger

	Writer    string // who commits, for cluster.yaml: a host's or a pod's name
	Exclusive bool   // stand down when another writer takes over, as an elected leader does
	Workers   int    // apps looked at at once; default 16

	// Spread lengthens the times between looks at Git and between tries by a little that differs, so that those who were
	// stopped by the same outage do not come back in step. nil leaves them as they are.
	Spread func(time.Duration) time.Duration
}

// Reconciler is three pumps: Git in (lookout), the apps, Git out (recorder). They share the record, the renders and the
// view that lookout publishes, and wait for each other nowhere. Run lets them run beside each other;
// RunOnce plays them one after the other.
type Reconciler struct {
	Options
	*keeper
	in        *lookout
	out       *recorder
	record    *record
	renders   *renders
	approvals *approvals
	heirs     heirs
	agenda    *agenda
	collects  bool          // the pass is the last one: what it would measure nobody would record
	asked     chan bool     // for a look at Git: true for one at once
	wanted    chan struct{} // commits or approvals are
	stats     counters
	complain  complaints
	pulse     pulse

	mu       sync.Mutex
	memories map[string]*memory
}

// counters are Stats as they are counted.
type counters struct{ passes, commits, decided, lost atomic.Int64 }

// New returns a reconciler that knows nothing yet.
func New(o Options) *Reconciler {
	o.Workers = cmp.Or(o.Workers, 16)
	if o.Spread == nil {
		o.Spread = func(d time.Duration) time.Duration { return d }
	}
	r := &Reconciler{
		Options: o, memories: map[string]*memory{}, agenda: newAgenda(),
		asked: make(chan bool, 1), wanted: make(chan struct{}, 1),
	}
	r.complain.log = o.Log
	reader := source.NewReader(o.Cluster, o.Renderer)
	reader.Own, reader.Within = cmp.Or(o.Namespace, rollout.OwnNamespace), o.Namespaces
	r.record = newRecord(&r.Options)
	r.renders = newRenders(&r.Options, reader)
	r.renders.urgent, r.renders.touch, r.renders.wanted = r.record.isInFlight, r.touch, r.want
	r.renders.stable = r.record.stable
	r.renders.panics = r.complain.ofPanic
	r.renders.held = func(commit string) (Snapshot, bool) { return r.Repository.Held(commit) }
	r.approvals = newApprovals(o.Approve)
	r.approvals.touch, r.approvals.wanted = r.touch, r.want
	r.out = newRecorder(&r.Options, r.record, r.renders, r.touch)
	r.in = &lookout{
		Options: &r.Options, reader: reader, renders: r.renders, record: r.record, approvals: r.approvals,
		touch: r.touch, looked: r.out.looked,
	}
	r.out.current, r.out.poll = r.in.current, r.Poll
	r.out.stats, r.out.approvals = &r.stats, r.approvals
	r.keeper = &keeper{Options: &r.Options, record: r.record, renders: r.renders, current: r.in.current}
	r.heirs = heirs{r.record, r.renders}
	return r
}

// Stats returns the counters.
func (r *Reconciler) Stats() report.Stats {
	return report.Stats{
		Passes: int(r.stats.passes.Load()), Commits: int(r.stats.commits.Load()),
		Decided: int(r.stats.decided.Load()), Lost: int(r.stats.lost.Load()),
	}
}

// ErrDeposed is what RunOnce and Run return when another writer has taken the state branch over from an exclusive
// one. The process does nothing any more.
var ErrDeposed = errors.New("another gitrollout has taken over")

// attend is one pass of one app: it carries out what has become of the last one's transition, visits the app, and
// hands over what is to be recorded.
func (r *Reconciler) attend(ctx context.Context, app string, clock func() time.Time) *visit {
	if !r.isOurs(app) {
		return nil
	}
	ctx, end := r.begin(ctx, report.PartPass, app)
	ctx = r.as(ctx, r.App(app))
	if s := r.out.answer(app); s != nil {
		r.conclude(ctx, s, clock())
	}
	now := clock()
	s := r.visit(ctx, app, now)
	if s == nil {
		end(nil)
		return nil
	}
	switch {
	case s.changed:
		if s.decision.Retreat {
			s.memory.pending, s.memory.on = &s.decision, s.before
		}
		r.measure(s) // what Git has on record goes on
		r.agenda.at(app, rollout.Soonest(s.decision.Requeue, now.Add(whileWaiting)))
		r.out.hand(s)
	default:
		r.out.drop(app)
		r.finish(s, now)
	}
	end(s.err)
	return s
}

// as is the context of what is asked of the cluster for an app, and written.
func (o *Options) as(ctx context.Context, app rollout.App) context.Context {
	if o.As == nil {
		return ctx
	}
	return o.As(ctx, app)
}

// isOurs reports whether there is an app of that name, or has been: an object in the cluster may say that it is of one
// that nobody knows.
func (r *Reconciler) isOurs(app string) bool {
	v := r.in.current()
	if v == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.apps[app] != nil || r.memories[app] != nil
}

// whileWaiting is how often an app is looked at whose transition waits for Git: what it is at is watched meanwhile, and
// may have to be left.
const whileWaiting = time.Second

// conclude applies what was recorded. A retreat that was decided on meanwhile stays: it is newer.
func (r *Reconciler) conclude(ctx context.Context, s *visit, now time.Time) {
	s.memory.routing.looked(now)
	newer := s.memory.pending != nil && s.memory.pending != &s.decision
	if newer && s.recorded && !s.decision.Retreat {
		// An advance that this process never applies: the retreat is from here, too, and newer.
		s.memory.on, s.memory.pending.State.Serial = s.after, s.after.Serial
	}
	if s.recorded && !s.decision.Stale && !newer {
		func() {
			defer r.rescue(s)
			s.err = errors.Join(s.err, r.apply(ctx, s, s.after, now))
		}()
	}
	r.finish(s, now)
}

// finish tells what a visit has come to, and says when the app is due again.
func (r *Reconciler) finish(s *visit, now time.Time) {
	app, m := s.app.Name, s.memory
	if errors.Is(s.err, source.ErrNotReady) && !s.changed { // it is touched when that is ready
		r.agenda.at(app, s.decision.Requeue)
		return
	}
	r.measure(s)
	r.out.wantRevert(s)
	r.out.wantProposals(s)
	r.report(s)
	next := s.decision.Requeue
	if s.err == nil && !s.refused && (!s.changed || s.recorded) {
		m.failing = time.Time{}
	} else {
		if m.failing.IsZero() {
			m.failing = now
		}
		next = rollout.Soonest(next, now.Add(r.Spread(backoff(now.Sub(m.failing)))))
	}
	r.agenda.at(app, next)
}

// backoff is how long an app waits for its next try that fails since a while: as long again, but at least 1 s and at
// most 1 min. Its own tries come 1, 2, 4, 8 … s after the first failure. A change in Git or in the cluster does not
// wait for it, and does not make it longer: ten pods that change within a second of an outage are ten failures.
func backoff(failing time.Duration) time.Duration {
	return min(max(failing, time.Second), time.Minute)
}

// Unreadable joins the reasons of the apps that are left alone because their state cannot be read.
func (r *Reconciler) Unreadable() error { return errors.Join(r.record.unreadable()...) }

// Touch marks an app as changed in the cluster. It may be called from any goroutine.
func (r *Reconciler) Touch(app string) { r.agenda.after(app, debounce) }

// touch makes an app due at once.
func (r *Reconciler) touch(app string) { r.agenda.after(app, 0) }

// Poll makes Run look at Git as soon as it can, but not more than once a second. It may be called from any goroutine
// and returns at once.
func (r *Reconciler) Poll() {
	select {
	case r.asked <- false:
	default: // somebody has asked already
	}
}

// want makes Run fetch what visits wait for.
func (r *Reconciler) want() {
	select {
	case r.wanted <- struct{}{}:
	default:
	}
}

// NextDue is when the earliest timer of any app ends, zero if none runs. It is for who calls RunOnce.
func (r *Reconciler) NextDue() time.Time { return rollout.Soonest(r.out.nextTidy(), r.agenda.next()) }

func (r *Reconciler) memoryOf(app string) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[app]
	if m == nil {
		m = &memory{}
		r.memories[app] = m
	}
	return m
}

// forget drops what is known of an app that is no more.
func (r *Reconciler) forget(app string, v *view) {
	r.mu.Lock()
	_, known := r.memories[app]
	delete(r.memories, app)
	r.mu.Unlock()
	if v.apps[app] == nil {
		r.renders.forget(app)
		r.out.forget(app)
		r.in.approvals.forgetApp(app)
		r.complain.forget(app)
	}
	if known && r.Analyzer != nil {
		r.Analyzer.Measure(rollout.App{Name: app}, nil, nil)
	}
	if known {
		r.tell(report.Report{Gone: []string{app}})
	}
}

func (o *Options) gatherer(from *renders) source.Gatherer {
	return source.Gatherer{RenderAt: from.render, Observe: o.Observer.Observe, Know: o.Know}
}

// begin marks the beginning of a part, which is a sign of life. Without a Tracer it costs nothing.
func (o *Options) begin(ctx context.Context, part report.Part, app string) (context.Context, func(error)) {
	Beat(ctx)
	if o.Trace == nil {
		return ctx, func(error) {}
	}
	return o.Trace(ctx, part, app)
}

func (o *Options) tell(news report.Report) {
	if o.Tell != nil {
		o.Tell(news)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), strings.Compare)
}
