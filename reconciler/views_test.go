package reconciler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// churn is a reconciler without a cluster, whose users push random commits. Fetches, renders and passes come in a random order.
type churn struct {
	*testing.T
	*memgit.Clone
	rand    *rand.Rand
	r       *Reconciler
	now     time.Time
	policy  *rollout.Policy
	rules   []*rollout.Policy
	pushed  []string
	refused *rollout.Refusal
	waiting map[string]string // by app: why its last pass ended without a decision
	views   map[*gitView]string
	renders map[*rollout.Render]string
}

var churned = []string{"a", "b", "c", "d", "e"}

func newChurn(t *testing.T, seed uint64) *churn {
	c := &churn{
		T: t, rand: rand.New(rand.NewPCG(seed, 1)), rules: []*rollout.Policy{nil},
		Clone: memgit.New(nil).Clone("test", "main", "prod", func(_, _ string) (bool, error) { return false, nil }),
		now:   time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), waiting: map[string]string{},
		views: map[*gitView]string{}, renders: map[*rollout.Render]string{},
	}
	for _, more := range []string{"sources: [apps/**, one/**]", "serviceAccount: team/robot"} {
		p, err := rollout.ParsePolicy("policy.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\nprojects:\n"+
			"- {name: web, apps: [\"*\"], namespaces: [default], "+more+"}\n"))
		must(t, err)
		c.rules = append(c.rules, p)
	}
	c.r = c.start()
	files := map[string]string{rollout.ConfigPath("prod"): fmt.Sprintf(churnConfig, false)}
	for _, base := range []string{"one", "two"} {
		files[base+"/kustomization.yaml"], files[base+"/base.yaml"] = "resources: [base.yaml]\n", churnMap("base", 0)
	}
	for _, name := range churned {
		files["apps/"+name+"/kustomization.yaml"] = churnKustomization(name, 0)
		files["apps/"+name+"/own.yaml"] = churnMap(name, 0)
	}
	c.push(files)
	return c
}

func (c *churn) Fetch(ctx context.Context) (rollout.Heads, error) {
	heads, err := c.Clone.Fetch(ctx)
	heads.Refused = c.refused
	return heads, err
}

func (c *churn) head(branch string) string { return c.Server.Head(branch) }

const churnConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: apps/*, prune: %t}\n" +
	"sharedChanges: {over: 2, cohorts: [1, \"100%%\"]}\n"

func churnMap(name string, i int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: \"%d\"} # %d\n", name, i/2, i)
}

func churnKustomization(name string, i int) string {
	prefix := "namePrefix: " + name + "-\n"
	return []string{
		prefix + "resources: [own.yaml, ../../one]\n", prefix + "resources: [own.yaml, ../../two]\n",
		prefix + "resources: [own.yaml]\n", prefix + "resources: [own.yaml, ../../one] # again\n",
		"resources: [own.yaml, ../../two]\n", "resources: [missing.yaml]\n",
	}[i]
}

// start returns a reconciler that has read only the records.
func (c *churn) start() *Reconciler {
	r := New(Options{Cluster: "prod", Repository: c, Past: c, Renderer: render.New(render.InProcess{}),
		Log: slog.New(slog.DiscardHandler), Policy: func(rollout.Heads) (*rollout.Policy, error) { return c.policy, nil }})
	r.in.hasRead, r.states.isKnown, r.states.head = true, true, c.head(rollout.StateBranch("prod"))
	if c.r != nil {
		r.states.apps = maps.Clone(c.r.states.apps)
	}
	return r
}

func (c *churn) push(files map[string]string) {
	c.pushed = append(c.pushed, c.Server.Make(c.head("main"), c.change(files)))
	c.Server.Set("Ann", "main", c.pushed[len(c.pushed)-1])
}

const churnLink = "-> "

// change returns a commit of files. Content after churnLink is the target of a symbolic link. Files replace folders, and folders replace
// files.
func (c *churn) change(files map[string]string) memgit.Change {
	made := memgit.Change{Author: "Ann", Message: fmt.Sprint("push ", c.rand.Uint64()), Edits: Contents(files), Links: map[string]string{}}
	tree := c.Server.Commits[c.head("main")]
	for name, content := range files {
		if tree == nil || content == "" {
			continue
		}
		if at, _, _ := tree.Lookup(name); at.Kind == rollout.Dir {
			entries, _ := tree.ReadDir(name)
			for _, e := range entries {
				made.Edits[name+"/"+e.Name] = nil
			}
		}
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if at, found, _ := tree.Lookup(above); found && at.Kind != rollout.Dir {
				made.Edits[above] = nil
			}
		}
		if target, is := strings.CutPrefix(content, churnLink); is {
			made.Edits[name], made.Links[name] = nil, target
		}
	}
	return made
}

// edit returns a random edit of one file or folder.
func (c *churn) edit() map[string]string {
	name, i := churned[c.rand.IntN(len(churned))], c.rand.IntN(6)
	dir := "apps/" + name + "/"
	switch c.rand.IntN(20) {
	case 12: // other names of the kustomization file, one of them invalid
		all := append(slices.Clone(render.KustomizationNames), "renamed.yaml")
		return map[string]string{dir + all[i%4]: churnKustomization(name, i), dir + all[(i+1)%4]: "", dir + all[(i+3)%4]: ""}
	case 13: // a file gives way to a folder, and an app's folder to a file
		return []map[string]string{{dir + "own.yaml/kustomization.yaml": "resources: [../../../one]\n"}, {"apps/" + name: "a file"}}[i%2]
	case 14: // links in an app
		return map[string]string{dir + "own.yaml": churnLink + []string{"../../one/base.yaml", "../../two/base.yaml", "missing"}[i%3]}
	case 18, 19: // links to apps
		return map[string]string{"apps/linked": churnLink + []string{"a", "../two", "missing", "../one/base.yaml"}[i%4]}
	case 15: // an app's other name
		return map[string]string{dir + "kustomization.yaml": "", "apps/e/kustomization.yaml": churnKustomization("e", i),
			"apps/e/own.yaml": churnMap(name, i)}
	case 16:
		return map[string]string{[]string{".gitattributes", ".gitignore", dir + ".gitignore"}[i%3]: fmt.Sprint("*.yaml export-ignore # ", i)}
	case 17:
		glob := []string{"- {path: apps/*, namespace: other}", "- path: apps/[a-c]", "- {path: apps/a, name: x}\n- path: apps/[b-e]",
			"- {path: apps/*, directory: {recurse: true}}", "- {path: apps/*, serviceAccount: other/robot}", "- path: \"*/*\""}[i]
		config := strings.Replace(fmt.Sprintf(churnConfig, false), "- {path: apps/*, prune: false}", glob, 1)
		return map[string]string{rollout.ConfigPath("prod"): config}
	case 0, 1, 2:
		return map[string]string{dir + "kustomization.yaml": churnKustomization(name, i), dir + "own.yaml": churnMap(name, i/2)}
	case 3, 4:
		return map[string]string{dir + "own.yaml": churnMap(churned[c.rand.IntN(len(churned))], i)}
	case 5, 6, 7:
		return map[string]string{[]string{"one", "two"}[i%2] + "/base.yaml": churnMap("base", c.rand.IntN(4))}
	case 8:
		return map[string]string{dir + "kustomization.yaml": "", dir + "own.yaml": ""}
	case 9:
		what := []string{"", "not yaml: [", "release: h1-1\nthrough: all\n", "release: h1-1\nabort: true\n"}[i%4]
		if i%4 > 1 {
			what = "apiVersion: gitrollout.dev/v1alpha2\nkind: Promotion\n" + what
		}
		return map[string]string{rollout.PromotionPath("prod", name): what}
	case 10:
		if c.rand.IntN(3) == 0 {
			freeze := []string{"", "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: x\n"}[i%2]
			return map[string]string{rollout.FreezePath("prod"): freeze}
		}
		more := []string{"", "interval: none\n", "windows:\n- {kind: deny, schedule: \"0 0 * * *\", duration: 1h, apps: [a, b]}\n"}[i%3]
		return map[string]string{rollout.ConfigPath("prod"): fmt.Sprintf(churnConfig, i/3 == 1) + more}
	default:
		return map[string]string{".gitrollout/prod/README": fmt.Sprint(i)}
	}
}

func (c *churn) act() {
	switch c.rand.IntN(10) {
	case 0, 1:
		c.push(c.edit())
	case 2:
		if c.rand.IntN(5) == 0 { // the head becomes untrusted, or trusted again
			c.refused = nil
			if c.rand.IntN(2) == 0 {
				id := c.Server.Make(c.head("main"), c.change(c.edit()))
				c.refused, c.pushed = &rollout.Refusal{Commit: id, Reason: "no signature"}, append(c.pushed, id)
			}
		} else if c.rand.IntN(4) == 0 { // users force a push of an older commit
			c.Server.Set("Ann", "main", c.pushed[c.rand.IntN(len(c.pushed))])
		} else if c.rand.IntN(3) == 0 {
			c.policy = c.rules[c.rand.IntN(len(c.rules))]
		}
	case 3, 4:
		_ = c.r.in.look(c.Context())
		if v := c.r.in.current(); v != nil {
			c.views[v] = textOf(v)
			c.checkList(v.branch)
		}
	case 5, 6:
		if j, exists := c.r.renders.queue.next(); exists {
			c.r.renders.do(j)
			delete(c.r.renders.queue.busy, j.app.Name)
		}
	case 7:
		c.passes(c.r, c.r.queue.due(c.now)...)
	case 8:
		c.passes(c.r, churned[c.rand.IntN(len(churned))])
	default:
		_, _ = c.r.in.bring(c.Context())
	}
	for _, h := range c.r.renders.heads {
		if r := h.head.Render; r != nil && c.renders[r] == "" {
			c.renders[r] = fmt.Sprintf("%+v", r)
		}
	}
	for name, all := range c.r.renders.at {
		for _, b := range all {
			if b.render != nil && b.render.Commit.ID != b.commit {
				c.Errorf("the render of %s at %s is of %s", name, b.commit, b.render.Commit.ID)
			}
		}
	}
}

// checkList compares a commit's apps with the list of a reader that has read nothing else.
func (c *churn) checkList(b *source.Branch) {
	reader := source.NewReader("prod", nil)
	reader.Policy.Store(b.Policy)
	fresh, err := reader.Open(b.Tree, b.Config)
	must(c, err)
	text := func(b *source.Branch) string { return fmt.Sprintf("%+v, %v", b.Apps, b.InvalidNames) }
	compare.CheckNamed(c, "apps", text(fresh), text(b))
}

// passes runs passes without a cluster. If an app may follow its head, its pass sometimes records that the app is at its head.
func (c *churn) passes(r *Reconciler, apps ...string) {
	for _, name := range apps {
		v := r.in.current()
		if v == nil || v.apps[name] == nil {
			if delete(c.waiting, name); v != nil {
				r.forget(name, v)
			}
			continue
		}
		a := v.apps[name]
		s, _ := r.states.of(name)
		app, why := r.prepare(v, a.named(s.state), s.state, c.now)
		if s.state.Source != "" {
			_, err := r.renders.render(c.Context(), a.App, s.state.Source)
			why = errors.Join(why, err)
		}
		follows := a.removed == nil && app.Head.Render != nil && (app.Entry == nil || app.Entry.Open) &&
			app.Head.Commit.ID != s.state.Source
		if follows && s.state.Source != "" && !r.renders.isBlamed(name, s.state.Source, v.main()) {
			why = errors.Join(why, source.ErrNotReady)
		}
		if delete(c.waiting, name); errors.Is(why, source.ErrNotReady) {
			c.waiting[name] = why.Error()
		} else if r == c.r && follows && c.rand.IntN(2) == 0 {
			c.record(name, app)
		}
	}
}

// record records that an app is at its head.
func (c *churn) record(name string, app source.App) {
	s := rollout.State{App: name, Path: app.Path, Source: app.Head.Commit.ID, Phase: rollout.Healthy}
	for _, o := range app.Head.Render.Objects {
		s.Inventory = append(s.Inventory, o.Ref())
	}
	if app.Entry != nil {
		s.Entered = &rollout.Entered{At: c.now, Commit: s.Source, Was: app.State.Source, Well: c.now.Add(-time.Hour)}
	}
	c.Server.Set("prod", rollout.StateBranch("prod"), fmt.Sprint("record ", c.rand.Uint64()))
	c.r.states.apps[name], c.r.states.head = appState{state: s}, c.head(rollout.StateBranch("prod"))
	c.r.cohorts.wake()
}

// settle runs until no app is due, and no render or commit is missing.
func (c *churn) settle(r *Reconciler) {
	_ = r.in.look(c.Context())
	for range 200 {
		rendered := r.renders.drain()
		due := r.queue.due(c.now)
		c.passes(r, due...)
		if brought, _ := r.in.bring(c.Context()); len(due) == 0 && !rendered && !brought {
			compare.CheckNamed(c, "apps that wait, but are not due again", map[string]string{}, c.waiting)
			clear(c.waiting)
			return
		}
	}
	c.Fatal("it does not settle")
}

// textOf returns a view's facts about its apps.
func textOf(v *gitView) (text string) {
	for _, name := range sortedKeys(v.apps) {
		a := v.apps[name]
		text += fmt.Sprintf("%+v %d %v %v %v %v %+v %+v %+v\n", a.App, len(a.calendar.Windows), a.calendar.Freeze, a.removed, a.prunes,
			a.refused, a.promotion.Path, a.promotion.ID, a.promotion.Err)
		if a.promotion.File != nil {
			text += fmt.Sprintf("%+v\n", *a.promotion.File)
		}
	}
	return text
}

// facts returns a reconciler's knowledge about each app, except authors and the commits that changed an app.
func (c *churn) facts(r *Reconciler) map[string]string {
	v, all := r.in.current(), map[string]string{}
	for name, a := range v.apps {
		shown := *a
		if a.removed != nil { // a new process does not know a removed app's settings
			shown.App = rollout.App{Name: name, Path: a.Path}
		}
		all[name] = strings.ReplaceAll(textOf(&gitView{apps: map[string]*appView{name: &shown}}), "Author:Ann", "Author:")
		s, _ := r.states.of(name)
		head, conflict, ready := r.head(v, a)
		all[name] += fmt.Sprintf("ready %t, %v, %v\n", ready, head.Err, conflict)
		if h := head.Render; h != nil {
			all[name] += fmt.Sprintf("%+v %v %v %s %s %v\n", h.App, h.Objects, h.Files, h.Digest, h.Content, h.Warnings)
			for _, claim := range r.renders.conflicts(name, h, v.main()) {
				if other := v.apps[claim.app]; other != nil && other.removed == nil {
					all[name] += fmt.Sprintf("%+v\n", claim)
				}
			}
			all[name] += fmt.Sprintf("files %v\n", r.renders.index.Files(name))
		}
		app, why := r.prepare(v, a.named(s.state), s.state, c.now)
		all[name] += fmt.Sprintf("head %v, entry %t, unknown %v\n", app.Head.Err, app.Entry == nil || app.Entry.Open, why)
	}
	for _, file := range []string{"one/base.yaml", "two/base.yaml"} {
		readers := slices.DeleteFunc(slices.Clone(r.renders.index.Readers(file)), func(name string) bool {
			return v.apps[name] == nil || v.apps[name].removed != nil || r.renders.heads[name].head.Render == nil
		})
		all[file] = fmt.Sprint(slices.Sorted(slices.Values(readers)))
	}
	return all
}

// TestViewsOfManyPushes checks a reconciler that has seen random pushes, while its renders and passes were late. It must know the same as a
// new process. Each app whose pass had to wait must become due again.
func TestViewsOfManyPushes(t *testing.T) {
	seeds := uint64(15)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			c := newChurn(t, seed)
			for range 8 {
				for range 25 {
					c.act()
				}
				for v, text := range c.views { // views share apps
					compare.CheckNamed(t, "a former view", text, textOf(v))
				}
				clear(c.views)
				for r, text := range c.renders { // views, heads and the renderer's cache share renders
					compare.CheckNamed(t, "a former render", text, fmt.Sprintf("%+v", r))
				}
				if _, err := c.r.in.reader.ConfigAt(c.Server.Commits[c.head("main")]); err != nil { // a new process has no last Config
					c.push(map[string]string{rollout.ConfigPath("prod"): fmt.Sprintf(churnConfig, false)})
				}
				c.settle(c.r)
				fresh := c.start()
				for _, name := range churned { // a new process does not know the files of a broken or removed app
					fresh.renders.index.Set(name, c.r.renders.index.Files(name))
				}
				maps.Copy(fresh.fetcher.ours, c.r.fetcher.ours) // a new process does not know commits from before a forced push
				c.settle(fresh)
				compare.CheckNamed(t, "knowledge", c.facts(fresh), c.facts(c.r))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestAppsThatWaitForTheSameCommit checks apps that wait for the same commit to decide about a shared change. When the commit arrives, all
// become due. Commits arrive in the order of their ids, which depend on the seed.
func TestAppsThatWaitForTheSameCommit(t *testing.T) {
	for seed := range uint64(8) {
		c := newChurn(t, seed)
		c.push(map[string]string{"one/base.yaml": churnMap("base", 2)})
		c.push(map[string]string{"one/base.yaml": churnMap("base", 4)})
		was, is := c.pushed[0], c.pushed[1]
		for _, name := range churned {
			c.r.states.apps[name] = appState{state: rollout.State{App: name, Path: "apps/" + name, Source: is, Phase: rollout.Healthy,
				Entered: &rollout.Entered{At: c.now, Commit: is, Was: was, Well: c.now}}}
		}
		c.settle(c.r)
	}
}

// TestARemovedAppKeepsItsCommit checks that the commit that removed an app is still known after a commit of another app's record.
func TestARemovedAppKeepsItsCommit(t *testing.T) {
	c := newChurn(t, 1)
	must(t, c.r.in.look(t.Context()))
	c.r.states.apps["a"] = appState{state: rollout.State{App: "a", Path: "apps/a", Source: c.pushed[0], Phase: rollout.Healthy}}
	c.push(map[string]string{"apps/a/kustomization.yaml": "", "apps/a/own.yaml": ""})
	for _, when := range []string{"after the push", "after a record's commit"} {
		must(t, c.r.in.look(t.Context()))
		compare.CheckNamed(t, when, c.pushed[1], c.r.in.current().apps["a"].removedBy.ID)
		c.Server.Set("prod", rollout.StateBranch("prod"), "record")
		c.r.states.head = "record"
	}
}
