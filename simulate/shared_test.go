package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// baseRenderer renders apps that read base/version and their own file `version`. The pods' image has both contents as its tag.
type baseRenderer struct {
	base  func(tree rollout.Tree, app string) string // the file that an app reads instead of base/version; may be nil
	plain bool                                       // without Rollout documents
}

func (b baseRenderer) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	if l, is := tree.(liar); is {
		tree = l.Snapshot
	}
	shared := "base/version"
	if b.base != nil {
		shared = b.base(tree, app.Name)
	}
	files, tag := []string{app.Path + "/version", shared}, ""
	for _, file := range []string{shared, app.Path + "/version"} {
		entry, found, _ := tree.Lookup(file)
		if found && file != shared && strings.HasPrefix(blobOf(tree, entry), "invalid") {
			return nil, rollout.Invalidf(file, "", "is invalid")
		}
		if !found {
			return nil, rollout.Invalidf(file, "", "does not exist")
		}
		content, err := tree.ReadBlob(entry.ID)
		if err != nil {
			return nil, err
		}
		tag += "-" + string(content)
	}
	if _, found, _ := tree.Lookup(app.Path + "/note"); found {
		files = append([]string{app.Path + "/note"}, files...)
	}
	key := fmt.Sprint(app.Name, files, tag, b.plain)
	return remembered(key, app, commit, func() (*rollout.Render, error) { return b.made(app.Name, files, tag) })
}

// madeRenders has the renders of all seeds by content. Renders never change.
var madeRenders = map[string]*rollout.Render{}

// remembered returns the render with a key from madeRenders, or makes and stores this render.
func remembered(key string, app rollout.App, commit rollout.Commit, made func() (*rollout.Render, error)) (*rollout.Render, error) {
	r := madeRenders[key]
	if r == nil {
		var err error
		if r, err = made(); err != nil {
			return nil, err
		}
		if len(madeRenders) > 20_000 {
			clear(madeRenders)
		}
		r.Files, r.Objects = slices.Clip(r.Files), slices.Clip(r.Objects)
		madeRenders[key] = r
	}
	again := *r
	again.App, again.Commit = app, commit
	return &again, nil
}

func (b baseRenderer) made(app string, files []string, tag string) (*rollout.Render, error) {
	base, own, _ := strings.Cut(tag[1:], "-")
	name := "a" + app[1:] // a renamed app keeps its workload
	w := rollout.Workload{Namespace: namespace, Name: name}
	labels := map[string]any{"app": name}
	web := objectOf(manifest("apps/v1", "Deployment", name, map[string]any{"spec": map[string]any{
		"replicas": int64(2), "selector": map[string]any{"matchLabels": labels}, "progressDeadlineSeconds": int64(60),
		"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": int64(1), "maxUnavailable": int64(0)}},
		"template": map[string]any{"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "example/" + name + ":" + base + "-" + own}}}},
	}}))
	hash, err := rollout.HashTemplate(web.Map("spec", "template"))
	if err != nil {
		return nil, err
	}
	spec := rollout.Spec{
		Name: app, Workload: w, Replicas: new(2), MaxSurge: rollout.Amount{Value: 1}, ProgressDeadlineSeconds: 60,
		ProgressDeadlineAbort: true, Scaling: rollout.Surge,
		Canary: &rollout.Canary{Steps: []rollout.Step{{SetWeight: new(50)}, {Pause: &rollout.Pause{Duration: new(time.Minute)}}}},
	}
	if n7(app) == 3 {
		spec.Canary.Steps[1].Pause = &rollout.Pause{} // waits for a promotion
	}
	r := &rollout.Render{Files: files, Objects: []rollout.Object{web}, Specs: []rollout.Spec{spec},
		Templates: map[rollout.Workload]rollout.Hash{w: hash}, Digest: rollout.Digest([]byte(tag), 20)}
	if strings.HasPrefix(base, "good") && n7(app) == 5 { // these apps do not use the base's version
		web.Map("spec")["template"] = map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{
			map[string]any{"name": "app", "image": "example/" + name + ":none-" + own}}}}
		if r.Templates[w], err = rollout.HashTemplate(web.Map("spec", "template")); err != nil {
			return nil, err
		}
		r.Digest = rollout.Digest([]byte("none"+own), 20)
	}
	if b.plain {
		r.Specs = nil
	}
	return r, nil
}

func blobOf(tree rollout.Tree, entry rollout.Entry) string {
	content, _ := tree.ReadBlob(entry.ID) // in memory
	return string(content)
}

func n7(app string) int {
	n, _ := strconv.Atoi(app[1:])
	return n % 7
}

// sharedBase is a random world: many apps read one base, which sometimes has a bad version.
type sharedBase struct {
	*Story
	rng     *rand.Rand
	names   []string // of the apps now; "" if Git no longer lists the app
	brief   bool     // the run ends before the check that all apps take the last version
	pumps   bool     // the process's pumps run in any order, so that Git may change before a transition is pushed
	log     bytes.Buffer
	serial  int
	base    []string                   // the base's versions so far
	ran     map[string]map[string]bool // the apps whose Deployments have had a base, by base
	failure string
	trace   []string
	acts    map[string]int
	wrap    func(*Process, *reconciler.Options)
}

func newSharedBase(t testing.TB, seed uint64, apps int) *sharedBase {
	t.Helper()
	return newSharedWorld(t, seed, apps, baseRenderer{}, nil)
}

func newSharedWorld(t testing.TB, seed uint64, apps int, renderer reconciler.Renderer, more map[string]string) *sharedBase {
	t.Helper()
	w := &sharedBase{rng: rand.New(rand.NewPCG(seed, 7)), names: make([]string, apps),
		ran: map[string]map[string]bool{}, acts: map[string]int{},
		base: []string{"good0"}, pumps: seed%2 == 1}
	files := map[string]string{rollout.ConfigPath(testCluster): "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" +
		"- {path: apps/*, namespace: " + namespace + "}\n", "base/version": "good0"}
	for i := range apps {
		files[fmt.Sprintf("apps/a%d/version", i)] = "v0"
		files[fmt.Sprintf("apps/a%d/kustomization.yaml", i)] = "resources: []\n" // makes the folder an app
	}
	maps.Copy(files, more)
	var err error
	w.Story, err = NewStory(StoryOptions{Cluster: testCluster, Files: files, Options: reconciler.Options{
		Renderer: renderer, Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}})
	must(t, err)
	for i := range w.names {
		w.names[i] = fmt.Sprintf("a%d", i)
	}
	w.cluster.Kube.Sparse = true
	w.cluster.changed = func(what string) { // touches only the changed object's app, to save time
		_, object, _ := strings.Cut(what, " ")
		i, err := strconv.Atoi(strings.TrimPrefix(object[:max(0, strings.IndexAny(object+" ", " -"))], "a"))
		for at, name := range w.names {
			if w.process != nil && name != "" && (at == i || err != nil) {
				w.process.Touch(name)
			}
		}
	}
	w.cluster.Kube.Fate = func(version string) kube.Lifetime {
		return kube.Lifetime{Never: strings.HasPrefix(version, "bad"), Ready: time.Second}
	}
	w.cluster.writing = func(_ *View, _ string, o rollout.Object) {
		app := o.Name()
		base, _, _ := strings.Cut(kube.VersionOf(dump(o.Map("spec")["template"])), "-")
		if w.ran[base] == nil {
			w.ran[base] = map[string]bool{}
		}
		if w.ran[base][app] = true; strings.HasPrefix(base, "bad") && len(w.ran[base]) > 1 && w.failure == "" {
			w.failure = fmt.Sprintf("%d apps run the base %s: %v", len(w.ran[base]), base, slices.Sorted(maps.Keys(w.ran[base])))
		}
	}
	return w
}

func (w *sharedBase) note(format string, args ...any) {
	w.trace = append(w.trace, w.cluster.Kube.Now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// run lets the controllers and the reconciler work for a time. With faults, the reconciler sometimes dies before an effect, or an effect
// fails.
func (w *sharedBase) run(d time.Duration, faults bool) {
	end := w.cluster.Kube.Now.Add(d)
	for w.failure == "" {
		w.quiet(faults)
		due := rollout.Soonest(w.cluster.Kube.NextDue(), w.process.NextDue())
		if due.IsZero() || !due.Before(end) {
			break
		}
		w.cluster.Kube.Now = rollout.Later(due, w.cluster.Kube.Now.Add(time.Millisecond))
	}
	w.cluster.Kube.Now = rollout.Later(end, w.cluster.Kube.Now)
}

// quiet runs passes until nothing changes. If w.pumps is set, it runs single pumps in any order instead.
func (w *sharedBase) quiet(faults bool) {
	all := []reconciler.Pump{reconciler.PumpIn, reconciler.PumpApps, reconciler.PumpOut}
	for same := 0; same < 1 || w.pumps && same < 8; {
		for w.cluster.Kube.Micro() {
		}
		before := []any{w.cluster.version, len(w.event.Commits), len(w.process.Clone.Local)}
		begin := func() bool { return w.process.Begin(w.cluster.Kube.Now, true) }
		pump := all[w.rng.IntN(3)]
		if same >= 5 { // each pump has its turn before the end
			pump = all[same%3]
		}
		if w.pumps {
			begin = func() bool { return w.process.BeginTurn(pump, w.cluster.Kube.Now) }
		}
		for ended := begin(); !ended; {
			out := Outcome{}
			if faults && w.rng.IntN(400) == 0 {
				w.note("the process dies before %s", w.process.next)
				w.process.Kill()
				w.start()
				w.acts["crash"]++
				break
			} else if faults && w.rng.IntN(300) == 0 {
				out.Err, out.After = errors.New("no answer"), w.rng.IntN(2) == 0
			}
			ended = w.process.Resume(out)
		}
		if err := w.process.err; err != nil {
			w.note("error: %.300s", err)
		}
		if same++; !slices.Equal(before, []any{w.cluster.version, len(w.event.Commits), len(w.process.Clone.Local)}) {
			same = 0
		}
	}
}

func (w *sharedBase) pushFile(what, file, content string) {
	w.note("push %s: %s = %s", what, file, content)
	w.acts[what]++
	var data []byte
	if content != "" {
		data = []byte(content)
	}
	w.commit(what, map[string][]byte{file: data})
}

func (w *sharedBase) act() {
	w.serial++
	i := w.rng.IntN(len(w.names))
	app := w.names[i]
	switch w.rng.IntN(12) {
	case 0, 1:
		w.pushBase("good base", "good")
	case 2:
		w.pushBase("bad base", "bad")
	case 3:
		if n := len(w.base); n > 1 {
			w.base = w.base[:n-1]
			w.pushFile("revert", "base/version", w.base[n-2])
		}
	case 4, 5:
		w.own("own push", i, fmt.Sprintf("v%d", w.serial))
	case 6:
		file := rollout.FreezePath(testCluster)
		if w.git.Files(w.head())[file] != "" {
			w.pushFile("end of freeze", file, "")
		} else if w.rng.IntN(2) == 0 {
			w.pushFile("freeze", file, "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: holidays\napps: ["+app+", \"a1*\"]\n")
		}
	case 7:
		w.note("restart")
		w.start()
	case 8:
		w.promote()
	case 9:
		w.rename(i)
	case 10:
		if w.own("invalid push", i, fmt.Sprintf("invalid%d", w.serial)); w.rng.IntN(2) == 0 {
			w.run(time.Duration(w.rng.IntN(60))*time.Second, true)
			w.note("restart")
			w.start()
		}
	case 11:
		if w.rng.IntN(4) == 0 {
			w.remove(i)
		}
	}
}

func (w *sharedBase) pushBase(what, version string) {
	w.base = append(w.base, fmt.Sprintf("%s%d", version, w.serial))
	w.pushFile(what, "base/version", w.base[len(w.base)-1])
}

func (w *sharedBase) own(what string, i int, version string) {
	if w.names[i] != "" {
		w.pushFile(what, "apps/"+w.names[i]+"/version", version)
	}
}

// rename moves an app's folder. The app keeps its objects.
func (w *sharedBase) rename(i int) {
	was := w.names[i]
	if was == "" {
		return
	}
	is := map[string]string{"a": "b", "b": "a"}[was[:1]] + was[1:]
	edits := map[string][]byte{"apps/" + was: nil}
	for name, content := range w.git.Files(w.head()) {
		if rest, below := strings.CutPrefix(name, "apps/"+was+"/"); below {
			edits["apps/"+is+"/"+rest] = []byte(content)
		}
	}
	w.note("rename %s to %s", was, is)
	w.acts["rename"]++
	w.names[i] = is
	w.commit("rename", edits)
}

// remove removes an app from Git. Its objects stay in the cluster.
func (w *sharedBase) remove(i int) {
	if w.names[i] != "" {
		w.note("remove %s", w.names[i])
		w.acts["remove"]++
		w.commit("remove", map[string][]byte{"apps/" + w.names[i]: nil})
		w.names[i] = ""
	}
}

// promote promotes the releases that wait for a user.
func (w *sharedBase) promote() {
	for _, name := range w.names {
		if name == "" || n7(name) != 3 {
			continue
		}
		if s := w.state(name); s.Phase == rollout.Paused && s.Release != nil {
			w.pushFile("promotion", rollout.PromotionPath(testCluster, name),
				"apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nthrough: full\nrelease: "+string(s.Release.Hash)+
					"\nat: "+w.cluster.Kube.Now.Format(time.RFC3339)+"\n") // the promotion of a second attempt needs another text
		}
	}
}

// play runs one seed. At the end, the base is good, and all apps must follow the head.
func (w *sharedBase) play() {
	w.start()
	w.run(10*time.Minute, false)
	acts := 12 + w.rng.IntN(12)
	if w.brief {
		acts = 4 + w.rng.IntN(4)
		w.pushBase("bad base", "bad")
		w.run(time.Duration(w.rng.IntN(120))*time.Second, true)
	}
	for range acts {
		if w.failure != "" {
			return
		}
		w.act()
		for range w.rng.IntN(4) { // some transitions are not pushed yet when the user acts again
			if w.pumps {
				pump := []reconciler.Pump{reconciler.PumpIn, reconciler.PumpApps}[w.rng.IntN(2)]
				for ended := w.process.BeginTurn(pump, w.cluster.Kube.Now); !ended; {
					ended = w.process.Resume(Outcome{})
				}
				w.act()
			}
		}
		w.run(time.Duration(w.rng.IntN(1200))*time.Second, true)
	}
	if w.brief {
		return
	}
	w.pushFile("end of freeze", rollout.FreezePath(testCluster), "")
	w.pushFile("good base", "base/version", "goodend")
	for i := range w.names {
		w.own("own push", i, "vend")
	}
	for range 12 {
		w.run(15*time.Minute, false)
		w.promote()
	}
	for _, name := range w.names {
		if name == "" {
			continue
		}
		s := w.state(name)
		app := rollout.App{Name: name, Path: "apps/" + name, Namespace: namespace}
		is, want := w.at(app, s.Source), w.at(app, w.head())
		if w.failure == "" && (is == nil || is.Digest != want.Digest || s.Phase != rollout.Healthy) {
			w.failure = fmt.Sprintf("%s is %s at %s, held %+v", name, s.Phase, rollout.ShortID(s.Source), s.Held)
		}
	}
	before := w.git.Head(w.config.StateBranch)
	w.run(time.Hour, false)
	if w.failure == "" && w.git.Head(w.config.StateBranch) != before {
		w.failure = "a steady state was recorded again: " + w.git.Subject(w.git.Head(w.config.StateBranch))
	}
}

// restore copies Git and the cluster from a world at rest, to skip the first deployments.
func (w *sharedBase) restore(from *sharedBase) {
	maps.Copy(w.git.Commits, from.git.Commits)
	for _, branch := range from.git.Branches("") {
		w.git.Set("test", branch, from.git.Head(branch))
	}
	k := w.cluster.Kube
	fate := k.Fate
	k.Now, k.Fate = from.cluster.Kube.Now, func(string) kube.Lifetime { return kube.Lifetime{} }
	maps.Copy(w.cluster.objects, from.cluster.objects)
	for _, ref := range from.cluster.Objects() {
		_ = k.Apply(from.cluster.objects[ref].body) // accepted before
		for k.Micro() {
		}
	}
	k.Fate = fate
}

// TestSharedBase checks that a bad version of a shared base reaches only one app, whatever users and faults do. At the end, all apps take
// the good base.
func TestSharedBase(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 4
	}
	playSharedBase(t, seedsOr(seeds), 30, false)
}

// TestSharedBaseOfManyApps checks that a bad version of a base reaches only one of 200 apps.
func TestSharedBaseOfManyApps(t *testing.T) {
	playSharedBase(t, seedsOr(2), 200, true)
}

func playSharedBase(t *testing.T, seeds, apps int, brief bool) {
	t.Helper()
	acts, deployed := map[string]int{}, newSharedBase(t, 1, apps)
	deployed.start()
	deployed.run(10*time.Minute, false)
	for seed := range uint64(seeds) {
		w := newSharedBase(t, seed+*fromFlag, apps)
		if w.brief = brief; brief {
			w.restore(deployed)
		}
		w.play()
		for name, n := range w.acts {
			acts[name] += n
		}
		if w.failure != "" {
			t.Errorf("seed %d: %s\n%s", seed+*fromFlag, w.failure, strings.Join(w.trace[max(0, len(w.trace)-60):], "\n"))
			return
		}
	}
	t.Log(seeds, "runs:", acts)
}

// liar is a commit that returns the head's file base/version. Only baseRenderer reads the commit's own file.
type liar struct {
	reconciler.Snapshot
	head func() reconciler.Snapshot
}

func (l liar) Lookup(name string) (rollout.Entry, bool, error) {
	if name == "base/version" {
		return l.head().Lookup(name)
	}
	return l.Snapshot.Lookup(name)
}

// lyingGit is a mirror whose commits are liars.
type lyingGit struct{ *memgit.Clone }

func (g lyingGit) Held(id string) (reconciler.Snapshot, bool) {
	tree, held := g.Clone.Held(id)
	if !held {
		return nil, false
	}
	return liar{tree, func() reconciler.Snapshot {
		head, _ := g.Clone.Held(g.Clone.Main)
		return head
	}}, true
}

// TestSharedBaseMutations checks that the world notices a reconciler with a broken rule for shared changes.
func TestSharedBaseMutations(t *testing.T) {
	for name, wrap := range map[string]func(*Process, *reconciler.Options){
		"an app counts as having the change at another content": func(p *Process, o *reconciler.Options) { o.Repository = lyingGit{p.Clone} },
		"a build leaves out that it read the base": func(_ *Process, o *reconciler.Options) {
			o.Renderer = bender{o.Renderer, starting{}, func(_ starting, _ string, r *rollout.Render) { r.Files = r.Files[:1] }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				w := newSharedBase(t, seed+1, 15)
				w.parts.Wrap = wrap
				if w.play(); w.failure != "" {
					t.Logf("seed %d: %s", seed+1, w.failure)
					return
				}
			}
			t.Error("20 seeds do not notice it")
		})
	}
}
