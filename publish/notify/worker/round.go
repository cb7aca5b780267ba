package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// maxLag limits the commits between a recorded cursor and the head if no message is due. A new process must read these
// commits.
const maxLag = 100

// lease is how long a claim may stay unchanged before its process counts as dead.
const lease = 30 * time.Second

// claimTime limits the time for sending claimed messages. It is shorter than lease, so that no other process takes
// over.
const claimTime = 20 * time.Second

var errBusy = errors.New("another gitrollout process is sending notifications")

type task struct {
	receiver rollout.Receiver
	due      []notify.Due
	end      rollout.Cursor
}

type plan struct {
	tasks   []task
	changed bool
	wait    time.Duration // maximum pause before the next round
}

func (w *Worker) round(ctx context.Context) time.Duration {
	now, v := w.Now(), w.view()
	if now.Before(w.trouble.after) {
		return w.trouble.after.Sub(now)
	}
	var p plan
	if w.record != nil { // no request is needed if the last known record has nothing due
		var err error
		if p, err = w.plan(ctx, v, clone(w.record), now); err == nil && !p.changed {
			return p.wait
		}
	}
	var next *rollout.Notified
	err := w.Update(ctx, now, func(n *rollout.Notified) (err error) {
		p, err = w.plan(ctx, v, n, now)
		next = clone(n)
		return err
	})
	switch {
	case errors.Is(err, errBusy):
		w.record = nil
		return max(p.wait, time.Millisecond)
	case err != nil:
		if ctx.Err() == nil {
			w.trouble = w.next(w.trouble, now, 0)
			w.report("", fmt.Errorf("notifications wait: %w", err))
		}
		w.record = nil
		return max(w.trouble.after.Sub(now), time.Millisecond)
	}
	w.report("", nil)
	w.record, w.trouble = next, retry{}
	clear(w.unwritten)
	if len(p.tasks) == 0 {
		return p.wait
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, t := range p.tasks {
		all.Go(func() {
			r := w.send(ctx, t)
			mu.Lock()
			defer mu.Unlock()
			w.note(ctx, t, r)
		})
	}
	all.Wait()
	return 0
}

func clone(n *rollout.Notified) *rollout.Notified {
	c := *n
	c.Receivers = maps.Clone(n.Receivers)
	return &c
}

// plan claims due messages. After a conflict, it runs again, so it changes no fields of w except w.foreign, w.since and
// w.reported.
func (w *Worker) plan(ctx context.Context, v view, n *rollout.Notified, now time.Time) (plan, error) {
	p := plan{wait: time.Hour}
	if left := w.busy(n, now); left > 0 {
		p.wait = left
		return p, errBusy
	}
	was := clone(n)
	if n.Receivers == nil {
		n.Receivers = map[string]rollout.Cursor{}
	}
	if n.By == w.ID {
		w.writeDown(n)
	}
	listed := map[string]bool{}
	for _, r := range v.config.Receivers {
		listed[r.Name] = true
		if _, found := n.Receivers[r.Name]; !found {
			n.Receivers[r.Name] = rollout.Cursor{Told: v.base[r.Name]}
		}
	}
	maps.DeleteFunc(n.Receivers, func(name string, _ rollout.Cursor) bool { return !listed[name] })
	lagging := map[string]rollout.Cursor{}
	for _, r := range v.config.Receivers {
		if at := w.retries[r.Name].after; now.Before(at) {
			p.wait = min(p.wait, at.Sub(now))
			continue
		}
		t, lag, err := w.task(ctx, v, n.Receivers[r.Name], r, now)
		if err != nil {
			return p, err
		}
		switch {
		case len(t.due) > 0:
			p.tasks = append(p.tasks, t)
			c := n.Receivers[r.Name]
			c.Claimed = v.head
			n.Receivers[r.Name] = c
		case lag > maxLag || n.Receivers[r.Name].Claimed != "":
			n.Receivers[r.Name] = t.end
		case lag > 0:
			lagging[r.Name] = t.end
		}
	}
	if w.sign(n); len(p.tasks) > 0 {
		n.Since = rollout.Second(now)
	}
	if p.changed = was.By != n.By || !maps.Equal(was.Receivers, n.Receivers); p.changed {
		maps.Copy(n.Receivers, lagging) // the record is written anyway
	}
	return p, nil
}

func (w *Worker) writeDown(n *rollout.Notified) {
	for name, cursor := range w.unwritten {
		if _, listed := n.Receivers[name]; listed {
			n.Receivers[name] = cursor
		}
	}
	w.sign(n)
}

func (w *Worker) sign(n *rollout.Notified) {
	n.By = ""
	for _, c := range n.Receivers {
		if c.Claimed != "" {
			n.By = w.ID
		}
	}
	if n.By == "" {
		n.Since = time.Time{}
	}
}

// busy returns how long to wait for the claim of another process. This machine's clock measures the lease.
func (w *Worker) busy(n *rollout.Notified, now time.Time) time.Duration {
	// Ten minutes after the claim, its process counts as dead, even if clocks differ. "gitrollout once" needs this
	// rule, because it ends before a lease expires.
	isOld := !n.Since.IsZero() && now.Sub(n.Since) > 10*time.Minute
	if n.By == "" || n.By == w.ID || isOld {
		w.foreign = ""
		return 0
	}
	if claim := fmt.Sprint(n.By, n.Receivers); w.foreign != claim {
		w.foreign, w.since = claim, now
	}
	left := w.since.Add(lease).Sub(now)
	if left <= 0 {
		w.foreign = ""
	}
	return left
}

func (w *Worker) task(
	ctx context.Context, v view, at rollout.Cursor, r rollout.Receiver, now time.Time,
) (task, int, error) {
	t := task{receiver: r, end: rollout.Cursor{Told: v.head}}
	if at.Told == v.head && at.App == "" {
		return t, 0, nil
	}
	line, err := w.line(ctx, v, at.Told)
	if errors.Is(err, errAhead) {
		t.end = at
		return t, 0, nil
	}
	if errors.Is(err, ErrGone) {
		w.report(r.Name, fmt.Errorf("notification %s: events since state commit %s are not sent: this commit %w", r.Name,
			rollout.ShortID(at.Told), ErrGone))
		return t, maxLag + 1, nil
	}
	if err != nil {
		return t, 0, fmt.Errorf("read the history of the state branch: %w", err)
	}
	claimed, profile := at.Claimed, w.ProfileOf(r.Service)
	if profile.Dedups {
		claimed = ""
	}
	b := notify.Pending(w.Cluster, r, profile, at, claimed, line, w.Links(v.config.Forge), now)
	if b.Dropped > 0 {
		w.report(r.Name, fmt.Errorf("notification %s: %d events are dropped: the limits are an age of %s and %d events",
			r.Name, b.Dropped, notify.MaxAge, notify.MaxPending))
	}
	if b.Err != nil {
		w.report("template of "+r.Name, b.Err)
	}
	t.due = b.Due
	return t, len(line), nil
}

type sent struct {
	n       int // number of messages that were delivered or permanently refused
	refused []error
	failed  error
	after   time.Duration
}

func (w *Worker) send(ctx context.Context, t task) (s sent) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	for _, d := range t.due {
		if ctx.Err() != nil {
			return s
		}
		final, after, err := w.Send(ctx, t.receiver, d.Message)
		switch {
		case err == nil:
		case final:
			s.refused = append(s.refused,
				fmt.Errorf("notification %s: %s (%s) was not accepted: %w", t.receiver.Name, d.Kind, d.ID, err))
		default:
			s.failed, s.after = err, after
			return s
		}
		s.n++
	}
	return s
}

func (w *Worker) note(ctx context.Context, t task, s sent) {
	name := t.receiver.Name
	switch {
	case s.n == len(t.due):
		w.unwritten[name] = t.end
	case s.n > 0:
		w.unwritten[name] = t.due[s.n-1].After
	case ctx.Err() != nil: // the message may have arrived, so keep the claim
	default:
		c := w.record.Receivers[name]
		w.unwritten[name] = rollout.Cursor{Told: c.Told, App: c.App}
	}
	for _, err := range s.refused {
		w.Log(err, "")
	}
	if told := s.n - len(s.refused); told > 0 {
		w.Log(nil, fmt.Sprintf("%s: %d sent", name, told))
	}
	if s.failed == nil {
		delete(w.retries, name)
		w.report(name, nil)
		return
	}
	if ctx.Err() == nil {
		w.retries[name] = w.next(w.retries[name], w.Now(), s.after)
		w.report(name, fmt.Errorf("notification %s waits: %w", name, s.failed))
	}
}
