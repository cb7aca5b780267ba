package worker_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/worker"
	"gitrollout.dev/gitrollout/rollout"
)

// world has a state branch, a record with compare-and-swap, and receivers with inboxes.
type world struct {
	t       *testing.T
	mu      sync.Mutex
	line    []rollout.StateCommit
	record  rollout.Notified
	writes  int
	reads   int
	refuse  error // the error of each read and write of the record
	inbox   map[string][]string
	answer  func(receiver string, m notify.Message) (final bool, after time.Duration, err error)
	during  func() // called at each attempt to send a message
	reports []string
	done    []string
	config  *rollout.Config
}

func newWorld(t *testing.T, receivers ...rollout.Receiver) *world {
	return &world{t: t, inbox: map[string][]string{}, config: &rollout.Config{Receivers: receivers}}
}

func chat(name string) rollout.Receiver { return rollout.Receiver{Name: name, Service: "chat"} }

// commit adds and returns a state commit. In this commit, a release of each given app starts.
func (w *world) commit(apps ...string) *rollout.StateCommit {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := rollout.StateCommit{ID: fmt.Sprintf("%040d", len(w.line)+1), When: time.Now()}
	if n := len(w.line); n > 0 {
		c.Parent = w.line[n-1].ID
	}
	for _, app := range apps {
		release := &rollout.Release{Hash: rollout.Hash(fmt.Sprintf("h1-%d", len(w.line))), Since: c.When}
		c.Apps = append(c.Apps, rollout.RecordedApp{App: app, After: rollout.State{App: app, Phase: rollout.Progressing, Release: release}})
	}
	w.line = append(w.line, c)
	return &c
}

func (w *world) head() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.line) == 0 {
		return ""
	}
	return w.line[len(w.line)-1].ID
}

// update changes the record by compare-and-swap, as a push to a branch does.
func (w *world) update(_ context.Context, _ time.Time, change func(*rollout.Notified) error) error {
	for {
		w.mu.Lock()
		w.reads++
		was, writes, refused := worker.Clone(&w.record), w.writes, w.refuse
		w.mu.Unlock()
		if refused != nil {
			return refused
		}
		n := worker.Clone(was)
		if err := change(n); err != nil {
			return err
		}
		w.mu.Lock()
		same, lost := n.By == was.By && maps.Equal(n.Receivers, was.Receivers), w.writes != writes
		if !same && !lost {
			w.record, w.writes = *n, writes+1
		}
		w.mu.Unlock()
		if same || !lost {
			return nil
		}
	}
}

func (w *world) history(_ context.Context, after, upTo string) ([]rollout.StateCommit, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := slices.IndexFunc(w.line, func(c rollout.StateCommit) bool { return c.ID == after })
	to := slices.IndexFunc(w.line, func(c rollout.StateCommit) bool { return c.ID == upTo })
	if (upTo != "" && to < 0) || (after != "" && from < 0) || from > to {
		return nil, worker.ErrGone
	}
	return slices.Clone(w.line[from+1 : to+1]), nil
}

func (w *world) send(_ context.Context, r rollout.Receiver, m notify.Message) (bool, time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.during != nil {
		w.during()
	}
	if w.answer != nil {
		if final, after, err := w.answer(r.Name, m); err != nil {
			return final, after, err
		}
	}
	text := m.ID[38:]
	if m.Repeat {
		text += " again"
	}
	w.inbox[r.Name] = append(w.inbox[r.Name], text)
	return false, 0, nil
}

// started returns a world, and a process that has started before the first commit.
func started(t *testing.T, receivers ...rollout.Receiver) (w *world, p *worker.Worker, end func(flush bool)) {
	w = newWorld(t, receivers...)
	p, end = w.process("one")
	p.Notify(w.config, "", nil)
	return w, p, end
}

// push calls commit, and then a process's Notify.
func (w *world) push(p *worker.Worker, apps ...string) *rollout.StateCommit {
	c := w.commit(apps...)
	p.Notify(w.config, c.ID, c)
	return c
}

// locked calls a function while no process can access the world.
func (w *world) locked(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// process starts a worker. The returned function stops the worker. With the argument true, it calls Flush first.
func (w *world) process(id string) (running *worker.Worker, end func(flush bool)) {
	return w.processWith(id, func(*worker.Options) {})
}

func (w *world) processWith(id string, change func(*worker.Options)) (running *worker.Worker, end func(flush bool)) {
	o := worker.Options{
		ID: id, Cluster: "prod", Update: w.update, History: w.history, Send: w.send, Now: time.Now,
		Spread: func(d time.Duration) time.Duration { return d },
		ProfileOf: func(service string) notify.Profile {
			return notify.Profile{Defaults: []rollout.EventKind{rollout.EventStarted}, Dedups: service == "dedups"}
		},
		Links: func(*rollout.Forge) notify.Links { return notify.Links{} },
		Log: func(problem error, done string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if problem != nil {
				w.reports = append(w.reports, problem.Error())
			} else {
				w.done = append(w.done, done)
			}
		},
	}
	change(&o)
	p := worker.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx)
	}()
	return p, func(flush bool) {
		if flush {
			p.Flush(context.Background())
		}
		cancel()
		<-ended
	}
}

// wantReports checks the reported problems: the n-th must contain the n-th part.
func (w *world) wantReports(parts ...string) {
	w.t.Helper()
	if !slices.EqualFunc(w.reports, parts, strings.Contains) {
		w.t.Errorf("reported %q, want %q", w.reports, parts)
	}
}

// wantTold checks that receiver a has the cursor want in the record, and that no messages are claimed.
func (w *world) wantTold(want rollout.Cursor) {
	w.t.Helper()
	if w.record.Receivers["a"] != want || w.record.By != "" {
		w.t.Errorf("the record is %+v, want %+v, and no process", w.record, want)
	}
}

func (w *world) wantInbox(want map[string][]string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := compare.Diff(want, w.inbox); diff != "" {
		w.t.Errorf("told (-want +got):\n%s\nrecord %+v, reports %q", diff, w.record, w.reports)
	}
}
