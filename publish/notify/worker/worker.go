// Package worker sends notifications in the background. A record in Git has a cursor for each receiver. A process
// claims messages in the record by compare-and-swap, so that no other process sends them. After a crash, the next
// process sends claimed messages again, and marks these as possible repeats unless the service recognizes repeats.
package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// ErrGone is the error of History if `after` is too old, or no longer on the state branch.
var ErrGone = errors.New("is not among the last commits of the state branch")

// Options configure a Worker.
type Options struct {
	ID      string // unique among processes
	Cluster string
	// Update lets a function edit the record, and calls the function again after a conflict. If the function fails or
	// edits nothing, Update writes nothing.
	Update func(ctx context.Context, now time.Time, change func(*rollout.Notified) error) error
	// History lists the state commits up to upTo, oldest first. Unless `after` is "", it lists only newer commits than
	// `after`.
	History   func(ctx context.Context, after, upTo string) ([]rollout.StateCommit, error)
	Send      func(ctx context.Context, r rollout.Receiver, m notify.Message) (final bool, after time.Duration, err error)
	ProfileOf func(service string) notify.Profile
	Links     func(*rollout.Forge) notify.Links
	Now       func() time.Time
	// Spread lengthens the pause before a retry (adapters.Spread).
	Spread func(time.Duration) time.Duration
	// Log gets a problem, or a description of completed work.
	Log func(problem error, done string)
}

// maxKnown limits the commits and app states in memory. A state has a few kilobytes.
const maxKnown = 1000

// Worker sends notifications. Notify and Flush are safe for concurrent use.
type Worker struct {
	Options
	wake chan struct{}
	idle *sync.Cond

	mu     sync.Mutex
	config *rollout.Config
	head   string
	base   map[string]string // by receiver: head of the state branch when the receiver was first seen
	known  []rollout.StateCommit
	asked  int
	served int // w.asked at the start of the last complete round

	// Only Run's goroutine uses the fields below.
	record    *rollout.Notified         // nil before the first read
	unwritten map[string]rollout.Cursor // cursors that are not in the record yet
	retries   map[string]retry
	trouble   retry             // next try to write the record
	foreign   string            // another process's claim, or ""
	since     time.Time         // when foreign changed last
	reported  map[string]string // by receiver, "template of" a receiver, or "" for the record
}

type retry struct {
	tries int
	after time.Time
}

// New returns a Worker without a configuration.
func New(o Options) *Worker {
	w := &Worker{
		Options: o, wake: make(chan struct{}, 1), base: map[string]string{}, reported: map[string]string{},
		unwritten: map[string]rollout.Cursor{}, retries: map[string]retry{},
	}
	w.idle = sync.NewCond(&w.mu)
	return w
}

// Notify implements adapters.Notifier. It stores its arguments for Run and does not wait.
func (w *Worker) Notify(config *rollout.Config, head string, made *rollout.StateCommit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.config
	w.config, w.head = config, head
	for _, r := range config.Receivers {
		if _, heard := w.base[r.Name]; !heard {
			w.base[r.Name] = head
		}
	}
	if len(config.Receivers) == 0 && (old == nil || len(old.Receivers) == 0) {
		return
	}
	if made != nil {
		w.keep(*made)
	}
	w.asked++
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// keep stores a commit. Beyond maxKnown, it drops the oldest commits. The caller holds the lock.
func (w *Worker) keep(made rollout.StateCommit) {
	w.known = append(w.known, made)
	apps := 0
	for i, known := range slices.Backward(w.known) {
		if apps += 1 + len(known.Apps); apps > maxKnown {
			w.known = slices.Clone(w.known[i+1:])
			return
		}
	}
}

// Run sends until the context ends.
func (w *Worker) Run(ctx context.Context) {
	defer w.settle()
	for ctx.Err() == nil {
		w.mu.Lock()
		asked := w.asked
		w.mu.Unlock()
		wait := time.Hour
		if asked > 0 {
			wait = w.round(ctx)
		}
		if wait <= 0 {
			continue
		}
		w.mu.Lock()
		if w.foreign == "" {
			w.served = asked
			w.idle.Broadcast()
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-time.After(wait):
		}
	}
}

// settle writes the last cursors, because the next process repeats all messages after the recorded cursors.
func (w *Worker) settle() {
	if len(w.unwritten) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := w.Update(ctx, w.Now(), func(n *rollout.Notified) error {
		if n.By == w.ID {
			w.writeDown(n)
		}
		return nil
	})
	if err != nil {
		w.report("", fmt.Errorf("the last notifications are not on record, and will be sent again: %w", err))
	}
}

// Flush waits until the worker has tried each message once, or the context ends.
func (w *Worker) Flush(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.idle.Broadcast()
		w.mu.Unlock()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for ctx.Err() == nil && w.served < w.asked {
		w.idle.Wait()
	}
}

type view struct {
	config *rollout.Config
	head   string
	base   map[string]string
	known  map[string]rollout.StateCommit
}

func (w *Worker) view() view {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := view{config: w.config, head: w.head, base: maps.Clone(w.base), known: map[string]rollout.StateCommit{}}
	for _, c := range w.known {
		v.known[c.ID] = c
	}
	return v
}

func (w *Worker) line(ctx context.Context, v view, after string) (line []rollout.StateCommit, err error) {
	for id := v.head; id != after; {
		c, ok := v.known[id]
		if !ok {
			return w.read(ctx, after, v.head)
		}
		line = append(line, c)
		if id = c.Parent; id == "" && after != "" {
			return w.read(ctx, after, v.head)
		}
	}
	slices.Reverse(line)
	return line, nil
}

var errAhead = errors.New("is newer than the known head of the state branch")

// read returns the state commits after `after`, up to upTo. The error is errAhead if `after` is newer than upTo, and
// ErrGone if a rewrite of the branch removed `after`.
func (w *Worker) read(ctx context.Context, after, upTo string) ([]rollout.StateCommit, error) {
	line, err := w.History(ctx, after, upTo)
	if !errors.Is(err, ErrGone) {
		return line, err
	}
	switch _, backwards := w.History(ctx, upTo, after); {
	case backwards == nil:
		return nil, errAhead
	case !errors.Is(backwards, ErrGone):
		return nil, backwards
	}
	return nil, err
}

// report logs a problem once. It logs the problem again if the text changes, or if the problem returns.
func (w *Worker) report(about string, err error) {
	if err == nil {
		delete(w.reported, about)
		return
	}
	if text := err.Error(); w.reported[about] != text {
		w.reported[about] = text
		w.Log(err, "")
	}
}

// next returns the retry after a failure, with at least the pause that the service requires.
func (w *Worker) next(r retry, now time.Time, asked time.Duration) retry {
	r.tries++
	r.after = now.Add(max(asked, w.Spread(call.Backoff(r.tries))))
	return r
}
