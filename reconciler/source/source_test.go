package source_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/traffic"
)

// commit is a Snapshot of files by path.
type commit struct {
	id    string
	files map[string]string
}

func (c commit) Commit() rollout.Commit {
	return rollout.Commit{ID: c.id, Author: "Ann <ann@example.com>"}
}

func (c commit) Lookup(name string) (rollout.Entry, bool, error) {
	if _, ok := c.files[name]; ok {
		return rollout.Entry{Name: name[strings.LastIndex(name, "/")+1:], ID: name + c.files[name], Kind: rollout.File}, true, nil
	}
	for file := range c.files {
		if strings.HasPrefix(file, name+"/") {
			return rollout.Entry{Name: name[strings.LastIndex(name, "/")+1:], ID: name, Kind: rollout.Dir}, true, nil
		}
	}
	return rollout.Entry{}, false, nil
}

func (c commit) ReadDir(dir string) ([]rollout.Entry, error) {
	var entries []rollout.Entry
	for file := range c.files {
		rest, below := strings.CutPrefix(file, dir+"/")
		if !below {
			continue
		}
		first, _, _ := strings.Cut(rest, "/")
		if slices.ContainsFunc(entries, func(e rollout.Entry) bool { return e.Name == first }) {
			continue
		}
		e, _, _ := c.Lookup(dir + "/" + first)
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b rollout.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

func (c commit) ReadBlob(id string) ([]byte, error) {
	for name, content := range c.files {
		if name+content == id {
			return []byte(content), nil
		}
	}
	return nil, fmt.Errorf("no blob %s", id)
}

// with returns a commit with changed files. Content "" deletes a file.
func (c commit) with(id string, edits map[string]string) commit {
	next := commit{id: id, files: maps.Clone(c.files)}
	for name, content := range edits {
		next.files[name] = content
		if content == "" {
			delete(next.files, name)
		}
	}
	return next
}

const config = ".gitrollout/prod/config.yaml"

func configOf(entries string) string {
	return "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" + entries
}

var first = commit{"first", map[string]string{
	config:                         configOf("- path: apps/*\n  namespace: shops\n"),
	"apps/shop/kustomization.yaml": "resources: []\n",
	"apps/till/kustomization.yaml": "resources: []\n",
}}

// builds is a Renderer that stores the apps of its calls.
type builds struct{ asked []rollout.App }

func (b *builds) Render(_ rollout.Tree, app rollout.App, c rollout.Commit) (*rollout.Render, error) {
	b.asked = append(b.asked, app)
	return &rollout.Render{App: app, Commit: c}, nil
}

func open(t testing.TB, tree source.Snapshot, last *rollout.Config) *source.Branch {
	t.Helper()
	b, err := source.NewReader("prod", &builds{}).Open(tree, last)
	must(t, err)
	return b
}

// changed edits the commit "first", and opens the result without an earlier configuration.
func changed(t *testing.T, edits map[string]string) *source.Branch {
	t.Helper()
	return open(t, first.with("second", edits), nil)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var shop = rollout.App{Name: "shop"}

// listing returns a configuration file with the given entries of apps.
func listing(entries string) map[string]string { return map[string]string{config: configOf(entries)} }

func names(b *source.Branch) string {
	return strings.Join(rollout.Mapped(b.Apps, func(a rollout.App) string { return a.Name }), " ")
}

// TestBrokenConfigLeavesTheLastGoodOne checks that the last valid configuration lists the apps while the newest one is
// invalid. Meanwhile, nothing advances.
func TestBrokenConfigLeavesTheLastGoodOne(t *testing.T) {
	good := open(t, first, nil)
	if good.Behind != nil || names(good) != "shop till" {
		t.Fatalf("apps %v, behind %v", names(good), good.Behind)
	}
	for name, broken := range map[string]string{"unreadable": "apps: 3\n", "gone": ""} {
		t.Run(name, func(t *testing.T) {
			tree := first.with("second", map[string]string{config: broken, "apps/new/kustomization.yaml": "resources: []\n"})
			b := open(t, tree, good.Config)
			if b.Behind == nil || b.Config != good.Config || names(b) != "new shop till" {
				t.Errorf("apps %v, behind %v", names(b), b.Behind)
			}
			if b := open(t, tree, nil); b.Behind == nil || b.Config != nil || len(b.Apps) > 0 {
				t.Errorf("without a last one: apps %v, behind %v", names(b), b.Behind)
			}
		})
	}
}

// TestNoConfiguration checks the error for a cluster without a configuration. The error names the clusters that have one, if any.
func TestNoConfiguration(t *testing.T) {
	for cluster, want := range map[string]string{"staging": "name a cluster with --cluster: prod", "": "commit a Config there"} {
		tree := first
		if cluster == "" {
			tree = first.with("second", map[string]string{config: ""})
		}
		compare.Contains(t, source.Missing(tree, "staging").Error(), "does not exist", want)
	}
}

// TestOneBadFolder checks that a folder with an invalid or repeated name does not affect the other apps.
func TestOneBadFolder(t *testing.T) {
	b := changed(t, map[string]string{"apps/No_Name/kustomization.yaml": "resources: []\n"})
	if names(b) != "shop till" || len(b.InvalidNames) != 1 || b.InvalidNames[0].Path != "apps/No_Name" {
		t.Errorf("apps %v, unnamed %+v", names(b), b.InvalidNames)
	}
	two := first.with("second", map[string]string{
		config:                          configOf("- path: apps/*\n- path: other/shop\n"),
		"other/shop/kustomization.yaml": "resources: []\n",
	})
	b = open(t, two, nil)
	app, listed := b.Find("shop")
	if !listed || app.Path != "apps/shop" || len(b.InvalidNames) != 1 || b.InvalidNames[0].Path != "other/shop" {
		t.Errorf("shop is at %s, unnamed %+v", app.Path, b.InvalidNames)
	}
	_, listed = b.Find("cart")
	compare.CheckNamed(t, "there is a cart", false, listed)
}

// TestFreezeThatCannotBeRead checks that an invalid freeze file freezes all apps, even without a configuration.
func TestFreezeThatCannotBeRead(t *testing.T) {
	b := changed(t, map[string]string{".gitrollout/prod/freeze.yaml": "reason: [\n"})
	if b.Freeze == nil || b.Calendar("shop").Freeze == nil {
		t.Errorf("freeze %+v", b.Freeze)
	}
	if b := open(t, first, nil); b.Freeze != nil || b.Calendar("shop").Freeze != nil {
		t.Errorf("without a file: %+v", b.Freeze)
	}
	frozen := first.with("third", map[string]string{config: "apps: 3\n", ".gitrollout/prod/freeze.yaml": "reason: [\n"})
	if b := open(t, frozen, nil); b.Calendar("shop").Freeze == nil {
		t.Error("a freeze does not count where no configuration could ever be read")
	}
	windows := "windows:\n- {kind: allow, schedule: \"0 9 * * 1-5\", duration: 8h}\n"
	b = changed(t, map[string]string{config: configOf("- path: apps/*\n") + windows})
	compare.CheckNamed(t, "windows of the configuration in the calendar", 1, len(b.Calendar("shop").Windows))
}

// TestAppAt checks that AppAt finds the folder and namespace that an app had at an older commit.
func TestAppAt(t *testing.T) {
	moved := first.with("second", map[string]string{
		config:                         configOf("- path: teams/a/shop\n  namespace: edge\n"),
		"apps/shop/kustomization.yaml": "", "apps/till/kustomization.yaml": "",
		"teams/a/shop/kustomization.yaml": "resources: []\n",
	})
	now, _ := open(t, moved, nil).Find("shop")
	compare.CheckNamed(t, "now", [2]string{"teams/a/shop", "edge"}, [2]string{now.Path, now.Namespace})
	r := source.NewReader("prod", &builds{})
	then := r.AppAt(first, now)
	compare.CheckNamed(t, "then", [2]string{"apps/shop", "shops"}, [2]string{then.Path, then.Namespace})
	// The namespace comes from the entry that matches the app's folder, not from the first entry.
	stay := rollout.App{Name: "shop", Path: "apps/shop"}
	two := first.with("second", listing("- path: teams/*\n  namespace: edge\n- path: apps/*\n  namespace: shops\n"))
	compare.CheckNamed(t, "namespace of another entry", "shops", r.AppAt(two, stay).Namespace)
	compare.CheckNamed(t, "a commit that does not tell", now, r.AppAt(first.with("third", map[string]string{config: "apps: 3\n"}), now))
	renamed := rollout.App{Name: "store", Path: "apps/store", Formerly: "market shop"}
	compare.CheckNamed(t, "folder of a former name", "apps/shop",
		r.AppAt(first.with("third", map[string]string{config: "apps: 3\n"}), renamed).Path)
	// Gather renders the recorded commit with the former folder, but returns the app with the present folder.
	var asked rollout.App
	g := source.Gatherer{RenderAt: func(_ context.Context, app rollout.App, commit string) (*rollout.Render, error) {
		asked = r.AppAt(first, app)
		return &rollout.Render{App: asked}, nil
	}}
	in, err := g.Gather(t.Context(), source.App{App: now, State: rollout.State{App: "shop", Source: "first"}}, time.Now())
	if err != nil || in.Source == nil || asked.Path != "apps/shop" || in.App.Path != "teams/a/shop" {
		t.Errorf("gathered %+v at %s, %v", in.App, asked.Path, err)
	}
}

// TestGatherWaitsForWhatIsBeingRead checks that Gather returns ErrNotReady while the recorded commit is being read. An unavailable commit
// is no error.
func TestGatherWaitsForWhatIsBeingRead(t *testing.T) {
	var problem error
	g := source.Gatherer{RenderAt: func(context.Context, rollout.App, string) (*rollout.Render, error) { return nil, problem }}
	app := source.App{App: shop, State: rollout.State{App: "shop", Source: "first"}}
	problem = fmt.Errorf("commit first: %w", source.ErrNotReady)
	if in, err := g.Gather(t.Context(), app, time.Now()); !errors.Is(err, source.ErrNotReady) || in.App != app.App {
		t.Errorf("error %v", err)
	}
	problem = errors.New("gone")
	if in, err := g.Gather(t.Context(), app, time.Now()); err != nil || in.Source != nil {
		t.Errorf("error %v", err)
	}
}

// TestPromotion checks a valid, a missing and an invalid promotion file.
func TestPromotion(t *testing.T) {
	file := ".gitrollout/prod/promote/shop.yaml"
	if p := open(t, first, nil).Promotion(shop); p.ID != "" || p.File != nil || p.Err != nil {
		t.Errorf("none: %+v", p)
	}
	good := "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-0123456789\nthrough: full\ndecision: promote\n"
	p := changed(t, map[string]string{file: good}).Promotion(shop)
	if p.Err != nil || p.File == nil || p.File.Release != "h1-0123456789" || p.File.Author != "Ann <ann@example.com>" {
		t.Errorf("good: %+v", p)
	}
	b := changed(t, map[string]string{file: "release: 3\n"})
	if p = b.Promotion(shop); p.Err == nil || p.ID == "" {
		t.Errorf("bad: %+v", p)
	}
	built, wrong := &rollout.Render{}, errors.New("wrong")
	headOf := func(built *rollout.Render, err error, p source.Promotion) strategies.Head {
		head := strategies.Head{Commit: rollout.Commit{ID: "second"}, Render: built, Err: err}
		return source.Prepare(b, rollout.App{}, rollout.State{}, head, p, source.Trust{}).Head
	}
	if head := headOf(built, nil, p); head.Err == nil || head.Render != nil {
		t.Errorf("the head of an app with a bad promotion file: %+v", head)
	}
	if head := headOf(nil, wrong, p); head.Err != wrong {
		t.Errorf("want the app's error before its promotion file's: %v", head.Err)
	}
	if head := headOf(built, nil, source.Promotion{}); head.Err != nil || head.Render != built || head.Commit.ID != "second" {
		t.Errorf("the head of an app: %+v", head)
	}

	// The promotion file of a former name counts, unless another app has that name now.
	renamed := rollout.App{Name: "boutique", Formerly: "store shop"}
	p = changed(t, map[string]string{file: good, "apps/shop/kustomization.yaml": ""}).Promotion(renamed)
	if p.Path != file || p.File == nil {
		t.Errorf("of the name before: %+v", p)
	}
	compare.CheckNamed(t, "another app's", source.Promotion{}, changed(t, map[string]string{file: good}).Promotion(renamed))

	forbids := rollout.RolloutRules{Forbid: []string{rollout.ForbidPromoteFull}}
	for name, c := range map[string]struct {
		project   rollout.Project
		through   string
		forbidden bool
	}{
		"AllAtOnce":      {rollout.Project{Name: "shops", Apps: []string{"shop"}, Rollouts: forbids}, "full", true},
		"StepByStep":     {rollout.Project{Name: "shops", Apps: []string{"shop"}, Rollouts: forbids}, `"2"`, true}, // package strategies decides
		"NoSuchRule":     {rollout.Project{Name: "shops", Apps: []string{"shop"}}, "full", false},
		"AnotherProject": {rollout.Project{Name: "tills", Apps: []string{"till"}, Rollouts: forbids}, "full", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := changed(t, map[string]string{file: strings.Replace(good, "full", c.through, 1)})
			b.Policy = &rollout.Policy{Projects: []rollout.Project{c.project}}
			why := b.Promotion(shop).File.Forbidden
			compare.CheckNamed(t, "forbidden: "+why, c.forbidden, strings.Contains(why, "project shops, rule rollouts.forbid: promoteFull"))
		})
	}
}

// TestProjects checks that an app gets its service account and its promoters from its project. An app without a project gets neither.
func TestProjects(t *testing.T) {
	r := source.NewReader("prod", &builds{})
	r.Policy.Store(&rollout.Policy{Projects: []rollout.Project{
		{Name: "shops", Apps: []string{"shop"}, ServiceAccount: "deployer", Promoters: "keys/shops"},
		{Name: "tills", Apps: []string{"till"}},
	}})
	tree := first.with("second", map[string]string{"apps/cart/kustomization.yaml": "resources: []\n"})
	b, err := r.Open(tree, nil)
	must(t, err)
	for app, want := range map[string][2]string{"shop": {"shops/deployer", "keys/shops"}, "till": {}, "cart": {}} {
		a, _ := b.Find(app)
		compare.CheckNamed(t, app, want, [2]string{a.ServiceAccount, b.Promoters(app)})
	}
}

// TestUnlisted checks that objects of a removed app are pruned only if the app's folder is gone and matches a glob that sets "prune".
func TestUnlisted(t *testing.T) {
	b := changed(t, listing("- {path: apps/s*, prune: true}\n- path: apps/*\n- {path: other/*, prune: true}\n"))
	for dir, want := range map[string]bool{"apps/sale": true, "apps/shop": false, "apps/cart": false, "third/sale": false} {
		compare.CheckNamed(t, "prunes "+dir, want, b.Prunes(rollout.App{Name: "x", Path: dir}))
	}
	b.Tree = failing{first, new(0)}
	compare.CheckNamed(t, "it prunes an app whose folder may be there", false, b.Prunes(rollout.App{Name: "sale", Path: "apps/sale"}))
	gone := rollout.App{Name: "sale", Path: "apps/sale"}
	const fix = "list it again, or remove it for good: gitrollout remove sale --cluster prod"
	compare.Check(t, "no longer lists sale (apps/sale); its objects are left as they are", b.Removed(gone).Msg)
	compare.Check(t, fix, b.Removed(gone).Fix)
	compare.Check(t, fix+"; do not remove it if its new name is shop or till: "+
		"the app continues under its new name as soon as objects can be read there", b.Removed(gone, "shop", "till").Fix)
	b.Tree = linked{first}
	if err := b.Removed(gone); !strings.Contains(err.Error(), "is a symbolic link") || strings.Contains(err.Fix, "gitrollout remove") {
		t.Errorf("an app whose folder became a link: %v", err)
	}
	compare.CheckNamed(t, "it prunes an app whose folder became a link", false, b.Prunes(gone))
}

// linked is a commit in which each path is a symbolic link.
type linked struct{ commit }

func (linked) Lookup(string) (rollout.Entry, bool, error) {
	return rollout.Entry{Kind: rollout.Symlink}, true, nil
}

var errBroken = errors.New("broken")

// failing is a commit. After *left successful reads, one read fails.
type failing struct {
	commit
	left *int
}

func (f failing) fails() error {
	if *f.left--; *f.left == -1 {
		return errBroken
	}
	return nil
}

func (f failing) Lookup(name string) (rollout.Entry, bool, error) {
	if err := f.fails(); err != nil {
		return rollout.Entry{}, false, err
	}
	return f.commit.Lookup(name)
}

func (f failing) ReadDir(dir string) ([]rollout.Entry, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.commit.ReadDir(dir)
}

func (f failing) ReadBlob(id string) ([]byte, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.commit.ReadBlob(id)
}

// TestReadsThatFail makes each read fail in turn. The error must be returned, and must differ from the error of a missing or invalid file.
func TestReadsThatFail(t *testing.T) {
	promotes := ".gitrollout/prod/promote/shop.yaml"
	state, err := (&rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Healthy}).Encode()
	must(t, err)
	cluster, err := rollout.Cluster{Cluster: "prod", UID: "1234"}.Encode()
	must(t, err)
	tree := first.with("second", map[string]string{
		promotes: "decision: hold\n", ".gitrollout/prod/freeze.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: sale\n",
	})
	record := commit{id: "state", files: map[string]string{rollout.StatePath("shop"): string(state), rollout.ClusterPath: string(cluster)}}
	for name, read := range map[string]func(failing) error{
		"Open":     func(f failing) error { _, err := source.NewReader("prod", &builds{}).Open(f, nil); return err },
		"Clusters": func(f failing) error { _, err := source.Clusters(f); return err },
		"Promotion": func(f failing) error {
			b := source.Branch{Cluster: "prod", Tree: f}
			if p := b.Promotion(shop); !rollout.IsInvalid(p.Err) {
				return p.Err
			}
			return nil
		},
		"States": func(f failing) error {
			s, err := source.ReadStates(failing{record, f.left})
			if err == nil {
				_, err = s.Of("shop")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for reads := 0; ; reads++ {
				left := reads
				err := read(failing{tree, &left})
				if left >= 0 {
					if err != nil || reads == 0 {
						t.Errorf("after all %d reads: %v", reads, err)
					}
					return
				}
				if !errors.Is(err, errBroken) {
					t.Errorf("when read %d fails, it says %v", reads, err)
				}
			}
		})
	}
}

// TestReadsOnce checks that a configuration's content is read only once, and that the cache's size is limited. An app
// whose folder has not moved is found without a search.
func TestReadsOnce(t *testing.T) {
	r := source.NewReader("prod", &builds{})
	// The first call reads the configuration's entry, its content and the folder. The second call finds the content in the cache.
	for _, reads := range []int{3, 2} {
		left := reads
		then := r.AppAt(failing{first, &left}, rollout.App{Name: "shop", Path: "apps/shop"})
		compare.CheckNamed(t, fmt.Sprint("left of ", reads, " reads, and namespace"), []any{0, "shops"}, []any{left, then.Namespace})
	}
	// The cache is emptied only before it would exceed its limit.
	for i := range 50 {
		_, err := r.ConfigAt(first.with("c", map[string]string{config: configOf("- path: apps/*\n") + fmt.Sprintf("# %d\n", i)}))
		must(t, err)
		if i == 50-2 && r.Configs() != 50 {
			t.Errorf("%d configurations are kept", r.Configs())
		}
	}
	compare.CheckNamed(t, "configurations that are kept", 1, r.Configs())
}

// TestAppAtKeepsTheLimits checks that AppAt finds the folder at an older commit, and keeps the present limits and the present name.
func TestAppAtKeepsTheLimits(t *testing.T) {
	limits := rollout.Limits{Memory: 7}
	r := source.NewReader("prod", &builds{})
	for name, now := range map[string]rollout.App{
		"Stayed":  {Name: "shop", Path: "apps/shop", Limits: limits},
		"Moved":   {Name: "shop", Path: "teams/a/shop", Limits: limits},
		"Renamed": {Name: "boutique", Formerly: "store shop", Path: "apps/boutique", Limits: limits},
		// At the older commit, another app has this folder.
		"Swapped": {Name: "shop", Path: "apps/till", Limits: limits},
		// At the older commit, this folder is a file.
		"AFile": {Name: "shop", Path: "teams/shop", Limits: limits},
	} {
		tree := first
		if name == "AFile" {
			tree = first.with("second", map[string]string{"teams/shop": "x", config: configOf("- path: teams/*\n- path: apps/*\n")})
		}
		then := r.AppAt(tree, now)
		compare.CheckNamed(t, name, []any{"apps/shop", limits, now.Name}, []any{then.Path, then.Limits, then.Name})
	}
	broken := first.with("second", map[string]string{"apps/shop/kustomization.yaml": ""})
	now := rollout.App{Name: "shop", Path: "teams/a/shop"}
	compare.CheckNamed(t, "without a known place", now, r.AppAt(broken, now))
	left := 3
	compare.CheckNamed(t, "it cannot be searched for", now, r.AppAt(failing{first, &left}, now))
}

// TestRenderHead checks that a policy applies at the head, but not at older commits. The policy of the test refuses the
// app, because the app is in two projects.
func TestRenderHead(t *testing.T) {
	app := rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shops"}
	r := source.NewReader("prod", &builds{})
	if built, err := r.RenderHead(first, app); err != nil || built.App.Name != "shop" || built.Commit.ID != "first" {
		t.Errorf("%+v, %v", built, err)
	}
	r.Policy.Store(&rollout.Policy{Projects: []rollout.Project{{Name: "a", Apps: []string{"shop"}}, {Name: "b", Apps: []string{"s*"}}}})
	if built, err := r.RenderHead(first, app); !rollout.IsInvalid(err) || built != nil {
		t.Errorf("an app of two projects: %+v, %v", built, err)
	}
	if _, err := r.Render(first, app); err != nil {
		t.Errorf("an older commit: %v", err)
	}
	r = source.NewReader("prod", broken{})
	if built, err := r.RenderHead(first, app); err != errBroken || built != nil {
		t.Errorf("one that cannot be rendered: %+v, %v", built, err)
	}
}

type broken struct{}

func (broken) Render(rollout.Tree, rollout.App, rollout.Commit) (*rollout.Render, error) {
	return nil, errBroken
}

// TestLook checks that Gather observes all workloads that the app has in Git or on record, and the routes whose status a router writes.
func TestLook(t *testing.T) {
	web, api := rollout.Workload{Namespace: "shop", Name: "web"}, rollout.Workload{Namespace: "shop", Name: "api"}
	routed := func(name string) *rollout.Render {
		router, err := traffic.Parse("gatewayAPI", map[string]any{"httpRoute": name}, nil)
		must(t, err)
		return &rollout.Render{Specs: []rollout.Spec{{Workload: web, Canary: &rollout.Canary{
			StableService: "a", CanaryService: "b", Traffic: &rollout.Traffic{Routers: []rollout.Router{router}},
		}}}}
	}
	inventory := []rollout.Ref{web.Ref(), {Kind: "Service", Namespace: "shop", Name: "x"}}
	of := func(workloads ...rollout.Workload) *rollout.Render {
		r := &rollout.Render{Templates: map[rollout.Workload]rollout.Hash{}}
		for _, w := range workloads {
			r.Templates[w] = "h1-1"
		}
		return r
	}
	got := ""
	g := source.Gatherer{
		RenderAt: func(context.Context, rollout.App, string) (*rollout.Render, error) { return nil, errBroken },
		Observe: func(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
			got = fmt.Sprint(app, workloads, routes)
			return rollout.Observed{Unseen: "nothing"}
		},
	}
	for name, c := range map[string]struct {
		head *rollout.Render
		inv  []rollout.Ref
		want string
	}{
		"Routed":     {routed("gate"), nil, "shop[] [gateway.networking.k8s.io/HTTPRoute/shop/gate]"},
		"Both":       {of(api, web), inventory, "shop[shop/api shop/web] []"},
		"InGit":      {of(api), nil, "shop[shop/api] []"},
		"HadBefore":  {nil, inventory, "shop[shop/web] []"},
		"NoWorkload": {nil, inventory[1:], "shop[] []"},
	} {
		app := source.App{App: shop, State: rollout.State{App: "shop", Inventory: c.inv}, Head: strategies.Head{Render: c.head}}
		in, err := g.Gather(t.Context(), app, time.Now())
		if err != nil || got != c.want || in.Observed.Unseen != "nothing" {
			t.Errorf("%s: %q, want %q; %+v, %v", name, got, c.want, in.Observed, err)
		}
	}
	// RoutesOf uses the head's routes. Without a render of the head, it uses the routes of the recorded commit.
	compare.CheckNamed(t, "routes", 1, len(source.RoutesOf(strategies.Input{Source: routed("gate")})))
	without := strategies.Input{Source: routed("gate"), Head: strategies.Head{Render: &rollout.Render{}}}
	compare.CheckNamed(t, "routes that Git asks for", 0, len(source.RoutesOf(without)))
}

// TestKindsAreMadeKnown checks that Look passes the workload kinds of Rollout documents to Know before it calls Observe. The kinds come
// from the head and from the recorded commit.
func TestKindsAreMadeKnown(t *testing.T) {
	clones, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1alpha1", "CloneSet")
	newer, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1beta1", "CloneSet")
	sets, _ := rollout.FindPartitioned(nil, "apps.kruise.io/v1beta1", "StatefulSet")
	of := func(kinds ...*rollout.Partitioned) *rollout.Render {
		r := &rollout.Render{}
		for _, p := range kinds {
			r.Specs = append(r.Specs, rollout.Spec{Partition: p, Canary: &rollout.Canary{}})
		}
		return r
	}
	for name, c := range map[string]struct {
		head, source *rollout.Render
		want         []rollout.Partitioned
	}{
		"none":                     {of(nil), nil, nil},
		"of Git":                   {of(clones, nil, clones), nil, []rollout.Partitioned{*clones}},
		"of the running version":   {nil, of(sets), []rollout.Partitioned{*sets}},
		"of both":                  {of(sets), of(clones), []rollout.Partitioned{*clones, *sets}},
		"in another version":       {of(newer), of(clones), []rollout.Partitioned{*newer}},
		"of none that is readable": {nil, nil, nil},
	} {
		var told []rollout.Partitioned
		asked := false
		g := source.Gatherer{
			Know: func(kinds []rollout.Partitioned) { told = kinds },
			Observe: func(string, []rollout.Workload, []rollout.Ref) rollout.Observed {
				asked = (told == nil) == (c.want == nil)
				return rollout.Observed{}
			},
		}
		g.Look(&strategies.Input{Head: strategies.Head{Render: c.head}, Source: c.source})
		compare.CheckNamed(t, name, c.want, told)
		compare.CheckNamed(t, name+" is told before the look", true, asked)
	}
}

// TestStates checks that ReadStates reads the states of a state branch and skips other files.
func TestStates(t *testing.T) {
	state := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Healthy}
	data, err := state.Encode()
	must(t, err)
	tree := commit{"states", map[string]string{
		rollout.StatePath("shop"): string(data), rollout.StatePath("till"): "phase: [\n", "README": "x",
	}}
	s, err := source.ReadStates(tree)
	if err != nil || len(s.Files) != 2 || s.Cluster != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	for app, want := range map[string]rollout.Phase{"shop": rollout.Healthy, "absent": ""} {
		got, err := s.Of(app)
		must(t, err)
		compare.CheckNamed(t, app, want, got.Phase)
	}
	_, err = s.Of("till")
	compare.Contains(t, fmt.Sprint(err), rollout.StatePath("till"))
	if none, err := source.ReadStates(nil); err != nil || len(none.Files) != 0 {
		t.Errorf("no branch: %+v, %v", none, err)
	}
	if _, err := source.ReadStates(commit{"bad", map[string]string{rollout.ClusterPath: "cluster: 3\n"}}); err == nil {
		t.Error("a cluster.yaml that cannot be read is read")
	}
}

// TestDesired checks that Desired renders the recorded commit and, only during a release, the stable commit.
func TestDesired(t *testing.T) {
	w := rollout.Workload{Namespace: "shop", Name: "web"}
	at := func(hash rollout.Hash) *rollout.Render {
		return &rollout.Render{
			Templates: map[rollout.Workload]rollout.Hash{w: hash}, Specs: []rollout.Spec{{Workload: w, Canary: &rollout.Canary{}}},
		}
	}
	one, two := at("h1-1"), at("h1-2")
	flying := rollout.State{
		App: "shop", Phase: rollout.Progressing, Source: "c2", Progress: []rollout.Progress{{Workload: w, Of: 1}},
		Release: &rollout.Release{Hash: two.Release(), Commit: "c2"},
		Stable:  &rollout.Release{Hash: one.Release(), Commit: "c1", Templates: one.Templates},
	}
	healthy := flying
	healthy.Phase, healthy.Release, healthy.Progress = rollout.Healthy, nil, nil
	for name, c := range map[string]struct {
		state rollout.State
		reads string // the ids of the rendered commits
		fails string
		err   string
	}{
		"Healthy":      {healthy, "[c2]", "", ""},
		"InFlight":     {flying, "[c2 c1]", "", ""},
		"SourceIsGone": {flying, "[c2]", "c2", "the app's commit c2: broken"},
		"StableIsGone": {flying, "[c2 c1]", "c1", "the stable commit c1: broken"},
	} {
		t.Run(name, func(t *testing.T) {
			var reads []string
			g := source.Gatherer{RenderAt: func(_ context.Context, _ rollout.App, commit string) (*rollout.Render, error) {
				if reads = append(reads, commit); commit == c.fails {
					return nil, errBroken
				}
				return at(map[string]rollout.Hash{"c1": "h1-1", "c2": "h1-2"}[commit]), nil
			}}
			_, err := g.Desired(t.Context(), strategies.Input{Now: time.Now(), State: c.state}, time.Time{})
			if fmt.Sprint(reads) != c.reads || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("it reads %v, want %s; error %v, want %q", reads, c.reads, err, c.err)
			}
		})
	}
}

// remembering is a Renderer that stores the apps whose renders it is told to keep.
type remembering struct {
	builds
	kept []rollout.App
}

func (r *remembering) KeepOnly(apps []rollout.App) { r.kept = apps }

// TestForgetsAppsThatAreGone checks that Open tells the Renderer to keep only renders of listed apps.
func TestForgetsAppsThatAreGone(t *testing.T) {
	renderer := &remembering{}
	for _, tree := range []commit{first, first.with("second", listing("- path: gone/*\n"))} {
		_, err := source.NewReader("prod", renderer).Open(tree, nil)
		if err != nil || (len(renderer.kept) > 0) != (tree.id == "first") {
			t.Errorf("at the %s commit %v are kept, error %v", tree.id, renderer.kept, err)
		}
	}
}
