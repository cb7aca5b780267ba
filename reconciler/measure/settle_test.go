package measure_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/measure"
	"gitrollout.dev/gitrollout/rollout"
)

// TestDefaults checks the documented defaults of Options, and that New keeps explicit values.
func TestDefaults(t *testing.T) {
	o := measure.New(t.Context(), measure.Options{}).Options
	if o.Parallel != 8 || o.Again != 2*time.Second || o.Judging != time.Second || o.Own != rollout.OwnNamespace {
		t.Errorf("by default %d at once, again after %s, judged within %s, in %s", o.Parallel, o.Again, o.Judging, o.Own)
	}
	o = measure.New(t.Context(), measure.Options{Parallel: 1, Again: 2, Judging: 3, Own: "own"}).Options
	if o.Parallel != 1 || o.Again != 2 || o.Judging != 3 || o.Own != "own" {
		t.Errorf("%d at once, again after %s, judged within %s, in %s", o.Parallel, o.Again, o.Judging, o.Own)
	}
}

// TestSettle checks that Settle waits for requests, but not for running Jobs. It must report whether there is a result to collect.
func TestSettle(t *testing.T) {
	answer := make(chan struct{})
	url, _ := serve(t, func(*http.Request) { <-answer })
	g := &gates{}
	b := newBench(t, func(o *measure.Options) { o.Deps.Jobs = g })
	settled := func(of string, within time.Duration, wantFound, wantEnded bool) {
		t.Helper()
		ctx, end := context.WithTimeout(t.Context(), within)
		defer end()
		compare.CheckNamed(t, "of "+of+", found and ended", [2]bool{wantFound, wantEnded}, [2]bool{b.Settle(ctx), ctx.Err() == nil})
	}
	settled("nothing", time.Minute, false, true)
	b.begin(shop, due(job))
	settled("a Job that runs", 10*time.Second, false, true)
	b.begin(shop, due(web(url)))
	settled("a server that does not answer", 100*time.Millisecond, false, false)
	close(answer)
	settled("a server that answers", 10*time.Second, true, true)
	compare.CheckNamed(t, "measurements", 1, len(b.Measured("shop")))
	settled("a collected measurement", 10*time.Second, false, true)
}

// TestNothingIsRemembered checks that a Worker keeps no state of an app without measurements. The cases are no
// measurement, a cancelled one, and a result that was never collected.
func TestNothingIsRemembered(t *testing.T) {
	hanging, _ := serve(t, hang(nil))
	url, _ := serve(t, nil)
	b := newBench(t, nil)
	forgotten := func() bool { return b.Remembered() == 0 }
	b.Measure(shop, nil, nil)
	compare.CheckNamed(t, "an app that never measured is forgotten", true, forgotten())
	b.begin(shop, due(web(hanging)))
	b.Measure(shop, nil, nil)
	waitFor(t, "the hanging measurement to be forgotten", forgotten)
	b.going = nil
	b.begin(shop, due(web(url)))
	<-b.touched
	b.Measure(shop, nil, nil)
	compare.CheckNamed(t, "of an ended analysis: measurements, and forgotten", []any{0, true}, []any{len(b.Measured("shop")), forgotten()})
}

// TestJobsAreRemovedOnce checks that the Job of a failed request is not deleted while the analysis continues. A Job that has ended is
// deleted once. If no Job was requested, none is deleted.
func TestJobsAreRemovedOnce(t *testing.T) {
	g := &gates{fails: errors.New("the API server is away")}
	begun := make(chan struct{})
	hanging, _ := serve(t, hang(begun))
	b := newBench(t, func(o *measure.Options) { o.Parallel, o.Deps.Jobs = 1, g })
	removed := func(want int, when string) {
		t.Helper()
		time.Sleep(50 * time.Millisecond)
		g.mu.Lock()
		defer g.mu.Unlock()
		compare.CheckNamed(t, "removals of Jobs "+when, want, g.deleted)
	}
	for range 2 {
		b.measure(t, job)
	}
	removed(0, "while the analysis goes on")
	g.locked(func() { g.fails, g.open = nil, true })
	compare.Check(t, analysis.Successful, b.measure(t, job).Phase)
	removed(1, "when it has ended")
	b.Measure(shop, nil, nil)
	removed(1, "when its analysis is over")

	b.going = nil
	b.begin(shop, due(web(hanging)))
	<-begun
	b.begin(shop, due(job)) // the Job waits for the only slot
	time.Sleep(20 * time.Millisecond)
	b.Measure(shop, nil, nil)
	removed(1, "when one was never begun")
}

// TestWhatIsMissingIsSaid checks that a measurement's error names a Secret that cannot be read. If a query for the
// stable version fails, the error must have the HTTP status.
func TestWhatIsMissingIsSaid(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("hash") == "old" {
			http.Error(w, "no such version", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `[1, 100]`)
	}))
	t.Cleanup(s.Close)
	b := newBench(t, func(o *measure.Options) {
		o.Deps.Secret = func(context.Context, string, string) (map[string]string, error) {
			return nil, errors.New("Secret shop/metrics is not there")
		}
	})
	secret := withToken(web(s.URL))
	secret.Config["headers"] = []any{map[string]any{"key": "Authorization", "value": "{{args.token}}"}}
	wantError(t, b.measure(t, compared(s.URL)), "404 Not Found")
	wantError(t, b.measure(t, secret), "key token of Secret shop/metrics is not there")
}

// TestSecretsAreNotTold checks that a Secret's value is redacted in an error that quotes the server's answer.
func TestSecretsAreNotTold(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "there is no user "+r.URL.Query().Get("user"), http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	b := newBench(t, nil)
	wantError(t, b.measure(t, withToken(web(s.URL+"/?user={{args.token}}"))), "there is no user")
}
