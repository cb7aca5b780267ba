package reconciler

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
	"gitrollout.dev/gitrollout/strategies"
)

// shelf is both a Git mirror and a renderer that lists its renders. Renders of two commits differ unless the map "same" says otherwise.
type shelf struct {
	Repository
	here     map[string]bool
	rendered []string
	same     map[string]string           // by commit: another commit with equal content
	fails    error                       // the error of each render
	unopened []string                    // of each render
	trees    map[string]*memgit.Snapshot // readable commits, by id
}

func (s *shelf) Held(commit string) (Snapshot, bool) {
	if t, is := s.trees[commit]; is {
		return t, s.here[commit]
	}
	return readable(commit), s.here[commit]
}

func (s *shelf) Render(_ rollout.Tree, app rollout.App, c rollout.Commit) (*rollout.Render, error) {
	s.rendered = append(s.rendered, app.Name+" "+c.ID)
	if c.ID == "bad" {
		panic("index out of range")
	}
	if s.fails != nil {
		return nil, s.fails
	}
	return &rollout.Render{App: app, Commit: c, Digest: cmp.Or(s.same[c.ID], c.ID), Unopened: s.unopened}, nil
}

// lookAt calls look for the given apps.
func lookAt(r *Reconciler, tree Snapshot, line []Snapshot, apps []rollout.App) {
	r.renders.look(tree, line, rollout.Mapped(apps, func(a rollout.App) *rollout.App { return &a }))
}

func newShelf(here ...string) (*shelf, *Reconciler) {
	s := &shelf{here: map[string]bool{}}
	for _, commit := range here {
		s.here[commit] = true
	}
	return s, New(Options{Repository: s, Renderer: s, Log: slog.New(slog.DiscardHandler)})
}

// at returns a view whose head has moved from the first to the last of the given commits.
func at(commits ...string) *gitView {
	v := &gitView{branch: &source.Branch{Tree: readable(commits[len(commits)-1])}}
	for _, c := range commits {
		v.line = append(v.line, readable(c))
	}
	return v
}

// ask requests a render at a commit that is not rendered yet.
func ask(t *testing.T, r *Reconciler, name, commit string) {
	t.Helper()
	if _, err := r.renders.render(t.Context(), app(name), commit); !errors.Is(err, source.ErrNotReady) {
		t.Fatalf("commit %s of %s: %v", commit, name, err)
	}
}

// wantHead fails the test unless an app's head is ready and its render is from the given commit.
func wantHead(t *testing.T, r *Reconciler, v *gitView, name, commit string) {
	t.Helper()
	if head, ready := r.renders.head(v, app(name)); !ready || head.Err != nil || head.Commit.ID != commit || head.Render.Commit.ID != commit {
		t.Errorf("the head of %s is %+v, ready %t, want %s", name, head, ready, commit)
	}
}

// wantBuilt fails the test unless an app is rendered at the given commit.
func wantBuilt(t *testing.T, r *Reconciler, name, commit string) {
	t.Helper()
	if built, err := r.renders.render(t.Context(), app(name), commit); err != nil || built.Commit.ID != commit {
		t.Errorf("commit %s of %s is %+v: %v", commit, name, built, err)
	}
}

func app(name string) rollout.App { return rollout.App{Name: name, Path: "apps/" + name} }

// TestCommitsAreBroughtTogether checks that, after a restart, one fetch requests the commits of a thousand apps, each commit once.
func TestCommitsAreBroughtTogether(t *testing.T) {
	_, r := newShelf()
	var all []string
	for i := range 1000 {
		commit := fmt.Sprintf("commit%03d", i)
		all = append(all, commit)
		for range 2 { // a pass may be repeated
			ask(t, r, fmt.Sprint("app", i), commit)
		}
	}
	slices.Sort(all)
	compare.CheckNamed(t, "missing", all, r.fetcher.missing())
	compare.CheckNamed(t, "missing after a panic of the fetch", all, r.fetcher.missing())
	// After an error, waiting apps must request their commits again.
	r.fetcher.brought(all, nil, nil, errors.New("no route"))
	ask(t, r, "app7", all[7])
	compare.CheckNamed(t, "missing after an error", all[7:8], r.fetcher.missing())
}

// TestCommitThatIsGone checks that the render of a commit that the server lacks returns an error, so that no app waits for the commit.
// After the next fetch, the commit is requested again.
func TestCommitThatIsGone(t *testing.T) {
	s, r := newShelf()
	_, _ = r.renders.render(t.Context(), app("shop"), "old")
	r.fetcher.brought(r.fetcher.missing(), []string{"old"}, nil, nil)
	if _, err := r.renders.render(t.Context(), app("shop"), "old"); err == nil || errors.Is(err, source.ErrNotReady) {
		t.Errorf("it is %v", err)
	}
	compare.CheckNamed(t, "touched", []string{"shop"}, r.queue.due(r.NextDue()))
	lookAt(r, readable("new"), nil, nil)
	s.here["old"] = true
	_, _ = r.renders.render(t.Context(), app("shop"), "old")
	r.fetcher.brought(r.fetcher.missing(), nil, nil, nil)
	r.renders.drain()
	wantBuilt(t, r, "shop", "old")
}

// TestRendersOfReleasesComeFirst checks that apps with a release in flight are rendered before other apps.
func TestRendersOfReleasesComeFirst(t *testing.T) {
	s, r := newShelf("new")
	r.states.apps["till"] = appState{state: rollout.State{App: "till", Release: &rollout.Release{}}}
	lookAt(r, readable("new"), nil, []rollout.App{app("aaa"), app("shop"), app("till")})
	r.renders.drain()
	compare.CheckNamed(t, "rendered", []string{"till new", "aaa new", "shop new"}, s.rendered)
}

// remembering is a shelf whose IsSame reports a change only for the app in the field "changes".
type remembering struct {
	*shelf
	changes string
}

func (m remembering) IsSame(_ rollout.Tree, was *rollout.Render) bool {
	return was.App.Name != m.changes
}

// TestUnchangedAppsAreNotQueued checks that a push to one of a thousand apps renders only this app, and that the other
// apps' heads keep their commit.
func TestUnchangedAppsAreNotQueued(t *testing.T) {
	s, _ := newShelf("old", "new")
	r := New(Options{Repository: s, Renderer: remembering{s, "app7"}, Log: slog.New(slog.DiscardHandler)})
	var apps []rollout.App
	for i := range 1000 {
		apps = append(apps, app(fmt.Sprint("app", i)))
	}
	lookAt(r, readable("old"), nil, apps)
	r.renders.drain()
	s.rendered = nil
	v := at("old", "new")
	lookAt(r, v.branch.Tree, v.line, apps)
	compare.CheckNamed(t, "queued", 1, len(r.renders.queue.jobs))
	r.renders.drain()
	compare.CheckNamed(t, "rendered", []string{"app7 new", "app7 old"}, s.rendered)
	wantHead(t, r, v, "app7", "new")
	if head, ready := r.renders.head(v, app("app8")); !ready || head.Render.Commit.ID != "old" {
		t.Errorf("the head of app8 is %+v, ready %t", head, ready)
	}
	compare.CheckNamed(t, "room for jobs after the last", 0, cap(r.renders.queue.jobs))
}

// TestHistoryBeforeAPush checks an app whose pass waits for the commit of its last change. The app becomes due even if other apps are
// pushed before the queued render.
func TestHistoryBeforeAPush(t *testing.T) {
	s, _ := newShelf("old", "new")
	r, apps := New(Options{Repository: s, Renderer: remembering{s, ""}, Log: slog.New(slog.DiscardHandler)}), []rollout.App{app("shop")}
	lookAt(r, readable("old"), nil, apps)
	r.renders.drain()
	compare.CheckNamed(t, "the change of the head is known", false, r.renders.isBlamed("shop", "older", "old"))
	r.queue.due(time.Time{})
	r.renders.setHistory("shop", readable("old"), at("older", "old").line)
	v := at("old", "new")
	lookAt(r, v.branch.Tree, v.line, apps)
	r.renders.drain()
	compare.CheckNamed(t, "due", []string{"shop"}, r.queue.due(time.Time{}))
}

// TestRivalWithEqualObjects checks two apps with the same object. The app that waits for the other's head becomes due when this head is
// rendered, even if the head's objects are unchanged.
func TestRivalWithEqualObjects(t *testing.T) {
	_, r := newShelf()
	apps := []rollout.App{app("shop"), app("till")}
	render := func(name, commit string) {
		object := object("v1", "ConfigMap", "c")
		made := strategies.Head{Render: &rollout.Render{App: app(name), Digest: "d", Objects: []rollout.Object{object}}}
		r.renders.headIs(job{what: what{app: app(name), commit: commit, head: true}}, made, nil)
	}
	for _, commit := range []string{"old", "new"} {
		lookAt(r, readable(commit), nil, apps)
		render("shop", commit)
		r.renders.conflicts("shop", r.renders.heads["shop"].head.Render, commit)
		r.queue.due(time.Time{})
		render("till", commit)
		compare.CheckNamed(t, commit+": shop is due", true, slices.Contains(r.queue.due(time.Time{}), "shop"))
	}
}

// TestQueuedHeadAfterAForcedPush checks a forced push back to an older commit. The queued render of the newer commit does not become the
// head.
func TestQueuedHeadAfterAForcedPush(t *testing.T) {
	_, r := newShelf("old", "new")
	for _, commit := range []string{"old", "new", "old"} {
		if lookAt(r, readable(commit), nil, []rollout.App{app("shop")}); commit == "old" {
			r.renders.drain()
		}
	}
	wantHead(t, r, at("old"), "shop", "old")
}

// TestUnchangedObjectsKeepTheirOwners checks that a new head with unchanged objects costs no work per object.
func TestUnchangedObjectsKeepTheirOwners(t *testing.T) {
	_, r := newShelf()
	made := strategies.Head{Render: &rollout.Render{App: app("shop"), Digest: "d"}}
	for i := range 1000 {
		made.Render.Objects = append(made.Render.Objects, object("v1", "ConfigMap", fmt.Sprint("c", i)))
	}
	lookAt(r, readable("head"), nil, []rollout.App{app("shop")})
	again := func() { r.renders.headIs(job{what: what{app: app("shop"), commit: "head", head: true}}, made, nil) }
	again()
	compare.CheckNamed(t, "objects with owners", 1000, len(r.renders.named))
	if n := testing.AllocsPerRun(10, again); n > 5 {
		t.Errorf("%v allocations for an unchanged head", n)
	}
}

// TestSearchUnpacksNoOtherRender checks that a search for an object in other apps unpacks only renders with the object's name. Otherwise,
// each pruned object costs a second at 10,000 apps.
func TestSearchUnpacksNoOtherRender(t *testing.T) {
	_, r := newShelf()
	made, v := strategies.Head{Render: &rollout.Render{App: app("shop"), Digest: "d"}}, at("head")
	for i := range 1000 {
		made.Render.Objects = append(made.Render.Objects, object("v1", "ConfigMap", fmt.Sprint("c", i)))
	}
	made.Render.Pack()
	lookAt(r, v.branch.Tree, nil, []rollout.App{app("shop")})
	r.renders.headIs(job{what: what{app: app("shop"), commit: "head", head: true}}, made, nil)
	v.apps = map[string]*appView{"shop": {App: app("shop")}}
	r.in.seen.Store(v)
	has := func(name string) bool {
		is, _ := r.isElsewhere("web", object("v1", "ConfigMap", name).Ref(), v)
		return is
	}
	compare.CheckNamed(t, "an object of shop", true, has("c7"))
	compare.CheckNamed(t, "another object", false, has("c"))
	if n := testing.AllocsPerRun(10, func() { has("c") }); n > 50 {
		t.Errorf("%v allocations", n)
	}
}

// packing makes renders with packed objects, as render.Renderer does.
type packing struct{}

func (packing) Render(_ rollout.Tree, app rollout.App, c rollout.Commit) (*rollout.Render, error) {
	r := &rollout.Render{App: app, Commit: c, Objects: []rollout.Object{object("v1", "ConfigMap", "a")}}
	r.Pack()
	return r.Unpacked(), nil
}

// TestRecordedHeadsArePacked checks that the view after a refused head keeps no objects of recorded commits. A pass still gets these
// objects.
func TestRecordedHeadsArePacked(t *testing.T) {
	r := New(Options{Repository: &shelf{here: map[string]bool{"": true}}, Renderer: packing{}, Log: slog.New(slog.DiscardHandler)})
	v, a := at("head"), &appView{App: app("shop")}
	v.refused = &rollout.Refusal{Blind: true}
	r.in.judge(t.Context(), v, a, nil, nil, nil)
	compare.CheckNamed(t, "kept objects", 0, len(a.head.Render.Objects))
	head, _, _ := r.preparer.head(v, a)
	compare.CheckNamed(t, "objects of a pass", 1, len(head.Render.Objects))
}

// TestARecordsCommitCopiesNoApps checks that a fetch with a new record and an unchanged head does not copy the list of apps.
func TestARecordsCommitCopiesNoApps(t *testing.T) {
	_, r := newShelf()
	v := at("head")
	for i := range 1000 {
		v.branch.Apps = append(v.branch.Apps, app(fmt.Sprint("app", i)))
	}
	r.in.findApps(nil, v)
	next := *v
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			r.in.findApps(v, &next)
			r.in.publish(v, &next, nil, false)
		}
	})
	if perApp := result.AllocedBytesPerOp() / 1000; perApp > 300 { // an appView alone has 900
		t.Errorf("%d bytes for each app", perApp)
	}
}

// TestAPassReadsNoOtherRecords checks that the pass of an app in Git searches no other apps' records. A search would panic, because the
// test has no records.
func TestAPassReadsNoOtherRecords(t *testing.T) {
	d := strategies.Decision{State: rollout.State{Inventory: []rollout.Ref{{Kind: "Service", Namespace: "shop", Name: "shop"}}}}
	_, leaves, err := (&applier{}).leave(transition{app: &appView{App: app("shop")}}, d)
	compare.CheckNamed(t, "an app in Git leaves", []any{false, nil}, []any{leaves, err})
}

// TestViewsShareApps checks that a new view of the same head shares all apps but one with a new calendar. After a refusal, no app is
// shared.
func TestViewsShareApps(t *testing.T) {
	_, r := newShelf()
	v := at("head")
	v.branch.Apps = []rollout.App{app("shop"), app("till")}
	r.in.findApps(nil, v)
	next := *v
	v.apps["till"].calendar.Freeze = &rollout.Freeze{}
	r.in.findApps(v, &next)
	compare.CheckNamed(t, "the app without a change is shared", true, next.apps["shop"] == v.apps["shop"])
	compare.CheckNamed(t, "the app with a change is shared", false, next.apps["till"] == v.apps["till"])
	next.refused = &rollout.Refusal{}
	r.in.findApps(v, &next)
	compare.CheckNamed(t, "an app is shared that holdUnverified changes", false, next.apps["shop"] == v.apps["shop"])
}

// TestAppsThatAreCalledBackComeFirst checks that, after a restart, apps with a reverted or aborted release are rendered before other apps
// in flight.
func TestAppsThatAreCalledBackComeFirst(t *testing.T) {
	s, r := newShelf()
	v := &gitView{branch: &source.Branch{}, apps: map[string]*appView{}}
	git, head := memgit.New(nil), map[string][]byte{}
	stable := git.Make("", memgit.Change{})
	s.trees = git.Commits
	for i, is := range []string{"v2", "v2", "v1", "v2"} { // app2 is reverted, and app3 is aborted
		a := app(fmt.Sprint("app", i))
		commit := git.Make("", memgit.Change{Edits: map[string][]byte{a.Path + "/app.yaml": []byte("v2")}})
		head[a.Path+"/app.yaml"] = []byte(is)
		v.apps[a.Name] = &appView{App: a}
		r.states.apps[a.Name] = appState{state: rollout.State{App: a.Name, Path: a.Path, Source: commit,
			Release: &rollout.Release{Commit: commit}, Stable: &rollout.Release{Commit: stable}}}
	}
	v.branch.Tree = git.Commits[git.Make("", memgit.Change{Edits: head})]
	v.apps["app3"].promotion.File = &rollout.Promotion{Decision: rollout.Abort}
	r.renders.prepare(r.states, v, sortedKeys(v.apps))
	wanted := r.fetcher.missing()
	for _, commit := range wanted {
		s.here[commit] = true
	}
	r.fetcher.brought(wanted, nil, nil, nil)
	r.renders.queue.hasten(r.in.leaving(v, wanted))
	r.renders.drain()
	var apps []string
	for _, rendered := range s.rendered {
		name, _, _ := strings.Cut(rendered, " ")
		apps = append(apps, name)
	}
	first := len(apps) / 2
	slices.Sort(apps[:first])
	slices.Sort(apps[first:])
	compare.CheckNamed(t, "rendered", []string{"app2", "app2", "app3", "app3", "app0", "app0", "app1", "app1"}, apps)
}

// TestNewerHeadWins checks that a late render of an older head does not replace the render of a newer head. The
// app's release begins between the two heads, and a release in flight has priority, so the newer head is rendered first.
func TestNewerHeadWins(t *testing.T) {
	_, r := newShelf("first", "second")
	shop := app("shop")
	lookAt(r, readable("first"), nil, []rollout.App{shop})
	r.states.apps["shop"] = appState{state: rollout.State{App: "shop", Release: &rollout.Release{}}}
	lookAt(r, readable("second"), nil, []rollout.App{shop})
	r.renders.drain()
	wantHead(t, r, at("second"), "shop", "second")
	// While the third head waits for its render, the cache does not return the second head.
	if head, ready := r.renders.head(at("third"), shop); ready || head.Render != nil {
		t.Errorf("the third head is %+v, ready %t", head, ready)
	}
	// The app's current render stays cached when the head moves.
	r.renders.drain()
	wantBuilt(t, r, "shop", "second")
}

// TestHeadIsTheCommitThatMadeIt checks that an app's head names the commit that changed the app, not a newer commit. The order of requests,
// and newer commits before the render, must not matter.
func TestHeadIsTheCommitThatMadeIt(t *testing.T) {
	shop := app("shop")
	for name, look := range map[string]func(r *Reconciler){
		"at a look": func(r *Reconciler) {
			v := at("first", "ann", "bob")
			lookAt(r, v.branch.Tree, v.line, []rollout.App{shop})
		},
		"a visit comes before the look": func(r *Reconciler) { r.renders.head(at("first", "ann", "bob"), shop) },
		"overtaken": func(r *Reconciler) {
			for _, v := range []*gitView{at("first", "ann"), at("ann", "bob")} {
				lookAt(r, v.branch.Tree, v.line, []rollout.App{shop})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := newShelf("first")
			s.same = map[string]string{"bob": "ann"}
			lookAt(r, readable("first"), nil, []rollout.App{shop})
			r.renders.drain()
			look(r)
			r.renders.drain()
			wantHead(t, r, at("bob"), "shop", "ann")
		})
	}
}

// TestWhatIsUsedStays checks that the render of a rollback's target stays cached while many heads are rendered, because
// each pass uses it.
func TestWhatIsUsedStays(t *testing.T) {
	s, r := newShelf("stable")
	shop := app("shop")
	for i := range 20 {
		if _, err := r.renders.render(t.Context(), shop, "stable"); i > 0 && err != nil {
			t.Fatalf("after %d heads: %v", i, err)
		}
		if i == 0 {
			r.fetcher.brought(r.fetcher.missing(), nil, nil, nil)
		}
		s.here[fmt.Sprint("head", i)] = true
		lookAt(r, readable(fmt.Sprint("head", i)), nil, []rollout.App{shop})
		r.renders.drain()
	}
	compare.CheckNamed(t, "renders that are kept", kept, len(r.renders.at["shop"]))
}

// TestPanicOfARender checks that a panic during a render becomes an error of its app.
func TestPanicOfARender(t *testing.T) {
	_, r := newShelf("bad")
	lookAt(r, readable("bad"), nil, []rollout.App{app("shop")})
	r.renders.drain()
	head, ready := r.renders.head(at("bad"), app("shop"))
	var invalid *rollout.InvalidError
	if !ready || !errors.As(head.Err, &invalid) {
		t.Errorf("ready %t, %v", ready, head.Err)
	}
}

// TestRendersEnd checks that a render worker ends when its queue is closed.
func TestRendersEnd(t *testing.T) {
	_, r := newShelf("new")
	ended := make(chan struct{})
	go func() { r.renders.work(); close(ended) }()
	lookAt(r, readable("new"), nil, []rollout.App{app("shop")})
	r.renders.queue.close()
	<-ended
}

// gated is a renderer. It renders the app "bomb" when the gate opens, and other apps immediately.
type gated struct {
	*shelf
	gate, others chan string
}

func (g *gated) Render(tree rollout.Tree, app rollout.App, c rollout.Commit) (*rollout.Render, error) {
	if app.Name == "bomb" {
		<-g.gate
	} else {
		g.others <- app.Name
	}
	return &rollout.Render{App: app, Commit: c, Digest: c.ID}, nil
}

// TestAnAppThatTakesLongHoldsUpItself checks that an app with three slow renders (a head and two older commits) occupies only one worker.
func TestAnAppThatTakesLongHoldsUpItself(t *testing.T) {
	s, _ := newShelf("one", "two")
	g := &gated{shelf: s, gate: make(chan string), others: make(chan string, 10)}
	r := New(Options{Repository: s, Renderer: g, Log: slog.New(slog.DiscardHandler)})
	var ended sync.WaitGroup
	for range 2 {
		ended.Go(r.renders.work)
	}
	for _, commit := range []string{"one", "two"} {
		_, _ = r.renders.render(t.Context(), app("bomb"), commit)
	}
	r.fetcher.brought(r.fetcher.missing(), nil, nil, nil)
	lookAt(r, readable("new"), nil, []rollout.App{app("bomb"), app("shop"), app("till")})
	for range 2 {
		select {
		case <-g.others:
		case <-time.After(5 * time.Minute):
			t.Fatal("the others wait for the app that takes long")
		}
	}
	close(g.gate)
	for built := false; !built; {
		_, err := r.renders.render(t.Context(), app("bomb"), "two")
		built = err == nil
		time.Sleep(time.Millisecond)
	}
	r.renders.queue.close()
	ended.Wait()
}

// TestCommitThatIsForeign checks that a commit outside of the users' branch, such as a proposal's commit, is an error
// and is not rendered. A former head of the branch is rendered.
func TestCommitThatIsForeign(t *testing.T) {
	_, r := newShelf("head", "foreign")
	shop := app("shop")
	lookAt(r, readable("head"), nil, []rollout.App{shop})
	for _, commit := range []string{"foreign", "head"} {
		_, _ = r.renders.render(t.Context(), shop, commit)
	}
	compare.CheckNamed(t, "asked about", []string{"foreign"}, r.fetcher.missing())
	r.fetcher.brought([]string{"foreign"}, nil, []string{"foreign"}, nil)
	r.renders.drain()
	built, err := r.renders.render(t.Context(), shop, "foreign")
	if built != nil || err == nil || !strings.Contains(err.Error(), "not part of the users' branch") {
		t.Errorf("it is %v, %v", built, err)
	}
	wantBuilt(t, r, "shop", "head")
}

// TestFailedRenderIsTriedAgain checks that a failed render of a head or of an older commit is tried again at later fetches, with growing
// pauses. A success, or an invalid file in the repository, ends the tries.
func TestFailedRenderIsTriedAgain(t *testing.T) {
	s, r := newShelf("1", "2")
	v, apps := at("1", "2"), []rollout.App{app("a")}
	v.apps = map[string]*appView{"a": {App: apps[0]}}
	s.fails = errors.New("the process that renders it was killed")
	looks := func(n int) (tries int) {
		before := len(s.rendered)
		for range n {
			r.renders.retry(v)
			r.renders.drain()
		}
		return len(s.rendered) - before
	}
	lookAt(r, v.branch.Tree, v.line, apps)
	r.renders.drain()
	compare.CheckNamed(t, "tries at 40 looks", 5, looks(40)) // the render is tried at the fetches 1, 3, 7, 15 and 31
	_, _ = r.renders.render(t.Context(), app("a"), "1")
	r.renders.drain()
	s.fails = nil
	compare.CheckNamed(t, "tries after the reason is over", 1, looks(100))
	if head, ready := r.renders.head(v, app("a")); !ready || head.Err != nil {
		t.Errorf("the head is ready: %t, %v", ready, head.Err)
	}
	_, _ = r.renders.render(t.Context(), app("a"), "1")
	r.renders.drain()
	wantBuilt(t, r, "a", "1")
	s.fails = &rollout.InvalidError{Msg: "is wrong"}
	v.branch, v.line = at("2", "3").branch, at("2", "3").line
	s.here["3"] = true
	lookAt(r, v.branch.Tree, v.line, apps)
	r.renders.drain()
	compare.CheckNamed(t, "more tries of an error in the repository", 0, looks(40))
}

// TestRenderWithoutAKeyIsTriedAgain checks that the render of an older commit is tried again at later fetches until keys open all encrypted
// files.
func TestRenderWithoutAKeyIsTriedAgain(t *testing.T) {
	s, r := newShelf("1", "2")
	v, apps := at("1", "2"), []rollout.App{app("a")}
	v.apps = map[string]*appView{"a": {App: apps[0]}}
	lookAt(r, v.branch.Tree, v.line, apps)
	r.renders.drain()
	looks := func(n int) (tries int) {
		before := len(s.rendered)
		for range n {
			_, _ = r.renders.render(t.Context(), app("a"), "1") // as a pass does
			r.renders.drain()
			r.renders.retry(v)
		}
		return len(s.rendered) - before
	}
	s.unopened = []string{"secret.yaml"}
	compare.CheckNamed(t, "tries without a key", 6, looks(40)) // the first, and after the fetches 1, 3, 7, 15 and 31
	s.unopened = nil
	compare.CheckNamed(t, "tries with a key", 1, looks(100))
	if built, err := r.renders.render(t.Context(), app("a"), "1"); err != nil || len(built.Unopened) > 0 {
		t.Errorf("%+v, %v", built, err)
	}
}
