package simulate

import (
	"context"
	"errors"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
)

// errDead ends what a process does that is no more.
var errDead = errors.New("the process is dead")

// Process is one reconciler, whose work stops before each effect on the world until somebody says how it ends.
// Between two effects nothing else runs, so a scheduler that is not random decides about all there is: also how the
// pumps of a process that works on several things at once interleave.
type Process struct {
	*reconciler.Reconciler
	Name  string
	View  *View
	Clone *Clone

	now     func() time.Time // its own clock, since it began something last
	running bool             // something is stopped at an effect
	next    Effect           // what the thread of the last step is about to do
	err     error            // of what ended last
	dead    bool
	threads []*thread // that are stopped, in the order in which they began
	current *thread   // the only one that runs
}

// thread is one thing that a process does: a whole pass, or a turn of one pump.
type thread struct {
	name   string
	next   Effect
	steps  chan step
	resume chan Outcome
}

// step is what a thread reports: the next effect, or its end.
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
	p := &Process{Name: name}
	p.View = parts.Cluster.View(name, p.gate)
	p.Clone = parts.Git.Clone(name, parts.Branch, parts.Options.Cluster, p.gate)
	o := parts.Options
	o.Writer = name
	o.Repository, o.Past, o.Observer, o.Applier, o.Workers = p.Clone, p.Clone, p.View, p.View, 1
	o.Jobs = p.View
	o.Nodes, o.Know = p.View.Nodes, p.View.Know
	if parts.Wrap != nil {
		parts.Wrap(p, &o)
	}
	p.Reconciler = reconciler.New(o)
	p.View.Wants = p.Reconciler.Wants
	return p
}

// gate is called by the thread that runs.
func (p *Process) gate(e Effect) Outcome {
	if p.dead {
		return Outcome{Err: errDead}
	}
	t := p.current
	t.steps <- step{effect: e}
	return <-t.resume
}

// Begin starts a pass, which goes on to its first effect. It reports whether the pass is over already.
func (p *Process) Begin(now time.Time, fetch bool) (ended bool) {
	p.now = p.clock(now)
	return p.start("pass", func() error { return p.RunOnce(context.Background(), p.now, fetch) })
}

// clock goes on from a time as the cluster's does.
func (p *Process) clock(now time.Time) func() time.Time {
	k, ahead := p.View.cluster.Kube, now.Sub(p.View.cluster.Kube.Now)
	return func() time.Time { return k.Now.Add(ahead) }
}

func (p *Process) start(name string, work func() error) (ended bool) {
	t := &thread{name: name, steps: make(chan step), resume: make(chan Outcome)}
	p.threads, p.current = append(p.threads, t), t
	go func() { t.steps <- step{err: work(), ended: true} }()
	return p.await()
}

// Choose says which of the stopped threads Resume is about.
func (p *Process) Choose(i int) {
	p.current = p.threads[i]
	p.next = p.current.next
}

// Resume lets the effect that the chosen thread is at end in some way, and the thread go on to the next one. It
// reports whether that is over. Without a choice it is about the thread of the last step.
func (p *Process) Resume(o Outcome) (ended bool) {
	p.current.resume <- o
	return p.await()
}

func (p *Process) await() (ended bool) {
	t := p.current
	s := <-t.steps
	t.next, p.next, p.err = s.effect, s.effect, s.err
	if s.ended {
		p.threads = slices.DeleteFunc(p.threads, func(other *thread) bool { return other == t })
		if len(p.threads) > 0 {
			p.Choose(0)
		}
	}
	p.running = len(p.threads) > 0
	return s.ended
}
