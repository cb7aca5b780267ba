package reconciler

import (
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// outbox holds the transitions to push, and the results. Any goroutine may use it.
type outbox struct {
	record *stateStore
	touch  func(app string)

	mu       sync.Mutex
	isBehind bool                  // another writer pushed first, so no push before a fetch
	notYet   time.Time             // no push before this time, after a failure
	refused  map[string]refusal    // by app, if the server refuses only some transitions
	waiting  map[string]transition // to push
	pushing  map[string]bool
	answered map[string]recorded
	reverts  map[string]recorded // to push to the users' branch
	proposes map[string]recorded // transitions whose proposals are compared with the head
	reverted map[string]string   // head of the last try, by app
	compared map[string]string   // key of the last comparison
	entries  map[string]*cohort.Entry
	failed   []string // apps whose proposals to retry after a fetch
	news     chan struct{}
}

// refusal has the times of the first refused push and of the next push.
type refusal struct{ since, until time.Time }

func newOutbox(record *stateStore, touch func(app string)) *outbox {
	return &outbox{
		record: record, touch: touch, news: make(chan struct{}, 1),
		waiting: map[string]transition{}, pushing: map[string]bool{}, answered: map[string]recorded{},
		reverts: map[string]recorded{}, proposes: map[string]recorded{},
		reverted: map[string]string{}, compared: map[string]string{}, refused: map[string]refusal{},
		entries: map[string]*cohort.Entry{},
	}
}

// enqueue does nothing while the app's transition is being pushed, because the outcome is unknown.
func (h *outbox) enqueue(t transition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pushing[t.app.Name] {
		return
	}
	h.waiting[t.app.Name], h.entries[t.app.Name] = t, t.input.Entry
	h.notify()
}

// queued returns the app's queued state, or nil. A state that was decided from a record with another serial does not
// count.
func (h *outbox) queued(app string, serial int) *rollout.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t, waits := h.waiting[app]; waits && t.before.Serial == serial {
		return &t.decision.State
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
	delete(h.waiting, app)
	for _, results := range []map[string]recorded{h.answered, h.reverts, h.proposes} {
		delete(results, app)
	}
	delete(h.reverted, app)
	delete(h.compared, app)
	delete(h.refused, app)
	delete(h.entries, app)
}

func (h *outbox) result(app string) (done recorded, exists bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done, exists = h.answered[app]
	delete(h.answered, app)
	return done, exists
}

func (h *outbox) isRecorded(app string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered[app].commit != ""
}

func (h *outbox) notify() { offer(h.news, struct{}{}) }

// waits reports whether a push is due now or later, whether it includes a rollback, and the push's earliest time.
func (h *outbox) waits(now time.Time) (waits, urgent bool, notYet time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := len(h.reverts)+len(h.proposes) > 0
	for app, t := range h.waiting {
		if until := h.refused[app].until; until.After(now) {
			notYet = rollout.Soonest(notYet, until)
			continue
		}
		due, urgent = true, urgent || t.decision.Rollback
	}
	if due {
		notYet = time.Time{}
	}
	return (due || !notYet.IsZero()) && !h.isBehind, urgent, rollout.Later(h.notYet, notYet)
}

func (h *outbox) isNewRefusal(all []transition) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(all, func(t transition) bool { return h.refused[t.app.Name] == refusal{} })
}

func (h *outbox) retryRefused() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.refused)
}

func (h *outbox) holdOff(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notYet = until
	h.notify()
}

// looked is called after a fetch. It ends the wait after a conflict, and retries failed proposals.
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

// dequeue returns the due transitions. If an app's record has changed since the decision, it drops the transition and
// makes the app due.
func (h *outbox) dequeue(now time.Time) (all []transition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, app := range sortedKeys(h.waiting) {
		t := h.waiting[app]
		if h.refused[app].until.After(now) {
			continue
		}
		delete(h.waiting, app)
		if e, _ := h.record.of(app); e.err != nil || !e.state.Equal(&t.before) || !h.mayRename(t.renamedFrom) {
			h.touch(app)
			continue
		}
		h.pushing[app] = true
		all = append(all, t)
	}
	return all
}

// mayRename reports whether the former name's record is unchanged and has no queued transition. The caller holds mu.
func (h *outbox) mayRename(former *rename) bool {
	if former == nil {
		return true
	}
	e, _ := h.record.of(former.from)
	_, waits := h.waiting[former.from]
	return e.err == nil && e.state.App == former.from && !waits && !h.pushing[former.from] &&
		e.state.Serial == former.state.Serial
}
