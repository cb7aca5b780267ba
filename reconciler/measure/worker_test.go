package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	shop = rollout.App{Name: "shop"}
)

// bench is a worker whose touches arrive in a channel.
type bench struct {
	*Worker
	touched chan string
	mu      sync.Mutex
	trouble []string
	going   []rollout.AnalysisRun
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	b := &bench{touched: make(chan string, 100)}
	o := Options{
		Deps: provider.Deps{
			Client: func(bool) *http.Client { return http.DefaultClient },
			Secret: func(context.Context, string, string) (map[string]string, error) {
				return map[string]string{"token": "s3cr3t-t0ken"}, nil
			},
			Now: func() time.Time { return noon }, Backoff: time.Millisecond,
		},
		Touch: func(app string) { b.touched <- app },
		Trouble: func(app, metric string, err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.trouble = append(b.trouble, fmt.Sprintf("%s %s: %v", app, metric, err))
		},
		Again: time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	b.Worker = New(t.Context(), o)
	return b
}

// measured waits for a touch and collects the measurements.
func (b *bench) measured(t *testing.T, app string) []strategies.Measured {
	t.Helper()
	select {
	case got := <-b.touched:
		if got != app {
			t.Fatalf("%s is touched, want %s", got, app)
		}
		return b.Measured(app)
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s is not touched", app)
		return nil
	}
}

// begin starts measurements beside all earlier running ones.
func (b *bench) begin(app rollout.App, due []strategies.Measure) {
	b.going = append(b.going, going(due)...)
	b.Measure(app, b.going, due)
}

func going(due []strategies.Measure) (runs []rollout.AnalysisRun) {
	for _, m := range due {
		runs = append(runs, rollout.AnalysisRun{Name: m.Run, Release: m.Release, Started: m.Started,
			Metrics: []rollout.MetricProgress{{Metric: m.Metric.Name}}})
	}
	return runs
}

func web(url string) rollout.Metric {
	return rollout.Metric{Name: "errors", Provider: "web", Config: map[string]any{"url": url}}
}

func due(m rollout.Metric) []strategies.Measure {
	return []strategies.Measure{{
		Run: "shop/step-1", Started: noon, Metric: m, Latest: "new", Stable: "old",
		Workload: rollout.Workload{Namespace: "shop", Name: "shop"},
	}}
}

// serve answers each request with its number, starting at 1.
func serve(t *testing.T, before func(*http.Request)) (url string, asked *atomic.Int64) {
	asked = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if before != nil {
			before(r)
		}
		fmt.Fprint(w, n)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestMeasures(t *testing.T) {
	url, _ := serve(t, nil)
	b := newBench(t, nil)
	b.begin(shop, due(web(url)))
	got := b.measured(t, "shop")
	if len(got) != 1 || got[0].Value != "1" || got[0].Phase != analysis.Successful ||
		!got[0].At.Equal(noon) || got[0].Run != "shop/step-1" || got[0].Metric != "errors" {
		t.Errorf("measured %+v", got)
	}
	if again := b.Measured("shop"); len(again) > 0 {
		t.Errorf("collected twice: %+v", again)
	}
}

// TestNotTwice checks that a pass that decided before the end of a measurement does not start it twice. It is the
// same measurement until its result was collected.
func TestNotTwice(t *testing.T) {
	release := make(chan struct{})
	url, asked := serve(t, func(*http.Request) { <-release })
	b := newBench(t, nil)
	b.begin(shop, due(web(url)))
	b.begin(shop, due(web(url))) // it is running
	close(release)
	<-b.touched
	b.begin(shop, due(web(url))) // it has ended, without being collected
	time.Sleep(50 * time.Millisecond)
	if got := b.Measured("shop"); len(got) != 1 || asked.Load() != 1 {
		t.Errorf("asked %d times: %+v", asked.Load(), got)
	}
	b.begin(shop, due(web(url))) // the next measurement
	if got := b.measured(t, "shop"); len(got) != 1 || asked.Load() != 2 {
		t.Errorf("asked %d times: %+v", asked.Load(), got)
	}
}

// TestOneAppKeepsNoOtherWaiting starts more hanging metrics than there are slots. Other apps still measure.
func TestOneAppKeepsNoOtherWaiting(t *testing.T) {
	hanging, _ := serve(t, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	url, _ := serve(t, nil)
	b := newBench(t, func(o *Options) { o.Parallel = 2 })
	for i := range 5 {
		m := web(hanging)
		m.Name = fmt.Sprint("hangs-", i)
		b.begin(rollout.App{Name: "other"}, due(m))
	}
	time.Sleep(20 * time.Millisecond)
	b.begin(shop, due(web(url)))
	if got := b.measured(t, "shop"); len(got) != 1 || got[0].Value != "1" {
		t.Errorf("measured %+v", got)
	}
}

func TestSlots(t *testing.T) {
	var now, most atomic.Int64
	url, asked := serve(t, func(*http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(10 * time.Millisecond)
		now.Add(-1)
	})
	b := newBench(t, func(o *Options) { o.Parallel = 2 })
	for i := range 10 {
		m := web(url)
		m.Name = fmt.Sprint("m", i)
		b.begin(shop, due(m))
	}
	for n := 0; n < 10; {
		n += len(b.measured(t, "shop"))
	}
	if most.Load() > 2 || asked.Load() != 10 {
		t.Errorf("%d at once, %d in all", most.Load(), asked.Load())
	}
}

// gates is a Job that runs until it is opened, and records the names of the requested Jobs.
type gates struct {
	mu      sync.Mutex
	asked   []string
	open    bool
	gone    bool
	deleted int
	refuses error // to delete
	fails   error
}

func (g *gates) EnsureJob(_ context.Context, job map[string]any, _ string, begun bool) (rollout.JobState, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fails != nil {
		return rollout.JobState{}, g.fails
	}
	if begun && g.gone {
		return rollout.JobState{Gone: true}, nil
	}
	g.asked = append(g.asked, job["metadata"].(map[string]any)["name"].(string))
	if g.open {
		return rollout.JobState{Complete: true}, nil
	}
	return rollout.JobState{}, nil
}

func (g *gates) DeleteJob(context.Context, string, string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deleted++
	return g.refuses
}

var job = rollout.Metric{Name: "job", Provider: "job", Config: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
	"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "c:1"}},
}}}}}

// TestRunningHoldsNoSlot checks that a long Job is read again under the same name, without keeping a slot. Jobs that
// remain are reported.
func TestRunningHoldsNoSlot(t *testing.T) {
	g := &gates{refuses: errors.New("not allowed")}
	url, _ := serve(t, nil)
	b := newBench(t, func(o *Options) { o.Parallel, o.Deps.Jobs = 1, g })
	b.begin(shop, due(job))
	b.begin(shop, due(web(url)))
	if got := b.measured(t, "shop"); len(got) != 1 || got[0].Metric != "errors" || got[0].Phase != analysis.Successful {
		t.Errorf("measured %+v", got)
	}
	for asked := 0; asked < 3; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		if asked = len(g.asked); asked >= 3 {
			g.open = true
		}
		g.mu.Unlock()
	}
	got := b.measured(t, "shop")
	if len(got) != 1 || got[0].Metric != "job" || got[0].Phase != analysis.Successful {
		t.Errorf("measured %+v", got)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) < 3 || g.asked[0] != g.asked[len(g.asked)-1] {
		t.Errorf("asked for %v", g.asked)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if g.deleted != 1 || len(b.trouble) != 1 || !strings.Contains(b.trouble[0], "what it left behind stays: ") {
		t.Errorf("%d deleted, told %q", g.deleted, b.trouble)
	}
}

// TestPanic checks that a panic is an error of the measurement. Its text may have secrets, so only the log has it.
func TestPanic(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Parallel = 1
		o.Deps.Client = func(bool) *http.Client { panic("at s3cr3t-t0ken") }
	})
	b.begin(shop, due(web("http://127.0.0.1:1")))
	got := b.measured(t, "shop")
	if len(got) != 1 || got[0].Phase != analysis.Errored || !strings.Contains(got[0].Message, "web failed inside") || strings.Contains(got[0].Message, "s3cr3t") {
		t.Errorf("measured %+v", got)
	}
	b.mu.Lock()
	if len(b.trouble) != 1 || !strings.Contains(b.trouble[0], "worker_test.go") {
		t.Errorf("told %q", b.trouble)
	}
	b.mu.Unlock()
	b.begin(shop, due(web("http://127.0.0.1:1")))
	if got := b.measured(t, "shop"); len(got) != 1 {
		t.Errorf("after a panic it is not measured again: %+v", got)
	}
}

// TestJudgingEnds checks that slow conditions are an error, and that the next measurement runs.
func TestJudgingEnds(t *testing.T) {
	url, _ := serve(t, nil)
	b := newBench(t, func(o *Options) { o.Judging = time.Nanosecond })
	for range 2 {
		b.begin(shop, due(web(url)))
		if got := b.measured(t, "shop"); len(got) != 1 || got[0].Phase != analysis.Errored || !strings.Contains(got[0].Message, "takes longer than 1ns") {
			t.Fatalf("measured %+v", got)
		}
	}
	never := make(chan struct{})
	defer close(never)
	if _, err := within(time.Nanosecond, func() (bool, error) { <-never; return true, nil }); err == nil {
		t.Error("a judgement that does not end is waited for")
	}
}

// TestEnd checks that running measurements are dropped at the end of the process.
func TestEnd(t *testing.T) {
	begun := make(chan struct{})
	url, _ := serve(t, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		begun <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, nil)
	b.ctx = ctx
	b.Parallel = 1
	b.begin(shop, due(web(url)))
	<-begun
	second := web(url)
	second.Name = "waits for a slot"
	b.begin(shop, due(second))
	cancel()
	time.Sleep(50 * time.Millisecond)
	if got := b.Measured("shop"); len(got) > 0 || len(b.touched) > 0 {
		t.Errorf("measured %+v", got)
	}
}

// TestComparesAndKeepsSecrets checks that both versions are measured, and that an argument from a Secret is sent but
// shown nowhere.
func TestComparesAndKeepsSecrets(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		said := r.URL.Query().Get("hash") + " " + r.Header.Get("Authorization")
		if sent = append(sent, said); len(sent) > 2 {
			http.Error(w, "who is "+said, http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `[1, 100]`)
	}))
	t.Cleanup(s.Close)
	m := rollout.Metric{
		Name: "errors", Provider: "web", Compare: &rollout.Compare{}, Pods: map[string]string{"hash": "Latest"},
		Secrets: map[string]rollout.SecretRef{"token": {Name: "metrics", Key: "token"}},
		Config: map[string]any{
			"url":     s.URL + "/?hash={{args.hash}}",
			"headers": []any{map[string]any{"key": "Authorization", "value": "Bearer {{args.token}}"}},
		},
	}
	b := newBench(t, nil)
	b.begin(shop, due(m))
	got := b.measured(t, "shop")
	if len(got) != 1 || got[0].Value != "1 of 100 (1%), stable 1 of 100 (1%)" {
		t.Errorf("measured %+v", got)
	}
	b.begin(shop, due(m))
	if got := b.measured(t, "shop"); len(got) != 1 || got[0].Phase != analysis.Errored || !strings.Contains(got[0].Message, "403 Forbidden") || strings.Contains(got[0].Message, "s3cr3t") {
		t.Errorf("measured %+v", got)
	}
	mu.Lock()
	if want := "[new Bearer s3cr3t-t0ken old Bearer s3cr3t-t0ken new Bearer s3cr3t-t0ken]"; fmt.Sprint(sent) != want {
		t.Errorf("sent %v, want %v", sent, want)
	}
	mu.Unlock()
	m.Secrets["token"] = rollout.SecretRef{Name: "metrics", Key: "other"}
	b.begin(shop, due(m))
	if got := b.measured(t, "shop"); len(got) != 1 || got[0].Phase != analysis.Errored || got[0].Message != "Secret shop/metrics has no key other" {
		t.Errorf("measured %+v", got)
	}
}

// TestOverIsOver checks that a measurement waiting for a gate or Job stops with its release, and that its Job is
// deleted. Uncollected results are dropped.
func TestOverIsOver(t *testing.T) {
	asked := make(chan struct{}, 1000)
	shut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(shut.Close)
	gate := rollout.Metric{Name: "gate", Provider: "webhook", Config: map[string]any{"url": shut.URL, "type": "confirm-rollout"}}
	hanging, _ := serve(t, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	g := &gates{}
	b := newBench(t, func(o *Options) { o.Deps.Jobs = g })
	slow := web(hanging)
	slow.Name = "slow"
	for _, m := range []rollout.Metric{gate, job, slow} {
		b.begin(shop, due(m))
	}
	for range 3 {
		<-asked
	}
	b.Measure(shop, b.going, nil) // they continue
	<-asked
	b.Measure(shop, going(due(slow)), nil)
	waitFor(t, "only the continuing measurement", func() bool { return len(b.under()) == 1 })
	for len(asked) > 0 {
		<-asked
	}
	time.Sleep(50 * time.Millisecond)
	if n := len(asked); n > 0 {
		t.Errorf("a gate of an ended measurement is asked %d times", n)
	}
	waitFor(t, "the Job to be removed", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.deleted == 1 })
	b.Measure(shop, nil, nil)
	waitFor(t, "nothing to be left", func() bool { return len(b.under()) == 0 })
	if got := b.Measured("shop"); len(got) > 0 || len(b.touched) > 0 {
		t.Errorf("measured %+v", got)
	}
	b.mu.Lock()
	if len(b.trouble) > 0 {
		t.Errorf("told %q", b.trouble)
	}
	b.mu.Unlock()
}

// TestFailedRequestsAreTidiedUp checks that a Job started by a failed request is removed when its analysis ends
// before the next request.
func TestFailedRequestsAreTidiedUp(t *testing.T) {
	g := &gates{fails: errors.New("the API server is away")}
	b := newBench(t, func(o *Options) { o.Deps.Jobs = g })
	b.begin(shop, due(job))
	if got := b.measured(t, "shop"); len(got) != 1 || got[0].Phase != analysis.Errored {
		t.Fatalf("measured %+v", got)
	}
	b.Measure(shop, b.going, nil)
	if g.deleted > 0 {
		t.Error("the Job is removed, and its analysis goes on")
	}
	b.Measure(shop, nil, nil)
	waitFor(t, "the Job to be removed", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return g.deleted == 1 })
	if n := len(b.under()); n > 0 || len(b.stations) > 0 {
		t.Errorf("%d measurements are under way, and something is remembered", n)
	}
}

// TestDeletedJobIsNotMadeAgain checks that a hanging Job deleted by hand is inconclusive, and is not created again.
func TestDeletedJobIsNotMadeAgain(t *testing.T) {
	g := &gates{}
	b := newBench(t, func(o *Options) { o.Deps.Jobs = g })
	b.begin(shop, due(job))
	waitFor(t, "the Job", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.asked) > 1 })
	g.mu.Lock()
	g.gone = true
	g.mu.Unlock()
	if got := b.measured(t, "shop"); len(got) != 1 || got[0].Phase != analysis.Inconclusive || !strings.Contains(got[0].Message, "deleted") {
		t.Errorf("measured %+v", got)
	}
}

// under returns the running measurements of an app.
func (b *bench) under() []string {
	b.Worker.mu.Lock()
	defer b.Worker.mu.Unlock()
	if s := b.stations["shop"]; s != nil {
		return slices.Collect(maps.Keys(s.tasks))
	}
	return nil
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestOnlyInNamespacesOfTheApp checks that no Secret is read and no Job created outside of the app's namespaces.
// Plain requests need no namespace.
func TestOnlyInNamespacesOfTheApp(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[1, 100]`) }))
	t.Cleanup(s.Close)
	web := map[string]any{"url": s.URL}
	token := map[string]rollout.SecretRef{"token": {Name: "metrics", Key: "token"}}
	for name, tt := range map[string]struct {
		app    rollout.App
		metric rollout.Metric
		want   string
	}{
		"a Secret in another":       {rollout.App{Name: "shop", Namespace: "evil"}, rollout.Metric{Provider: "web", Config: web, Secrets: token}, "app shop has no business in namespace shop"},
		"a Job in another":          {rollout.App{Name: "shop", Namespace: "evil"}, rollout.Metric{Provider: "job", Config: map[string]any{}}, "add to its entry in the configuration: namespaces: [shop]"},
		"a Secret in its namespace": {rollout.App{Name: "shop", Namespace: "shop"}, rollout.Metric{Provider: "web", Config: web, Secrets: token}, ""},
		"neither":                   {rollout.App{Name: "shop", Namespace: "evil"}, rollout.Metric{Provider: "web", Config: web}, ""},
		"of an app that is gone":    {rollout.App{Name: "shop"}, rollout.Metric{Provider: "web", Config: web, Secrets: token}, ""},
		"gitrollout's, whatever":    {rollout.App{Name: "shop", Namespace: "shop", Namespaces: "shop"}, rollout.Metric{Provider: "web", Config: web, Secrets: token}, "OWN"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			b := newBench(t, func(o *Options) {
				o.Deps.Secret = func(context.Context, string, string) (map[string]string, error) {
					asked = true
					return map[string]string{"token": "t0ken"}, nil
				}
				if tt.want == "OWN" {
					o.Own = "shop"
				}
			})
			tt.metric.Name = "up"
			b.begin(tt.app, due(tt.metric))
			got := b.measured(t, "shop")
			refused := len(got) == 1 && got[0].Phase == analysis.Errored && strings.Contains(got[0].Message, "has no business")
			if len(got) != 1 || refused != (tt.want != "") || asked != (tt.want == "" && tt.metric.Secrets != nil) {
				t.Errorf("measured %+v; the Secret was read: %t", got, asked)
			}
			if refused && tt.want != "OWN" && !strings.Contains(got[0].Message, tt.want) {
				t.Errorf("the message is %s", got[0].Message)
			}
		})
	}
}
