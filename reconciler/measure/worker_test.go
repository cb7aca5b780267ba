package measure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/measure"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	shop = rollout.App{Name: "shop"}
)

// bench is a Worker under test. The channel "touched" receives each app that the Worker touches.
type bench struct {
	*measure.Worker
	touched chan string
	mu      sync.Mutex
	trouble []string
	going   []rollout.AnalysisRun
}

func newBench(t *testing.T, change func(*measure.Options)) *bench {
	t.Helper()
	b := &bench{touched: make(chan string, 100)}
	o := measure.Options{
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
		As:    func(ctx context.Context, _ rollout.App) context.Context { return ctx },
		Again: time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	b.Worker = measure.New(t.Context(), o)
	return b
}

// measured waits until the Worker touches the app, and returns the app's results.
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

// one waits until the Worker touches the app shop, and returns the only result.
func (b *bench) one(t *testing.T) strategies.Measured {
	t.Helper()
	got := b.measured(t, "shop")
	if len(got) != 1 {
		t.Fatalf("measured %+v, want one measurement", got)
	}
	return got[0]
}

// measure starts a measurement of the app shop, and returns the result.
func (b *bench) measure(t *testing.T, m rollout.Metric) strategies.Measured {
	t.Helper()
	b.begin(shop, due(m))
	return b.one(t)
}

// wantError fails the test unless a measurement has an error that contains the text and does not contain the Secret.
func wantError(t *testing.T, got strategies.Measured, text string) {
	t.Helper()
	if got.Phase != analysis.Errored || !strings.Contains(got.Message, text) || strings.Contains(got.Message, "s3cr3t") {
		t.Errorf("measured %+v, want an error with %q, and no Secret", got, text)
	}
}

// wantTrouble fails the test unless Options.Trouble was called once, with this text. If text is "", it must not have been called.
func (b *bench) wantTrouble(t *testing.T, text string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == "" && len(b.trouble) > 0 || text != "" && (len(b.trouble) != 1 || !strings.Contains(b.trouble[0], text)) {
		t.Errorf("told %q, want %q", b.trouble, text)
	}
}

// begin starts the due measurements. Measurements of earlier calls continue.
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

// compared returns a metric that is measured for the new and for the stable version.
func compared(url string) rollout.Metric {
	m := web(url + "/?hash={{args.hash}}")
	m.Compare, m.Pods = &rollout.Compare{}, map[string]string{"hash": "Latest"}
	return m
}

func due(m rollout.Metric) []strategies.Measure {
	return []strategies.Measure{{
		Run: "shop/step-1", Started: noon, Metric: m, Latest: "new", Stable: "old",
		Workload: rollout.Workload{Namespace: "shop", Name: "shop"},
	}}
}

// withToken gives a metric an argument from the Secret "metrics".
func withToken(m rollout.Metric) rollout.Metric {
	m.Secrets = map[string]rollout.SecretRef{"token": {Name: "metrics", Key: "token"}}
	return m
}

// hang returns a handler that waits until its request is cancelled. The channel, if any, gets a value when a request starts.
func hang(begun chan<- struct{}) func(*http.Request) {
	return func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if begun != nil {
			begun <- struct{}{}
		}
		<-r.Context().Done()
	}
}

// serve starts a server that answers its n-th request with the number n. It calls the function, if any, before each answer.
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
	got := b.measure(t, web(url))
	compare.Check(t, []any{"1", analysis.Successful, noon, "shop/step-1", "errors"}, []any{got.Value, got.Phase, got.At, got.Run, got.Metric})
	compare.CheckNamed(t, "collected twice", 0, len(b.Measured("shop")))
}

// TestNotTwice requests a measurement again while it runs, and again before its result is collected. The Worker must not start a second
// measurement. After the result is collected, a request starts the next measurement.
func TestNotTwice(t *testing.T) {
	release := make(chan struct{})
	url, asked := serve(t, func(*http.Request) { <-release })
	b := newBench(t, nil)
	b.begin(shop, due(web(url)))
	b.begin(shop, due(web(url))) // the measurement is running
	close(release)
	<-b.touched
	b.begin(shop, due(web(url))) // the measurement has ended, and is not collected
	time.Sleep(50 * time.Millisecond)
	compare.CheckNamed(t, "measurements, and requests", [2]int{1, 1}, [2]int{len(b.Measured("shop")), int(asked.Load())})
	if b.measure(t, web(url)); asked.Load() != 2 { // the result was collected
		t.Errorf("asked %d times", asked.Load())
	}
}

// TestOneAppKeepsNoOtherWaiting checks that other apps are measured while one app's hanging measurements occupy all slots of this app.
func TestOneAppKeepsNoOtherWaiting(t *testing.T) {
	hanging, _ := serve(t, hang(nil))
	url, _ := serve(t, nil)
	b := newBench(t, func(o *measure.Options) { o.Parallel = 2 })
	for i := range 5 {
		m := web(hanging)
		m.Name = fmt.Sprint("hangs-", i)
		b.begin(rollout.App{Name: "other"}, due(m))
	}
	time.Sleep(20 * time.Millisecond)
	compare.Check(t, "1", b.measure(t, web(url)).Value)
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
	b := newBench(t, func(o *measure.Options) { o.Parallel = 2 })
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

// gates is a cluster whose Jobs run until "open" is set. It records the names of the requested Jobs.
type gates struct {
	mu      sync.Mutex
	asked   []string
	open    bool
	gone    bool
	deleted int
	refuses error // each deletion returns it
	fails   error
}

// locked calls a function while g.mu is locked, so that no request is answered meanwhile.
func (g *gates) locked(run func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	run()
}

// await waits until the cluster got at least the given numbers of Job requests and deletions.
func (g *gates) await(t *testing.T, asked, deleted int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d requests for a Job and %d removals", asked, deleted), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.asked) >= asked && g.deleted >= deleted
	})
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

var job = rollout.Metric{Name: "job", Provider: "job", Config: map[string]any{
	"spec": map[string]any{"template": map[string]any{
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "c:1"}}},
	}},
}}

// TestRunningHoldsNoSlot checks that a running Job occupies no slot. Each request must name the same Job. A failed deletion is reported.
func TestRunningHoldsNoSlot(t *testing.T) {
	g := &gates{refuses: errors.New("not allowed")}
	url, _ := serve(t, nil)
	b := newBench(t, func(o *measure.Options) { o.Parallel, o.Deps.Jobs = 1, g })
	b.begin(shop, due(job))
	got := b.measure(t, web(url))
	compare.Check(t, []any{"errors", analysis.Successful}, []any{got.Metric, got.Phase})
	g.await(t, 3, 0)
	g.locked(func() { g.open = true })
	got = b.one(t)
	compare.Check(t, []any{"job", analysis.Successful}, []any{got.Metric, got.Phase})
	b.wantTrouble(t, "objects of a measurement were not deleted: ")
	g.mu.Lock()
	defer g.mu.Unlock()
	compare.CheckNamed(t, "the last Job, and deleted Jobs", []any{g.asked[0], 1}, []any{g.asked[len(g.asked)-1], g.deleted})
}

// TestPanic checks that a panic becomes an error of the measurement. Only the log has the panic's text, because this text may contain
// secrets.
func TestPanic(t *testing.T) {
	b := newBench(t, func(o *measure.Options) {
		o.Parallel = 1
		o.Deps.Client = func(bool) *http.Client { panic("at s3cr3t-t0ken") }
	})
	wantError(t, b.measure(t, web("http://127.0.0.1:1")), "web panicked")
	b.wantTrouble(t, "worker_test.go")
	b.measure(t, web("http://127.0.0.1:1")) // the metric is measured again
}

// TestJudgingEnds checks that a measurement fails if its condition takes too long to evaluate. The next measurement must still run.
func TestJudgingEnds(t *testing.T) {
	url, _ := serve(t, nil)
	b := newBench(t, func(o *measure.Options) { o.Judging = time.Nanosecond })
	for range 2 {
		wantError(t, b.measure(t, web(url)), "takes longer than 1ns")
	}
	never := make(chan struct{})
	defer close(never)
	_, err := measure.Within(time.Nanosecond, func() (bool, error) { <-never; return true, nil })
	compare.CheckNamed(t, "a judgement that does not end is dropped", true, err != nil)
}

// TestEnd checks that running and waiting measurements have no result when the process ends.
func TestEnd(t *testing.T) {
	begun := make(chan struct{})
	url, _ := serve(t, hang(begun))
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, nil)
	b.EndWith(ctx)
	b.Parallel = 1
	b.begin(shop, due(web(url)))
	<-begun
	second := web(url)
	second.Name = "waits for a slot"
	b.begin(shop, due(second))
	cancel()
	time.Sleep(50 * time.Millisecond)
	compare.CheckNamed(t, "measurements, and touched apps", [2]int{0, 0}, [2]int{len(b.Measured("shop")), len(b.touched)})
}

// TestComparesAndKeepsSecrets checks that both versions are measured. An argument from a Secret is sent to the server, but no result shows
// it.
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
	m := withToken(compared(s.URL))
	m.Config["headers"] = []any{map[string]any{"key": "Authorization", "value": "Bearer {{args.token}}"}}
	b := newBench(t, nil)
	compare.Check(t, "1 of 100 (1%), stable 1 of 100 (1%)", b.measure(t, m).Value)
	wantError(t, b.measure(t, m), "403 Forbidden")
	mu.Lock()
	compare.CheckNamed(t, "sent", "[new Bearer s3cr3t-t0ken old Bearer s3cr3t-t0ken new Bearer s3cr3t-t0ken]", fmt.Sprint(sent))
	mu.Unlock()
	m.Secrets["token"] = rollout.SecretRef{Name: "metrics", Key: "other"}
	got := b.measure(t, m)
	compare.Check(t, []any{analysis.Errored, "Secret shop/metrics has no key other"}, []any{got.Phase, got.Message})
}

// TestElapsed checks that {{elapsed}} is the same in both queries of a comparison, even if one is sent later.
func TestElapsed(t *testing.T) {
	var mu sync.Mutex
	var sent []string
	clock := noon
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, r.URL.RawQuery)
		clock = clock.Add(time.Minute)
		fmt.Fprint(w, `[1, 100]`)
	}))
	t.Cleanup(s.Close)
	b := newBench(t, func(o *measure.Options) {
		o.Deps.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return clock
		}
	})
	m := compared(s.URL)
	m.Config["url"] = s.URL + "/?{{args.hash}}={{elapsed}}+{{release.elapsed}}"
	of := due(m)
	of[0].Since, of[0].ReleaseSince = noon.Add(-90*time.Second), noon.Add(-time.Hour)
	b.begin(shop, of)
	compare.CheckNamed(t, "the measurement's time", noon, b.one(t).At)
	mu.Lock()
	defer mu.Unlock()
	compare.CheckNamed(t, "sent", []string{"new=90+3600", "old=90+3600"}, sent)
}

// TestCountsByLabel checks that a comparison by a label counts the label's values.
func TestCountsByLabel(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"n":"of","user":"ann"},"value":[1,"700"]},`+
			`{"metric":{"n":"bad","user":"ann"},"value":[1,"600"]},{"metric":{"n":"of","user":"bob"},"value":[1,"1"]}]}}`)
	}))
	t.Cleanup(s.Close)
	m := rollout.Metric{Name: "users", Provider: "prometheus", Config: map[string]any{"address": s.URL, "query": "{{args.hash}}"},
		Compare: &rollout.Compare{By: "user"}, Pods: map[string]string{"hash": "Latest"}}
	b := newBench(t, func(o *measure.Options) { o.Deps.Getenv = func(string) string { return "" } })
	compare.Check(t, "1 of 2 (50%), stable 1 of 2 (50%)", b.measure(t, m).Value)
}

// TestAsksForHistograms checks that a request asks for a histogram only if the metric compares histograms.
func TestAsksForHistograms(t *testing.T) {
	b := newBench(t, nil)
	for name, c := range map[string]struct {
		compare *rollout.Compare
		want    bool
	}{"no comparison": {nil, false}, "numbers": {&rollout.Compare{}, false}, "histograms": {&rollout.Compare{Histogram: true}, true}} {
		m := compared("http://m")
		m.Compare = c.compare
		got, err := b.Request(t.Context(), due(m)[0], shop, "new", "")
		compare.CheckNamed(t, name, []any{c.want, nil}, []any{got.Compare != nil && got.Compare.Histogram, err})
	}
}

// TestOverIsOver ends the analyses of three measurements: a webhook gate, a Job and a slow server. The measurements stop, the Job is
// deleted, and no result is left to collect.
func TestOverIsOver(t *testing.T) {
	asked := make(chan struct{}, 1000)
	shut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(shut.Close)
	gate := rollout.Metric{Name: "gate", Provider: "webhook", Config: map[string]any{"url": shut.URL, "type": "confirm-rollout"}}
	hanging, _ := serve(t, hang(nil))
	g := &gates{}
	b := newBench(t, func(o *measure.Options) { o.Deps.Jobs = g })
	slow := web(hanging)
	slow.Name = "slow"
	for _, m := range []rollout.Metric{gate, job, slow} {
		b.begin(shop, due(m))
	}
	for range 3 {
		<-asked
	}
	b.Measure(shop, b.going, nil) // the measurements continue
	<-asked
	b.Measure(shop, going(due(slow)), nil)
	waitFor(t, "only the continuing measurement", func() bool { return len(b.under()) == 1 })
	for len(asked) > 0 {
		<-asked
	}
	time.Sleep(50 * time.Millisecond)
	compare.CheckNamed(t, "requests to the gate of an ended measurement", 0, len(asked))
	g.await(t, 0, 1)
	b.Measure(shop, nil, nil)
	waitFor(t, "nothing to be left", func() bool { return len(b.under()) == 0 })
	g.locked(func() { compare.CheckNamed(t, "removals of Jobs", 1, g.deleted) })
	compare.CheckNamed(t, "measurements, and touched apps", [2]int{0, 0}, [2]int{len(b.Measured("shop")), len(b.touched)})
	b.wantTrouble(t, "")
}

// TestFailedRequestsAreTidiedUp checks a failed request that may have created its Job. The Job must stay until the analysis ends.
func TestFailedRequestsAreTidiedUp(t *testing.T) {
	g := &gates{fails: errors.New("the API server is away")}
	b := newBench(t, func(o *measure.Options) { o.Deps.Jobs = g })
	wantError(t, b.measure(t, job), "the API server is away")
	b.Measure(shop, b.going, nil)
	compare.CheckNamed(t, "Jobs removed while the analysis goes on", 0, g.deleted)
	b.Measure(shop, nil, nil)
	g.await(t, 0, 1)
	g.locked(func() { compare.CheckNamed(t, "removals of Jobs", 1, g.deleted) })
	compare.CheckNamed(t, "measurements under way, and remembered apps", [2]int{0, 0}, [2]int{len(b.under()), b.Remembered()})
}

// TestDeletedJobIsNotMadeAgain deletes a running Job, as a user may. The measurement must be inconclusive, and no new Job may be created.
func TestDeletedJobIsNotMadeAgain(t *testing.T) {
	g := &gates{}
	b := newBench(t, func(o *measure.Options) { o.Deps.Jobs = g })
	b.begin(shop, due(job))
	g.await(t, 2, 0)
	g.locked(func() { g.gone = true })
	if got := b.one(t); got.Phase != analysis.Inconclusive || !strings.Contains(got.Message, "deleted") {
		t.Errorf("measured %+v", got)
	}
}

// under returns the running and uncollected measurements of the app shop.
func (b *bench) under() []string { return b.Under("shop") }

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestOnlyInNamespacesOfTheApp checks that, in a namespace that the app may not use, no Secret is read and no Job is
// created. A metric without Secret and Job is measured.
func TestOnlyInNamespacesOfTheApp(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[1, 100]`) }))
	t.Cleanup(s.Close)
	plain, secret, empty := web(s.URL), withToken(web(s.URL)), rollout.Metric{Provider: "job", Config: map[string]any{}}
	evil := rollout.App{Name: "shop", Namespace: "evil"}
	for name, tt := range map[string]struct {
		app    rollout.App
		metric rollout.Metric
		want   string
	}{
		"a Secret in another":       {evil, secret, "app shop may not use namespace shop"},
		"a Job in another":          {evil, empty, "add to the app's entry in the configuration: namespaces: [shop]"},
		"a Secret in its namespace": {rollout.App{Name: "shop", Namespace: "shop"}, secret, ""},
		"neither":                   {evil, plain, ""},
		"of an app that is gone":    {rollout.App{Name: "shop"}, secret, ""},
		"gitrollout's, whatever":    {rollout.App{Name: "shop", Namespace: "shop", Namespaces: "shop"}, secret, "OWN"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			b := newBench(t, func(o *measure.Options) {
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
			got := b.one(t)
			refused := got.Phase == analysis.Errored && strings.Contains(got.Message, "may not use namespace")
			compare.CheckNamed(t, "refused, and asked", [2]bool{tt.want != "", tt.want == "" && tt.metric.Secrets != nil}, [2]bool{refused, asked})
			if refused && tt.want != "OWN" && !strings.Contains(got.Message, tt.want) {
				t.Errorf("the message is %s", got.Message)
			}
		})
	}
}
