package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// Options configure a Worker.
type Options struct {
	Cluster string // cluster whose proposals get pull requests
	Remote  string // without credentials
	Branch  string
	Trusted string // also gets the token; may be ""
	// Token is called for each request.
	Token func(context.Context) (string, error)
	Now   func() time.Time
	// Settle is the longest time that a forge takes to close the pull request of a removed branch (default 30 s).
	Settle time.Duration
	// Spread lengthens the pause before a retry (adapters.Spread).
	Spread func(time.Duration) time.Duration
	// Log gets a problem, or a description of completed work. A lasting problem is logged once.
	Log func(problem error, done string)

	forges table // default: all forges
}

// maxJobs limits the queue while the forge does not respond.
const maxJobs = 4096

// Worker sends changes one at a time. Show, Resume and Flush may run concurrently.
type Worker struct {
	Options
	mu      sync.Mutex
	config  *rollout.Forge
	jobs    map[string]*job
	order   []string             // of jobs, oldest first
	exists  map[string]bool      // by branch of a proposal
	newest  map[string]string    // newest commit, by branch of a proposal
	removed map[string]time.Time // by branch: time of this process's last removal
	busy    bool
	wake    chan struct{}
	idle    *sync.Cond

	// Only Run's goroutine uses the fields below.
	host     host
	hostOf   *rollout.Forge
	pause    time.Time
	downs    int // failures since the last answer
	reported map[string]bool
}

// job is an order. A newer job with the same key replaces it.
type job struct {
	do    func(ctx context.Context, h host) error
	tries int
	after time.Time
}

// NewWorker returns a Worker with an empty queue.
func NewWorker(o Options) *Worker {
	o.Settle = cmp.Or(o.Settle, 30*time.Second)
	w := &Worker{
		Options: o, jobs: map[string]*job{}, wake: make(chan struct{}, 1), reported: map[string]bool{},
		exists: map[string]bool{}, newest: map[string]string{}, removed: map[string]time.Time{},
	}
	w.idle = sync.NewCond(&w.mu)
	return w
}

// Show implements adapters.ForgeReader. It queues orders for recorded transitions, and does not wait.
func (w *Worker) Show(config rollout.Forge, transitions []rollout.ForgeUpdate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.config = &config
	for _, t := range transitions {
		for _, p := range t.Proposals {
			w.exists[p.Branch], w.newest[p.Branch] = p.Commit != "", p.Commit
			if p.Commit == "" {
				w.removed[p.Branch] = w.Now()
			}
		}
	}
	w.take(transitions, func(ctx context.Context, h host, name string, m marked) error {
		return h.setStatus(ctx, m.commit, name, m.status)
	})
}

// Resume implements adapters.ForgeReader. It queues the proposals of all apps, missing statuses, and the closing of
// pull requests whose branch is gone.
func (w *Worker) Resume(config rollout.Forge, transitions []rollout.ForgeUpdate, branches []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.config = &config
	clear(w.exists)
	for _, branch := range branches {
		w.exists[branch] = true
	}
	w.put("sweep", w.sweep)
	known := map[string]map[string]status{} // by commit, so that several apps need one request
	w.take(transitions, func(ctx context.Context, h host, name string, m marked) error {
		if known[m.commit] == nil {
			found, err := h.statuses(ctx, m.commit)
			if err != nil {
				return err
			}
			known[m.commit] = found
		}
		if known[m.commit][name] == m.status {
			return nil
		}
		return h.setStatus(ctx, m.commit, name, m.status)
	})
}

// take is called with the lock held.
func (w *Worker) take(
	transitions []rollout.ForgeUpdate, mark func(ctx context.Context, h host, name string, m marked) error,
) {
	for _, t := range transitions {
		for _, p := range t.Proposals {
			w.put("proposal "+p.Branch, w.proposal(t, p))
		}
		name := rollout.StatusContext(t.Cluster, t.After.App)
		for _, m := range statusesOf(t) {
			w.put("status "+m.commit+" "+name, func(ctx context.Context, h host) error { return mark(ctx, h, name, m) })
		}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// put is called with the lock held.
func (w *Worker) put(key string, do func(context.Context, host) error) {
	if old := w.jobs[key]; old != nil {
		w.jobs[key] = &job{do: do, after: old.after}
		return
	}
	if len(w.jobs) >= maxJobs {
		w.report(fmt.Errorf("more than %d updates of pull requests and statuses wait for the forge; "+
			"more updates are dropped until the forge answers, and queued again when gitrollout restarts", maxJobs))
		return
	}
	w.jobs[key] = &job{do: do}
	w.order = append(w.order, key)
}

// Run works until ctx ends.
func (w *Worker) Run(ctx context.Context) {
	for ctx.Err() == nil {
		key, j, wait := w.next()
		if j != nil {
			err := w.carryOut(ctx, j)
			w.done(ctx, key, j, err)
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-time.After(wait):
		}
	}
}

// next returns the oldest due order, and sets w.busy. If no order is due, it returns the time until the next order is
// due.
func (w *Worker) next() (key string, j *job, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, j, wait = w.due()
	if w.busy = j != nil; !w.busy {
		w.idle.Broadcast()
	}
	return key, j, wait
}

// due is called with the lock held.
func (w *Worker) due() (key string, j *job, wait time.Duration) {
	now := w.Now()
	if now.Before(w.pause) && len(w.jobs) > 0 {
		return "", nil, w.pause.Sub(now)
	}
	wait = time.Hour
	for _, key := range w.order {
		j := w.jobs[key]
		if !now.Before(j.after) {
			return key, j, 0
		}
		wait = min(wait, j.after.Sub(now))
	}
	return "", nil, wait
}

func (w *Worker) carryOut(ctx context.Context, j *job) error {
	w.mu.Lock()
	config := w.config
	w.mu.Unlock()
	if w.hostOf == nil || !config.Equal(w.hostOf) {
		h, err := w.connect(*config)
		if err != nil {
			return unusable{err}
		}
		w.host, w.hostOf = h, config
	}
	return j.do(ctx, w.host)
}

func (o Options) connect(config rollout.Forge) (host, error) {
	t, a, err := o.reach(config)
	if err != nil {
		return nil, err
	}
	return t.kind.client(a, t.repository, o.Branch), nil
}

func (o Options) reach(config rollout.Forge) (target, *api, error) {
	known := o.forges
	if known == nil {
		known = forges
	}
	t, err := known.resolve(config, o.Remote, o.Trusted)
	if err != nil {
		return t, nil, err
	}
	return t, &api{
		client: call.Clients(), base: t.kind.api(t.address), token: o.Token, header: t.kind.header, now: o.Now,
		spacing: t.kind.spacing,
	}, nil
}

// unusable is an error that lasts until the configuration changes.
type unusable struct{ error }

// maxTries limits the tries of a refused order. An order that lacks access is kept, because a user may grant access.
const maxTries = 5

func (w *Worker) done(ctx context.Context, key string, j *job, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	failed, isRequest := errors.AsType[*call.Error](err)
	answered := err == nil || (isRequest && failed.Status/100 == 4)
	if answered {
		w.downs = 0
	}
	now, drop := w.Now(), false
	switch {
	case err == nil:
		if drop = true; j.tries > 0 {
			clear(w.reported)
		}
	case errors.As(err, new(unusable)):
		drop = true
		w.report(fmt.Errorf("no pull requests are opened: %w", err))
	case isRequest && failed.After > 0:
		w.pause = now.Add(failed.After)
		return
	case !answered && !errors.Is(err, errNoToken):
		w.downs++
		w.pause = now.Add(w.Spread(call.Backoff(w.downs)))
		j.tries++ // the forge may fail only for this order, so other orders come first
		j.after = w.pause.Add(call.Backoff(j.tries))
		w.report(err)
		return
	default:
		w.report(err)
		heals := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} // a user may grant access
		drop = isRequest && !slices.Contains(heals, failed.Status) && j.tries+1 >= maxTries
	}
	if w.jobs[key] != j {
		return
	}
	if drop {
		delete(w.jobs, key)
		w.order = slices.DeleteFunc(w.order, func(k string) bool { return k == key })
		return
	}
	j.tries++
	j.after = now.Add(w.Spread(call.Backoff(j.tries)))
}

// report does not log an error again until a retry has succeeded.
func (w *Worker) report(err error) {
	if text := err.Error(); !w.reported[text] {
		w.reported[text] = true
		w.Log(err, "")
	}
}

// Flush waits until no order is due, or until the context ends.
func (w *Worker) Flush(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		w.idle.Broadcast()
		w.mu.Unlock()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for ctx.Err() == nil {
		if _, due, _ := w.due(); due == nil && !w.busy {
			return
		}
		w.idle.Wait()
	}
}
