package reconciler

import (
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// outbox passes transitions and their results between passes and the committer, on any goroutine.
type outbox struct {
	record *stateStore
	touch  func(app string)

	mu       sync.Mutex
	isBehind bool             // another writer was faster: nothing is pushed before the next fetch
	notYet   time.Time        // no push before this time, because the last one failed
	waiting  map[string]*pass // for a push, by app
	pushing  map[string]*pass
	answered map[string]*pass
	reverts  map[string]*pass  // to be pushed to the users' branch
	proposes map[string]*pass  // whose proposals are to be compared
	reverted map[string]string // by app, the head that a revert was pushed or tried on
	compared map[string]string // by app, the key of the last comparison of its proposals
	failed   []string          // apps whose proposals could not be read or pushed: retried after the next fetch
	news     chan struct{}
}

func newOutbox(record *stateStore, touch func(app string)) *outbox {
	return &outbox{
		record: record, touch: touch, news: make(chan struct{}, 1),
		waiting: map[string]*pass{}, pushing: map[string]*pass{}, answered: map[string]*pass{},
		reverts: map[string]*pass{}, proposes: map[string]*pass{},
		reverted: map[string]string{}, compared: map[string]string{},
	}
}

// enqueue queues a transition, replacing an older one of the app. During a push of the app's former one it does
// nothing: the new base is unknown, and the app is reconciled again.
func (h *outbox) enqueue(s *pass) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pushing[s.app.Name] != nil {
		return
	}
	h.waiting[s.app.Name] = s
	h.notify()
}

// queued returns the queued state of an app whose base has a serial number, nil if none.
func (h *outbox) queued(app string, serial int) *rollout.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.waiting[app]; s != nil && s.before.Serial == serial {
		return &s.decision.State
	}
	return nil
}

func (h *outbox) cancel(app string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, app)
}

func (h *outbox) forget(app string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, visits := range []map[string]*pass{h.waiting, h.answered, h.reverts, h.proposes} {
		delete(visits, app)
	}
	delete(h.reverted, app)
	delete(h.compared, app)
}

// result takes the result of an app's transition, nil if there is none.
func (h *outbox) result(app string) *pass {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.answered[app]
	delete(h.answered, app)
	return s
}

func (h *outbox) notify() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// waits reports whether something is to be pushed, whether a rollback is, which does not wait, and the earliest push.
func (h *outbox) waits() (waits, urgent bool, notYet time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.waiting {
		urgent = urgent || s.decision.Rollback
	}
	return len(h.waiting)+len(h.reverts)+len(h.proposes) > 0 && !h.isBehind, urgent, h.notYet
}

// holdOff sets the earliest next push; zero when Git answers again.
func (h *outbox) holdOff(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notYet = until
	h.notify()
}

// looked notes that the record is as Git has it.
func (h *outbox) looked() {
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

// dequeue removes and returns the queued transitions, by app. An outdated one is dropped and its app reconciled again.
func (h *outbox) dequeue() []*pass {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*pass
	for _, app := range sortedKeys(h.waiting) {
		s := h.waiting[app]
		delete(h.waiting, app)
		if e, _ := h.record.of(app); e.err != nil || !e.state.Equal(&s.before) || !h.mayRename(s) {
			h.touch(app)
			continue
		}
		h.pushing[app] = s
		all = append(all, s)
	}
	return all
}

// mayRename reports, under mu, whether the former name's record, if any, is unchanged with nothing queued or pushed.
func (h *outbox) mayRename(s *pass) bool {
	if s.renamedFrom == nil {
		return true
	}
	from := s.renamedFrom.from
	e, _ := h.record.of(from)
	return e.err == nil && e.state.App == from && h.waiting[from] == nil && h.pushing[from] == nil &&
		e.state.Serial == s.renamedFrom.state.Serial
}
