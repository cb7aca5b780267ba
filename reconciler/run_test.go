package reconciler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// away is a Git server whose n-th fetch fails with the error err(n). If err(n) is nil, Repository serves the fetch.
type away struct {
	reconciler.Repository
	fetches atomic.Int64
	err     func(n int64) error
}

func (a *away) Fetch(ctx context.Context) (rollout.Heads, error) {
	if err := a.err(a.fetches.Add(1)); err != nil {
		return rollout.Heads{}, err
	}
	return a.Repository.Fetch(ctx)
}

// TestRunPolls checks the number of fetches in 61 seconds while the Git server is down. The first pause between fetches
// is the interval, and later pauses are longer. Changes in the cluster cause no fetch. A repeated error is logged once.
func TestRunPolls(t *testing.T) {
	for name, tt := range map[string]struct {
		flag    time.Duration
		config  *rollout.Config
		touch   bool
		fetches int64
	}{
		"flag":                   {2 * time.Second, &rollout.Config{Interval: time.Second}, false, 6},
		"configuration":          {0, &rollout.Config{Interval: 10 * time.Second}, false, 4},
		"neither":                {0, nil, false, 3},
		"changes of the cluster": {0, nil, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				repo := &away{err: func(int64) error { return errors.New("no route") }}
				r := reconciler.New(reconciler.Options{Repository: repo, Log: slog.New(slog.NewTextHandler(&log, nil))})
				r.See(&source.Branch{Config: tt.config})
				ctx, stop := context.WithTimeout(t.Context(), 61*time.Second)
				defer stop()
				ended := make(chan struct{})
				go func() { r.Run(ctx, tt.flag); close(ended) }()
				for tt.touch && ctx.Err() == nil {
					r.Touch("shop")
					time.Sleep(time.Second)
				}
				<-ended
				compare.CheckNamed(t, "looks at Git in 61 seconds", tt.fetches, repo.fetches.Load())
				compare.CheckNamed(t, "lines of the same error", 1, strings.Count(log.String(), "no route"))
				if passes := r.Stats().Passes; tt.touch != (passes > 55) {
					t.Errorf("%d passes", passes)
				}
			})
		})
	}
}

// TestProblemsAreTold checks the problems in the reports of polls. An invalid folder stays a problem while Git is down, until a commit
// removes the folder. The last report also tells that the head has a fleet.yaml.
func TestProblemsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, folder := newMirror(), "apps/No_Name/kustomization.yaml"
		server.commit("main", "an invalid folder", map[string]string{configFile: plainConfig, folder: "resources: []\n"})
		repo := &away{Repository: server, err: func(n int64) error {
			switch n {
			case 2, 3:
				return errors.New("no route")
			case 4:
				server.commit("main", "no folder", map[string]string{folder: "", rollout.FleetPath: "apiVersion: gitrollout.dev/v1alpha1\n" +
					"kind: Fleet\nstages:\n- {name: prod, clusters: [prod]}\n"})
			}
			return nil
		}}
		var told []string
		var staged []bool
		r := reconciler.New(reconciler.Options{
			Cluster: "prod", UID: "uid", Repository: repo, Past: server, Renderer: render.New(render.InProcess{}),
			Log: slog.New(slog.DiscardHandler), Tell: func(news report.Report) {
				if p := news.Problem; p != nil {
					told, staged = append(told, *p), append(staged, news.Staged)
				}
			},
		})
		ctx, stop := context.WithTimeout(t.Context(), 35*time.Second)
		defer stop()
		began := time.Now().UTC()
		must(t, r.Run(ctx, 10*time.Second))
		since := "reading Git has failed since " + began.Add(10*time.Second).Format("2006-01-02 15:04:05 UTC") +
			", so new commits are not seen: fetch: no route;\n"
		if len(told) != 4 || !strings.Contains(told[0], "apps/No_Name would be the app") {
			t.Fatalf("told are %q", told)
		}
		compare.CheckNamed(t, "later problems", []string{since + told[0], since + told[0], ""}, told[1:])
		compare.CheckNamed(t, "stages", []bool{false, false, false, true}, staged)
	})
}

// TestPoll checks that Poll causes additional fetches, at most one per second.
func TestPoll(t *testing.T) {
	for name, tt := range map[string]struct {
		interval time.Duration
		every    time.Duration // the time between two calls of Poll, which the test repeats for a minute
		fetches  int64
	}{
		"one":                      {10 * time.Minute, time.Minute, 2},
		"a flood":                  {10 * time.Minute, time.Millisecond, 61},
		"a flood, and Git is away": {250 * time.Millisecond, 100 * time.Millisecond, 61},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				repo := &away{err: func(int64) error { return errors.New("no route") }}
				r := reconciler.New(reconciler.Options{Repository: repo, Log: slog.New(slog.DiscardHandler)})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go r.Run(ctx, tt.interval)
				time.Sleep(tt.interval / 1000)
				began := time.Now()
				for time.Since(began) < time.Minute {
					time.Sleep(tt.every / 2)
					r.Poll()
					time.Sleep(tt.every / 2)
				}
				synctest.Wait()
				if got := repo.fetches.Load(); got < tt.fetches-1 || got > tt.fetches+1 {
					t.Errorf("%d looks at Git in a minute, want about %d", got, tt.fetches)
				}
			})
		})
	}
}

// TestRunStopsAtOnce checks that Run ends immediately if its context is cancelled while it waits.
func TestRunStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reconciler.New(reconciler.Options{Repository: &away{err: func(int64) error { return errors.New("no route") }},
			Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx, time.Hour); close(ended) }()
		synctest.Wait()
		began := time.Now()
		stop()
		<-ended
		compare.CheckNamed(t, "it took", 0*time.Second, time.Since(began))
	})
}

// TestTouchesDoNotDelayTheNextTry checks that several failed passes at one moment delay an app's next try as little as one failed pass.
func TestTouchesDoNotDelayTheNextTry(t *testing.T) {
	w := newWorld(t, nil)
	w.cluster.refuses = func(rollout.Object) error { return errors.New("the API server is away") }
	_ = w.once()
	for range 20 {
		w.r.Touch("shop")
		_ = w.r.RunOnce(t.Context(), w.clock, false)
	}
	if due := w.r.NextDue(); due.After(w.now.Add(2 * time.Second)) {
		t.Errorf("at %s, after 20 failures at one moment, the next try is at %s", w.now, due)
	}
}

// TestTriesAreSpread checks that Options.Spread lengthens the wait before the next try of a failed app.
func TestTriesAreSpread(t *testing.T) {
	asked := []time.Duration{}
	w := newWorld(t, func(o *reconciler.Options) {
		o.Spread = func(d time.Duration) time.Duration { asked = append(asked, d); return d + 10*time.Second }
	})
	w.cluster.refuses = func(rollout.Object) error { return errors.New("the API server is away") }
	w.commit("other configuration", map[string]string{"apps/shop/config.yaml": configMap + "data: {a: b}\n"})
	w.passes(2)
	if len(asked) == 0 || asked[0] != time.Second {
		t.Fatalf("spread were %v", asked)
	}
	if due := w.r.NextDue(); due.Before(w.now.Add(10 * time.Second)) {
		t.Errorf("the next try is at %s, at %s", due, w.now)
	}
}

// TestTriesAreTimed checks that an app counts as failing while the cluster or Git refuses a change. The pauses between
// tries grow until a try succeeds.
func TestTriesAreTimed(t *testing.T) {
	w := newWorld(t, nil)
	isFailing := func() bool { return w.r.IsFailing("shop") }
	w.passes(2)
	compare.CheckNamed(t, "an app at rest is failing", false, isFailing())
	w.cluster.check = &rollout.InvalidError{Msg: "denied by a policy"}
	w.commit("v2", shopAt("v2"))
	w.passes(5)
	compare.CheckNamed(t, "refused 5 times: failing, and held", [2]bool{true, true}, [2]bool{isFailing(), w.state().Held != nil})
	w.cluster.check = nil
	w.passes(2)
	compare.CheckNamed(t, "on its way: failing, and a release", [2]bool{false, true}, [2]bool{isFailing(), w.state().Release != nil})
	w.git.fails = errors.New("the Git server is away")
	w.commit("v3", shopAt("v3"))
	w.passes(3)
	compare.CheckNamed(t, "a transition that Git does not take is a failure", true, isFailing())
	w.git.fails = nil
	w.passes(3)
	compare.CheckNamed(t, "a transition that was recorded in the end is a failure", false, isFailing())
}

// TestWhatMayNotBeLookedAt checks a new app with an object of a kind that gitrollout has no right to read. The app is held with a reason
// until gitrollout has the right. A temporary error only delays the app.
func TestWhatMayNotBeLookedAt(t *testing.T) {
	w := newWorld(t, nil)
	w.cluster.unasked, w.cluster.applied = errors.New("the cluster is away"), nil
	w.commit("another app", map[string]string{
		"apps/more/kustomization.yaml": "resources: [app.yaml]\n",
		"apps/more/app.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
	})
	isApplied := func() bool { return slices.Contains(w.cluster.applied, "ConfigMap/more") }
	w.passes(3)
	compare.CheckNamed(t, "held, and applied", "<nil> false", fmt.Sprint(w.stateOf("more").Held, isApplied()))
	w.cluster.unasked = &rollout.InvalidError{Msg: "may not watch", Fix: "allow it", Reason: rollout.HeldForbidden}
	w.passes(12)
	compare.Contains(t, fmt.Sprintf("%+v", w.stateOf("more").Held), "Reason:"+string(rollout.HeldForbidden), "may not watch; allow it")
	compare.CheckNamed(t, "applied", false, isApplied())
	w.cluster.unasked = nil
	w.passes(40)
	compare.CheckNamed(t, "held, and applied", "<nil> true", fmt.Sprint(w.stateOf("more").Held, isApplied()))
}

// TestNothingAdvancesUnseen checks that, while watches are broken, no timer advances a release and no rollback ends. A
// rollback still begins. It ends when the watches work again.
func TestNothingAdvancesUnseen(t *testing.T) {
	steps := strings.NewReplacer("pause: {}", "pause: {duration: 3s}")
	w := worldOf(t, map[string]string{
		configFile:                     plainConfig,
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n",
		"apps/shop/app.yaml":           steps.Replace(version("v1")),
	}, nil)
	w.commit("v2", map[string]string{"apps/shop/app.yaml": steps.Replace(version("v2"))})
	for range 20 {
		if _ = w.once(); w.state().Phase == rollout.Paused {
			break
		}
	}
	w.cluster.unseen = "the API server does not answer"
	var err error
	w.recordsNothing(func() {
		w.passes(9)
		err = w.once()
	})
	compare.Contains(t, fmt.Sprint(err), "nothing advances while the cluster's state is unknown: the API server")
	w.want(rollout.Paused, 2)
	w.commit("v1", map[string]string{"apps/shop/app.yaml": steps.Replace(version("v1"))})
	w.passes(10)
	w.want(rollout.Aborting, 0)
	w.cluster.unseen = ""
	w.passes(4)
	w.pass()
	w.want(rollout.Healthy, 0)
}

// TestEachObjectIsTried checks that objects are applied one by one after an apply of all objects together has failed. Each new error is
// reported once. An object of another app is skipped. Any other error stops the applies, because later objects could remove pods that still
// get requests.
func TestEachObjectIsTried(t *testing.T) {
	objects := rollout.Mapped([]string{"a", "b", "c"}, func(name string) rollout.Object {
		return rollout.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "a"}}
	})
	theirs := &rollout.InvalidError{Msg: "it is another app's"}
	down, slow := errors.New("the API server is away"), errors.New("too slow")
	for name, c := range map[string]struct {
		refused map[string]error // the error of each refused object
		failed  error            // the error of applying all objects together
		want    string
		applied string
	}{
		"all at the second try":       {nil, down, down.Error(), "abc"},
		"the same again":              {map[string]error{"b": down}, down, down.Error(), "a"},
		"another one":                 {map[string]error{"b": slow}, down, down.Error() + "\ntoo slow", "a"},
		"another app's":               {map[string]error{"a": theirs}, theirs, theirs.Error(), "bc"},
		"another app's, news":         {map[string]error{"a": theirs}, down, down.Error() + "\n" + theirs.Error(), "bc"},
		"another app's, and a fail":   {map[string]error{"a": theirs, "b": down}, theirs, theirs.Error() + "\n" + down.Error(), ""},
		"both, after another failure": {map[string]error{"a": theirs, "c": slow}, down, down.Error() + "\n" + theirs.Error() + "\ntoo slow", "b"},
	} {
		w := &world{T: t, cluster: &server{Cluster: kube.New(nil, time.Time{})}}
		w.cluster.refuses = func(o rollout.Object) error { return c.refused[o.Name()] }
		err := reconciler.ApplyEach(t.Context(), w.cluster, "shop", objects, c.failed)
		applied := strings.ReplaceAll(strings.Join(w.cluster.applied, ""), "ConfigMap/", "")
		compare.CheckNamed(t, name, [2]string{c.want, c.applied}, [2]string{err.Error(), applied})
	}
}

// meter is an Analyzer whose measurements succeed immediately. The field "lost" has the results that no pass has collected.
type meter struct {
	begun int
	lost  []strategies.Measured
	now   func() time.Time
}

func (m *meter) Measure(_ rollout.App, _ []rollout.AnalysisRun, due []strategies.Measure) {
	for _, d := range due {
		m.begun++
		m.lost = append(m.lost, strategies.Measured{Run: d.Run, Release: d.Release, Started: d.Started, Metric: d.Metric.Name,
			Measurement: rollout.Measurement{At: m.now(), Value: "0.1", Phase: rollout.AnalysisSuccessful}})
	}
}

func (m *meter) Measured(string) []strategies.Measured {
	taken := m.lost
	m.lost = nil
	return taken
}

// TestTheLastPassBeginsNothing runs processes, each of which ends after two passes. Even a slow last pass must collect all results, and
// must not start a measurement.
func TestTheLastPassBeginsNothing(t *testing.T) {
	m := &meter{}
	w := newWorld(t, func(o *reconciler.Options) { o.Analyzer, o.Ends = m, true })
	slow := func() time.Time { // each reading advances the clock by three seconds
		w.now = w.now.Add(3 * time.Second)
		return w.now
	}
	m.now = slow
	app := strings.Replace(version("v2"), "{pause: {}}", "{analysis: {templates: [{templateName: load}]}}, {pause: {}}", 1)
	w.commit("v2", map[string]string{"apps/shop/app.yaml": app + "---\n" + `apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: load}
spec:
  metrics:
  - {name: load, count: 3, interval: 1s, successCondition: result < 0.5, provider: {web: {url: "http://a.example.com"}}}
`})
	isThrough := false
	for i := 0; i < 40 && !isThrough; i++ {
		w.pass()
		must(t, w.r.RunOnce(t.Context(), slow, false))
		s := w.state()
		isThrough = len(s.Progress) > 0 && s.Progress[0].Step == 2
		m.lost = nil
		w.r = reconciler.New(w.r.Options)
	}
	compare.CheckNamed(t, "measurements begun, and the step has ended", []any{3, true}, []any{m.begun, isThrough})
}
