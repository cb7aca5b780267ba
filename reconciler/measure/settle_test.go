package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// TestDefaults checks the documented defaults of Options, and that explicit values stay.
func TestDefaults(t *testing.T) {
	type known struct{}
	o := New(t.Context(), Options{}).Options
	ctx := context.WithValue(t.Context(), known{}, true)
	if o.Parallel != 8 || o.Again != 2*time.Second || o.Judging != time.Second || o.Own != rollout.OwnNamespace || o.As(ctx, shop) != ctx {
		t.Errorf("by default %d at once, again after %s, judged within %s, in %s", o.Parallel, o.Again, o.Judging, o.Own)
	}
	other := context.WithValue(t.Context(), known{}, false)
	as := func(context.Context, rollout.App) context.Context { return other }
	o = New(t.Context(), Options{Parallel: 1, Again: 2, Judging: 3, Own: "own", As: as}).Options
	if o.Parallel != 1 || o.Again != 2 || o.Judging != 3 || o.Own != "own" || o.As(ctx, shop) != other {
		t.Errorf("%d at once, again after %s, judged within %s, in %s", o.Parallel, o.Again, o.Judging, o.Own)
	}
}

// TestSettle checks that a process that runs one pass waits for requests but not for Jobs. It returns whether there
// is a result to collect.
func TestSettle(t *testing.T) {
	answer := make(chan struct{})
	url, _ := serve(t, func(*http.Request) { <-answer })
	g := &gates{}
	b := newBench(t, func(o *Options) { o.Deps.Jobs = g })
	settled := func(within time.Duration) (found, ended bool) {
		ctx, end := context.WithTimeout(t.Context(), within)
		defer end()
		found = b.Settle(ctx)
		return found, ctx.Err() == nil
	}
	if found, ended := settled(time.Minute); found || !ended {
		t.Errorf("of nothing, something is found: %t, it ends: %t", found, ended)
	}
	b.begin(shop, due(job))
	if found, ended := settled(10 * time.Second); found || !ended {
		t.Errorf("of a Job that runs, something is found: %t, it ends: %t", found, ended)
	}
	b.begin(shop, due(web(url)))
	if found, ended := settled(100 * time.Millisecond); found || ended {
		t.Errorf("of a server that does not answer, something is found: %t, it ends: %t", found, ended)
	}
	close(answer)
	if found, ended := settled(10 * time.Second); !found || !ended || len(b.Measured("shop")) != 1 {
		t.Errorf("of a server that answers, something is found: %t, it ends: %t", found, ended)
	}
	if found, ended := settled(10 * time.Second); found || !ended {
		t.Errorf("of a collected measurement, something is found: %t, it ends: %t", found, ended)
	}
}

// TestNothingIsRemembered checks that no state remains for an app without measurements: without due ones, and after
// the end of due ones, with or without a result.
func TestNothingIsRemembered(t *testing.T) {
	hanging, _ := serve(t, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	url, _ := serve(t, nil)
	b := newBench(t, nil)
	forgotten := func() bool {
		b.Worker.mu.Lock()
		defer b.Worker.mu.Unlock()
		return len(b.stations) == 0
	}
	b.Measure(shop, nil, nil)
	if !forgotten() {
		t.Error("an app that never measured is remembered")
	}
	b.begin(shop, due(web(hanging)))
	b.Measure(shop, nil, nil)
	waitFor(t, "the hanging measurement to be forgotten", forgotten)
	b.going = nil
	b.begin(shop, due(web(url)))
	<-b.touched
	b.Measure(shop, nil, nil)
	if got := b.Measured("shop"); len(got) > 0 || !forgotten() {
		t.Errorf("of an analysis that is over there is still %+v", got)
	}
}

// TestJobsAreRemovedOnce checks that a failed Job requested again is removed once, after its end. A Job of a running
// analysis stays, and a Job that never began is not removed.
func TestJobsAreRemovedOnce(t *testing.T) {
	g := &gates{fails: errors.New("the API server is away")}
	begun := make(chan struct{})
	hanging, _ := serve(t, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		<-r.Context().Done()
	})
	b := newBench(t, func(o *Options) { o.Parallel, o.Deps.Jobs = 1, g })
	removed := func(want int, when string) {
		t.Helper()
		time.Sleep(50 * time.Millisecond)
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.deleted != want {
			t.Errorf("%s, Jobs were removed %d times, want %d", when, g.deleted, want)
		}
	}
	for range 2 {
		b.begin(shop, due(job))
		b.measured(t, "shop")
	}
	removed(0, "while the analysis goes on")
	g.mu.Lock()
	g.fails, g.open = nil, true
	g.mu.Unlock()
	b.begin(shop, due(job))
	if got := b.measured(t, "shop"); len(got) != 1 || got[0].Phase != analysis.Successful {
		t.Errorf("measured %+v", got)
	}
	removed(1, "when it has ended")
	b.Measure(shop, nil, nil)
	removed(1, "when its analysis is over")

	b.going = nil
	b.begin(shop, due(web(hanging)))
	<-begun
	b.begin(shop, due(job)) // there is no free slot
	time.Sleep(20 * time.Millisecond)
	b.Measure(shop, nil, nil)
	removed(1, "when one was never begun")
}

// TestWhatIsMissingIsSaid checks that an unreadable Secret, or a missing half of a comparison, is an error with a
// text.
func TestWhatIsMissingIsSaid(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("hash") == "old" {
			http.Error(w, "no such version", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `[1, 100]`)
	}))
	t.Cleanup(s.Close)
	b := newBench(t, func(o *Options) {
		o.Deps.Secret = func(context.Context, string, string) (map[string]string, error) {
			return nil, errors.New("Secret shop/metrics is not there")
		}
	})
	compared := rollout.Metric{
		Name: "errors", Provider: "web", Compare: &rollout.Compare{}, Pods: map[string]string{"hash": "Latest"},
		Config: map[string]any{"url": s.URL + "/?hash={{args.hash}}"},
	}
	secret := web(s.URL)
	secret.Config["headers"] = []any{map[string]any{"key": "Authorization", "value": "{{args.token}}"}}
	secret.Secrets = map[string]rollout.SecretRef{"token": {Name: "metrics", Key: "token"}}
	for want, m := range map[string]rollout.Metric{
		"404 Not Found": compared, "key token of Secret shop/metrics is not there": secret,
	} {
		b.begin(shop, due(m))
		got := b.measured(t, "shop")
		if len(got) != 1 || got[0].Phase != analysis.Errored || !strings.Contains(got[0].Message, want) {
			t.Errorf("measured %+v, want %s", got, want)
		}
	}
}

// TestSecretsAreNotTold checks that a Secret in a server's answer is redacted, also in an error about the query.
func TestSecretsAreNotTold(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "there is no user "+r.URL.Query().Get("user"), http.StatusForbidden)
	}))
	t.Cleanup(s.Close)
	m := web(s.URL + "/?user={{args.token}}")
	m.Secrets = map[string]rollout.SecretRef{"token": {Name: "metrics", Key: "token"}}
	b := newBench(t, nil)
	b.begin(shop, due(m))
	got := b.measured(t, "shop")
	if len(got) != 1 || !strings.Contains(got[0].Message, "there is no user") || strings.Contains(got[0].Message, "s3cr3t") {
		t.Errorf("measured %+v", got)
	}
}
