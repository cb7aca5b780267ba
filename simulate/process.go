package simulate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// Effect is an action on Git or on the cluster.
type Effect struct {
	Verb   string // fetch, read, push, ask, check, compare, apply, evict, label, unannotate, prune, make or delete
	Object string // object, app, branch or commit
}

// String returns the verb and the object.
func (e Effect) String() string { return strings.TrimSuffix(e.Verb+" "+e.Object, " ") }

// Outcome is an effect's result. The zero Outcome means success.
type Outcome struct {
	Err   error // returned to the process
	After bool  // the effect happens despite Err
}

// Gate is called before each effect, and may block the process.
type Gate func(Effect) Outcome

var errDead = errors.New("the process is dead")

// Process is one reconciler. Before each effect, it waits until the scheduler sends an Outcome. Only one thread of all
// processes runs at a time, so that the scheduler orders all effects.
type Process struct {
	*reconciler.Reconciler
	Name  string
	View  *View
	Clone *memgit.Clone

	now     func() time.Time // time in the current pass
	read    time.Time
	running bool   // a thread waits before an effect
	next    Effect // effect of the current thread
	err     error  // of the thread that ended in the last step, or nil
	dead    bool
	threads []*thread // waiting, in the order of their start
	current *thread   // runs, or is resumed next
}

type thread struct {
	name   string
	next   Effect
	steps  chan step
	resume chan Outcome
}

type step struct {
	effect Effect
	ended  bool
	err    error
}

// Parts has the arguments of Start.
type Parts struct {
	Git     *memgit.Server
	Cluster *Cluster
	Options reconciler.Options // Start sets Writer and the models of Git and the cluster
	Branch  string
	Wrap    func(*Process, *reconciler.Options) // may replace options before the reconciler is made; may be nil
}

// Start returns a process that has read nothing.
func Start(name string, parts Parts) *Process {
	p := &Process{Name: name}
	p.View = parts.Cluster.View(name, p.gate)
	p.Clone = parts.Git.Clone(name, parts.Branch, parts.Options.Cluster, func(verb, object string) (bool, error) {
		o := p.gate(Effect{Verb: verb, Object: object})
		return o.After, o.Err
	})
	o := parts.Options
	o.Writer = name
	o.Repository, o.Past, o.Observer, o.Applier, o.Workers = p.Clone, p.Clone, p.View, p.View, 1
	o.Annotations = p.View
	o.Jobs, o.Nodes, o.Know = p.View, p.View.Nodes, p.View.Know
	if parts.Wrap != nil {
		parts.Wrap(p, &o)
	}
	p.Reconciler = reconciler.New(o)
	p.View.Wants = p.Reconciler.Wants
	return p
}

func (p *Process) gate(e Effect) Outcome {
	if p.dead {
		return Outcome{Err: errDead}
	}
	t := p.current
	t.steps <- step{effect: e}
	return <-t.resume
}

// Begin runs a pass up to its first effect, and reports whether the pass has ended.
func (p *Process) Begin(now time.Time, fetch bool) (ended bool) {
	p.now = p.clock(now)
	return p.start("pass", func() error { return p.RunOnce(context.Background(), p.now, fetch) })
}

func (p *Process) clock(now time.Time) func() time.Time {
	k, ahead := p.View.cluster.Kube, now.Sub(p.View.cluster.Kube.Now)
	return func() time.Time { p.read = k.Now.Add(ahead); return p.read }
}

func (p *Process) start(name string, work func() error) (ended bool) {
	t := &thread{name: name, steps: make(chan step), resume: make(chan Outcome)}
	p.threads, p.current = append(p.threads, t), t
	run(func() { t.steps <- step{err: work(), ended: true} })
	return p.await()
}

// idle sends work to goroutines that have ended earlier work, because their stacks have already grown.
var idle = make(chan func())

func run(work func()) {
	select {
	case idle <- work:
	default:
		go func() {
			for ; ; work = <-idle {
				work()
			}
		}()
	}
}

// Choose selects the thread for Resume.
func (p *Process) Choose(i int) {
	p.current = p.threads[i]
	p.next = p.current.next
}

// Resume runs the thread up to its next effect, and reports whether the thread has ended.
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
