package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/oidctest"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// fleet is a dashboard that shows the apps of a test, and records users' actions.
type fleet struct {
	t      *testing.T
	board  *dashboard.Board
	server *httptest.Server
	url    string
	token  string

	mu  sync.Mutex
	did []string
}

const evil = `<script>document.title="taken"</script><img src=x onerror="document.title='taken'">`

func newFleet(t *testing.T, apps ...status.App) *fleet {
	t.Helper()
	f := &fleet{t: t, board: dashboard.NewBoard("prod-eu", "")}
	token, digest := dashboard.NewToken()
	f.token = token
	rules := `people: [{name: Ann Lee, email: ann@example.com, token: "` + digest + `", apps: ["shop*"], verbs: [promote, hold, abort]}]`
	f.serve(dashboard.Options{Access: &dashboard.Access{File: accessFile(t, rules)}})
	f.show(apps...)
	return f
}

func accessFile(t *testing.T, rules string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "access.yaml")
	must(t, os.WriteFile(file, []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: DashboardAccess\n"+rules+"\n"), 0o600))
	return file
}

func (f *fleet) serve(options dashboard.Options) {
	f.t.Helper()
	options.Board, options.Records, options.Now, options.Actor = f.board, records{}, time.Now, f
	handler, err := dashboard.New(options)
	must(f.t, err)
	f.server = httptest.NewServer(handler)
	f.t.Cleanup(func() { f.server.CloseClientConnections(); f.server.Close() })
	f.url = f.server.URL
}

func (f *fleet) show(apps ...status.App) {
	f.t.Helper()
	must(f.t, f.board.Show(time.Now(), "", apps, nil))
}

// Act implements dashboard.Actor. It only records the action, and returns an error for each abort.
func (f *fleet) Act(_ context.Context, who dashboard.Person, app string, a propose.Action) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf("%s %s %s by %s %s%s", a.Verb, app, a.Release, who.Name, a.Reason, a.Through))
	if a.Verb == "abort" {
		return "", fmt.Errorf("the branch is protected")
	}
	return "pushed 1234567 to main: Promote shop past step 2", nil
}

func (f *fleet) actions() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.did, "; ")
}

type records struct{}

func (records) Diff(context.Context, string) (dashboard.Diff, error) {
	return dashboard.Diff{From: strings.Repeat("1", 40), To: strings.Repeat("2", 40), Objects: []dashboard.Object{
		{Name: "Deployment shop", Verb: "changed", Text: "@@ -12,7 +12,7 @@\n       containers:\n" +
			"-      - image: registry.example.com/shop:1.41.0\n+      - image: registry.example.com/shop:1.42.0\n         name: shop\n"},
		{Name: "Secret shop-keys", Verb: "changed", Text: "@@ -2,3 +2,3 @@\n data:\n-  password: '*** (before)'\n+  password: '*** (after)'\n"},
		{Name: "ConfigMap shop-texts", Verb: "added", Text: "@@ -0,0 +1,1 @@\n+" + evil + "\n"},
	}}, nil
}

func (records) Objects(context.Context, string) (dashboard.Diff, error) {
	return dashboard.Diff{Objects: []dashboard.Object{
		{Name: "Deployment shop", Text: "kind: Deployment\nmetadata:\n  name: shop " + evil + "\n"},
		{Name: "Secret shop-keys", Text: "data:\n  password: '***'\n"}}}, nil
}

func (records) Pod(_ context.Context, p status.VersionPod) dashboard.Pod {
	d := dashboard.Pod{Notes: []string{"proxy has no log yet: PodInitializing"}, Events: []status.Transition{
		{At: p.Created, Type: "Normal", Reason: "Scheduled", Text: "Successfully assigned " + p.Namespace + "/" + p.Name},
		{At: p.Created, Type: "Warning", Reason: "BackOff", Text: "Back-off restarting failed container <script>alert(1)</script>", Count: 7}}}
	d.Logs = []dashboard.Object{{Name: "shop", Text: "listening on port 8080\npanic: the-configuration-has-no-" +
		strings.Repeat("very-", 30) + "long-name " + evil + "\n"}}
	return d
}

func (records) History(context.Context, string) (dashboard.History, error) {
	at := time.Now()
	ended := at.Add(-4 * time.Hour)
	return dashboard.History{
		Links: dashboard.Links{Commit: "https://git.example.com/shop/config/commit/{}",
			Branch: "https://git.example.com/shop/config/compare/main...{}"},
		History: status.History{App: "shop", Releases: []status.Past{
			{Hash: "h1-2222222222", Commit: strings.Repeat("2", 40), Author: "Ann Lee <ann@example.com>", Subject: "shop 1.42: faster checkout",
				Started: at.Add(-5 * time.Minute), Outcome: status.InFlight, Step: 2, Of: 6, PromotedBy: []string{"Bob Ray"},
				Transitions: []status.Transition{
					{At: at.Add(-5 * time.Minute), Phase: rollout.Progressing, Text: "shop release h1-2222222222 begins " + evil,
						Commit: strings.Repeat("a", 40)},
					{At: at.Add(-3 * time.Minute), Phase: rollout.Paused, Text: "shop step 3/6 pause (40%)", Commit: strings.Repeat("b", 40)},
				}},
			{Hash: "h1-0000000000", Commit: strings.Repeat("4", 40), Author: "Kim <kim@example.com>", Subject: "shop 1.41.1 " + evil,
				Started: at.Add(-5 * time.Hour), Ended: &ended, Outcome: status.Refused,
				Reason: "error-rate is Failed: 3 of 5 measurements failed", Step: 1, Of: 6},
		}},
	}, nil
}

// released returns a release whose hash and commit repeat one digit. The first two words of subject are the image's name and tag.
func released(digit, author, subject string, since time.Time) *status.Release {
	words := strings.Fields(subject)
	return &status.Release{Hash: rollout.Hash("h1-" + strings.Repeat(digit, 10)), Commit: strings.Repeat(digit, 40), Author: author,
		Images: []string{"registry.example.com/" + words[0] + ":" + strings.Trim(words[1], ":")}, Subject: subject, Since: since}
}

// shop returns an app during a release, with all details that the page can show. Of its 10 pods, `ready` have the new version.
func shop(now time.Time, ready int) status.App {
	entered := now.Add(-3 * time.Minute)
	a := status.App{
		App: "shop", Cluster: "prod-eu", Path: "apps/shop/overlays/prod", Phase: rollout.Paused, Reason: "the step is a pause",
		Release: released("2", "Ann Lee <ann@example.com>", "shop 1.42: faster checkout", now.Add(-5*time.Minute)),
		Stable:  released("1", "Bob Ray <bob@example.com>", "shop 1.41", now.Add(-26*time.Hour)),
		Waiting: "promotion of h1-2222222222 at step 3/6",
		Next: []status.Next{
			{To: "go on", Command: "git fetch && git merge --no-ff origin/gitrollout/promote/prod-eu/shop && git push",
				Branch: "gitrollout/promote/prod-eu/shop"},
			{To: "go on", Command: "gitrollout promote shop"}, {To: "go back", Command: "gitrollout abort shop", Back: true},
		},
		Actions:  actionsOn("h1-2222222222"),
		Warnings: []string{"Deployment shop mounts ConfigMap shop-settings, which has no hash in its name"},
		Workloads: []status.Workload{{
			Workload: "shop/shop", Strategy: "canary", Replicas: 10, Ready: 10, Step: 3, Moving: true, Entered: &entered, Weight: 40,
			FullWeight: 100, RealWeight: ready * 10, Opened: "Bob Ray",
			Steps: []status.Step{
				{Text: "setWeight 20", Weight: 20, Status: "done"}, {Text: "setWeight 40", Weight: 40, Status: "done"},
				{Text: "pause", Weight: 40, Status: "current"},
				{Text: "setWeight 60", Weight: 60, Status: "pending"}, {Text: "analysis error-rate", Weight: 60, Status: "pending"},
				{Text: "setWeight 100", Weight: 100, Status: "pending"},
			},
			Revisions: []status.Revision{revision("canary", "75f574758c", ready, now), revision("stable", "7bc5f88467", 10-ready, now)},
		}},
	}
	m := rollout.MetricProgress{Metric: "error-rate", Phase: rollout.AnalysisRunning, Condition: "successCondition: result[0] < 0.05",
		Count: 12, Successful: 11, Failed: 1}
	l := rollout.MetricProgress{Metric: "latency-p99", Phase: rollout.AnalysisSuccessful, Condition: "successCondition: result[0] <= 250",
		Count: 12, Successful: 12}
	for i, v := range []float64{0.01, 0.012, 0.02, 0.011, 0.016, 0.061, 0.03, 0.02, 0.018, 0.012, 0.01, 0.011} {
		at := now.Add(time.Duration(i-12) * 15 * time.Second)
		phase := rollout.AnalysisSuccessful
		if v > 0.05 {
			phase = rollout.AnalysisFailed
		}
		m.Measurements = append(m.Measurements, rollout.Measurement{At: at, Value: fmt.Sprintf("[%g]", v), Phase: phase})
		l.Measurements = append(l.Measurements,
			rollout.Measurement{At: at, Value: fmt.Sprintf("[%d]", 180+i*i%37), Phase: rollout.AnalysisSuccessful})
	}
	a.Analyses = status.Analyses([]rollout.AnalysisRun{{Name: "background", Started: now.Add(-3 * time.Minute), Phase: rollout.AnalysisRunning,
		Metrics: []rollout.MetricProgress{m, l}}}, nil)
	a.Metrics = []status.Metric{{Metric: "error-rate", Provider: "prometheus", Query: "sum(rate(errors{app=\"shop\"}[1m])) < 5",
		Limits: "successCondition: result[0] < 0.05; failureLimit: 2"}}
	a.Links = json.RawMessage(`{"Prometheus": "https://prometheus.example.com/graph?g0.expr={query}&g0.tab=0", ` +
		`"Grafana": "https://grafana.example.com/d/releases?var-app={app}&var-namespace={namespace}"}`)
	a.Namespace = "shop"
	return a
}

// actionsOn returns the actions that the page offers for a release that waits for a promotion.
func actionsOn(release rollout.Hash) []propose.Action {
	return []propose.Action{{Verb: rollout.Promote, Release: release}, {Verb: rollout.Promote, Release: release, Full: true},
		{Verb: rollout.Hold, Release: release}, {Verb: rollout.Abort, Release: release}, {Verb: propose.Undo, Release: release}}
}

func revision(role, hash string, n int, now time.Time) status.Revision {
	r := status.Revision{Name: "shop-" + hash, Role: role, PodHash: hash, Desired: n, Ready: n}
	for i := range n {
		r.Pods = append(r.Pods,
			status.Pod{Name: fmt.Sprintf("shop-%s-%05d", hash, i), Status: "Running", Ready: true, Created: now.Add(-5 * time.Minute)})
	}
	return r
}

func healthy(name, subject string, now time.Time) status.App {
	return status.App{
		App: name, Cluster: "prod-eu", Path: "apps/" + name, Phase: rollout.Healthy,
		Stable:    released("3", "Eve Sun <eve@example.com>", subject, now.Add(-time.Hour)),
		Workloads: []status.Workload{{Workload: name + "/" + name, Strategy: "canary", Replicas: 3, Ready: 3, FullWeight: 100}},
	}
}

// some returns a small fleet with apps in different phases.
func some(now time.Time) []status.App {
	degraded := healthy("search", "search 8.1", now)
	degraded.Phase = rollout.Degraded
	degraded.Reason = "error-rate is Failed: 3 of 5 measurements failed"
	degraded.Rejected = &status.Rejected{Hash: "h1-9999999999", Images: []string{"registry.example.com/search:8.2"},
		Commit: strings.Repeat("9", 40), Reason: degraded.Reason, At: now.Add(-20 * time.Minute)}
	held := healthy("billing", "billing 3", now)
	held.Held = &rollout.Held{Reason: "InvalidInput",
		Message: "apps/billing/rollout.yaml: spec.strategy.canary.steps[1].setWeight: 400 is more than 100", Commit: strings.Repeat("8", 40)}
	moving := healthy("checkout", "checkout 2.9", now)
	moving.Phase = rollout.Progressing
	moving.Release = released("7", "Kim <kim@example.com>", "checkout 2.10: wallets", now.Add(-time.Minute))
	moving.Workloads = []status.Workload{{Workload: "checkout/checkout", Strategy: "canary", Replicas: 8, Ready: 9, Moving: true, Step: 1,
		Weight: 25, FullWeight: 100, RealWeight: 11,
		Steps: []status.Step{{Text: "setWeight 25", Weight: 25, Status: "current"}, {Text: "pause 10m0s", Weight: 25, Status: "pending"}}}}
	moving.Waiting, moving.Actions = "pods: 1 of 2 ready", actionsOn("h1-7777777777")
	return []status.App{shop(now, 4), degraded, held, moving, healthy("images", "images 14", now), healthy("mail", "mail 5.5", now),
		healthy("payments", "payments 77", now)}
}

const live = `document.getElementById('link').textContent === 'live'`

func rows(n int) string {
	return fmt.Sprintf(`%s && document.querySelectorAll('#rows li:not([hidden])').length === %d`, live, n)
}

func TestFleet(t *testing.T) {
	now := time.Now()
	f := newFleet(t, some(now)...)
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/"))
	p.await(rows(7))
	order := js[string](p, `[...document.querySelectorAll('#rows .name')].map((e) => e.textContent).join(' ')`)
	compare.CheckNamed(t, "the order, the most urgent app first", "search billing shop checkout images mail payments", order)
	p.axe("fleet, light")
	p.picture("dashboard-fleet-light")
	p.do(scheme("dark"))
	p.axe("fleet, dark")
	p.picture("dashboard-fleet-dark")

	t.Log("filters, which the address keeps")
	p.click(`#chips button[data-chip=Healthy]`)
	p.await(rows(4)) // billing is held, but its phase is Healthy
	p.do(chromedp.SendKeys(chromedp.CSS("#q"), "mail"))
	p.await(rows(1))
	compare.CheckNamed(t, "the address", "?q=mail&show=Healthy", js[string](p, "location.search"))
	p.do(chromedp.Reload())
	p.await(rows(1))
	p.do(chromedp.Navigate(f.url + "/?show=Paused,Degraded"))
	p.await(rows(2))

	t.Log("a change arrives by itself, and moves the row")
	p.do(chromedp.Navigate(f.url + "/"))
	p.await(rows(7))
	js[bool](p, `(window.kept = document.querySelector('#rows li:last-child'), true)`)
	broken := healthy("images", "images 15", now)
	broken.Phase = rollout.Degraded
	f.show(broken)
	p.await(`document.querySelector('#rows .name').textContent === 'images'`)
	if !js[bool](p, `window.kept === document.querySelector('#rows li:last-child')`) {
		t.Error("rows that did not change are made anew")
	}
}

func TestKeyboard(t *testing.T) {
	f := newFleet(t, some(time.Now())...)
	p := newTab(t, chromedp.Navigate(f.url+"/"))
	p.await(rows(7))
	focused := func(want string) {
		t.Helper()
		p.await(fmt.Sprintf(`(document.activeElement.querySelector('.name') || document.activeElement).textContent === %q`, want))
	}
	p.do(chromedp.KeyEvent("j"))
	focused("search")
	p.do(chromedp.KeyEvent("jj"))
	focused("shop")
	p.do(chromedp.KeyEvent("kk"))
	focused("search")
	f.show(func() status.App { a := some(time.Now())[1]; a.Reason = "another reason"; return a }())
	p.await(`document.body.innerText.includes('another reason')`)
	focused("search") // the focus stays when the list is redrawn
	p.do(slash())
	p.await(`document.activeElement.id === 'q'`)
	p.do(chromedp.KeyEvent("checkj")) // in the search field, letters are text, not shortcuts
	compare.CheckNamed(t, "the search", "checkj", js[string](p, `document.getElementById('q').value`))
	p.await(rows(0))
	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(rows(7))
	p.do(chromedp.KeyEvent("?"))
	p.await(`document.getElementById('help').open`)
	p.axe("help")
	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(`!document.getElementById('help').open`)
	p.do(slash())
	p.await(`document.activeElement.id === 'q'`)
	p.do(chromedp.KeyEvent("shop"), chromedp.KeyEvent(kb.Enter))
	p.await(live + ` && location.pathname === '/apps/shop' && document.querySelector('.steps')`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(rows(1) + ` && location.pathname === '/' && document.getElementById('q').value === 'shop'`)
	focused("shop") // the list has the same focus and filter as before
}

func TestApp(t *testing.T) {
	now := time.Now()
	f := newFleet(t, healthy("mail", "mail 5.5", now))
	for i := range 5 { // five states of a release that advances
		f.show(shop(now, i))
		time.Sleep(120 * time.Millisecond)
	}
	p := newTab(t, scheme("light"), chromedp.EmulateViewport(1280, 1500), chromedp.Navigate(f.url+"/apps/shop"))
	p.await(live + ` && document.querySelector('#diff p') && document.querySelector('#analyses details')`)
	compare.Contains(t, js[string](p, `document.querySelector('#diff').innerText`), "Only signed-in people with a right to shop")
	compare.CheckNamed(t, "queries and manifests without a sign-in", 0, p.count("#analyses pre, pre.diff"))
	p.signIn(f.token)
	p.await(live + ` && document.querySelectorAll('.steps li').length === 6 && document.querySelectorAll('pre.diff').length === 3 && ` +
		`document.querySelectorAll('#history details').length === 2`)
	compare.Contains(t, js[string](p, `document.querySelector('.steps [aria-current=step]').innerText`), "pause")
	js[bool](p, `([...document.querySelectorAll('#history details')].forEach((d) => { d.open = true; }), true)`)
	compare.Contains(t, p.text(), "shop step 3/6 pause", "shop 1.42: faster checkout", "Let past the last gate by Bob Ray", "Waits for",
		"gitrollout promote shop", "error-rate", "result[0] < 0.05", "11 ok, 1 failed", "3 of 5 measurements failed", "took 1h",
		"which has no hash in its name")
	compare.CheckNamed(t, "thresholds that are drawn", 2, p.count("svg.chart .limit"))
	compare.CheckNamed(t, "failed values that are drawn", 1, p.count("svg.chart .Failed"))
	links := js[string](p, `[...document.querySelectorAll('#analyses figure:nth-of-type(1) a')].map((a) => a.textContent + ' ' + a.href)`+
		`.join('\n')`)
	compare.CheckNamed(t, "links of a metric", "Prometheus https://prometheus.example.com/graph?g0.expr="+
		"sum(rate(errors%7Bapp%3D%22shop%22%7D%5B1m%5D))%20%3C%205&g0.tab=0\n"+
		"Grafana https://grafana.example.com/d/releases?var-app=shop&var-namespace=shop", links)
	js[bool](p, `([...document.querySelectorAll('#analyses details')].forEach((d) => { d.open = true; }), true)`)
	compare.CheckNamed(t, "measurements in tables", 24, p.count("#analyses tbody tr"))
	compare.Contains(t, js[string](p, `document.querySelector('#analyses').innerText`), "Query of prometheus",
		`sum(rate(errors{app="shop"}[1m])) < 5`, "failureLimit: 2", "[0.061]")
	p.axe("queries and measurements")
	js[bool](p, `([...document.querySelectorAll('#analyses details')].forEach((d) => { d.open = false; }), true)`)
	compare.CheckNamed(t, "requests for objects before they are opened", 0, p.requests("/objects"))
	p.click("#objects summary")
	p.await(`document.querySelectorAll('#objects pre').length === 2`)
	js[bool](p, `([...document.querySelectorAll('#objects details details')].forEach((d) => { d.open = true; }), true)`)
	compare.Contains(t, js[string](p, `document.querySelector('#objects').innerText`), "Values of Secrets are masked", "name: shop <script>",
		"password: '***'")
	p.axe("objects")
	p.click("#objects summary")
	compare.CheckNamed(t, "the link of the release's commit", "https://git.example.com/shop/config/commit/"+strings.Repeat("2", 40),
		js[string](p, `document.querySelector('#title a').href`))
	if got := js[string](p, `document.querySelector('#next a.button').href`); !strings.HasSuffix(got,
		"/compare/main...gitrollout%2Fpromote%2Fprod-eu%2Fshop") {
		t.Errorf("the pull request is at %s", got)
	}
	if js[string](p, "document.title") != "shop – prod-eu – gitrollout" ||
		p.count("main script, main img") != 0 {
		t.Error("a commit's text became markup")
	}
	js[bool](p, `(document.activeElement.blur(), scrollTo(0, 0), true)`)
	p.axe("app, light")
	p.picture("dashboard-app-light")
	p.do(scheme("dark"))
	p.axe("app, dark")
	p.picture("dashboard-app-dark")

	p.do(scheme("light"), chromedp.ScrollIntoView(chromedp.CSS("#history")))
	js[bool](p,
		`(document.activeElement.blur(), scrollTo(0, document.querySelector('#analyses').getBoundingClientRect().top + scrollY - 70), true)`)
	p.do(chromedp.EmulateViewport(1280, 900))
	p.picture("dashboard-verdicts")

	t.Log("copy, live")
	p.click("#next .command button")
	p.await(`document.querySelector('#next .command button').textContent === 'Copied'`)
	js[bool](p, `(window.kept = document.querySelector('#history details'), document.querySelector('#diff details').open = false, true)`)
	next := shop(time.Now(), 6)
	next.Workloads[0].Step, next.Workloads[0].Steps[2].Status, next.Workloads[0].Steps[3].Status = 4, "done", "current"
	f.show(next)
	p.await(`document.querySelector('.steps [aria-current=step]').innerText.includes('setWeight 60')`)
	p.await(`document.querySelector('#workloads').innerText.includes('60% of the ready pods')`)
	if js[bool](p, `document.querySelector('#diff details').open`) {
		t.Error("a section that was closed is open again")
	}
	t.Log("a metric with two queries has a link for each, and its limits once")
	next.Metrics = append(next.Metrics, next.Metrics[0])
	next.Metrics[1].Query = "sum(all)"
	f.show(next)
	p.await(`[...document.querySelectorAll('#analyses figure:nth-of-type(1) a')].filter((a) => a.textContent === 'Prometheus')` +
		`.map((a) => new URL(a.href).searchParams.get('g0.expr')).join() === 'sum(rate(errors{app="shop"}[1m])) < 5,sum(all)'`)
	compare.CheckNamed(t, "limits of the metric", 1, p.count("#analyses figure:nth-of-type(1) figcaption code"))
}

func TestPhone(t *testing.T) {
	now := time.Now()
	f := newFleet(t, some(now)...)
	p := newTab(t, phone(), scheme("dark"), chromedp.Navigate(f.url+"/"))
	p.await(rows(7))
	fits := func(what string) {
		t.Helper()
		if w := js[int](p, `document.documentElement.scrollWidth`); w > 375 {
			t.Errorf("%s is %d pixels wide on a phone of 375", what, w)
		}
	}
	fits("the fleet")
	p.axe("fleet, phone")
	p.picture("dashboard-phone")
	p.click("#rows li:nth-child(3) a")
	p.await(live + ` && location.pathname === '/apps/shop'`)
	p.signIn(f.token)
	p.await(live + ` && location.pathname === '/apps/shop' && document.querySelectorAll('.steps li').length === 6 && ` +
		`document.querySelectorAll('pre.diff').length === 3`)
	fits("an app")
	p.axe("app, phone")
	if h := js[float64](p, `Math.min(...[...document.querySelectorAll('button, .button')].filter((b) => b.offsetParent).map((b) => `+
		`b.getBoundingClientRect().height))`); h < 24 {
		t.Errorf("a button is %.0f pixels high, too small for a finger", h)
	}
}

func TestMarkupInEveryText(t *testing.T) {
	a := shop(time.Now(), 4)
	a.Reason, a.Waiting, a.Release.Subject, a.Release.Author, a.Note = evil, evil, evil, evil, evil
	a.Warnings, a.Held = []string{evil}, &rollout.Held{Reason: evil, Message: evil}
	a.Next[0].Command, a.Workloads[0].Workload, a.Workloads[0].Steps[0].Text, a.Workloads[0].Revisions[0].Problem = evil, evil, evil, evil
	a.Analyses[0].Metrics[0].Metric, a.Analyses[0].Metrics[0].Measurements[0].Value, a.Analyses[0].Message = evil, evil, evil
	f := newFleet(t, a)
	for _, path := range []string{"/", "/apps/shop", "/plain"} {
		p := newTab(t, chromedp.Navigate(f.url+path))
		p.await(`document.body.innerText.includes('<script>document.title')`)
		if js[string](p, "document.title") == "taken" || p.count("main script, main img") != 0 {
			t.Errorf("%s: a commit's text became markup", path)
		}
	}
}

func TestConnectionThatBreaks(t *testing.T) {
	now := time.Now()
	f := newFleet(t, some(now)...)
	p := newTab(t, chromedp.Navigate(f.url+"/"))
	p.await(rows(7))
	f.server.CloseClientConnections()
	broken := healthy("images", "images 15", now)
	broken.Phase = rollout.Degraded
	must(t, f.board.Show(time.Now(), "", []status.App{broken}, []string{"mail"}))
	p.await(rows(6) + ` && document.querySelector('#rows .name').textContent === 'images'`)
	p.expect("ERR_INCOMPLETE_CHUNKED_ENCODING")
}

// TestLostAnswer checks that an app's page repeats a failed request when the app changes next.
func TestLostAnswer(t *testing.T) {
	now := time.Now()
	f := newFleet(t, shop(now, 4))
	p := newTab(t, chromedp.Navigate(f.url+"/apps/shop"))
	p.signIn(f.token)
	p.await(live + ` && document.querySelectorAll('pre.diff').length === 3`)
	js[bool](p, `(window.whole = window.fetch, window.fetch = () => Promise.reject(new Error('it was lost')), true)`)
	changed := func(ready int) {
		a := shop(now, ready)
		a.Release.Hash = "h1-4444444444"
		f.show(a)
	}
	changed(5)
	p.await(`document.getElementById('diff').innerText.includes('it was lost')`)
	js[bool](p, `(window.fetch = window.whole, true)`)
	changed(6)
	p.await(`document.querySelectorAll('pre.diff').length === 3`)
}

func TestActions(t *testing.T) {
	f := newFleet(t, some(time.Now())...)
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/apps/shop"))
	p.await(live + ` && document.getElementById('signin-open')`)
	if p.count("[data-verb]") != 0 {
		t.Error("a visitor without a session can act")
	}
	p.click("#signin-open")
	p.do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong"+kb.Enter))
	p.await(`document.getElementById('signin-error').textContent === 'the token is unknown'`)
	p.expect("403")
	p.axe("sign in")
	js[string](p, `document.getElementById("token").value = ""`)
	p.do(chromedp.SendKeys(chromedp.CSS("#token"), f.token+kb.Enter))
	p.await(live + ` && document.querySelectorAll('#next [data-verb]').length === 3`)
	verbs := js[string](p, `[...document.querySelectorAll('[data-verb]')].map((b) => b.dataset.verb).join()`)
	compare.CheckNamed(t, "Ann's verbs", "promote,hold,abort", verbs)
	compare.CheckNamed(t, "scripts can read the session", "", js[string](p, "document.cookie"))
	says := func(what string, want ...string) {
		t.Helper()
		p.t.Log(what)
		compare.Contains(t, js[string](p, `document.getElementById('act-what').textContent`), want...)
	}
	choose := func(value string) {
		t.Helper()
		js[bool](p, fmt.Sprintf(`(document.getElementById('through').value = %q, `+
			`document.getElementById('through').dispatchEvent(new Event('change', {bubbles: true})), true)`, value))
	}
	p.click("[data-verb=promote]")
	says("promote", "4 pods of the new version and 6 pods of the stable version are ready now.",
		"Next is step 4 of 6: setWeight 60, about 6 of 10 pods.", "It becomes a commit by Ann Lee <ann@example.com>.")
	choose("full")
	says("in full", "All 10 pods get the new version.")
	choose("4")
	says("through a step", "Next is step 5 of 6: analysis error-rate, about 6 of 10 pods.")
	p.axe("promote")
	p.click("#act-go")
	p.await(`document.getElementById('said').textContent.includes('pushed 1234567')`)
	p.click("[data-verb=hold]")
	says("hold", "No pod changes.")
	p.do(chromedp.SendKeys(chromedp.CSS("#reason"), "the database"))
	p.click("#act-go")
	p.await(`!document.getElementById('act').open`)
	p.click("[data-verb=abort]")
	says("abort", "After it, 10 pods of the stable version serve, and none of the new version.")
	p.click("#act-go")
	p.await(`document.getElementById('act-error').textContent === 'the branch is protected'`)
	p.expect("409")
	want := "promote shop h1-2222222222 by Ann Lee 4; hold shop h1-2222222222 by Ann Lee the database; abort shop h1-2222222222 by Ann Lee "
	compare.CheckNamed(t, "done", want, f.actions())
	p.do(chromedp.Navigate(f.url + "/apps/checkout"))
	p.await(live + ` && document.querySelector('#who button') && document.querySelector('.steps')`)
	if p.count("[data-verb]") != 0 {
		t.Error("Ann can act on an app that is not hers")
	}
	p.click("#who button")
	p.await(live + ` && document.getElementById('signin-open')`)
}

// TestSignInElsewhere checks the sign-in at an OIDC provider on another site. Browsers do not send the session's cookie with a request that
// the provider's page starts.
func TestSignInElsewhere(t *testing.T) {
	p := oidctest.New(t)
	p.SignsIn(map[string]any{"email": "kim@example.com", "email_verified": true, "name": "Kim Ode", "groups": []string{"release-managers"}},
		nil)
	f := &fleet{t: t, board: dashboard.NewBoard("prod-eu", "")}
	f.show(shop(time.Now(), 4))
	config := &dashboard.OIDC{Issuer: p.URL, ClientID: "dash", Secret: "s3cret"}
	rules := "groups: [{claim: groups, value: release-managers, apps: [shop], verbs: [promote]}]"
	f.serve(dashboard.Options{Access: &dashboard.Access{File: accessFile(t, rules)}, OIDC: config})
	config.URL = strings.Replace(f.url, "127.0.0.1", "localhost", 1) // the provider is at 127.0.0.1, another site
	b := newTab(t, chromedp.Navigate(config.URL+"/apps/shop"))
	b.await(live + ` && document.getElementById('signin-open')`)
	b.click("#signin-open", "#signin-oidc a")
	b.await(rows(1) + ` && document.getElementById('who').textContent.includes('Kim Ode')`)
	b.click("#rows a")
	b.await(live + ` && document.querySelectorAll('[data-verb]').length === 1`)
}

// TestManyApps measures a fleet of 2,000 apps.
func TestManyApps(t *testing.T) {
	now := time.Now()
	var apps []status.App
	for i := range 2000 {
		apps = append(apps, healthy(fmt.Sprintf("team-%02d-service-%04d", i%40, i), fmt.Sprintf("service %d", i), now))
	}
	f := newFleet(t, apps...)
	p := newTab(t)
	began := time.Now()
	p.do(chromedp.Navigate(f.url + "/"))
	p.await(rows(2000))
	t.Logf("2,000 apps are shown %s after the click", time.Since(began).Round(time.Millisecond))

	// The result is the median and the longest time from a key press to the next painted frame, in milliseconds.
	typing := js[[]float64](p, `new Promise((done) => {
		const q = document.getElementById('q'), times = [], word = 'team-07-service';
		q.focus();
		const type = (i) => {
			if (i === word.length) { times.sort((a, b) => a - b); done([times[times.length >> 1], times[times.length - 1]]); return; }
			const at = performance.now();
			q.value = word.slice(0, i + 1);
			q.dispatchEvent(new Event('input', {bubbles: true}));
			requestAnimationFrame(() => setTimeout(() => { times.push(performance.now() - at); type(i + 1); }));
		};
		type(0);
	})`)
	p.await(rows(50))
	t.Logf("a letter of a search takes %.1f ms until it is painted, the slowest one %.1f ms", typing[0], typing[1])
	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(rows(2000))

	js[bool](p, `(window.touched = new Set(), new MutationObserver((all) => { for (const m of all) {
		const li = (m.target.closest ? m.target : m.target.parentElement)?.closest('li'); if (li) window.touched.add(li); } })
		.observe(document.getElementById('rows'), {subtree: true, childList: true, attributes: true, characterData: true}), true)`)
	js[bool](p, `(window.longest = 0, new PerformanceObserver((list) => { for (const e of list.getEntries()) window.longest = `+
		`Math.max(window.longest, e.duration); }).observe({type: 'longtask'}), true)`)
	var slowest time.Duration
	for i := range 20 {
		a := apps[i*97]
		a.Phase, a.Reason = rollout.Paused, fmt.Sprintf("changed %d", i)
		at := time.Now()
		f.show(a)
		p.await(fmt.Sprintf(`[...document.querySelectorAll('#rows li[data-phase=Paused]')].some((li) => li.textContent.includes('changed %d'))`,
			i))
		slowest = max(slowest, time.Since(at))
	}
	if touched := js[int](p, "window.touched.size"); touched == 0 || touched > 20 {
		t.Errorf("20 changes touch %d rows of the page", touched)
	}
	blocked := js[float64](p, "window.longest")
	t.Logf("one app's change is seen within %s (100 ms of that are waited for more), and blocks the page for at most %.0f ms",
		slowest.Round(time.Millisecond), blocked)

	all := make([]status.App, len(apps))
	for i, a := range apps {
		a.Phase, a.Waiting = rollout.Progressing, "all move"
		all[i] = a
	}
	at := time.Now()
	f.show(all...)
	p.await(`document.querySelectorAll('#rows li[data-phase=Progressing]').length === 2000`)
	t.Logf("2,000 changes at once are seen within %s", time.Since(at).Round(time.Millisecond))
}
