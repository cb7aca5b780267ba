package reconciler

import (
	"slices"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// outbox holds the transitions that the committer must push, and the results of its pushes. Any goroutine may use it.
type outbox struct {
	record *stateStore
	touch  func(app string)

	mu       sync.Mutex
	isBehind bool                  // another writer was faster, so nothing is pushed before the next fetch
	notYet   time.Time             // no push before this time, because the last push failed
	refused  map[string]refusal    // apps whose transitions the server refuses while it accepts other transitions
	waiting  map[string]transition // transitions to push, by app
	pushing  map[string]bool
	answered map[string]recorded
	reverts  map[string]recorded // transitions whose reverts are to be pushed to the users' branch
	proposes map[string]recorded // transitions whose proposals must be compared with the head
	reverted map[string]string   // the head on which a revert was pushed or tried, by app
	compared map[string]string   // the key of the last comparison of proposals, by app
	failed   []string            // apps whose proposals could not be read or pushed; retried after the next fetch
	news     chan struct{}
}

// refusal holds the time of the first refused push of an app's transition, and the time of its next push.
type refusal struct{ since, until time.Time }

func newOutbox(record *stateStore, touch func(app string)) *outbox {
	return &outbox{
		record: record, touch: touch, news: make(chan struct{}, 1),
		waiting: map[string]transition{}, pushing: map[string]bool{}, answered: map[string]recorded{},
		reverts: map[string]recorded{}, proposes: map[string]recorded{},
		reverted: map[string]string{}, compared: map[string]string{}, refused: map[string]refusal{},
	}
}

// enqueue queues an app's transition, and replaces a queued transition of the app. While a transition of the app is
// being pushed, enqueue does nothing, because the outcome is unknown. After the push, the app is reconciled again.
func (h *outbox) enqueue(t transition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pushing[t.app.Name] {
		return
	}
	h.waiting[t.app.Name] = t
	h.notify()
}

// queued returns the app's queued state if it was decided from the state with the given serial number, or else nil.
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
}

func (h *outbox) result(app string) (done recorded, exists bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done, exists = h.answered[app]
	delete(h.answered, app)
	return done, exists
}

// isRecorded reports whether an app's transition is recorded and no pass has taken the push's result yet.
func (h *outbox) isRecorded(app string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered[app].commit != ""
}

func (h *outbox) notify() { offer(h.news, struct{}{}) }

// waits reports whether there is something to push, whether it includes a rollback, and the earliest time of the push.
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

// isNewRefusal reports whether any of these apps has no recorded refusal.
func (h *outbox) isNewRefusal(all []transition) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(all, func(t transition) bool { return h.refused[t.app.Name] == refusal{} })
}

// retryRefused makes refused transitions due now, because the process may end before the time of their next push.
func (h *outbox) retryRefused() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.refused)
}

// holdOff sets the time before which nothing is pushed. The caller sets the zero time when Git answers again.
func (h *outbox) holdOff(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notYet = until
	h.notify()
}

// looked allows pushes again after a conflict, and retries failed proposals. It is called after each successful fetch.
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

// dequeue removes the due transitions and returns them, sorted by app. If an app's record has changed, dequeue drops
// the transition and makes the app due again.
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

// mayRename reports whether a former name's record is unchanged, without a queued transition. The caller holds mu.
func (h *outbox) mayRename(former *rename) bool {
	if former == nil {
		return true
	}
	e, _ := h.record.of(former.from)
	_, waits := h.waiting[former.from]
	return e.err == nil && e.state.App == former.from && !waits && !h.pushing[former.from] &&
		e.state.Serial == former.state.Serial
}
