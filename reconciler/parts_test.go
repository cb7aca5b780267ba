package reconciler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// queued is a work queue that stores the names of added items.
type queued []string

func (q *queued) AddAfter(app string, wait time.Duration) {
	*q = append(*q, fmt.Sprintf("%s %t", app, wait > 0))
}

// TestTimers checks when apps are due: immediately after an event, or at the end of their timer. A new timer replaces
// the app's former timer. A pass removes the app's timer.
func TestTimers(t *testing.T) {
	a, noon := newAppQueue(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	take := func(at time.Time, want string) {
		t.Helper()
		compare.CheckNamed(t, "due at "+at.Format("15:04"), want, strings.Join(a.due(at), " "))
	}
	nextAt := func(want time.Time) {
		t.Helper()
		compare.CheckNamed(t, "the next timer ends", want, a.next())
	}
	nextAt(time.Time{})
	a.after("shop", time.Hour)
	a.at("web", noon)
	a.at("api", noon.Add(time.Hour))
	a.at("api", noon.Add(time.Minute))
	a.at("job", noon)
	a.at("job", time.Time{})
	nextAt(noon)
	take(noon.Add(-1), "shop")
	take(noon, "web")
	take(noon, "")
	nextAt(noon.Add(time.Minute))
	a.after("api", 0)
	take(noon, "api")
	nextAt(time.Time{}) // a pass removes the timer of its app

	q := &queued{}
	a.queue = q
	a.after("shop", 0)
	a.after("web", time.Second)
	a.at("api", time.Now().Add(time.Hour))
	a.at("job", time.Time{})
	compare.Check(t, queued{"shop false", "web true", "api true"}, *q)
	compare.CheckNamed(t, "apps of a work queue that are due here, too", 0, len(a.due(time.Now())))
}

// TestWayBackObjects checks which objects a rollback applies one by one after an error: Services, routes and workloads.
func TestWayBackObjects(t *testing.T) {
	route := object("x.io/v1", "Route", "web")
	all := []rollout.Object{
		object("v1", "ConfigMap", "a"), object("v1", "Service", "web"), object("apps/v1", "Deployment", "web"), route,
		object("x.io/v1", "Route", "other"), object("apps/v1", "StatefulSet", "db"),
	}
	names := func(objects []rollout.Object) []string {
		return rollout.Mapped(objects, func(o rollout.Object) string { return o.Kind() + " " + o.Name() })
	}
	before := names(all)
	got := rollbackObjects(all, []rollout.Object{route})
	compare.Check(t, []string{"Service web", "Deployment web", "Route web", "StatefulSet db"}, names(got))
	compare.CheckNamed(t, "all objects", before, names(all))
}

func object(version, kind, name string) rollout.Object {
	return rollout.Object{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "a"}}
}

// TestApprovalsAreAboutOneFile checks that an approval is valid only for one file of one app and its present promoters. The approval ends
// when the trusted keys change or the app is removed.
func TestApprovalsAreAboutOneFile(t *testing.T) {
	asked := 0
	ask := func(context.Context, string, string, string) (string, error) { asked++; return "ann", nil }
	q := newApprovals(ask, func(string) {}, func() {})
	var beats int
	about := question{path: "p", file: "f", main: "m", promoters: "keys"}
	ctx := context.WithValue(t.Context(), inWatchdog{}, func() { beats++ })
	said := func(what string, about question, known bool) {
		t.Helper()
		got, err := q.said("shop", about)
		if known != (err == nil) || known && got.who != "ann" || !known && !errors.Is(err, source.ErrNotReady) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		q.answer(ctx)
	}
	said("a new one", about, false)
	said("the same", about, true)
	other := about
	other.file = "g"
	said("another file", other, false)
	other.promoters = "more"
	said("other promoters", other, false)
	said("the same again", other, true)
	q.forgetApp("shop")
	said("after the app was removed", other, false)
	q.forget()
	said("with other keys", other, false)
	if _, err := q.said("web", about); !errors.Is(err, source.ErrNotReady) {
		t.Errorf("of another app: %v", err)
	}
	q.forgetApp("web")
	if before := asked; q.answer(ctx) || asked != before || beats != asked {
		t.Errorf("%d are asked about an app that was removed; %d signs of life", asked-before, beats)
	}

	const hash = "h1-2222222222"
	q.ask = func(context.Context, string, string, string) (string, error) {
		return "", rollout.Invalidf("p", "", "nobody signed it")
	}
	a := &appView{App: rollout.App{Name: "job"}, promotion: source.Promotion{ID: "blob", File: &rollout.Promotion{}}}
	v, head := &gitView{branch: &source.Branch{Cluster: "prod", Tree: readable("first")}}, &rollout.Render{}
	a.promotion.File.Release = head.Release()
	_, _, _ = q.of(v, a, head, rollout.State{})
	q.answer(ctx)
	if p, no, err := q.of(v, a, head, rollout.State{}); p != nil || no == nil || err != nil {
		t.Errorf("an unsigned promotion of the head: %v, %v, %v", p, no, err)
	}
	q.ask = nil
	a.promotion.File.Release = hash
	if p, no, err := q.of(v, a, head, rollout.State{}); p == nil || no != nil || err != nil {
		t.Errorf("without a check of promoters: %v, %v, %v", p, no, err)
	}
}

// TestComesFirst checks which of two apps with the same object may keep it. The app whose record has the object keeps
// it. If neither record has it, the first name wins. If both have it, both apps keep it.
func TestComesFirst(t *testing.T) {
	ref := rollout.Ref{Kind: "ConfigMap", Name: "web"}
	has := appState{state: rollout.State{Inventory: []rollout.Ref{{Kind: "Secret"}, ref}}}
	for name, c := range map[string]struct {
		apps map[string]appState
		a, b bool // the result for app a against b, and for b against a
	}{
		"NoApp": {nil, true, false}, "First": {map[string]appState{"a": has, "b": {}}, true, false},
		"Second": {map[string]appState{"b": has}, false, true}, "Both": {map[string]appState{"a": has, "b": has}, true, true},
	} {
		r := &stateStore{apps: c.apps}
		compare.CheckNamed(t, name, [2]bool{c.a, c.b}, [2]bool{r.comesFirst("a", "b", ref), r.comesFirst("b", "a", ref)})
	}
}

// TestOwnFolder checks that an app's own folder is the highest parent folder that contains no other app.
func TestOwnFolder(t *testing.T) {
	for name, c := range map[string]struct {
		app    string
		others []string
		want   string
	}{
		"Alone":    {"apps/shop/overlays/prod", nil, "apps"},
		"Beside":   {"apps/shop/overlays/prod", []string{"apps/web"}, "apps/shop"},
		"Overlays": {"apps/shop/overlays/prod", []string{"apps/shop/overlays/test", "apps/web"}, "apps/shop/overlays/prod"},
		"Prefix":   {"apps/shop", []string{"apps2/web"}, "apps"},
		"Top":      {"shop", []string{"web"}, "shop"},
	} {
		v := &gitView{apps: map[string]*appView{"it": {App: rollout.App{Path: c.app}}}}
		for i, dir := range c.others {
			v.apps[fmt.Sprint(i)] = &appView{App: rollout.App{Path: dir}}
		}
		compare.CheckNamed(t, name, c.want, ownFolder(v, c.app))
	}
}

// TestSoonest checks that Soonest returns the earlier of two times. The zero time means never.
func TestSoonest(t *testing.T) {
	var never time.Time
	one, two := time.Unix(1, 0), time.Unix(2, 0)
	for _, c := range [][3]time.Time{
		{never, never, never}, {one, never, one}, {never, one, one}, {one, two, one}, {two, one, one}, {one, one, one},
	} {
		compare.CheckNamed(t, fmt.Sprint(c[:2]), c[2], rollout.Soonest(c[0], c[1]))
	}
}

// TestComplaintsAreForgotten checks that errorLog reports a problem again after a success, and after the removal of the app.
func TestComplaintsAreForgotten(t *testing.T) {
	c := &errorLog{}
	said := func(what, problem string, want bool) {
		t.Helper()
		compare.CheckNamed(t, problem+" about "+what+" is new", want, c.isNew(what, problem))
	}
	said("app shop", "away", true)
	said("app shop", "away", false)
	said("app web", "away", true)
	said("app shop", "gone", true)
	said("panic of shop", "x", true)
	c.about("app shop", nil)
	said("app shop", "gone", true)
	c.forget("shop")
	said("app shop", "gone", true)
	said("panic of shop", "x", true)
	said("app web", "away", false)
}

// TestChanged checks that the function changed returns the newest commit that changed a file.
func TestChanged(t *testing.T) {
	at := func(author, id string) Snapshot { return written{author: author, id: id} }
	for name, c := range map[string]struct {
		line []Snapshot
		want string
	}{
		"None":    {nil, ""},
		"One":     {[]Snapshot{at("Ann", "new")}, ""},
		"Made":    {[]Snapshot{at("Ann", ""), at("Bob", "new"), at("Cid", "new")}, "Bob"},
		"Changed": {[]Snapshot{at("Ann", "old"), at("Bob", "new")}, "Bob"},
		"Before":  {[]Snapshot{at("Ann", "new"), at("Bob", "new")}, ""},
		"Again":   {[]Snapshot{at("Ann", "new"), at("Bob", "old"), at("Cid", "new"), at("Dan", "new")}, "Cid"},
		"Unread":  {[]Snapshot{at("Ann", "error"), at("Bob", "new")}, "Bob"},
	} {
		compare.CheckNamed(t, name, c.want, changed(c.line, "p").Author)
	}
}

// written is a commit with one file and its blob id. With the id "", there is no file. With "error", the file cannot be read.
type written struct {
	readable
	author, id string
}

func (w written) Commit() rollout.Commit { return rollout.Commit{ID: w.author, Author: w.author} }

func (w written) Lookup(string) (rollout.Entry, bool, error) {
	if w.id == "error" {
		return rollout.Entry{ID: "new"}, true, errors.New("unread")
	}
	return rollout.Entry{ID: w.id}, w.id != "", nil
}

// TestClaims checks that an app that adds or drops an object makes all other apps with this object due. It also checks
// which of these apps conflict.
func TestClaims(t *testing.T) {
	render := func(names ...string) *rollout.Render {
		r := &rollout.Render{Objects: []rollout.Object{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}}}}
		for _, name := range names {
			r.Objects = append(r.Objects, object("v1", "ConfigMap", name))
		}
		return r
	}
	var touched []string
	p := &renderCache{named: map[rollout.Ref][]string{}, heads: map[string]*headRender{"shop": {of: "new"}, "web": {of: "old"}}}
	p.touch = func(app string) { touched = append(touched, app) }
	claims := func(app string, was, is *rollout.Render, want string) {
		t.Helper()
		touched = nil
		p.updateOwners(app, was, is)
		compare.CheckNamed(t, app+" touches", want, strings.Join(touched, " "))
	}
	claims("shop", nil, render("x", "y"), "")
	claims("web", nil, render("y", "z"), "shop")
	claims("job", nil, render("y"), "shop web")
	got := rollout.Mapped(p.conflicts("shop", render("x", "y", "z"), "new"), func(c claim) string {
		return fmt.Sprintf("%s of %s %t", c.ref.Name, c.app, c.isOld)
	})
	compare.CheckNamed(t, "rivals", []string{"y of job true", "y of web true", "z of web true"}, got)
	rivals := rollout.Mapped(p.conflicts("web", render("y"), "new"), func(c claim) bool { return c.isOld })
	compare.CheckNamed(t, "rivals of web are old", []bool{true, false}, rivals)
	claims("job", render("y"), nil, "shop web")
	claims("web", render("y", "z"), render("y"), "shop")
	claims("shop", render("x", "y"), nil, "web")
	claims("web", render("y"), nil, "")
	compare.CheckNamed(t, "named objects", map[rollout.Ref][]string{}, p.named)

	l := preparer{renders: p, states: &stateStore{}}
	p.updateOwners("shop", nil, render("x"))
	v := &gitView{branch: &source.Branch{Tree: readable("new")}, apps: map[string]*appView{"shop": {}}}
	conflicts := func(when, app string, head *rollout.Render, wantHeld, wantReady bool) {
		t.Helper()
		conflict, ready := l.conflict(v, app, head)
		compare.CheckNamed(t, when, [2]bool{wantHeld, wantReady}, [2]bool{conflict != nil, ready})
	}
	conflicts("the first one", "a", render("x"), false, true)
	conflicts("the second one", "web", render("x"), true, true)
	conflicts("another object", "web", render("z"), false, true)
	conflicts("unread", "web", nil, false, true)
	p.heads["shop"].of = "old"
	conflicts("the first app's objects are not known yet", "web", render("x"), false, false)
	v.apps["shop"].removed = &rollout.InvalidError{}
	conflicts("the first one is not listed any more", "web", render("x"), false, true)
	delete(v.apps, "shop")
	conflicts("the first one is no more", "web", render("x"), false, true)
}

// TestHappened checks when a pass has news for users: when it records an advance, or applies a rollback. The record of
// an applied rollback is no news.
func TestHappened(t *testing.T) {
	for _, visits := range [][]struct{ recorded, retreat, told bool }{
		{{false, false, false}, {true, false, true}, {true, false, true}, {false, false, false}},
		{{false, true, true}, {false, true, false}, {true, true, false}, {true, false, true}},
		{{true, true, true}, {true, true, true}},
	} {
		m := &appCache{}
		for i, c := range visits {
			compare.CheckNamed(t, fmt.Sprintf("visit %d of %v is told", i, visits), c.told, m.happened(c.recorded, c.retreat))
		}
	}
}

// serves is an Observer. A key such as "shop old" names a Service and a pod hash that has a ready endpoint in this Service.
type serves struct {
	Observer
	ready map[string]bool
	err   error
}

func (s serves) Serves(_ context.Context, service rollout.Ref, podHash string) (bool, error) {
	return s.ready[service.Name+" "+podHash], s.err
}

// TestEndpointsAreAsked checks that each needed pair of a Service and a version is looked up. After an error, no result
// is stored, not even for pairs with a ready endpoint.
func TestEndpointsAreAsked(t *testing.T) {
	need := func(service, hash string) strategies.Need {
		return strategies.Need{Service: rollout.Ref{Kind: "Service", Name: service}, PodHash: hash}
	}
	ready, empty := need("shop", "old"), need("shop", "new")
	r := &Reconciler{Options: Options{Observer: serves{ready: map[string]bool{"shop old": true}}}}
	s := &pass{}
	ask := strategies.Ask{Endpoints: []strategies.Need{ready, empty}}
	if err := r.answer(t.Context(), s, ask); err != nil || !s.input.Answers.Endpoints[ready] || s.input.Answers.Endpoints[empty] {
		t.Errorf("answered %v, %v", s.input.Answers.Endpoints, err)
	}
	r.Observer = serves{ready: map[string]bool{"shop old": true}, err: errors.New("no route")}
	s = &pass{}
	if err := r.answer(t.Context(), s, ask); err == nil || len(s.input.Answers.Endpoints) > 0 {
		t.Errorf("while the server is away: %v, %v", s.input.Answers.Endpoints, err)
	}
}

// TestKeptForTheForge checks that the branch of an unwanted proposal stays for a while if the forge may be merging it.
// Any other unwanted branch is deleted immediately, because the branch's approvals would count for the next proposal.
func TestKeptForTheForge(t *testing.T) {
	at := func(phase rollout.Phase, release, stable rollout.Hash) rollout.State {
		s := rollout.State{Phase: phase, Release: &rollout.Release{Hash: release}, Stable: &rollout.Release{Hash: stable}}
		if release == "" {
			s.Release = nil
		}
		return s
	}
	atGate, back, held := at(rollout.Paused, "new", "old"), at(rollout.Aborting, "new", "old"), at(rollout.Paused, "new", "old")
	back.Rollback, held.Held = &rollout.Rollback{}, &rollout.Held{}
	onForge := &gitView{branch: &source.Branch{Config: &rollout.Config{Forge: &rollout.Forge{}}}}
	const promotion, revert = rollout.ProposePromotion, rollout.ProposeRevert
	for name, c := range map[string]struct {
		kind          rollout.ProposalKind
		before, after rollout.State
		want          bool
	}{
		"promoted":                {promotion, atGate, at(rollout.Progressing, "new", "old"), true},
		"still at its gate":       {promotion, atGate, atGate, true},
		"promoted to all":         {promotion, atGate, at(rollout.Healthy, "", "new"), true},
		"superseded":              {promotion, atGate, at(rollout.Progressing, "newer", "old"), false},
		"taken back":              {promotion, atGate, at(rollout.Healthy, "", "old"), false},
		"in the rollback":         {promotion, atGate, back, false},
		"held":                    {promotion, atGate, held, false},
		"nothing before":          {promotion, rollout.State{}, at(rollout.Healthy, "", "new"), false},
		"nothing before a gate":   {promotion, rollout.State{}, atGate, false},
		"no release":              {promotion, atGate, rollout.State{Phase: rollout.Degraded}, false},
		"the app is removed":      {promotion, atGate, rollout.State{}, false},
		"reverted":                {revert, atGate, at(rollout.Healthy, "", "old"), true},
		"reverted without record": {revert, rollout.State{}, at(rollout.Healthy, "", "old"), true},
		"not reverted":            {revert, atGate, at(rollout.Progressing, "newer", "old"), false},
		"still rejected":          {revert, rollout.State{}, at(rollout.Degraded, "", "old"), false},
	} {
		r := &committer{Options: &Options{ShowsForge: true}}
		compare.CheckNamed(t, name, c.want, r.keepsFor(onForge, c.kind, c.before, c.after))
		for where, v := range map[string]*gitView{
			"a configuration without a forge": {branch: &source.Branch{Config: &rollout.Config{}}}, "no configuration": {branch: &source.Branch{}},
		} {
			compare.CheckNamed(t, name+", kept with "+where, false, r.keepsFor(v, c.kind, c.before, c.after))
		}
		r.ShowsForge = false
		compare.CheckNamed(t, name+", kept where no forge is", false, r.keepsFor(onForge, c.kind, c.before, c.after))
	}
}

// TestRoutingIsKnownSince checks the time from which proxies may know a routing: the first pass after the apply of the
// routing. Neither the time of the decision nor the apply of another routing counts.
func TestRoutingIsKnownSince(t *testing.T) {
	rendered := &rollout.Render{Specs: []rollout.Spec{{Scaling: rollout.Surge, Canary: &rollout.Canary{
		Steps: make([]rollout.Step, 6), Traffic: &rollout.Traffic{MaxWeight: 100, Routers: []rollout.Router{{}}}}}}}
	at := func(weight int) rollout.State {
		w := rendered.Specs[0].Workload
		return rollout.State{
			Phase: rollout.Progressing, Release: &rollout.Release{Hash: "new"},
			Progress: []rollout.Progress{{Workload: w, Of: 6, Routed: &rollout.Routing{Weight: weight}}},
		}
	}
	five, fifty := strategies.Routing(at(5), rendered), strategies.Routing(at(50), rendered)
	if five == "" || fifty == five {
		t.Fatalf("routings %q and %q", five, fifty)
	}
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	var r routing
	for _, step := range []struct {
		what  string
		do    func()
		state rollout.State
		now   int
		want  time.Time
	}{
		{"nothing is known yet", func() {}, at(5), 1, minute(1)},
		{"it is held", func() { r.applying(five); r.held = five }, at(5), 2, minute(2)},
		{"since then", func() {}, at(5), 3, minute(2)},
		{"another one is decided, and not held", func() {}, at(50), 4, minute(4)},
		{"the first one is still held", func() {}, at(5), 5, minute(2)},
		{"the other one is about to be applied", func() { r.applying(fifty) }, at(50), 6, minute(6)},
		{"and a part of it may have arrived", func() {}, at(5), 7, minute(7)},
		{"it is held", func() { r.held = fifty }, at(50), 8, minute(8)},
		{"it is applied once more", func() { r.applying(fifty) }, at(50), 9, minute(8)},
		{"nothing is routed", func() {}, rollout.State{Phase: rollout.Healthy}, 10, time.Time{}},
	} {
		step.do()
		r.looked(minute(step.now))
		compare.CheckNamed(t, step.what, step.want, r.since(step.state, rendered, minute(step.now)))
	}
	compare.CheckNamed(t, "without a render", time.Time{}, r.since(at(50), nil, minute(11)))
}

// TestTouchFromEverywhere checks that several goroutines can use the queue at the same time, as watches, measurements and pumps do.
func TestTouchFromEverywhere(t *testing.T) {
	r := New(Options{})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 500 {
				name := fmt.Sprint("app", n, "-", i)
				r.Touch(name)
				r.queue.at(name, time.Unix(1, 0))
				r.NextDue()
			}
		})
	}
	all.Wait()
	compare.CheckNamed(t, "apps that are due", 8*500, len(r.queue.due(time.Unix(2, 0))))
}

// TestSameApp checks that appView.same returns false for each change of an app in Git that must cause a pass.
func TestSameApp(t *testing.T) {
	wrong := rollout.Invalidf("f", "", "is wrong")
	base := appView{App: app("shop"), promotion: source.Promotion{ID: "a"}}
	for name, change := range map[string]func(*appView){
		"the folder":    func(a *appView) { a.Path = "apps/other" },
		"the promotion": func(a *appView) { a.promotion.ID = "b" },
		"a freeze":      func(a *appView) { a.calendar.Freeze = &rollout.Freeze{Reason: "x"} },
		"unlisted":      func(a *appView) { a.removed = wrong },
		"to be pruned":  func(a *appView) { a.prunes = true },
		"refused":       func(a *appView) { a.refused = wrong },
		"another head":  func(a *appView) { a.head = &strategies.Head{} },
	} {
		other := base
		change(&other)
		again := other
		compare.CheckNamed(t, name, [3]bool{false, false, true}, [3]bool{base.same(&other), other.same(&base), other.same(&again)})
	}
	compare.CheckNamed(t, "an app that was not there is the same as before", false, base.same(nil))
}

// TestUnchangedAppIsRenderedOnce checks that a new head causes one render of an unchanged app. If the app has changed, earlier commits are
// rendered too.
func TestUnchangedAppIsRenderedOnce(t *testing.T) {
	s, r := newShelf()
	s.same = map[string]string{"second": "first"}
	shop := app("shop")
	lookAt(r, readable("first"), nil, []rollout.App{shop})
	r.renders.drain()
	for _, v := range []*gitView{at("first", "second"), at("second", "third")} {
		lookAt(r, v.branch.Tree, v.line, []rollout.App{shop})
		r.renders.drain()
	}
	compare.Check(t, []string{"shop first", "shop second", "shop third", "shop second"}, s.rendered)
	wantHead(t, r, at("third"), "shop", "third")
}

// TestOwnersOfProposals checks that proposers returns the recorded apps that have proposals in this cluster.
func TestOwnersOfProposals(t *testing.T) {
	_, r := newShelf()
	r.states.Cluster = "prod"
	r.states.apps = map[string]appState{"shop": {}, "till": {}}
	r.states.proposals = map[string]string{
		rollout.ProposalBranch(rollout.ProposePromotion, "prod", "shop"): "1",
		rollout.ProposalBranch(rollout.ProposePromotion, "prod", "gone"): "2",
		rollout.ProposalBranch(rollout.ProposeRevert, "prod", "till"):    "3",
		rollout.ProposalBranch(rollout.ProposeRevert, "test", "shop"):    "4",
	}
	compare.Check(t, []string{"shop", "till"}, slices.Sorted(slices.Values(r.states.proposers())))
}

// TestAgenda checks that apps are due at the time of their timer, or immediately after a touch.
func TestAgenda(t *testing.T) {
	now := time.Now()
	r := New(Options{})
	r.queue.at("later", now.Add(time.Hour))
	r.queue.at("sooner", now.Add(time.Minute))
	r.queue.at("never", time.Time{})
	compare.CheckNamed(t, "next due", now.Add(time.Minute), r.NextDue())
	r.Touch("touched")
	r.queue.at("touched", now.Add(time.Hour)) // a timer does not delay a touched app
	compare.CheckNamed(t, "due now", []string{"touched"}, r.queue.due(now))
	compare.CheckNamed(t, "due in an hour", []string{"later", "sooner"}, r.queue.due(now.Add(time.Hour)))
}

// TestEachErrorIsLoggedOnce checks that a repeated error is logged once. If the error returns after a success, it is logged again.
func TestEachErrorIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	c := errorLog{log: slog.New(slog.NewTextHandler(&log, nil))}
	refused, away := errors.New("refused"), fmt.Errorf("fetch: %w", errors.New("no route"))
	for range 3 {
		c.about("app a", refused)
		c.about("Git", away)
	}
	logged := func(text string) int { return strings.Count(log.String(), text) }
	compare.CheckNamed(t, "lines of each error", []int{1, 1}, []int{logged("refused"), logged("no route")})
	c.about("Git", nil)
	c.about("Git", away)
	compare.CheckNamed(t, "lines of an error that came back", 2, logged("no route"))
}

func TestBackoff(t *testing.T) {
	var got []string
	at := time.Duration(0)
	for range 9 {
		at += backoff(at)
		got = append(got, at.String())
	}
	compare.CheckNamed(t, "tries after the first failure", "1s 2s 4s 8s 16s 32s 1m4s 2m4s 3m4s", strings.Join(got, " "))
}

// TestNoTracerCostsNothing checks that a part of a pass allocates no memory for traces if there is no Tracer.
func TestNoTracerCostsNothing(t *testing.T) {
	r := New(Options{})
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		_, end := r.begin(ctx, report.PartApply, "shop")
		end(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
