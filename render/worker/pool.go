// Package worker builds apps in processes with limited memory and time, so that one app's build cannot harm another. A
// worker runs its parent's program with an empty environment.
package worker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// Options configure a Pool.
type Options struct {
	// Command returns a worker's command. The program must call Limit(memory), then Serve(os.Stdin, os.Stdout, …).
	Command func(memory int64) *exec.Cmd
	Most    int           // maximum number of workers, including idle workers (0 means 1)
	Idle    time.Duration // idle workers end this long after the last build; a start costs about a second of CPU time
	Stall   int           // maximum wall-clock time of a build, as a multiple of limits.renderTime (CPU time); default 4
	// Trouble gets a panic and its stack, or the cause of a worker's end and the worker's output. May be nil.
	Trouble func(app string, cause string, stack []byte)
	// Unlock returns data keys. Set it before the first build.
	Unlock Unlock
}

// Pool is a render.Builder that starts workers on demand. Each app has at most one worker, so that no app can occupy
// all workers.
type Pool struct {
	Options

	mu     sync.Mutex
	news   *sync.Cond
	apps   map[string]bool
	idle   []*process
	busy   map[*process]bool
	rest   *time.Timer // ends idle workers
	free   *time.Timer // returns unused memory to the system
	closed bool
}

var _ render.Builder = (*Pool)(nil)

// NewPool returns a Pool without workers.
func NewPool(o Options) *Pool {
	if o.Trouble == nil {
		o.Trouble = func(string, string, []byte) {}
	}
	p := &Pool{Options: o, apps: map[string]bool{}, busy: map[*process]bool{}}
	p.news = sync.NewCond(&p.mu)
	return p
}

const mostTold = 4 << 10

var errClosed = errors.New("rendering was stopped, because the program ends")

// Build implements render.Builder. After a crash or too much memory, it tries another worker once. A second such
// failure, or too much time, is an InvalidError. Other errors may be temporary.
func (p *Pool) Build(tree rollout.Tree, app rollout.App) (*rollout.Render, render.Looked, error) {
	if err := p.begin(app.Name); err != nil {
		return nil, render.Looked{}, err
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.apps, app.Name)
		p.news.Broadcast()
	}()
	limits := app.Limits.OrDefault()
	app.Sealed = app.Sealed || p.Unlock == nil
	for again := false; ; again = true {
		w, err := p.take(limits.Memory)
		if err != nil {
			return nil, render.Looked{}, err
		}
		s := &session{tree: tree, shown: map[string]bool{}, unlock: p.Unlock}
		done, err := w.build(s, app, cmp.Or(p.Stall, 4))
		closed := p.put(w, err == nil)
		switch {
		case s.failed != nil:
			return nil, render.Looked{}, s.failed
		case err == nil:
			return p.result(app, done)
		case closed:
			return nil, render.Looked{}, errClosed
		}
		held, words := &rollout.InvalidError{File: app.Path}, []byte(nil)
		switch {
		case bytes.Contains(w.last.bytes(), []byte(outOfTime)):
			held.Msg, held.Fix = fmt.Sprintf("takes more than %s to render", limits.RenderTime), widen("renderTime")
		case !again:
			continue // try again: the kernel may have killed the worker, or garbage was collected too late
		case w.hasRunOut():
			held.Msg, held.Fix = fmt.Sprintf("takes more than %s of memory to render", limits.Memory), widen("memory")
		case w.cmd.ProcessState.ExitCode() < 0 && !fatal.Match(w.last.bytes()):
			err = fmt.Errorf("%s: the process that renders the app was killed: the machine is busy, suspended or "+
				"out of memory; a retry may succeed", app.Path)
			p.Trouble(app.Name, err.Error(), nil)
			return nil, render.Looked{}, err
		default:
			held.Msg, held.Fix = "crashed the render process: "+w.cause(), "report the crash, and change the app"
			words = w.last.bytes()
		}
		p.Trouble(app.Name, held.Msg, words[:min(len(words), mostTold)])
		// Any path sent to the worker may have caused the failure.
		return nil, render.Looked{At: slices.Collect(maps.Keys(s.shown)), All: s.listed}, held
	}
}

func widen(field string) string {
	return "make the app smaller, or widen limits." + field + " in the cluster's config.yaml"
}

func (p *Pool) result(app rollout.App, o *outcome) (*rollout.Render, render.Looked, error) {
	switch {
	case o.Panic != "":
		p.Trouble(app.Name, "panic: "+o.Panic, o.Stack)
		return nil, o.Looked, &rollout.InvalidError{File: app.Path, Msg: "rendering it panicked: " + o.Panic,
			Fix: "report the panic, and revert to the previous commit"}
	case o.Invalid != nil:
		return nil, o.Looked, o.Invalid
	case o.Err != "":
		return nil, render.Looked{}, errors.New(o.Err)
	}
	return o.Render, o.Looked, nil
}

func (p *Pool) begin(app string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.apps[app] && !p.closed {
		p.news.Wait()
	}
	if p.closed {
		return errClosed
	}
	p.apps[app] = true
	return nil
}

func (p *Pool) take(memory rollout.Bytes) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.busy) >= cmp.Or(p.Most, 1) && !p.closed {
		p.news.Wait()
	}
	if p.closed {
		return nil, errClosed
	}
	if i := slices.IndexFunc(p.idle, func(w *process) bool { return w.memory == memory }); i >= 0 {
		w := p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
		p.busy[w] = true
		return w, nil
	}
	for len(p.idle) > 0 && len(p.idle)+len(p.busy) >= p.Most { // no idle worker has this memory limit
		p.idle[0].end()
		p.idle = p.idle[1:]
	}
	w, err := p.start(memory)
	if err != nil {
		return nil, err
	}
	p.busy[w] = true
	return w, nil
}

func (p *Pool) put(w *process, alive bool) (closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, w)
	switch {
	case !alive:
	case p.closed:
		w.end()
	default:
		p.idle = append(p.idle, w)
		if p.rest != nil {
			p.rest.Stop()
			p.free.Stop()
		}
		p.rest = time.AfterFunc(p.Idle, p.endIdle)
		p.free = time.AfterFunc(10*time.Second, debug.FreeOSMemory)
	}
	p.news.Broadcast()
	return p.closed
}

func (p *Pool) endIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle {
		w.end()
	}
	p.idle = nil
}

// Close ends all workers and their builds. Later builds fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for w := range p.busy {
		_ = w.cmd.Process.Kill()
	}
	p.news.Broadcast()
	p.mu.Unlock()
	p.endIdle()
}
