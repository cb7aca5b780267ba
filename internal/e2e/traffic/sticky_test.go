package traffic

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// visitor is a user with a browser that keeps cookies.
type visitor struct {
	jar     map[string]string
	results proxytest.Results
}

// crowd has the visitors of one app.
type crowd struct {
	a     *app
	stop  context.Context
	leave func() // ends all visitors, and waits until they have ended
	all   sync.WaitGroup
	mu    sync.Mutex
	each  []*visitor
}

func newCrowd(a *app) *crowd {
	stop, cancel := context.WithCancel(context.Background())
	c := &crowd{a: a, stop: stop}
	c.leave = func() {
		cancel()
		c.all.Wait()
	}
	a.w.t.Cleanup(c.leave)
	return c
}

// join adds visitors without cookies, who send a request every 200ms until they leave.
func (c *crowd) join(visitors int) {
	for i := range visitors {
		v := &visitor{jar: map[string]string{}}
		c.mu.Lock()
		c.each = append(c.each, v)
		c.mu.Unlock()
		c.all.Go(func() {
			time.Sleep(time.Duration(i) * 200 * time.Millisecond / time.Duration(visitors))
			for tick := time.Tick(200 * time.Millisecond); ; {
				request := c.a.user()
				request.Cookies = maps.Clone(v.jar)
				result := proxytest.Send(request)
				for _, cookie := range (&http.Response{Header: result.Header}).Cookies() {
					v.jar[cookie.Name] = cookie.Value
				}
				c.mu.Lock()
				v.results = append(v.results, result)
				c.mu.Unlock()
				select {
				case <-tick:
				case <-c.stop.Done():
					return
				}
			}
		})
	}
}

// between returns each visitor's results in a period.
func (c *crowd) between(from, to time.Time) []proxytest.Results {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []proxytest.Results
	for _, v := range c.each {
		all = append(all, v.results.Between(from, to))
	}
	return all
}

// wentBack counts the visitors whom a version has served. It returns each such visitor's first later response from another version.
func wentBack(all []proxytest.Results, version string) (seen int, back proxytest.Results) {
	for _, results := range all {
		first := slices.IndexFunc(results, func(r proxytest.Result) bool { return r.Version == version })
		if first < 0 {
			continue
		}
		seen++
		if again := results[first:].Where(func(r proxytest.Result) bool { return r.Version != version }); len(again) > 0 {
			back = append(back, again[0])
		}
	}
	return seen, back
}

// TestStickyUsers sends the requests of visitors that keep cookies. A visitor whom the new version has served stays
// on the new version while weights rise. After an abort, the rejected version serves no visitor.
func TestStickyUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside, rollout.Mapped([]provider{crd, ingress}, func(p provider) shop {
		return p.routedShop(append(services, quick...), []string{"sticky: {}"}, weights(20, 50))
	})...)
	w.users(slow) // each of these requests is from a new user
	crowds := map[*app]*crowd{}
	for _, a := range w.apps {
		crowds[a] = newCrowd(a)
		crowds[a].join(20)
	}
	_, at := w.release("v2")
	began := at
	for i, weight := range []int{20, 50} {
		w.share(at, 2*i+1, []int{0, 20}[i], weight)
		for _, a := range w.apps {
			crowds[a].join(20)
		}
		time.Sleep(time.Second)
		at = w.decide(rollout.Promote, fmt.Sprint(2*i+2))
	}
	w.through(at, "v2", 50)
	for _, a := range w.apps {
		seen, back := wentBack(crowds[a].between(began, time.Now()), "v2")
		if seen == 0 || len(back) > 0 {
			t.Errorf("%s: %d visitors saw v2, and %d of them v1 again: %v", a, seen, len(back), back)
		}
		t.Logf("%-10s %d of 60 visitors saw v2, %d of them v1 again", a, seen, len(back))
	}

	_, third := w.release("v3")
	w.paused(third, 1)
	at = w.decide(rollout.Promote, "2")
	w.paused(at, 3)
	time.Sleep(time.Second)
	w.aborted(w.decide(rollout.Abort, ""), "v3")
	for _, a := range w.apps {
		back := a.await(at, "aborting", func(s rollout.State) bool { return s.Phase == rollout.Aborting })
		crowds[a].leave()
		all := slices.Concat(crowds[a].between(began, time.Now())...)
		all.WantNoFailure(t, a.String()+", visitors")
		saw, _ := wentBack(crowds[a].between(third, time.Now()), "v3")
		late := all.Between(back.at.Add(w.settled), time.Now())
		late.WantShare(t, a.String()+", visitors after the abort", "v3", 0)
		t.Logf("%-10s %d requests of visitors with cookies, %d failed; %d visitors saw v3, and %d requests came to it after the abort", a,
			len(all), len(all.Failures()), saw, late.Of("v3"))
	}
	w.quiet()
}
