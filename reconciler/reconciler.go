package reconciler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Options says what to reconcile, and with what.
type Options struct {
	Cluster string         // the folder under .gitrollout/
	UID     string         // of the cluster: a state for another one is refused
	Source  rollout.Source // what cluster.yaml says of the users' branch

	Repository Repository
	Renderer   Renderer
	Observer   Observer
	Applier    Applier
	Record     Recorder
	Believe    func(Snapshot) error              // why a commit of the state branch is not to be believed; nil believes all
	Approve    Approver                          // nil: every promotion file counts
	Forge      Forge                             // nil: nothing is shown
	Notifier   Notifier                          // nil: nobody is told
	Analyzer   Analyzer                          // nil: nothing is measured, and what waits for an analysis waits
	Publish    func(looks []Look, gone []string) // nil, or told of each app that a pass has looked at, and of those that are no more; returns at once
	Trace      Tracer                            // nil, or told of the parts of each pass
	Log        *slog.Logger

	Writer    string // who commits, for cluster.yaml: a host's or a pod's name
	Exclusive bool   // stand down when another writer takes over, as an elected leader does
	Workers   int    // apps rendered and applied at once; default 8
}

// Reconciler holds what one process knows. Its methods are for one goroutine,
// but for Touch and Poll.
type Reconciler struct {
	Options

	heads          Heads
	main           Snapshot
	config         *rollout.Config
	configs        map[string]*rollout.Config // of older commits, by blob
	configsMu      sync.Mutex
	unreachable    bool           // the last look at Git failed
	clusterFile    bool           // cluster.yaml exists
	writer         rollout.Writer // that it names
	epoch          int            // in which this process writes; 0 before its first commit
	stateKnown     bool
	judged         string          // the refused head about which all apps were asked
	failing        map[string]bool // errors that have been logged
	apps           map[string]*app
	gone           []string       // apps that are no more, until publish
	shown          *rollout.Forge // the configuration that Forge was told everything with
	notifiedHead   string         // what Notifier was told last
	notifiedConfig *rollout.Config
	stale          map[string]stale // proposals that were merged, by branch
	stats          Stats

	mu      sync.Mutex
	touched map[string]bool
	wake    chan struct{}
	asked   chan struct{} // for a look at Git
}

// Stats counts what passes have done, for metrics and tests.
type Stats struct {
	Passes  int
	Commits int // commits on the state branch
	Decided int // apps looked at
	Lost    int // pushes that another writer won
}

// New returns a reconciler that knows nothing yet.
func New(o Options) *Reconciler {
	if o.Workers == 0 {
		o.Workers = 8
	}
	return &Reconciler{
		Options: o, apps: map[string]*app{}, configs: map[string]*rollout.Config{}, stale: map[string]stale{},
		touched: map[string]bool{}, wake: make(chan struct{}, 1), asked: make(chan struct{}, 1),
	}
}

// Stats returns the counters.
func (r *Reconciler) Stats() Stats { return r.stats }

// maxTries bounds how often one pass decides when it loses the race for the
// state branch each time. Each loss means that another writer made progress.
const maxTries = 5

// ErrDeposed is what RunOnce returns when another writer has taken the state
// branch over from an exclusive one. The process does nothing any more.
var ErrDeposed = errors.New("another gitrollout has taken over")

// RunOnce is one pass. With fetch it looks at Git first; without, it works on
// what is already known, as after a change in the cluster. The error joins what
// went wrong, and each app that is not named in it has been handled.
func (r *Reconciler) RunOnce(ctx context.Context, now time.Time, fetch bool) error {
	ctx, end := r.begin(ctx, PartPass, "")
	err := r.pass(ctx, now, fetch)
	end(err)
	return err
}

func (r *Reconciler) pass(ctx context.Context, now time.Time, fetch bool) error {
	r.stats.Passes++
	var gathered error
	if fetch {
		gathered = r.gather(ctx)
	}
	if r.config == nil || !r.stateKnown || errors.Is(gathered, ErrDeposed) {
		return gathered
	}
	r.notify()
	steps := r.decideAll(ctx, r.due(now), now)
	err := r.commit(ctx, steps, now)
	for try := 1; errors.Is(err, ErrConflict); try++ {
		r.stats.Lost++
		if try == maxTries {
			break
		}
		for _, s := range steps {
			s.app.dirty = true
		}
		if gathered = r.gather(ctx); errors.Is(gathered, ErrDeposed) {
			return gathered
		}
		r.notify()
		steps = r.decideAll(ctx, r.due(now), now)
		err = r.commit(ctx, steps, now)
	}
	errs := []error{gathered}
	if err == nil && gathered == nil {
		r.pushReverts(ctx, steps)
		r.resumeForge(ctx, now)
		errs = append(errs, r.tidy(ctx, now))
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("record in Git: %w", err))
	}
	r.applyAll(ctx, steps, now)
	r.publish(steps)
	for _, s := range steps {
		if s.err != nil {
			errs = append(errs, fmt.Errorf("app %s: %w", s.app.Name, s.err))
		}
	}
	return errors.Join(errs...)
}

// Unreadable joins the reasons of the apps that are left alone because their
// state cannot be read.
func (r *Reconciler) Unreadable() error {
	var errs []error
	for _, name := range sortedKeys(r.apps) {
		if err := r.apps[name].broken; err != nil {
			errs = append(errs, fmt.Errorf("app %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Touch marks an app as changed in the cluster and wakes Run. It may be called
// from any goroutine.
func (r *Reconciler) Touch(app string) {
	r.mu.Lock()
	r.touched[app] = true
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Poll makes Run look at Git as soon as it can, but not more than once a second.
// It may be called from any goroutine and returns at once.
func (r *Reconciler) Poll() {
	select {
	case r.asked <- struct{}{}:
	default: // somebody has asked already
	}
}

// due returns the apps that have a reason to be looked at, and forgets it.
func (r *Reconciler) due(now time.Time) []*app {
	r.mu.Lock()
	for name := range r.touched {
		if a := r.apps[name]; a != nil {
			a.dirty = true
		}
	}
	clear(r.touched)
	r.mu.Unlock()
	var work []*app
	for _, a := range r.apps {
		if a.broken != nil {
			continue
		}
		if a.dirty || (!a.due.IsZero() && !now.Before(a.due)) {
			a.dirty, a.due = false, time.Time{}
			work = append(work, a)
		}
	}
	slices.SortFunc(work, func(a, b *app) int { return strings.Compare(a.Name, b.Name) })
	r.stats.Decided += len(work)
	return work
}

// NextDue is when the earliest timer of any app ends, zero if none runs.
func (r *Reconciler) NextDue() time.Time {
	next := r.nextTidy()
	for _, a := range r.apps {
		if a.broken == nil {
			next = soonest(next, a.due)
		}
	}
	return next
}
