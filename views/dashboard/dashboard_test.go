package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// evil is a text in a commit that tries to inject HTML.
const evil = `<script>alert(1)</script><img src=x onerror=alert(2)>`

func appOf(name string, phase rollout.Phase, weight int) status.App {
	return status.App{
		App: name, Cluster: "prod", Path: "apps/" + name, Phase: phase, Waiting: "promotion",
		Stable:  &status.Release{Hash: "h1-1111111111", Commit: strings.Repeat("1", 40), Author: "Bob <bob@example.com>"},
		Release: &status.Release{Hash: "h1-2222222222", Commit: strings.Repeat("2", 40), Author: "Ann <ann@example.com>", Subject: evil},
		Workloads: []status.Workload{{
			Workload: name + "/" + name, Strategy: "canary", Replicas: 4, Ready: 4, Moving: true,
			Weight: weight, FullWeight: 100, RealWeight: weight,
			Steps: []status.Step{{Text: "setWeight 25", Weight: 25, Status: "current"}, {Text: "pause", Weight: 25, Status: "pending"}},
		}},
	}
}

// TestBoardOfSharedChanges checks that each answer counts all apps of a shared change, and that a row has its app's state in the change.
func TestBoardOfSharedChanges(t *testing.T) {
	board := dashboard.NewBoard("prod", "")
	show := func(name, state string) {
		t.Helper()
		a := appOf(name, rollout.Healthy, 0)
		a.Shared = &status.Shared{Place: rollout.Place{File: "base/web.yaml", ID: "5832d1e", Cohort: 1, Of: 3}, State: state}
		if err := board.Show(time.Now(), "", []status.App{a}, nil); err != nil {
			t.Fatal(err)
		}
	}
	show("cart", "waiting")
	show("shop", "entered")
	_, last, _, _ := board.Since(0)
	show("shop", "done")
	f, last, _, _ := board.Since(last)
	if len(f.Apps) != 1 || f.Apps[0].Shared.State != "done" || len(f.Changes) != 1 {
		t.Fatalf("%+v", f)
	}
	compare.Check(t, "base/web.yaml (5832d1e), cohort 1 of 3: 1 of 2 apps done, 1 waiting", f.Changes[0].String())
	compare.Check(t, 1, len(board.Listing().Changes))
	show("cart", "done")
	if f, _, _, _ = board.Since(last); len(f.Changes) > 0 || board.Listing().Apps[0].Shared != nil {
		t.Errorf("a finished change: %+v", f.Changes)
	}
}

type fakeRecords struct{ err error }

func (f fakeRecords) Diff(context.Context, string) (dashboard.Diff, error) {
	return dashboard.Diff{From: "1", To: "2", Objects: []dashboard.Object{{Name: "Deployment shop", Verb: "changed", Text: "-a\n+b\n"}}}, f.err
}

func (f fakeRecords) Objects(context.Context, string) (dashboard.Diff, error) {
	return dashboard.Diff{Objects: []dashboard.Object{{Name: "Secret keys", Text: "data: {password: '***'}\n"}}, Note: "without pods"}, f.err
}

func (f fakeRecords) Pod(_ context.Context, p status.VersionPod) dashboard.Pod {
	return dashboard.Pod{Notes: []string{"of " + p.Namespace + "/" + p.Name + " " + p.UID}}
}

func (f fakeRecords) History(context.Context, string) (dashboard.History, error) {
	return dashboard.History{}, f.err
}

type fakeActor struct {
	mu  sync.Mutex
	did []string
	err error
}

func (f *fakeActor) Act(_ context.Context, who dashboard.Person, app string, a propose.Action) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf("%s <%s> %s %s %s", who.Name, who.Email, a.Verb, app, a.Release))
	return "pushed", f.err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T, o dashboard.Options) (*httptest.Server, *dashboard.Board) {
	t.Helper()
	if o.Board == nil {
		o.Board = dashboard.NewBoard("prod", "")
	}
	if o.Records == nil {
		o.Records = fakeRecords{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s, err := dashboard.New(o)
	must(t, err)
	server := httptest.NewServer(s)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server, o.Board
}

func show(t *testing.T, b *dashboard.Board, apps []status.App, gone ...string) {
	t.Helper()
	must(t, b.Show(time.Now(), "", apps, gone))
}

// boardOf returns a board with the given apps, and the URL of the board's dashboard.
func boardOf(t *testing.T, apps ...status.App) (url string, board *dashboard.Board) {
	t.Helper()
	server, board := serve(t, dashboard.Options{})
	show(t, board, apps)
	return server.URL, board
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	res, err := http.Get(url)
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	return res, string(body)
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	url, _ := boardOf(t, appOf("shop", rollout.Paused, 25))
	for code, paths := range map[int]string{
		200: "/ /apps/shop /plain /assets/app.js /assets/style.css " +
			"/api/v1/apps /api/v1/apps/shop /api/v1/apps/shop/history /api/v1/me /apps",
		403: "/api/v1/apps/shop/diff /api/v1/apps/shop/objects",
		404: "/apps/nobody /api/v1/apps/nobody /api/v1/apps/nobody/diff /api/v1/fleet /assets/ /assets/../dashboard.go /oidc/start /nothing",
	} {
		for _, path := range strings.Fields(paths) {
			res, _ := get(t, url+path)
			compare.CheckNamed(t, path, code, res.StatusCode)
			for name, want := range map[string]string{
				"Content-Security-Policy": dashboard.Policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"X-Frame-Options": "DENY", "Cache-Control": "no-store",
			} {
				if got := res.Header.Get(name); got != want && !(name == "Cache-Control" && code == 404) {
					t.Errorf("%s: %s is %q, want %q", path, name, got, want)
				}
			}
		}
	}
	compare.Contains(t, dashboard.Policy,
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "connect-src 'self'")
	compare.CheckNamed(t, "the policy permits inline code", false, strings.Contains(dashboard.Policy, "unsafe"))
}

func TestPagesNeedNothingFromElsewhere(t *testing.T) {
	entries, err := os.ReadDir("assets")
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join("assets", e.Name()))
		must(t, err)
		text := strings.ReplaceAll(string(data), "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http://", "https://", "innerHTML", "eval(", "style=\"", "document.write", "@import"} {
			compare.CheckNamed(t, "assets/"+e.Name()+" has "+bad, false, strings.Contains(text, bad))
		}
	}
}

func TestTextFromGitIsNoMarkup(t *testing.T) {
	a := appOf("shop", rollout.Paused, 25)
	a.Waiting = evil
	url, _ := boardOf(t, a)
	for _, path := range []string{
		"/plain", "/plain?q=%3Cscript%3E", "/apps/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/api/v1/apps", "/api/v1/apps/shop",
	} {
		res, body := get(t, url+path)
		hasMarkup := strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x")
		if strings.Contains(res.Header.Get("Content-Type"), "html") && hasMarkup {
			t.Errorf("%s has the text of a commit as markup:\n%s", path, body)
		}
		if strings.Contains(res.Header.Get("Content-Type"), "json") && strings.Contains(body, "<script>") {
			t.Errorf("%s does not escape", path)
		}
	}
	_, page := get(t, url+"/apps/shop")
	compare.Contains(t, page, "<html", "shop")
	_, list := get(t, url+"/plain")
	compare.Contains(t, list, "&lt;script&gt;alert(1)")
}

// stream reads the server-sent events of a dashboard.
type stream struct {
	t    *testing.T
	read *bufio.Scanner
	stop func()
}

func open(t *testing.T, url, last string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	stop := func() { cancel(); _ = res.Body.Close() }
	t.Cleanup(stop)
	scanner := bufio.NewScanner(res.Body)
	scanner.Buffer(nil, 10<<20)
	return &stream{t: t, read: scanner, stop: stop}
}

// next reads an event. It returns the event's id, its name, and the names of its changed apps and of its removed apps.
func (s *stream) next() (id, event string, apps, gone []string) {
	s.t.Helper()
	for s.read.Scan() {
		line := s.read.Text()
		if v, ok := strings.CutPrefix(line, "id: "); ok {
			id = v
		}
		if v, ok := strings.CutPrefix(line, "event: "); ok {
			event = v
		}
		if v, ok := strings.CutPrefix(line, "data: "); ok {
			var data struct{ What dashboard.Fleet }
			if event != "app" {
				must(s.t, json.Unmarshal([]byte(v), &data))
			}
			for _, r := range data.What.Apps {
				apps = append(apps, r.App)
			}
			return id, event, apps, data.What.Gone
		}
	}
	s.t.Fatalf("the stream ended: %v", s.read.Err())
	return "", "", nil, nil
}

// told reads an event. It returns the event's id, and a text with its name and its apps.
func (s *stream) told() (id, text string) {
	s.t.Helper()
	id, event, apps, gone := s.next()
	return id, event + " " + strings.Join(apps, "") + " gone " + strings.Join(gone, "")
}

func TestOnlyWhatChangedIsSent(t *testing.T) {
	url, board := boardOf(t, appOf("a", rollout.Paused, 25), appOf("b", rollout.Paused, 25), appOf("c", rollout.Paused, 25))
	s := open(t, url+"/api/v1/events", "")
	first, told := s.told()
	compare.Check(t, "reset abc gone ", told)
	show(t, board, []status.App{appOf("a", rollout.Paused, 25), appOf("b", rollout.Promoting, 100)}) // app "a" is unchanged
	second, told := s.told()
	compare.Check(t, "change b gone ", told)
	show(t, board, nil, "c")
	_, told = s.told()
	compare.Check(t, "change  gone c", told)
	s.stop()

	for last, want := range map[string]string{
		first:                      "change b gone c", // all changes since the first event
		second:                     "change  gone c",
		"otherproc-2":              "reset ab gone ",
		"nonsense":                 "reset ab gone ",
		board.Epoch() + "-99":      "reset ab gone ",
		board.Epoch() + "-0":       "reset ab gone ",
		board.Epoch() + "-1000000": "reset ab gone ",
	} {
		for how, s := range map[string]*stream{
			"after": open(t, url+"/api/v1/events", last), "since": open(t, url+"/api/v1/events?since="+last, ""),
		} {
			_, told := s.told()
			compare.CheckNamed(t, how+" "+last, want, told)
		}
	}
}

func TestStreamOfOneApp(t *testing.T) {
	url, board := boardOf(t, appOf("a", rollout.Paused, 25), appOf("b", rollout.Paused, 25))
	s := open(t, url+"/api/v1/events?app=a", "")
	told := func(when, want string) {
		t.Helper()
		_, event, _, _ := s.next()
		compare.CheckNamed(t, when, want, event)
	}
	told("the stream begins", "app")
	show(t, board, []status.App{appOf("b", rollout.Promoting, 100)}) // app "a" is unchanged
	show(t, board, nil, "a")
	told("a is gone", "gone")
	show(t, board, []status.App{appOf("b", rollout.Promoting, 50)}) // app "a" is still gone, but the stream sends a removal only once
	show(t, board, []status.App{appOf("a", rollout.Healthy, 0)})
	told("a is there again", "app")
}

func TestManyRemovedAppsAreForgotten(t *testing.T) {
	_, board := serve(t, dashboard.Options{})
	for i := range 1000 + 10 {
		name := fmt.Sprint("app-", i)
		show(t, board, []status.App{appOf(name, rollout.Healthy, 0)})
		show(t, board, nil, name)
	}
	if n := board.Forgotten(); n > 1000 {
		t.Errorf("%d removed apps are remembered", n)
	}
	_, _, whole, _ := board.Since(5)
	compare.CheckNamed(t, "a client that was away for long gets the whole list", true, whole)
}

func TestSamplesAreBounded(t *testing.T) {
	board := dashboard.NewBoard("prod", "")
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 5000 {
		must(t, board.Show(start.Add(time.Duration(i)*time.Second), "", []status.App{appOf("shop", rollout.Progressing, i%100)}, nil))
	}
	d, _, _ := board.App("shop")
	list := d.Samples["shop/shop"]
	from, to := list[0].At, list[len(list)-1].At
	if len(list) > 240 || len(list) < 240/2 || !from.Equal(start) || !to.Equal(start.Add(4999*time.Second)) {
		t.Errorf("%d samples from %v to %v", len(list), from, to)
	}
	rest := appOf("shop", rollout.Healthy, 0)
	rest.Release, rest.Workloads[0].Moving = nil, false
	for i := range 10 {
		rest.Workloads[0].Ready = i
		show(t, board, []status.App{rest})
	}
	d, _, _ = board.App("shop")
	if after := d.Samples["shop/shop"]; len(after) > len(list)+1 {
		t.Errorf("an app at rest adds samples: %d, it had %d", len(after), len(list))
	}
	for i := range 200 + 50 {
		must(t, board.Show(start.Add(time.Duration(i)*time.Hour), "", []status.App{appOf(fmt.Sprint("app-", i), rollout.Progressing, 5)}, nil))
	}
	drawn := 0
	for _, name := range board.Names() {
		if board.IsDrawn(name) {
			drawn++
		}
	}
	if drawn > 200 || !board.IsDrawn(fmt.Sprint("app-", 200+49)) {
		t.Errorf("%d apps have samples, at most %d may, the newest ones", drawn, 200)
	}
}

func TestAPIIsWhatGetPrints(t *testing.T) {
	want := appOf("shop", rollout.Paused, 25)
	url, _ := boardOf(t, want)
	_, body := get(t, url+"/api/v1/apps")
	var l status.Listing
	err := json.Unmarshal([]byte(body), &l)
	if err != nil || l.Cluster != "prod" || len(l.Apps) != 1 || l.Apps[0].Release.Hash != want.Release.Hash {
		t.Errorf("%v: %s", err, body)
	}
	_, body = get(t, url+"/api/v1/apps/shop")
	var a status.App
	if err := json.Unmarshal([]byte(body), &a); err != nil || a.App != "shop" || a.Workloads[0].Weight != 25 {
		t.Errorf("%v: %s", err, body)
	}
}

// TestDifferencesBesideAChart checks that an app's page and its stream show which differences the app's comparisons can find. The list of
// all apps does not.
func TestDifferencesBesideAChart(t *testing.T) {
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	web := rollout.Workload{Namespace: "shop", Name: "web"}
	metric := rollout.Metric{Name: "errors", Interval: time.Minute, Count: 5, Compare: &rollout.Compare{},
		Config: map[string]any{"query": "sum(increase(errors[{{elapsed}}s]))"}}
	head := &rollout.Render{Templates: map[rollout.Workload]rollout.Hash{web: "h1-2"}, Specs: []rollout.Spec{{Name: "web", Workload: web,
		Replicas: new(5), Canary: &rollout.Canary{Steps: []rollout.Step{{SetWeight: new(20)}, {Analysis: &rollout.Analysis{
			Metrics: []rollout.Metric{metric}}}}}}}}
	version := func(hash rollout.Hash) *rollout.Release {
		return &rollout.Release{Hash: hash, Since: began, Templates: map[rollout.Workload]rollout.Hash{web: hash}}
	}
	in := strategies.Input{App: rollout.App{Name: "shop"}, Head: strategies.Head{Render: head}, Source: head, Now: began,
		State: rollout.State{App: "shop", Phase: rollout.Progressing, Stable: version("h1-1"), Release: version(head.Release()),
			Progress: []rollout.Progress{{Workload: web, Step: 1, Of: 2, Weight: 20}},
			Analyses: []rollout.AnalysisRun{{Name: "web/step-2", Phase: rollout.AnalysisRunning, Metrics: []rollout.MetricProgress{{
				Metric: "errors", Measurements: []rollout.Measurement{{At: began.Add(time.Minute)}}, Evidence: &rollout.Sequential{
					Since: began, Canary: 1200, Stable: 4800, Tests: []rollout.Test{{Stable: 48}}}}}}}}}
	url, _ := boardOf(t, status.Of(in, "prod", nil))
	const text = "errors of web at step 2 (16.7% of requests, 5 looks in 5m): sees 1% → "
	for range 2 {
		_, body := get(t, url+"/api/v1/apps/shop")
		var a status.App
		must(t, json.Unmarshal([]byte(body), &a))
		sees := a.Analyses[0].Metrics[0].Sees
		compare.CheckNamed(t, "texts", 1, len(sees))
		compare.Contains(t, strings.Join(sees, ""), text, " at 100 req/s; nothing below +")
	}
	s := open(t, url+"/api/v1/events?app=shop", "")
	for s.read.Scan() && !strings.HasPrefix(s.read.Text(), "data: ") {
	}
	compare.Contains(t, s.read.Text(), text)
	_, list := get(t, url+"/api/v1/apps")
	compare.CheckNamed(t, "the list has differences", false, strings.Contains(list, "sees"))
}

func TestGitThatCannotBeReadIsSaid(t *testing.T) {
	token, digest := dashboard.NewToken()
	file := filepath.Join(t.TempDir(), "access.yaml")
	must(t, os.WriteFile(file, []byte(rulesWith(digest)), 0o600))
	server, board := serve(t, dashboard.Options{Records: fakeRecords{err: errors.New("git: unreachable")},
		Access: &dashboard.Access{File: file},
		Actor:  &fakeActor{}})
	show(t, board, []status.App{appOf("shop", rollout.Paused, 25)})
	v := (&office{Server: server, t: t}).visitor()
	for _, part := range []string{"diff", "objects", "history"} {
		code, answer := v.send(http.MethodGet, "/api/v1/apps/shop/"+part, "", map[string]string{"Authorization": "Bearer " + token})
		compare.CheckNamed(t, part, []any{http.StatusBadGateway, "git: unreachable"}, []any{code, answer["error"]})
	}
}

func TestPlainListFilters(t *testing.T) {
	url, _ := boardOf(t, appOf("shop", rollout.Paused, 25), appOf("pay", rollout.Degraded, 0))
	if _, body := get(t, url+"/plain?phase=Degraded"); strings.Contains(body, ">shop<") || !strings.Contains(body, ">pay<") {
		t.Error("the phase does not filter")
	}
	if _, body := get(t, url+"/plain?q=SHOP"); !strings.Contains(body, ">shop<") || strings.Contains(body, ">pay<") {
		t.Error("the search does not filter")
	}
}

// TestRows checks an app's row in the fleet view: its text, and the progress of the least advanced workload.
func TestRows(t *testing.T) {
	due := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	moving := func(step, of, weight, full int) status.Workload {
		w := status.Workload{Moving: true, Step: min(step+1, of), Weight: weight, FullWeight: full, RealWeight: weight / 2, Replicas: 3, Ready: 2}
		for i := range of {
			w.Steps = append(w.Steps, status.Step{Text: fmt.Sprint("step ", i), Status: map[bool]string{true: "current"}[i == step]})
		}
		return w
	}
	app := func(change func(*status.App)) status.App {
		a := appOf("shop", rollout.Paused, 25)
		a.Workloads, a.Due, a.Reason, a.Warnings = nil, &due, "a reason", []string{"one", "two"}
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		a    status.App
		want func(*dashboard.Row)
	}{
		"the reason of its wait": {app(func(*status.App) {}), func(*dashboard.Row) {}},
		"why it is held": {app(func(a *status.App) {
			a.Held = &rollout.Held{Reason: "InvalidInput", Message: strings.Repeat("ä", 161)}
		}), func(r *dashboard.Row) { r.Held, r.Text, r.Needs = "held", strings.Repeat("ä", 159)+"…", true }},
		"whose end it waits for": {app(func(a *status.App) {
			a.Held = &rollout.Held{Reason: rollout.HeldHook, Message: "release h1-new of c2 by Ann waits for its hooks"}
			a.Waiting = "Job check-1 to end"
		}), func(r *dashboard.Row) {
			r.Held, r.Text = "running hooks", "release h1-new of c2 by Ann waits for Job check-1 to end"
		}},
		"its reason": {app(func(a *status.App) { a.Waiting = "" }), func(r *dashboard.Row) { r.Text = "a reason" }},
		"nothing to explain": {app(func(a *status.App) { a.Waiting, a.Phase = "", rollout.Healthy }),
			func(r *dashboard.Row) { r.Phase, r.Text = rollout.Healthy, "" }},
		"a stable version": {app(func(a *status.App) { a.Release = nil }),
			func(r *dashboard.Row) { r.Commit, r.Author, r.Subject, r.Name = strings.Repeat("1", 40), "Bob", "", "" }},
		"no version at all": {app(func(a *status.App) { a.Release, a.Stable = nil, nil }),
			func(r *dashboard.Row) { r.Commit, r.Author, r.Subject, r.Name = "", "", "", "" }},
		"an applied commit": {app(func(a *status.App) {
			a.Release, a.Stable, a.Images, a.Namespace = nil, nil, []string{"ghcr.io/acme/traefik:v3.1"}, "edge"
			a.Source = &rollout.Commit{ID: "c3", Author: "Kim <kim@example.com>", Subject: "Two replicas", When: due}
		}), func(r *dashboard.Row) {
			r.Commit, r.Author, r.Subject, r.Since, r.Images, r.Namespace, r.Name = "c3", "Kim", "Two replicas", due, "traefik:v3.1", "edge", ""
		}},
		"the images of both versions": {app(func(a *status.App) {
			a.Release.Images, a.Stable.Images = []string{"acme/web:v2"}, []string{"acme/web:v1"}
		}), func(r *dashboard.Row) { r.Images = "web:v1 → v2" }},
		"a promotion that it waits for": {app(func(a *status.App) { a.Due = nil }), func(r *dashboard.Row) { r.Needs, r.Due = true, nil }},
		"a first deployment": {app(func(a *status.App) {
			a.Stable = nil
			w := moving(0, 4, 0, 0)
			w.Moving = false
			a.Workloads = []status.Workload{w}
		}), func(r *dashboard.Row) { r.Ready, r.Replicas = 2, 3 }},
		"without steps": {app(func(a *status.App) { a.Workloads = []status.Workload{{Moving: true, Replicas: 3, Ready: 3}} }),
			func(r *dashboard.Row) { r.Ready, r.Replicas = 3, 3 }},
		"one that moves": {app(func(a *status.App) { a.Workloads = []status.Workload{{Replicas: 1, Ready: 1}, moving(1, 3, 40, 0)} }),
			func(r *dashboard.Row) {
				r.Step, r.Of, r.Name, r.Weight, r.Real, r.Ready, r.Replicas = 2, 3, "step 1", 40, 20, 3, 4
			}},
		"an unread workload": {app(func(a *status.App) {
			w := moving(1, 3, 40, 0)
			w.Unread, w.Ready, w.RealWeight = true, 0, 0
			a.Workloads = []status.Workload{w}
		}), func(r *dashboard.Row) { r.Step, r.Of, r.Name, r.Weight = 2, 3, "step 1", 40 }},
		"pods of two versions": {app(func(a *status.App) {
			a.Workloads = []status.Workload{{Replicas: 3, Ready: 4, Revisions: []status.Revision{{Desired: 1}, {Desired: 3}}}}
		}), func(r *dashboard.Row) { r.Ready, r.Replicas = 4, 4 }},
		"the one that is behind": {app(func(a *status.App) {
			a.Workloads = []status.Workload{moving(2, 3, 60, 0), moving(1, 5, 500, 1000), moving(1, 2, 90, 0), moving(4, 9, 1, 0)}
		}), func(r *dashboard.Row) {
			r.Step, r.Of, r.Name, r.Weight, r.Real, r.Ready, r.Replicas = 2, 5, "step 1", 50, 250, 8, 12
		}},
		"through all steps": {app(func(a *status.App) { a.Workloads = []status.Workload{moving(3, 3, 100, 0)} }),
			func(r *dashboard.Row) {
				r.Step, r.Of, r.Name, r.Weight, r.Real, r.Ready, r.Replicas = 3, 3, "", 100, 50, 2, 3
			}},
	} {
		want := dashboard.Row{App: "shop", Phase: rollout.Paused, Text: "promotion", Due: &due, Warnings: 2, Name: "no steps",
			Commit: strings.Repeat("2", 40), Author: "Ann", Subject: evil}
		c.want(&want)
		compare.CheckNamed(t, name, want, dashboard.RowOf(c.a))
	}
}

// TestSamples checks that samples count the ready pods of the new and of the stable version, and that one sample follows a release's end.
func TestSamples(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	a := appOf("shop", rollout.Progressing, 250)
	w := &a.Workloads[0]
	w.FullWeight = 1000
	w.Revisions = []status.Revision{
		{Role: "canary", Ready: 1}, {Role: "preview", Ready: 2}, {Role: "stable", Ready: 4}, {Role: "active", Ready: 8}, {Ready: 16},
	}
	a.Workloads = append(a.Workloads, status.Workload{Workload: "shop/other", Strategy: "plain"})
	var none *dashboard.Moves
	m := none.Add(at, a)
	compare.Check(t, map[string][]dashboard.Sample{"shop/shop": {{At: at, Weight: 25, Real: 250, New: 3, Old: 12, Want: 4}}}, m.Copy())
	rest := a
	rest.Release = nil
	compare.CheckNamed(t, "an app at rest has samples", false, none.Add(at, rest) != nil)
	m = m.Add(at.Add(time.Second), rest)
	rest.Workloads = append([]status.Workload{}, rest.Workloads...)
	rest.Workloads[0].Replicas = 9
	m = m.Add(at.Add(2*time.Second), rest)
	if list := m.Copy()["shop/shop"]; len(list) != 2 || list[1].Old != 28 || !m.Last().Equal(at.Add(time.Second)) {
		t.Errorf("after the release: %+v, last %v", list, m.Last())
	}
	a.Release = &status.Release{Hash: "h1-3333333333"}
	compare.CheckNamed(t, "samples of the next release", 1, len(m.Add(at.Add(3*time.Second), a).Copy()["shop/shop"]))
}

// TestUnknownApp checks that an unknown app's page has status 404, a link to all apps, and links to apps with similar names.
func TestUnknownApp(t *testing.T) {
	url, _ := boardOf(t, appOf("shop", rollout.Paused, 25), appOf("shopping", rollout.Paused, 25), appOf("pay", rollout.Paused, 25))
	for name, want := range map[string][]string{
		"shpo":    {`Did you mean <a href="/apps/shop">shop</a>?`, `<a href="/">All apps of prod</a>`, "Cluster prod has no app shpo."},
		"shopp":   {`<a href="/apps/shop">shop</a> or <a href="/apps/shopping">shopping</a>?`},
		"billing": {"no app billing.</p>"},
	} {
		res, page := get(t, url+"/apps/"+name)
		compare.CheckNamed(t, name, http.StatusNotFound, res.StatusCode)
		compare.Contains(t, page, want...)
	}
	_, answer := get(t, url+"/api/v1/apps/shpo")
	compare.Contains(t, answer, "cluster prod has no app shpo; did you mean shop?")
	_, page := get(t, url+"/apps/shop")
	compare.CheckNamed(t, "a known app is missing", false, strings.Contains(page, "missing"))
}

// TestFirstPaint checks that a browser loads a limited number of bytes before it shows a list of 500 apps.
func TestFirstPaint(t *testing.T) {
	apps := make([]status.App, 500)
	for i := range apps {
		a := appOf(fmt.Sprintf("team-%02d-service-%03d", i%20, i), rollout.Paused, 25)
		a.Namespace, a.Release.Subject, a.Release.Since = fmt.Sprintf("team-%02d", i%20), "A bigger cache for the checkout", time.Now()
		a.Release.Images, a.Stable.Images = []string{"ghcr.io/acme/service:v1.42.0"}, []string{"ghcr.io/acme/service:v1.41.0"}
		apps[i] = a
	}
	url, board := boardOf(t, apps...)
	whole, _, _, _ := board.Since(0)
	data, err := json.Marshal(whole)
	must(t, err)
	total := len(data)
	for _, path := range []string{"/", "/assets/fleet.js", "/assets/common.js", "/assets/style.css", "/assets/icon.svg"} {
		_, body := get(t, url+path)
		total += len(body)
	}
	t.Logf("%d bytes, of which the apps are %d", total, len(data))
	if total > 300<<10 {
		t.Errorf("%d bytes are loaded for 500 apps, at most 300 KiB may", total)
	}
}
