package forge

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// moody is a forge in memory whose requests can fail. It calls mark() before it sets a status, and tag() before it sets a label.
type moody struct {
	*paper
	mark  func() error
	tag   func() error
	calls int
}

func (m *moody) setStatus(ctx context.Context, commit, name string, s status) error {
	m.calls++
	if err := m.mark(); err != nil {
		return err
	}
	return m.paper.setStatus(ctx, commit, name, s)
}

func (m *moody) label(ctx context.Context, p pull, labels []string) error {
	if err := m.tag(); err != nil {
		return err
	}
	return m.paper.label(ctx, p, labels)
}

// onMoody runs a story in a synctest bubble, with a worker for the given forge.
func onMoody(t *testing.T, m *moody, story func(w *Worker, problems *[]string)) {
	t.Helper()
	m.paper = &paper{marks: map[string]status{}}
	well := func() error { return nil }
	if m.mark == nil {
		m.mark = well
	}
	if m.tag == nil {
		m.tag = well
	}
	known := m.kind()
	known.client = func(*api, string, string) host { return m }
	synctest.Test(t, func(t *testing.T) {
		var problems []string
		w := NewWorker(Options{
			Cluster: "prod", Remote: "https://paper.example/acme/deploy.git", Branch: "main", Now: time.Now, forges: table{known},
			Token: tokenOf("t0ken"), Spread: exactly,
			Log: func(err error, _ string) {
				if err != nil {
					problems = append(problems, err.Error())
				}
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		go w.Run(ctx)
		story(w, &problems)
		stop()
		synctest.Wait()
	})
}

// pass lets time pass, and waits until the worker is idle. For the race detector, the lock orders the test's earlier reads before the
// worker's next writes. synctest.Wait orders these writes before the test's next reads.
func pass(w *Worker, d time.Duration) {
	w.mu.Lock()
	w.mu.Unlock() //nolint:staticcheck // nothing is guarded but the order
	time.Sleep(d)
	synctest.Wait()
}

// show tells the worker that a release waits at a gate.
func show(w *Worker, gate int, proposals ...rollout.Proposal) {
	w.Show(rollout.Forge{}, []rollout.ForgeUpdate{paused(sha("release"), gate, proposals...)})
}

func refused(status int, after time.Duration) error {
	return &call.Error{What: "POST", Status: status, Message: "no", After: after}
}

// TestANewerOrderIsNotLost checks an order that replaces a running order. The newer order must be carried out, too.
func TestANewerOrderIsNotLost(t *testing.T) {
	m := &moody{mark: func() error { time.Sleep(time.Minute); return nil }}
	onMoody(t, m, func(w *Worker, _ *[]string) {
		show(w, 1)
		pass(w, time.Second)
		later := paused(sha("release"), 2)
		later.After.Phase, later.After.Reason = rollout.Aborting, "too slow"
		w.Show(rollout.Forge{}, []rollout.ForgeUpdate{later})
		pass(w, time.Hour)
		for name, got := range m.marks {
			if got.state != failure || m.calls != 2 {
				t.Errorf("%s is %+v after %d requests", name, got, m.calls)
			}
		}
		compare.CheckNamed(t, "statuses", 1, len(m.marks))
	})
}

// TestALimitIsNoRefusal refuses the first request for a label because of a rate limit. After the pause, the label must
// be set, and no error may be reported.
func TestALimitIsNoRefusal(t *testing.T) {
	limit := refused(http.StatusForbidden, 30*time.Minute)
	m := &moody{tag: func() error {
		err := limit
		limit = nil
		return err
	}}
	onMoody(t, m, func(w *Worker, problems *[]string) {
		w.Show(rollout.Forge{Labels: []string{"release"}}, []rollout.ForgeUpdate{paused(sha("release"), 1, promotes(sha("one")))})
		pass(w, 29*time.Minute)
		if len(m.pulls) != 1 || m.pulls[0].labels != nil {
			t.Errorf("before the end of the break: %+v", m.pulls)
		}
		pass(w, 2*time.Minute)
		if len(m.pulls) != 1 || !slices.Equal(m.pulls[0].labels, []string{"release"}) || len(*problems) > 0 {
			t.Errorf("after it: %+v, %v", m.pulls, *problems)
		}
	})
}

// TestARefusalThatMayHealIsTriedForLong checks how often an order is tried. If a user could grant access later, the worker tries for hours.
// It tries an invalid request maxTries times.
func TestARefusalThatMayHealIsTriedForLong(t *testing.T) {
	for status, want := range map[int]int{401: 10, 403: 10, 404: 10, 400: maxTries, 422: maxTries} {
		m := &moody{}
		m.mark = func() error {
			if m.calls < 10 {
				return refused(status, 0)
			}
			return nil
		}
		onMoody(t, m, func(w *Worker, problems *[]string) {
			show(w, 1)
			pass(w, 3*time.Hour)
			if m.calls != want || (len(m.marks) == 1) != (want == 10) || len(*problems) != 1 {
				t.Errorf("%d: asked %d times, want %d; %v; %v", status, m.calls, want, m.marks, *problems)
			}
		})
	}
}

// TestANewerOrderWaitsAsLong checks that an order that replaces a failed order is tried no earlier than the failed order's next try.
func TestANewerOrderWaitsAsLong(t *testing.T) {
	m := &moody{mark: func() error { return refused(http.StatusNotFound, 0) }}
	onMoody(t, m, func(w *Worker, _ *[]string) {
		show(w, 1)
		pass(w, 20*time.Second) // the worker pauses 1, 2, 4, 8 and 16 s between tries, so the next try is at 31 s
		before := m.calls
		show(w, 1)
		pass(w, 10*time.Second)
		compare.CheckNamed(t, "requests while it waits", before, m.calls)
		pass(w, 1500*time.Millisecond) // the try at 31 s is over; the next try is at 32 s
		compare.CheckNamed(t, "requests when it has waited", before+1, m.calls)
	})
}

// TestTheSecondLookIsAtTheNewest checks the second update of a pull request whose branch was deleted, created again, and moved. The update
// must use the branch's newest commit.
func TestTheSecondLookIsAtTheNewest(t *testing.T) {
	m := &moody{}
	onMoody(t, m, func(w *Worker, _ *[]string) {
		for gate, commit := range []string{sha("first"), "", sha("second"), sha("third")} {
			show(w, gate, promotes(commit))
			pass(w, time.Second)
		}
		newest := m.pulls[len(m.pulls)-1]
		pass(w, time.Hour)
		compare.CheckNamed(t, "description", newest.text, m.pulls[len(m.pulls)-1].text)
		// If the forge has closed the pull request before the second update, another one is opened.
		show(w, 1, promotes(""))
		pass(w, time.Second)
		show(w, 1, promotes(sha("fourth")))
		pass(w, time.Second)
		n := len(m.pulls)
		m.pulls[n-1].isOpen = false
		pass(w, w.Settle-2*time.Second)
		compare.CheckNamed(t, "pull requests before the forge has settled", n, len(m.pulls))
		pass(w, 2*time.Second)
		if len(m.pulls) != n+1 || !m.pulls[n].isOpen {
			t.Errorf("it stays closed: %+v", m.pulls)
		}
	})
}

// exactly is an Options.Spread that does not change the pause before a retry.
func exactly(d time.Duration) time.Duration { return d }
