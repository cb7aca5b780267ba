// Package measure makes the measurements of analyses in the background, so that a
// slow metrics server holds up no pass: the loop says what is due and collects,
// later, what was found.
//
// Its neighbours: strategies says what is due and judges, analysis/provider
// asks, and cmd/gitrollout gives it the cluster's Secrets.
package measure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Options says what a Worker works with.
type Options struct {
	Deps     provider.Deps
	Touch    func(app string)                    // called when there is something to collect
	Trouble  func(app, metric string, err error) // told of what is no result: a panic, or what could not be tidied up
	Parallel int                                 // measurements of an app at once; default 8
	Again    time.Duration                       // how often one that is still running is asked again; default 2s
}

// Worker measures. Its methods are for any goroutine.
type Worker struct {
	Options
	ctx context.Context

	mu    sync.Mutex
	slots map[string]chan struct{} // by app: one that asks a server which hangs keeps no other waiting
	busy  map[string]bool          // what was begun and is not collected
	done  map[string][]found       // by app
}

// found is a measurement that is over.
type found struct {
	key string
	strategies.Measured
}

// New returns a Worker whose measurements end with ctx.
func New(ctx context.Context, o Options) *Worker {
	if o.Parallel == 0 {
		o.Parallel = 8
	}
	if o.Again == 0 {
		o.Again = 2 * time.Second
	}
	return &Worker{Options: o, ctx: ctx, slots: map[string]chan struct{}{}, busy: map[string]bool{},
		done: map[string][]found{}}
}

// Measure begins what is due, is not under way and was not found since the last
// Measured: whoever says that it is due may not have seen that.
func (w *Worker) Measure(app rollout.App, due []strategies.Measure) {
	for _, m := range due {
		key := fmt.Sprintf("%s %s %s %s %s", app.Name, m.Run, m.Release, m.Started.Format(time.RFC3339), m.Metric.Name)
		w.mu.Lock()
		under := w.busy[key]
		w.busy[key] = true
		slots := w.slots[app.Name]
		if slots == nil {
			slots = make(chan struct{}, w.Parallel)
			w.slots[app.Name] = slots
		}
		w.mu.Unlock()
		if !under {
			go w.work(app, m, key, slots)
		}
	}
}

// Measured returns and forgets what was found for an app.
func (w *Worker) Measured(app string) []strategies.Measured {
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []strategies.Measured
	for _, f := range w.done[app] {
		delete(w.busy, f.key)
		got = append(got, f.Measured)
	}
	delete(w.done, app)
	return got
}

func (w *Worker) work(app rollout.App, m strategies.Measure, key string, slots chan struct{}) {
	got := w.measure(app, m, slots)
	if w.ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	w.done[app.Name] = append(w.done[app.Name], found{key, got})
	w.mu.Unlock()
	w.Touch(app.Name)
}

// measure makes one measurement. A panic in it is an error of it; what it says
// may have been anybody's, so it is not for Git.
func (w *Worker) measure(app rollout.App, m strategies.Measure, slots chan struct{}) (got strategies.Measured) {
	got = strategies.Measured{Run: m.Run, Release: m.Release, Started: m.Started, Metric: m.Metric.Name, At: w.Deps.Now(),
		Samples: -1}
	defer func() {
		if p := recover(); p != nil {
			w.Trouble(app.Name, m.Metric.Name, fmt.Errorf("the measurement panicked: %v\n%s", p, debug.Stack()))
			got.Phase, got.Message = analysis.Errored,
				fmt.Sprintf("the provider %s failed inside; gitrollout's log says how", m.Metric.Provider)
		}
	}()
	result, err := w.ask(app, m, m.Latest, "", slots)
	if err != nil {
		got.Phase, got.Message = analysis.Errored, err.Error()
		return got
	}
	got.Value, got.Phase, got.Message = result.Value, result.Phase, result.Message
	if m.Metric.Compare != nil {
		stable, err := w.ask(app, m, m.Stable, "-stable", slots)
		if err != nil {
			got.Phase, got.Message = analysis.Errored, err.Error()
			return got
		}
		got.Stable = stable.Value
	}
	return got
}

// ask makes one request, and again while it is still running. Latest is the
// version that it is about.
func (w *Worker) ask(
	app rollout.App, m strategies.Measure, latest, suffix string, slots chan struct{},
) (provider.Result, error) {
	var secrets []string
	config, err := analysis.Complete(m.Metric, analysis.Known{Latest: latest, Stable: m.Stable, Texts: m.Texts},
		func(ref rollout.SecretRef) (string, error) {
			data, err := w.Deps.Secret(w.ctx, m.Workload.Namespace, ref.Name)
			if err != nil {
				return "", err
			}
			text, ok := data[ref.Key]
			if !ok {
				return "", fmt.Errorf("Secret %s/%s has no key %s", m.Workload.Namespace, ref.Name, ref.Key)
			}
			secrets = append(secrets, text)
			return text, nil
		})
	if err != nil {
		return provider.Result{}, err
	}
	request := provider.Request{
		Kind: m.Metric.Provider, Config: config, Namespace: m.Workload.Namespace, ID: id(app, m) + suffix,
		Rollout: m.Workload.Name, Hash: latest, Started: m.Started, Interval: m.Metric.Interval, Secrets: secrets,
	}
	for {
		// A gate that stays shut for hours holds no slot.
		select {
		case slots <- struct{}{}:
		case <-w.ctx.Done():
			return provider.Result{}, w.ctx.Err()
		}
		result, err := measureOnce(w.ctx, w.Deps, request, slots)
		if err != nil {
			return result, err // the next one has the same ID, and finds what this one began
		}
		if result.Phase != analysis.Running {
			if stop := provider.Stop(w.ctx, w.Deps, request); stop != nil {
				w.Trouble(app.Name, m.Metric.Name, fmt.Errorf("what it left behind stays: %w", stop))
			}
			return result, nil
		}
		request.Metadata = result.Metadata
		select {
		case <-time.After(w.Again):
		case <-w.ctx.Done():
			return result, w.ctx.Err()
		}
	}
}

// measureOnce gives the slot back, however the provider ends.
func measureOnce(
	ctx context.Context, deps provider.Deps, r provider.Request, slots chan struct{},
) (provider.Result, error) {
	defer func() { <-slots }()
	return provider.Measure(ctx, deps, r)
}

// id names a measurement, so that one that is asked for again after a crash
// finds what the first one began.
func id(app rollout.App, m strategies.Measure) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s\n%d", app.Name, m.Run, m.Release,
		m.Started.UTC().Format(time.RFC3339), m.Metric.Name, m.Number))
	return hex.EncodeToString(sum[:5])
}
