// Package worker tells receivers what the state branch records, in the background, so that no release waits for it.
//
// Up to where each receiver has been told is a record in Git. What is about to be told is claimed there first, by a
// compare-and-swap: two processes never tell the same, and a process that is killed loses nothing. What it may have
// told just then is told again by the next one, and says so where the service cannot know.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/publish/call"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// ErrGone is what a History returns when the state branch does not lead back to
// the commit that it is asked about: it was rewritten, or that was long ago.
var ErrGone = errors.New("is not among the last commits of the state branch")

// Options says what a Worker works with.
type Options struct {
	ID      string // of this process, unlike any other's
	Cluster string
	// Update changes the record as change says, which may be called again when another process was faster. If change
	// returns an error, or changes nothing, nothing is written.
	Update func(ctx context.Context, now time.Time, change func(*rollout.Notified) error) error
	// History lists the commits of the state branch after one, "" for all, up to another one, the oldest first.
	History   func(ctx context.Context, after, upTo string) ([]rollout.Recorded, error)
	Send      func(ctx context.Context, r rollout.Receiver, m notify.Message) (final bool, after time.Duration, err error)
	ProfileOf func(service string) notify.Profile
	Dedups    func(service string) bool
	Links     func(*rollout.Forge) notify.Links
	Now       func() time.Time
	Lease     time.Duration // how long a claim must not change until its process is taken for dead; default 30s
	// Spread lengthens the breaks between tries by a little that differs from process to process; nil leaves them.
	Spread func(time.Duration) time.Duration
	// Log is told what was done, and of each problem once until it is over.
	Log func(problem error, done string)
}

// maxKnown bounds how many states are kept of the commits that this process has
// made: others are read from Git. A state is a few kilobytes.
const maxKnown = 1000

// Worker tells. Notify and Flush are for any goroutine.
type Worker struct {
	Options
	wake chan struct{}
	idle *sync.Cond

	mu     sync.Mutex
	config *rollout.Config
	head   string
	base   map[string]string // by receiver: the head when it was first heard of
	known  []rollout.Recorded
	asked  int // calls of Notify
	served int // of those, what has been tried

	// For Run's goroutine only.
	record    *rollout.Notified         // as it was last; nil: not read yet
	unwritten map[string]rollout.Cursor // what is to be written to it
	retries   map[string]retry
	trouble   retry             // of the record itself
	foreign   string            // the claim of another process
	since     time.Time         // that it has not changed
	reported  map[string]string // by receiver
}

// retry is when something that failed is tried again.
type retry struct {
	tries int
	after time.Time
}

// New returns a worker that knows nothing yet.
func New(o Options) *Worker {
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	if o.Spread == nil {
		o.Spread = func(d time.Duration) time.Duration { return d }
	}
	w := &Worker{
		Options: o, wake: make(chan struct{}, 1), base: map[string]string{}, reported: map[string]string{},
		unwritten: map[string]rollout.Cursor{}, retries: map[string]retry{},
	}
	w.idle = sync.NewCond(&w.mu)
	return w
}

// Notify is edge.Notifier's: it takes note of what is asked for, of where the
// state branch is, and of what this process has just recorded, and returns at once.
func (w *Worker) Notify(config *rollout.Config, head string, made *rollout.Recorded) {
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
		return // nobody is told of anything, and nobody was
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

// keep keeps a commit, and forgets the oldest ones; the caller holds the lock.
func (w *Worker) keep(made rollout.Recorded) {
	w.known = append(w.known, made)
	apps := 0
	for i := len(w.known) - 1; i >= 0; i-- {
		if apps += 1 + len(w.known[i].Apps); apps > maxKnown {
			w.known = slices.Clone(w.known[i+1:])
			return
		}
	}
}

// Run tells until the context ends, and then writes down what it has told.
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
		if w.foreign == "" { // else it is not over
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

// settle records the last messages. The next process sends a message again that is not on record.
func (w *Worker) settle() {
	if len(w.unwritten) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWrite)
	defer cancel()
	err := w.Update(ctx, w.Now(), func(n *rollout.Notified) error {
		if n.By == w.ID {
			w.writeDown(n)
		}
		return nil
	})
	if err != nil {
		w.report("", fmt.Errorf("what was told last is not on record, and will be told again: %w", err))
	}
}

// lastWrite bounds that.
const lastWrite = 5 * time.Second

// Flush waits until everything has been tried, or the context ends.
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

// view is what one round is about.
type view struct {
	config *rollout.Config
	head   string
	base   map[string]string
	known  map[string]rollout.Recorded
}

func (w *Worker) view() view {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := view{config: w.config, head: w.head, base: maps.Clone(w.base), known: map[string]rollout.Recorded{}}
	for _, c := range w.known {
		v.known[c.ID] = c
	}
	return v
}

// line is the commits after one, from what this process has made or else from Git.
func (w *Worker) line(ctx context.Context, v view, after string) ([]rollout.Recorded, error) {
	var line []rollout.Recorded
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

// errAhead is that another process has told more than this one has heard of.
var errAhead = errors.New("is newer than the known head of the state branch")

// read reads the line from Git. That it does not lead to a commit has two reasons:
// the branch was rewritten, or the commit comes after the head.
func (w *Worker) read(ctx context.Context, after, upTo string) ([]rollout.Recorded, error) {
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

// report logs a problem once until it is another one or over.
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

// next is the retry after another failure, or after the break that a service asks for if that is longer.
func (w *Worker) next(r retry, now time.Time, asked time.Duration) retry {
	r.tries++
	r.after = now.Add(max(asked, w.Spread(call.Backoff(r.tries))))
	return r
}
