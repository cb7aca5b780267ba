// Package worker builds apps in processes with bounds of memory and time, so that a failing build affects no other
// work. A worker is the same program without environment; it requests files over standard output and input.
package worker

import (
	"cmp"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// Options determine how, and how many, workers start.
type Options struct {
	// Command returns a program that calls Limit with the bytes, then Serve on standard input and output.
	Command func(memory int64) *exec.Cmd
	// Most is the maximum of workers, with idle ones; at least 1.
	Most int
	// Idle is how long idle workers are kept. A start costs about a second of CPU.
	Idle time.Duration
	// Stall is a build's most wall-clock time over CPU time, on a busy or suspended machine. Default 4.
	Stall int
	// Trouble, if set, is called for each given-up worker, with a panic's stack, or with output if no bound ended it.
	Trouble func(app string, cause string, stack []byte)
	// Unlock, set before the first build, returns data keys by keys that no worker has. Nil: encrypted files stay.
	Unlock Unlock
}

// Pool is a render.Builder that starts workers on demand. An app has one at a time: a slow one leaves the others.
type Pool struct {
	Options

	mu     sync.Mutex
	news   *sync.Cond
	apps   map[string]bool     // in progress
	asked  map[string][]string // by app, the paths that its last build requested
	idle   []*process
	busy   map[*process]bool
	rest   *time.Timer // ends the idle workers
	closed bool
}

var _ render.Builder = (*Pool)(nil)

// NewPool returns a Pool without workers.
func NewPool(o Options) *Pool {
	p := &Pool{Options: o, apps: map[string]bool{}, asked: map[string][]string{}, busy: map[*process]bool{}}
	p.news = sync.NewCond(&p.mu)
	return p
}

// mostTold bounds a worker's output for Trouble, in bytes.
const mostTold = 4 << 10

var errClosed = errors.New("rendering has been given up: the program ends")

// Build implements render.Builder. An app that exceeds its bounds, or ends its worker twice, is an InvalidError. Any
// other error is the machine's, such as killed workers: a retry may succeed.
func (p *Pool) Build(tree rollout.Tree, app rollout.App) (*rollout.Render, render.Looked, error) {
	asked, err := p.begin(app)
	if err != nil {
		return nil, render.Looked{}, err
	}
	defer func() { p.finish(app.Name, asked) }()
	limits := app.Limits.OrDefault()
	app.Sealed = app.Sealed || p.Unlock == nil
	for again := false; ; again = true {
		w, err := p.take(limits.Memory)
		if err != nil {
			return nil, render.Looked{}, err
		}
		s := &session{tree: tree, ahead: asked, shown: map[string]bool{}, unlock: p.Unlock}
		done, err := w.build(s, app, cmp.Or(p.Stall, 4))
		asked = s.worthwhile()
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
		case w.isLate():
			held.Msg, held.Fix = fmt.Sprintf("takes more than %s to render", limits.RenderTime), widen("renderTime")
		case !again:
			continue // the kernel may have killed it, and on a busy machine the collector may fall behind the garbage
		case w.hasRunOut():
			held.Msg, held.Fix = fmt.Sprintf("takes more than %s of memory to render", limits.Memory), widen("memory")
		case w.cmd.ProcessState.ExitCode() < 0 && !fatal.Match(w.last.bytes()):
			err = fmt.Errorf("%s: the process that renders it was killed before the end: the machine is busy, stands still or "+
				"is out of memory; another try may succeed", app.Path)
			p.tell(app.Name, err.Error(), nil)
			return nil, render.Looked{}, err
		default:
			held.Msg, held.Fix = "ended the process that renders it: "+w.cause(), "report it, and change the app"
			words = w.last.bytes()
		}
		p.tell(app.Name, held.Msg, words[:min(len(words), mostTold)])
		return nil, s.known(), held
	}
}

func widen(field string) string {
	return "make the app smaller, or widen limits." + field + " in the cluster's config.yaml"
}

func (p *Pool) result(app rollout.App, o *outcome) (*rollout.Render, render.Looked, error) {
	switch {
	case o.Panic != "":
		p.tell(app.Name, "panic: "+o.Panic, o.Stack)
		return nil, o.Looked, &rollout.InvalidError{File: app.Path, Msg: "rendering it panicked: " + o.Panic,
			Fix: "report it, and go back to the previous commit"}
	case o.Invalid != nil:
		return nil, o.Looked, o.Invalid
	case o.Err != "":
		return nil, render.Looked{}, errors.New(o.Err)
	}
	return o.Render, o.Looked, nil
}

func (p *Pool) tell(app, cause string, stack []byte) {
	if p.Trouble != nil {
		p.Trouble(app, cause, stack)
	}
}

// begin waits for an app's other build, and returns paths that it will probably request.
func (p *Pool) begin(app rollout.App) (ask []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.apps[app.Name] && !p.closed {
		p.news.Wait()
	}
	if p.closed {
		return nil, errClosed
	}
	p.apps[app.Name] = true
	if known, before := p.asked[app.Name]; before {
		return known, nil
	}
	return []string{app.Path, path.Join(app.Path, "kustomization.yaml")}, nil
}

func (p *Pool) finish(app string, asked []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.apps, app)
	p.asked[app] = asked
	p.news.Broadcast()
}

// take waits for a worker with that memory bound.
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
	for len(p.idle) > 0 && len(p.idle)+len(p.busy) >= p.Most { // with another bound
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

// put returns a running worker to the pool, and reports whether that is closed.
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
		}
		p.rest = time.AfterFunc(p.Idle, p.endIdle)
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

// Close ends all workers and builds. The pool accepts no more.
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
