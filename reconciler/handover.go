package reconciler

import (
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// handover is what visits and the recorder leave for each other: transitions and answers. Each of its methods may be
// called from any goroutine.
type handover struct {
	record *record
	touch  func(app string)

	mu       sync.Mutex
	isBehind bool              // another writer was faster: nothing is pushed before the next look at Git
	notYet   time.Time         // no push before, because the last one failed
	waiting  map[string]*visit // for a push, by app
	pushing  map[string]*visit
	answered map[string]*visit
	reverts  map[string]*visit // that are to be pushed to the users' branch
	proposes map[string]*visit // whose proposals are to be looked at
	reverted map[string]string // by app, the head that a revert was pushed on, or tried
	compared map[string]string // by app, what its proposals were last compared with
	failed   []string          // apps whose proposals could not be read or pushed: again after the next look at Git
	news     chan struct{}
}

func newHandover(record *record, touch func(app string)) *handover {
	return &handover{
		record: record, touch: touch, news: make(chan struct{}, 1),
		waiting: map[string]*visit{}, pushing: map[string]*visit{}, answered: map[string]*visit{},
		reverts: map[string]*visit{}, proposes: map[string]*visit{},
		reverted: map[string]string{}, compared: map[string]string{},
	}
}

// hand gives a transition over to be recorded, in place of an older one of the same app. While one of its app is
// being pushed, nobody knows what the next one begins at: the app is visited again when that is known.
func (h *handover) hand(s *visit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pushing[s.app.Name] != nil {
		return
	}
	h.waiting[s.app.Name] = s
	h.notify()
}

// handed is the state that waits to be recorded after the one with a serial number, nil if none does.
func (h *handover) handed(app string, serial int) *rollout.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.waiting[app]; s != nil && s.before.Serial == serial {
		return &s.decision.State
	}
	return nil
}

// drop takes a transition back that is not wanted any more.
func (h *handover) drop(app string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, app)
}

// forget drops what is known of an app that is no more.
func (h *handover) forget(app string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, visits := range []map[string]*visit{h.waiting, h.answered, h.reverts, h.proposes} {
		delete(visits, app)
	}
	delete(h.reverted, app)
	delete(h.compared, app)
}

// answer is what has become of an app's transition, nil if that is not known yet or was taken already.
func (h *handover) answer(app string) *visit {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.answered[app]
	delete(h.answered, app)
	return s
}

func (h *handover) notify() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// waits reports whether something is to be pushed, whether a retreat is, whose record does not wait for others, and
// before when nothing is pushed.
func (h *handover) waits() (waits, urgent bool, notYet time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.waiting {
		urgent = urgent || s.decision.Retreat
	}
	return len(h.waiting)+len(h.reverts)+len(h.proposes) > 0 && !h.isBehind, urgent, h.notYet
}

// holdOff sets the earliest time of the next push; the zero time when Git answers again.
func (h *handover) holdOff(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notYet = until
	h.notify()
}

// looked says that the record is as Git has it.
func (h *handover) looked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isBehind = false
	for _, app := range h.failed {
		delete(h.compared, app)
		h.touch(app)
	}
	h.failed = nil
	h.notify()
}

// take returns what waits, in the order of the apps' names. A transition from a record that is not the newest any
// more is left out: its app is visited again.
func (h *handover) take() []*visit {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*visit
	for _, app := range sortedKeys(h.waiting) {
		s := h.waiting[app]
		delete(h.waiting, app)
		if e, _ := h.record.of(app); e.err != nil || !e.state.Equal(&s.before) || !h.mayInherit(s) {
			h.touch(app)
			continue
		}
		h.pushing[app] = s
		all = append(all, s)
	}
	return all
}

// mayInherit reports whether the record that an app goes on with, if any, is still what it was, and nobody is about to
// change it. The caller holds mu.
func (h *handover) mayInherit(s *visit) bool {
	if s.inherits == nil {
		return true
	}
	from := s.inherits.from
	e, _ := h.record.of(from)
	return e.err == nil && e.state.App == from && h.waiting[from] == nil && h.pushing[from] == nil &&
		e.state.Serial == s.inherits.state.Serial
}
