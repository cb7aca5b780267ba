package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
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

// with returns the commit with other files; "" deletes.
func (c commit) with(id string, edits map[string]string) commit {
	next := commit{id: id, files: map[string]string{}}
	for name, content := range c.files {
		next.files[name] = content
	}
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

// builds is a Renderer that notes what it was asked for.
type builds struct{ asked []rollout.App }

func (b *builds) Render(_ render.Tree, app rollout.App, c rollout.Commit) (*rollout.Render, error) {
	b.asked = append(b.asked, app)
	return &rollout.Render{App: app, Commit: c}, nil
}

func open(t *testing.T, tree Snapshot, last *rollout.Config) *Branch {
	t.Helper()
	b, err := NewReader("prod", &builds{}).Open(tree, last)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func names(b *Branch) (all []string) {
	for _, a := range b.Apps {
		all = append(all, a.Name)
	}
	return all
}

// TestBrokenConfigLeavesTheLastGoodOne keeps which apps there are, and says that nothing advances.
func TestBrokenConfigLeavesTheLastGoodOne(t *testing.T) {
	good := open(t, first, nil)
	if good.Behind != nil || !slices.Equal(names(good), []string{"shop", "till"}) {
		t.Fatalf("apps %v, behind %v", names(good), good.Behind)
	}
	for name, broken := range map[string]string{"unreadable": "apps: 3\n", "gone": ""} {
		t.Run(name, func(t *testing.T) {
			tree := first.with("second", map[string]string{config: broken, "apps/new/kustomization.yaml": "resources: []\n"})
			b := open(t, tree, good.Config)
			if b.Behind == nil || b.Config != good.Config || !slices.Equal(names(b), []string{"new", "shop", "till"}) {
				t.Errorf("apps %v, behind %v", names(b), b.Behind)
			}
			if b := open(t, tree, nil); b.Behind == nil || b.Config != nil || len(b.Apps) > 0 {
				t.Errorf("without a last one: apps %v, behind %v", names(b), b.Behind)
			}
		})
	}
}

// TestOneBadFolder is about a folder that can be no app, and all others are.
// TestNoConfiguration names the clusters that have one, be it a single one.
func TestNoConfiguration(t *testing.T) {
	for cluster, want := range map[string]string{"staging": "name one of these with --cluster: prod", "": "commit a Config there"} {
		tree := first
		if cluster == "" {
			tree = first.with("second", map[string]string{config: ""})
		}
		err := missing(tree, "staging")
		if !strings.Contains(err.Error(), "does not exist") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestOneBadFolder(t *testing.T) {
	b := open(t, first.with("second", map[string]string{"apps/No_Name/kustomization.yaml": "resources: []\n"}), nil)
	if !slices.Equal(names(b), []string{"shop", "till"}) || len(b.Unnamed) != 1 || b.Unnamed[0].Path != "apps/No_Name" {
		t.Errorf("apps %v, unnamed %+v", names(b), b.Unnamed)
	}
	two := first.with("second", map[string]string{
		config:                          configOf("- path: apps/*\n- path: other/shop\n"),
		"other/shop/kustomization.yaml": "resources: []\n",
	})
	b = open(t, two, nil)
	if app, _ := b.Find("shop"); app.Path != "apps/shop" || len(b.Unnamed) != 1 || b.Unnamed[0].Path != "other/shop" {
		t.Errorf("shop is at %s, unnamed %+v", app.Path, b.Unnamed)
	}
}

// TestFreezeThatCannotBeRead freezes all apps: it was meant to stop something.
func TestFreezeThatCannotBeRead(t *testing.T) {
	b := open(t, first.with("second", map[string]string{".gitrollout/prod/freeze.yaml": "reason: [\n"}), nil)
	if b.Freeze == nil || b.Calendar("shop").Freeze == nil {
		t.Errorf("freeze %+v", b.Freeze)
	}
	if b := open(t, first, nil); b.Freeze != nil || b.Calendar("shop").Freeze != nil {
		t.Errorf("without a file: %+v", b.Freeze)
	}
}

// TestAppAt follows an app to where it was: another folder, another namespace.
func TestAppAt(t *testing.T) {
	moved := first.with("second", map[string]string{
		config:                         configOf("- path: teams/a/shop\n  namespace: edge\n"),
		"apps/shop/kustomization.yaml": "", "apps/till/kustomization.yaml": "",
		"teams/a/shop/kustomization.yaml": "resources: []\n",
	})
	now, _ := open(t, moved, nil).Find("shop")
	if now.Path != "teams/a/shop" || now.Namespace != "edge" {
		t.Fatalf("now at %+v", now)
	}
	r := NewReader("prod", &builds{})
	if then := r.AppAt(first, now); then.Path != "apps/shop" || then.Namespace != "shops" {
		t.Errorf("it was at %+v", then)
	}
	// Only the entry that names its folder counts.
	stay := rollout.App{Name: "shop", Path: "apps/shop"}
	two := first.with("second", map[string]string{config: configOf("- path: teams/*\n  namespace: edge\n- path: apps/*\n  namespace: shops\n")})
	if then := r.AppAt(two, stay); then.Namespace != "shops" {
		t.Errorf("another entry counts: %+v", then)
	}
	if then := r.AppAt(first.with("third", map[string]string{config: "apps: 3\n"}), now); then != now {
		t.Errorf("a commit that does not tell: %+v", then)
	}
	// The gatherer asks for the app as of the commit in its state.
	var asked rollout.App
	g := Gatherer{RenderAt: func(_ context.Context, app rollout.App, commit string) (*rollout.Render, error) {
		asked = r.AppAt(first, app)
		return &rollout.Render{App: asked}, nil
	}}
	in, err := g.Gather(t.Context(), App{App: now, State: rollout.State{App: "shop", Source: "first"}}, time.Now())
	if err != nil || in.Source == nil || asked.Path != "apps/shop" || in.App.Path != "teams/a/shop" {
		t.Errorf("gathered %+v at %s, %v", in.App, asked.Path, err)
	}
}

// TestGatherWaitsForWhatIsBeingRead tells what is not known yet from what is gone.
func TestGatherWaitsForWhatIsBeingRead(t *testing.T) {
	var problem error
	g := Gatherer{RenderAt: func(context.Context, rollout.App, string) (*rollout.Render, error) { return nil, problem }}
	app := App{App: rollout.App{Name: "shop"}, State: rollout.State{App: "shop", Source: "first"}}
	problem = fmt.Errorf("commit first: %w", ErrNotReady)
	if in, err := g.Gather(t.Context(), app, time.Now()); !errors.Is(err, ErrNotReady) || in.App != app.App {
		t.Errorf("error %v", err)
	}
	problem = errors.New("gone")
	if in, err := g.Gather(t.Context(), app, time.Now()); err != nil || in.Source != nil {
		t.Errorf("error %v", err)
	}
}

// TestPromotion reads a promotion file, none, and one that cannot be understood.
func TestPromotion(t *testing.T) {
	file := ".gitrollout/prod/promote/shop.yaml"
	if p := open(t, first, nil).Promotion(rollout.App{Name: "shop"}); p.ID != "" || p.File != nil || p.Err != nil {
		t.Errorf("none: %+v", p)
	}
	good := "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-0123456789\nthrough: full\ndecision: promote\n"
	p := open(t, first.with("second", map[string]string{file: good}), nil).Promotion(rollout.App{Name: "shop"})
	if p.Err != nil || p.File == nil || p.File.Release != "h1-0123456789" || p.File.Author != "Ann <ann@example.com>" {
		t.Errorf("good: %+v", p)
	}
	p = open(t, first.with("second", map[string]string{file: "release: 3\n"}), nil).Promotion(rollout.App{Name: "shop"})
	if p.Err == nil || p.ID == "" {
		t.Errorf("bad: %+v", p)
	}
	if head := HeadOf(rollout.Commit{ID: "second"}, &rollout.Render{}, nil, p); head.Err == nil || head.Render != nil {
		t.Errorf("the head of an app with a bad promotion file: %+v", head)
	}
}

// TestStates reads the records of a state branch, and what is none.
func TestStates(t *testing.T) {
	state := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Healthy}
	data, err := state.Encode()
	if err != nil {
		t.Fatal(err)
	}
	tree := commit{"states", map[string]string{rollout.StatePath("shop"): string(data), rollout.StatePath("till"): "phase: [\n", "README": "x"}}
	s, err := ReadStates(tree)
	if err != nil || len(s.Files()) != 2 || s.Cluster != nil {
		t.Fatalf("%+v, %v", s, err)
	}
	if got, err := s.Of("shop"); err != nil || got.Phase != rollout.Healthy {
		t.Errorf("shop: %+v, %v", got, err)
	}
	if got, err := s.Of("nobody"); err != nil || got.Phase != "" {
		t.Errorf("nobody: %+v, %v", got, err)
	}
	if _, err := s.Of("till"); err == nil || !strings.Contains(err.Error(), rollout.StatePath("till")) {
		t.Errorf("till: %v", err)
	}
	if none, err := ReadStates(nil); err != nil || len(none.Files()) != 0 {
		t.Errorf("no branch: %+v, %v", none, err)
	}
	if _, err := ReadStates(commit{"bad", map[string]string{rollout.ClusterPath: "cluster: 3\n"}}); err == nil {
		t.Error("a cluster.yaml that cannot be read is read")
	}
}
