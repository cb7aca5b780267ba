// Package worker builds apps in processes of their own, which have a bound of memory and of time: what a build
// breaks is such a process, and nobody else notices. A worker is the same program, started without an environment;
// it reads the commit's files by asking for them, over its standard input and output.
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

// Options say how workers are started, and how many there are.
type Options struct {
	// Command is a program that calls Limit with the number of bytes and then Serve on its standard input and output.
	Command func(memory int64) *exec.Cmd
	// Most is how many there are at once, at rest or not; at least 1.
	Most int
	// Idle is how long workers are kept without work. They take about a second of a CPU to start and to warm up.
	Idle time.Duration
	// Trouble is told of each worker that was given up, with the stack if it panicked, and with its first words if it
	// ended for a reason that is none of its bounds. May be nil.
	Trouble func(app string, cause string, stack []byte)
	// Unlock returns data keys by keys that no worker has, as render.InProcess' does. It is set before the first
	// build. Nil: encrypted files are not opened.
	Unlock Unlock
}

// Pool is a render.Builder by workers. They are started when they are needed. One app has one of them at a time, so
// that an app that takes all the time it may leaves the others to the others.
type Pool struct {
	Options

	mu     sync.Mutex
	news   *sync.Cond
	apps   map[string]bool     // that are being built
	asked  map[string][]string // by app, what was asked for of its tree the last time
	idle   []*process
	busy   map[*process]bool
	rest   *time.Timer // until the idle ones are ended
	closed bool
}

var _ render.Builder = (*Pool)(nil)

// NewPool returns a Pool without workers.
func NewPool(o Options) *Pool {
	p := &Pool{Options: o, apps: map[string]bool{}, asked: map[string][]string{}, busy: map[*process]bool{}}
	p.news = sync.NewCond(&p.mu)
	return p
}

// mostTold bounds what Trouble is told of a worker's words, in bytes.
const mostTold = 4 << 10

var errClosed = errors.New("rendering has been given up: the program ends")

// Build is render.Builder's. An app that breaks its bounds, or its worker twice, is an InvalidError. Any other error is
// the machine's, such as a kernel that kills workers: another try may succeed.
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
		done, err := w.build(s, app)
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
		case w.hasRunOut():
			held.Msg, held.Fix = fmt.Sprintf("takes more than %s of memory to render", limits.Memory), widen("memory")
		case !again:
			continue // it may have been killed by somebody, at rest or not
		case w.isKilled():
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

// result is an outcome as Build returns it.
func (p *Pool) result(app rollout.App, o *outcome) (*rollout.Render, render.Looked, error) {
	switch {
	case o.Panic != "":
		p.tell(app.Name, "panic: "+o.Panic, o.Stack)
		return nil, o.Looked, &rollout.InvalidError{File: app.Path, Msg: "rendering it panicked: " + o.Panic,
			Fix: "report it, and go back to what was there before"}
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

// begin waits until an app is not being built, and returns what it is likely to ask for.
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

// take waits for a worker with that bound of memory.
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
	for len(p.idle) > 0 && len(p.idle)+len(p.busy) >= p.Most { // of another bound
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

// put takes a worker back, if it is still one, and reports whether the pool is closed.
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

// Close ends all workers, and the builds that are under way. The pool builds nothing more.
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
