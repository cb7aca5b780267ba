package simulate

import (
	"context"
	"errors"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
)

// errDead ends the pass of a process that is no more.
var errDead = errors.New("the process is dead")

// Process is one reconciler, whose passes stop before each effect on the world
// until somebody says how it ends. Between two effects nothing else runs, so a
// scheduler that is not random decides about all there is.
type Process struct {
	*reconciler.Reconciler
	Name  string
	View  *View
	Clone *Clone

	now     time.Time // by the process's own clock, of its present pass
	running bool
	next    Effect // what it is about to do
	err     error  // of the last pass
	dead    bool
	steps   chan step
	resume  chan Outcome
}

// step is what a pass reports: the next effect, or its end.
type step struct {
	effect Effect
	ended  bool
	err    error
}

// Parts are what a process is made of, before the reconciler is.
type Parts struct {
	Git     *Git
	Cluster *Cluster
	Options reconciler.Options                  // Cluster, UID, Source, Renderer and Log
	Branch  string                              // that people push to
	Wrap    func(*Process, *reconciler.Options) // may put something between the reconciler and the world
}

// Start returns a process that knows nothing yet.
func Start(name string, parts Parts) *Process {
	p := &Process{Name: name, steps: make(chan step), resume: make(chan Outcome)}
	p.View = parts.Cluster.View(name, p.gate)
	p.Clone = parts.Git.Clone(name, parts.Branch, parts.Options.Cluster, p.gate)
	o := parts.Options
	o.Writer = name
	o.Repository, o.Observer, o.Applier, o.Workers = p.Clone, p.View, p.View, 1
	if parts.Wrap != nil {
		parts.Wrap(p, &o)
	}
	p.Reconciler = reconciler.New(o)
	return p
}

// gate is called by the pass, on its own goroutines, one at a time.
func (p *Process) gate(e Effect) Outcome {
	if p.dead {
		return Outcome{Err: errDead}
	}
	p.steps <- step{effect: e}
	return <-p.resume
}

// Begin starts a pass, which goes on to its first effect. It reports whether
// the pass is over already.
func (p *Process) Begin(now time.Time, fetch bool) (ended bool) {
	p.now, p.running = now, true
	go func() {
		err := p.RunOnce(context.Background(), now, fetch)
		p.steps <- step{ended: true, err: err}
	}()
	return p.await()
}

// Resume lets the effect that the pass is at end in some way, and the pass go
// on to the next one. It reports whether the pass is over.
func (p *Process) Resume(o Outcome) (ended bool) {
	p.resume <- o
	return p.await()
}

func (p *Process) await() (ended bool) {
	s := <-p.steps
	p.next, p.err = s.effect, s.err
	p.running = !s.ended
	return s.ended
}

// Kill ends the process before the effect that it is at. Nothing of it reaches
// the world any more.
func (p *Process) Kill() {
	p.dead = true
	if p.running {
		p.Resume(Outcome{Err: errDead})
	}
}

// Pass makes a whole pass in which everything happens, and returns its error.
func (p *Process) Pass(now time.Time, fetch bool) error {
	for ended := p.Begin(now, fetch); !ended; {
		ended = p.Resume(Outcome{})
	}
	return p.err
}
