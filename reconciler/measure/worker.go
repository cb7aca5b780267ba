// Package measure takes measurements in the background, so that a slow metrics server delays no pass.
package measure

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Options configures a Worker.
type Options struct {
	Deps provider.Deps
	Own  string // default rollout.OwnNamespace
	// As returns an app's context for cluster requests.
	As       func(ctx context.Context, app rollout.App) context.Context
	Touch    func(app string)                    // a result is ready
	Trouble  func(app, metric string, err error) // gets errors outside of a result, such as a panic
	Parallel int                                 // per app; default 8
	Again    time.Duration                       // interval while the result is Running; default 2s
	Judging  time.Duration                       // limit for judging a result; default 1s
	Past     bool                                // Deps.Now is in the past, and Prometheus is asked about this time
}

// Worker takes measurements. Any goroutine may call its methods.
type Worker struct {
	Options
	ctx context.Context

	mu       sync.Mutex
	stations map[string]*station
}

type station struct {
	slots chan struct{}    // per app, because one server may be slow
	tasks map[string]*task // until their results are collected
	left  []leftover
}

type task struct {
	strategies.Measure
	app    rollout.App
	slots  chan struct{}
	end    context.CancelFunc
	at     time.Time // of both queries of a comparison
	waits  bool      // waits for a running Job or a shut gate
	isDone bool
	found  strategies.Measured
}

// leftover is a failed or abandoned request. Its objects may still exist.
type leftover struct {
	strategies.Measure
	provider.Request
}

// New returns a Worker whose measurements end with ctx.
func New(ctx context.Context, o Options) *Worker {
	o.Parallel, o.Own = cmp.Or(o.Parallel, 8), cmp.Or(o.Own, rollout.OwnNamespace)
	o.Again, o.Judging = cmp.Or(o.Again, 2*time.Second), cmp.Or(o.Judging, time.Second)
	return &Worker{Options: o, ctx: ctx, stations: map[string]*station{}}
}

// Measure starts each due measurement, unless it is running or its result is not collected yet. It cancels measurements
// that are not in "going", and deletes their objects.
func (w *Worker) Measure(app rollout.App, going []rollout.AnalysisRun, due []strategies.Measure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.stations[app.Name]
	if b == nil && len(due) == 0 {
		return
	}
	if b == nil {
		b = &station{slots: make(chan struct{}, w.Parallel), tasks: map[string]*task{}}
		w.stations[app.Name] = b
	}
	for key, t := range b.tasks {
		if isGoing(going, t.Measure) {
			continue
		}
		if t.end(); t.isDone {
			delete(b.tasks, key)
		}
	}
	for _, m := range due {
		key := fmt.Sprintf("%s %s %s %s", m.Run, m.Release, m.Started.Format(time.RFC3339), m.Metric.Name)
		if b.tasks[key] == nil {
			ctx, end := context.WithCancel(w.As(w.ctx, app))
			b.tasks[key] = &task{Measure: m, app: app, slots: b.slots, end: end}
			go w.work(ctx, b, key)
		}
	}
	b.left = slices.DeleteFunc(b.left, func(l leftover) bool {
		if isGoing(going, l.Measure) {
			return false
		}
		go w.tidy(app, l)
		return true
	})
	w.clear(app.Name)
}

func isGoing(going []rollout.AnalysisRun, m strategies.Measure) bool {
	return slices.ContainsFunc(going, func(r rollout.AnalysisRun) bool {
		return r.Same(rollout.AnalysisRun{Name: m.Run, Release: m.Release, Started: m.Started}) &&
			slices.ContainsFunc(r.Metrics, func(p rollout.MetricProgress) bool { return p.Metric == m.Metric.Name })
	})
}

// Measured returns and removes results.
func (w *Worker) Measured(app string) (got []strategies.Measured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.stations[app]
	if b == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(b.tasks)) {
		if t := b.tasks[key]; t.isDone {
			got = append(got, t.found)
			delete(b.tasks, key)
		}
	}
	return got
}

// Take takes one measurement now.
func (w *Worker) Take(ctx context.Context, app rollout.App, m strategies.Measure) strategies.Measured {
	return w.measure(ctx, &task{Measure: m, app: app, slots: make(chan struct{}, 1)})
}

// Settle returns when each measurement has a result or waits for a Job or a gate, and reports whether any has a result.
func (w *Worker) Settle(ctx context.Context) (found bool) {
	for w.isBusy(&found) && ctx.Err() == nil {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return found
}

func (w *Worker) isBusy(found *bool) (busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.stations {
		for _, t := range b.tasks {
			busy, *found = busy || !t.isDone && !t.waits, *found || t.isDone
		}
	}
	return busy
}

func (w *Worker) work(ctx context.Context, b *station, key string) {
	w.mu.Lock()
	t := b.tasks[key]
	w.mu.Unlock()
	defer t.end()
	got := w.measure(ctx, t)
	w.mu.Lock()
	isOver := ctx.Err() != nil
	if t.found, t.isDone = got, true; isOver {
		delete(b.tasks, key)
		w.clear(t.app.Name)
	}
	w.mu.Unlock()
	if !isOver {
		w.Touch(t.app.Name)
	}
}

func (w *Worker) clear(app string) {
	if b := w.stations[app]; b != nil && len(b.tasks)+len(b.left) == 0 {
		delete(w.stations, app)
	}
}

// measure takes a measurement. After a panic, its error omits the panic's text, because gitrollout records errors in
// Git.
func (w *Worker) measure(ctx context.Context, t *task) (got strategies.Measured) {
	failed := func(text string) strategies.Measured {
		return t.Judge(strategies.Result{At: w.Deps.Now(), Phase: analysis.Errored, Message: text})
	}
	defer func() {
		if p := recover(); p != nil {
			w.Trouble(t.app.Name, t.Metric.Name, fmt.Errorf("the measurement panicked: %v", p))
			got = failed(fmt.Sprintf("the provider %s panicked; gitrollout's log has the details", t.Metric.Provider))
		}
	}()
	t.at = w.Deps.Now()
	result, err := w.ask(ctx, t, t.Latest, "")
	if err != nil {
		return failed(err.Error())
	}
	found := strategies.Result{At: t.at, Value: result.Value, Samples: -1, Phase: result.Phase, Message: result.Message}
	if t.Metric.Compare != nil {
		stable, err := w.ask(ctx, t, t.Stable, "-stable")
		if err != nil {
			return failed(err.Error())
		}
		found.Stable = stable.Value
	}
	got, err = within(w.Judging, func() (strategies.Measured, error) { return t.Judge(found), nil })
	if err != nil {
		return failed("its conditions: " + err.Error())
	}
	return got
}

func within[T any](limit time.Duration, do func() (T, error)) (got T, err error) {
	// do() may be slow, because it evaluates third parties' texts. A late result is dropped.
	type outcome struct {
		got      T
		err      error
		panicked error
	}
	done, late := make(chan outcome, 1), time.After(limit)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				o.panicked = fmt.Errorf("%v\n%s", p, debug.Stack())
			}
			done <- o
		}()
		o.got, o.err = do()
	}()
	select {
	case o := <-done:
		if o.panicked != nil {
			panic(o.panicked)
		}
		select {
		case <-late:
		default:
			return o.got, o.err
		}
	case <-late:
	}
	return got, fmt.Errorf("it takes longer than %s", limit)
}

// request returns the request to a provider about the version with the hash "latest".
func (w *Worker) request(ctx context.Context, t *task, latest, suffix string) (provider.Request, error) {
	var secrets []string
	at := t.Workload.Namespace
	if needs := t.Metric.Provider == "job" || len(t.Metric.Secrets) > 0; needs && t.app.Namespace != "" &&
		!t.app.MayWriteIn(at, w.Own) {
		return provider.Request{}, fmt.Errorf("app %s may not use namespace %s: no Secret is read there, and no Job "+
			"is created; to permit that, add to the app's entry in the configuration: namespaces: [%s]", t.app.Name, at, at)
	}
	when := map[bool]time.Time{true: t.at}[t.Metric.Compare != nil || w.Past] // both queries need the same time
	if suffix != "" {
		when = cmp.Or(t.Before, when)
	}
	known := analysis.Known{Latest: latest, Stable: t.Stable, Texts: t.Texts,
		At: t.at, Since: t.Since, ReleaseSince: t.ReleaseSince}
	config, err := analysis.Complete(t.Metric, known,
		func(ref rollout.SecretRef) (string, error) {
			data, err := w.Deps.Secret(ctx, at, ref.Name)
			if err != nil {
				return "", fmt.Errorf("key %s of %w", ref.Key, err)
			}
			text, ok := data[ref.Key]
			if !ok {
				return "", fmt.Errorf("Secret %s/%s has no key %s", at, ref.Name, ref.Key)
			}
			secrets = append(secrets, text)
			return text, nil
		})
	return provider.Request{
		Kind: t.Metric.Provider, Config: config, Namespace: at, ID: t.id() + suffix,
		Workload: t.Workload, Hash: latest, Started: t.Started, Interval: t.Metric.Interval, Compare: t.Metric.Compare,
		Secrets: secrets, At: when}, err
}

func (w *Worker) ask(ctx context.Context, t *task, latest, suffix string) (result provider.Result, err error) {
	request, err := w.request(ctx, t, latest, suffix)
	if err != nil {
		return result, err
	}
	asked := false
	defer func() {
		if asked {
			w.leave(t, request, err == nil || ctx.Err() != nil)
		}
	}()
	for {
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return result, ctx.Err()
		}
		asked = asked || ctx.Err() == nil // false if the analysis ended before the first request
		result, err = within(provider.Timeout(request)+grace, func() (provider.Result, error) {
			defer func() { <-t.slots }()
			return provider.Measure(ctx, w.Deps, request)
		})
		if err != nil || result.Phase != analysis.Running {
			return result, err
		}
		request.Metadata = result.Metadata
		w.mu.Lock()
		t.waits = true // holds no slot, because a gate may stay shut for hours
		w.mu.Unlock()
		select {
		case <-time.After(w.Again):
		case <-ctx.Done():
			return result, ctx.Err()
		}
	}
}

// grace is how long a provider may evaluate a response after the request's timeout.
const grace = 5 * time.Second

// leave deletes a request's objects, such as a Job, after success or after the end of the analysis. After a failure,
// the objects stay for the next try, which has the same ID.
func (w *Worker) leave(t *task, r provider.Request, isOver bool) {
	l := leftover{t.Measure, r}
	w.mu.Lock()
	b := w.stations[t.app.Name]
	if b != nil {
		b.left = slices.DeleteFunc(b.left, func(o leftover) bool { return o.ID == r.ID })
		if !isOver {
			b.left = append(b.left, l)
		}
	}
	w.mu.Unlock()
	if isOver {
		w.tidy(t.app, l)
	}
}

func (w *Worker) tidy(app rollout.App, l leftover) {
	ctx, end := context.WithTimeout(w.As(w.ctx, app), time.Minute)
	defer end()
	if err := provider.Stop(ctx, w.Deps, l.Request); err != nil && w.ctx.Err() == nil {
		w.Trouble(app.Name, l.Metric.Name, fmt.Errorf("objects of a measurement were not deleted: %w", err))
	}
}

// id stays equal after a restart, so that a later try finds earlier objects.
func (t *task) id() string {
	return rollout.Digest(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s\n%d", t.app.Name, t.Run, t.Release,
		t.Started.UTC().Format(time.RFC3339), t.Metric.Name, t.Number), 5)
}
