package plan_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

var update = flag.Bool("update", false, "rewrite the expected texts of the plans in testdata")

// now is a Friday, at noon.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// inJSON has expectations for the JSON of some plans, by the plan's name. A key is a note's code or an object's
// former name. The value tells whether the JSON must contain the key.
var inJSON = map[string]map[string]bool{
	"no-steps": {"Recreate": true, "NoSteps": true, "NoRollout": false}, "no-document": {"NoRollout": true},
	"autoscaled": {"ScaledReplicas": true, "Warning": false, "shop": false}, "kept": {"Kept": true, "gone": false},
	"made-once": {"Kept": true, "Warning": true, "MadeOnce": false}, "made-once-keys": {"MadeOnce": true},
	"daemonset": {"NoSurge": true}, "kruise-nodes": {"NoSurge": false}, "statefulset": {"NoCanaryPod": true, "Immutable": true},
	"hooks": {"HookSeesOld": true}, "generated": {"shop-b5g778hd6d": true, "shop": false},
}

// TestPlans makes the plan of each archive in testdata, and compares it with the expected pull request comment. The change replaces files
// of the folder base by files of the folder head. The content "-" removes a file.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d plans: %v", len(files), err)
	}
	for _, file := range files {
		planned := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(planned, func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			must(t, err)
			want := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want.md" })
			if want < 0 {
				archive.Files, want = append(archive.Files, txtar.File{Name: "want.md"}), len(archive.Files)
			}
			p := planOf(t, archive)
			got := plan.Markdown([]plan.Plan{p})
			for name, want := range inJSON[planned] {
				var names []string
				for _, a := range p.Apps {
					for _, n := range a.Notes {
						names = append(names, n.Code)
					}
					for _, o := range a.Objects {
						names = append(names, o.Was)
					}
				}
				if !slices.Contains(names, name) == want {
					t.Errorf("machines read %q, want %q among them: %t", names, name, want)
				}
			}
			if strings.Contains(got, "c2VjcmV0") || strings.Contains(got, "hunter2") {
				t.Error("the value of a Secret is shown")
			}
			if *update {
				archive.Files[want].Data = []byte(got)
				must(t, os.WriteFile(file, txtar.Format(archive), 0o644))
			}
			compare.CheckNamed(t, "rewrite it with -update", string(archive.Files[want].Data), got)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTraffic checks that a plan measures the traffic with base's analyses, unless a release is in flight. Without a measured rate, the
// plan uses assumed rates.
func TestTraffic(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/compared.txtar")
	must(t, err)
	run := rollout.AnalysisRun{Name: "shop", Metrics: []rollout.MetricProgress{{
		Metric: "errors", Measurements: []rollout.Measurement{{At: now}},
		Evidence: &rollout.Sequential{Since: now.Add(-5 * time.Minute), Stable: 3600, Tests: []rollout.Test{{Stable: 180}}}}}}
	shop := rollout.Workload{Namespace: "shop", Name: "shop"}
	const measured, assumed = "12/s 0.05", "1/s 0.01 10/s 0.01 100/s 0.01"
	for name, c := range map[string]struct {
		change func(*plan.Input)
		run    rollout.AnalysisRun
		want   string
	}{
		"without a record": {func(*plan.Input) {}, run, measured},
		"at rest":          {func(in *plan.Input) { in.State = stateOf("verified", *in); in.State.Verified = nil }, run, measured},
		"in a release": {func(in *plan.Input) {
			in.State = stateOf("in flight", *in)
			in.State.Stable = &rollout.Release{Hash: "h1-1", Templates: map[rollout.Workload]rollout.Hash{shop: "h1-1"}}
		}, run, assumed},
		"without an answer":          {func(*plan.Input) {}, rollout.AnalysisRun{Name: "shop"}, assumed},
		"without a document in base": {func(in *plan.Input) { in.Base.Render.Specs = nil }, run, assumed},
		"without a metrics' server":  {func(in *plan.Input) { in.Traffic = nil }, run, assumed},
	} {
		in := inputOf(t, archive)
		in.Traffic = func(s rollout.Spec) rollout.AnalysisRun {
			if &s.Canary.Steps[0] != &in.Base.Render.Specs[0].Canary.Steps[0] {
				t.Errorf("%s: the analyses are not the base's", name)
			}
			return c.run
		}
		c.change(&in)
		a, _ := plan.Of(in)
		var got []string
		for _, d := range a.Detection {
			if d.Fix == "" {
				got = append(got, fmt.Sprintf("%g/s %g", d.Rate, d.Stable))
			}
		}
		compare.CheckNamed(t, name, c.want, strings.Join(got, " "))
	}
}

func planOf(t *testing.T, archive *txtar.Archive) plan.Plan {
	t.Helper()
	p := plan.Plan{Cluster: "prod", Base: "4d6eb88 (main)", Head: "the working tree", At: now, State: "made up"}
	a, changed := plan.Of(inputOf(t, archive))
	strategies.Known{}.Fill(a.Detection)
	p.AddApp(a, changed)
	p.Finish()
	return p
}

func inputOf(t *testing.T, archive *txtar.Archive) plan.Input {
	t.Helper()
	base, head := map[string]string{}, map[string]string{}
	in := plan.Input{Now: now, App: rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop"}}
	var state, config string
	var freeze *rollout.Freeze
	for _, f := range archive.Files {
		text := string(f.Data)
		if below, isBase := strings.CutPrefix(f.Name, "base/"); isBase {
			base["apps/shop/"+below], head["apps/shop/"+below] = text, text
		}
		if below, isHead := strings.CutPrefix(f.Name, "head/"); isHead {
			if head["apps/shop/"+below] = text; text == "-\n" {
				delete(head, "apps/shop/"+below)
			}
		}
		switch f.Name {
		case "state":
			state = strings.TrimSpace(text)
		case "config":
			config = text
		case "freeze":
			var err error
			freeze, err = rollout.ParseFreeze("freeze.yaml", f.Data)
			must(t, err)
		}
	}
	in.Base, in.Head = sideOf(t, base, in.App), sideOf(t, head, in.App)
	if config != "" || freeze != nil {
		const entries = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: apps/shop}]\n"
		c, err := rollout.ParseConfig(rollout.ConfigPath("prod"), []byte(entries+config))
		must(t, err)
		in.Calendar = c.CalendarOf("shop", freeze)
	}
	in.State = stateOf(state, in)
	for name := range head {
		if base[name] != head[name] {
			in.Files = append(in.Files, name)
		}
	}
	slices.Sort(in.Files)
	return in
}

// sideOf renders an app of a repository that has the given files.
func sideOf(t *testing.T, files map[string]string, app rollout.App) plan.Side {
	t.Helper()
	if len(files) == 0 {
		return plan.Side{}
	}
	archive, dir := &txtar.Archive{}, t.TempDir()
	for name, content := range files {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(content)})
	}
	must(t, txtar.Write(archive, dir))
	tree, err := worktree.Open(dir)
	must(t, err)
	r, err := render.New(render.InProcess{}).Render(tree, app, rollout.Commit{})
	return plan.Side{Render: r, Err: err}
}

// stateOf returns the record for a word in the archive's file "state", such as "in flight".
func stateOf(word string, in plan.Input) *rollout.State {
	if word == "" {
		return nil
	}
	base, head := in.Base.Render, in.Head.Render
	ofBase := func() *rollout.Release { return &rollout.Release{Hash: base.Release(), Templates: base.Staged()} }
	s := &rollout.State{App: "shop", Phase: rollout.Healthy, Stable: ofBase(), Verified: []rollout.Hash{base.Release()}}
	switch word {
	case "rejected":
		s.Rejected = []rollout.Rejection{{Hash: head.Release(), Reason: "metric errors: 0.3"}}
	case "verified":
		s.Verified = append(s.Verified, head.Release())
	case "in flight": // head reverts to stable
		s.Stable.Hash, s.Stable.Templates = head.Release(), head.Staged()
		s.Release, s.Phase = ofBase(), rollout.Progressing
	case "at a gate": // head has the release's version, and the release is at its second step
		s.Stable = &rollout.Release{Hash: "h1-0000000000", Templates: map[rollout.Workload]rollout.Hash{}}
		s.Release, s.Phase = ofBase(), rollout.Paused
		for w := range base.Staged() {
			s.Stable.Templates[w] = "old"
			s.Progress = append(s.Progress, rollout.Progress{Workload: w, Step: 1, Of: 4, Name: "pause", Weight: 20, Plan: "p"})
		}
	case "left": // head has the stable version, and a release of base's version has begun
		s.Stable.Templates = map[rollout.Workload]rollout.Hash{}
		for w := range base.Staged() {
			s.Stable.Templates[w] = head.Templates[w]
			s.Progress = append(s.Progress, rollout.Progress{Workload: w, Of: 2, Name: "setWeight 20", Weight: 20})
		}
		s.Stable.Hash = rollout.ReleaseHash(s.Stable.Templates)
		s.Release, s.Phase = ofBase(), rollout.Progressing
	case "on record":
		s.Source = "4d6eb88"
	case "follows": // the app has no releases yet
		s.Stable, s.Verified, s.Source = nil, nil, "4d6eb88"
	case "another in flight":
		s.Release, s.Phase = &rollout.Release{Hash: "h1-0123456789"}, rollout.Progressing
	}
	return s
}

// TestAdopted checks the summary of a new app, depending on which of its two workloads run in the cluster and with which template.
func TestAdopted(t *testing.T) {
	var objects []rollout.Object
	r := &rollout.Render{}
	for _, name := range []string{"shop", "cart"} {
		w := rollout.Workload{Namespace: "shop", Name: name}
		r.Specs = append(r.Specs, rollout.Spec{Workload: w})
		objects = append(objects, rollout.Object{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": name, "namespace": "shop"}})
	}
	r.Objects = objects
	const without = "first deployment of h1-1, without steps: the cluster runs none of its workloads"
	const adopted = "adopted at h1-1 without a restart: the cluster runs this template"
	const held = "held: Deployment shop/cart runs another template in the cluster; commit that template first"
	for name, c := range map[string]struct {
		change plan.Change
		live   map[string]bool // whether a running workload has this template; no entry for a workload that does not run
		want   string
	}{
		"none runs":           {plan.First, nil, without},
		"both run":            {plan.First, map[string]bool{"shop": true, "cart": true}, adopted},
		"one runs":            {plan.First, map[string]bool{"cart": true}, adopted},
		"one is another":      {plan.First, map[string]bool{"shop": true, "cart": false}, held},
		"a release, no look":  {plan.Release, map[string]bool{"cart": false}, "as before"},
		"an unknown workload": {plan.First, map[string]bool{"gone": false}, without},
	} {
		t.Run(name, func(t *testing.T) {
			s := plan.Sides{Runs: func(o rollout.Object) (runs, same bool, err error) {
				same, runs = c.live[o.Name()]
				return runs, same, nil
			}}
			a := plan.App{Change: c.change, To: "h1-1", Summary: "as before"}
			must(t, s.Adopted(&a, r))
			compare.Check(t, c.want, a.Summary)
		})
	}
	refused := errors.New("forbidden")
	s := plan.Sides{Runs: func(rollout.Object) (runs, same bool, err error) { return false, false, refused }}
	if err := s.Adopted(&plan.App{Change: plan.First}, r); !errors.Is(err, refused) {
		t.Errorf("error %v, want %v", err, refused)
	}
}

// TestShared checks that a changed file is listed if several apps use the file.
func TestShared(t *testing.T) {
	var p plan.Plan
	p.AddApp(plan.App{App: "b", Files: []string{"base/deployment.yaml", "b.yaml"}}, true)
	p.AddApp(plan.App{App: "a", Files: []string{"base/deployment.yaml"}}, true)
	p.AddApp(plan.App{App: "c"}, false)
	p.Finish()
	want := []plan.Shared{{File: "base/deployment.yaml", Apps: []string{"a", "b"}}}
	if compare.Check(t, want, p.Shared); p.Unchanged != 1 || p.Apps[0].App != "a" {
		t.Errorf("%+v", p)
	}
}

// TestMarkdownIsShort checks that a comment is within the size limit of GitHub, and that Markdown in users' texts is escaped.
func TestMarkdownIsShort(t *testing.T) {
	p := plan.Plan{Cluster: "prod", At: now}
	for range 3000 {
		p.AddApp(plan.App{App: "shop", Change: plan.Apply, Summary: "<img src=x> @everyone [a](b)",
			Objects: []plan.Object{{Change: "changed", Diff: strings.Repeat("-a\n+b\n", 20)}}}, true)
	}
	got := plan.Markdown([]plan.Plan{p})
	if len(got) > 65_536 {
		t.Errorf("the comment has %d bytes", len(got))
	}
	for _, bad := range []string{"<img", "@everyone", "[a](b)"} {
		if strings.Contains(got, bad) {
			t.Errorf("the comment has %s", bad)
		}
	}
	fenced := plan.Markdown([]plan.Plan{{Apps: []plan.App{{App: "a", Objects: []plan.Object{{Diff: "+```\n+# heading\n"}}}}}})
	compare.Contains(t, fenced, "````diff") // the fence is longer than the fence in the diff
}

// TestMarkdownLeavesOut checks comments near the size limit: Markdown first omits the diffs, and then cuts the end of the text.
func TestMarkdownLeavesOut(t *testing.T) {
	const without = "*Differences are left out: the comment would be too long.*"
	const more = "*… and more: the plan is longer than a comment may be.*"
	with := func(diff, summary int) string {
		p := plan.Plan{At: now}
		p.AddApp(plan.App{App: "shop", Change: plan.Apply, Summary: "",
			Objects: []plan.Object{{Change: "changed", Diff: strings.Repeat("+\n", diff/2)}}}, true)
		for range summary / 100 {
			p.AddApp(plan.App{App: "x", Change: plan.Apply, Summary: strings.Repeat("é", 40)}, true)
		}
		return plan.Markdown([]plan.Plan{p})
	}
	fill := plan.MarkdownLimit - len(with(0, 0)) - len("````diff\n")
	short := with(fill&^1, 0)
	if len(short) > plan.MarkdownLimit || len(short) < plan.MarkdownLimit-100 || strings.Contains(short, without) {
		t.Errorf("of %d bytes: %s", len(short), short[len(short)-200:])
	}
	if long := with(fill+200, 0); len(long) > 1000 || !strings.Contains(long, without) || !strings.Contains(long, "- changed `") ||
		!strings.Contains(long, "\n</details>\n") {
		t.Errorf("the differences are too long: %s", long[:min(len(long), 1000)])
	}
	if long := with(0, plan.MarkdownLimit*2); !strings.HasSuffix(long, "\n\n"+more+"\n") || len(long) > plan.MarkdownLimit+100 ||
		strings.Contains(long, without) {
		t.Errorf("too many apps: %d bytes, ending with %s", len(long), long[len(long)-300:])
	}
}

// TestMarkdownOfWhatIsNoChange checks the comments for plans without changed apps, and the list of files that several apps use.
func TestMarkdownOfWhatIsNoChange(t *testing.T) {
	nothing := plan.Plan{Cluster: "prod", At: now, Unchanged: 2}
	broken := plan.Plan{Cluster: "prod", At: now,
		Error: &rollout.InvalidError{File: "config.yaml", Field: "apps", Msg: "is <empty>", Fix: "list one"}}
	shared := plan.Plan{Cluster: "prod", At: now, Apps: []plan.App{{App: "a", Change: plan.Gone}},
		Shared: []plan.Shared{{File: "base.yaml", Apps: []string{"a", "b"}}}}
	for _, c := range []struct {
		plan plan.Plan
		want string
	}{
		{nothing, "### Release plan for `prod`\n\nNothing changes (2 apps).\n\n<sub>Compared"},
		{broken, "Nothing changes (0 apps).\n\n> **Error** config.yaml: apps: is &lt;empty>; list one\n"},
		{shared, "- `base.yaml` is shared by 2 apps: a, b\n\n#### 👋 a\n\n\n\n<sub>"},
	} {
		got := plan.Markdown([]plan.Plan{c.plan})
		if !strings.Contains(got, c.want) || strings.Contains(got, "Differences") || strings.Contains(got, "<details>") {
			t.Errorf("want %q in:\n%s", c.want, got)
		}
	}
	if got := plan.Markdown([]plan.Plan{broken, nothing}); strings.Count(got, "<sub>") != 1 {
		t.Errorf("a broken configuration is compared with nothing:\n%s", got)
	}
	unshared := shared
	unshared.Shared = nil
	if got := plan.Markdown([]plan.Plan{unshared}); strings.Contains(got, "\n\n\n#### ") {
		t.Errorf("without shared files:\n%q", got)
	}
}

func TestFencesAreLongerThanWhatTheyHold(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "`": 1, "``": 2, "``a```b`": 3, "`a`a`": 1} {
		compare.CheckNamed(t, text, want, plan.LongestRun(text, '`'))
	}
}

// TestWhetherItChanges checks Plan.Changes and the number of errors, for plans with and without changed apps.
func TestWhetherItChanges(t *testing.T) {
	var p plan.Plan
	p.AddApp(plan.App{App: "same"}, false)
	if p.Changes() || p.Errors != 0 {
		t.Errorf("%+v changes", p)
	}
	broken := plan.Plan{Error: &rollout.InvalidError{Msg: "x"}}
	if !broken.Changes() {
		t.Error("a broken configuration is no change")
	}
	p.AddApp(plan.App{App: "a"}, true)
	if !p.Changes() || p.Errors != 0 {
		t.Errorf("%+v", p)
	}
	p.AddApp(plan.App{App: "b", Error: rollout.ProblemOf(&rollout.InvalidError{File: "f", Field: "x", Msg: "is wrong", Fix: "mend it"})}, true)
	if want := (rollout.InvalidError{File: "f", Field: "x", Msg: "is wrong", Fix: "mend it"}); p.Errors != 1 || *p.Apps[1].Error != want {
		t.Errorf("%+v", p)
	}
	if got := rollout.ProblemOf(os.ErrInvalid); *got != (rollout.InvalidError{Msg: "invalid argument"}) {
		t.Errorf("%+v", got)
	}
}

// TestAnotherErrorIsNews checks that each render error counts as a change, and that the summary tells whether base has the same error.
func TestAnotherErrorIsNews(t *testing.T) {
	broken := plan.Side{Err: os.ErrInvalid}
	const held = "cannot be rendered: the app would be held as it is"
	for _, c := range []struct {
		base plan.Side
		want string
	}{{broken, "cannot be rendered, with or without this change"}, {plan.Side{}, held}, {plan.Side{Err: os.ErrExist}, held}} {
		if a, changes := plan.Of(plan.Input{Now: now, Base: c.base, Head: broken}); !changes || a.Change != plan.Invalid || a.Summary != c.want {
			t.Errorf("%+v, want %s", a, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	second, minute, hour := plan.Span(time.Second), plan.Span(time.Minute), plan.Span(time.Hour)
	for _, c := range []struct{ got, want string }{
		{plan.Short(30 * second), "30s"}, {plan.Short(10 * minute), "10m"}, {plan.Short(minute + second), "1m1s"}, {plan.Short(hour), "1h"},
		{plan.Short(10 * hour), "10h"}, {plan.Short(hour + 10*minute), "1h10m"}, {plan.Short(hour + second), "1h0m1s"}, {plan.Short(0), "0s"},
		{plan.Stage{}.Takes(), "-"}, {plan.Stage{AtLeast: 1}.Takes(), "1ns"}, {plan.Stage{Wait: "promotion"}.Takes(), "a promotion"},
		{plan.Stage{Wait: "promotion", Timeout: 1, OnTimeout: "abort"}.Takes(), "a promotion (1ns: abort)"},
		{plan.Stage{Wait: "time", Timeout: hour, AtLeast: minute}.Takes(), "1m"},
		{plan.Workload{}.Share(20), "20%"}, {plan.Workload{Full: 100}.Share(20), "20%"}, {plan.Workload{Full: 1000}.Share(20), "20/1000"},
		{plan.Workload{}.Sizing(), "0 pods"}, {plan.Workload{Replicas: 1}.Sizing(), "1 pod"},
		{plan.Workload{Replicas: 2, Sized: "HPA"}.Sizing(), "2 pods (HPA)"},
		{plan.App{}.Cost(), ""}, {plan.App{AtLeast: 1}.Cost(), "at least 1ns"}, {plan.App{Gates: 1}.Cost(), "1 promotion"},
		{plan.App{AtLeast: minute, Gates: 2}.Cost(), "at least 1m, 2 promotions"}, {plan.App{Gates: 3}.Cost(), "3 promotions"},
	} {
		compare.Check(t, c.want, c.got)
	}
}

// TestMoment checks that a time on another day has a weekday, and that a time six or more days away has a date instead.
func TestMoment(t *testing.T) {
	compare.Check(t, "unknown", plan.Moment(time.Time{}, now))
	for after, want := range map[time.Duration]string{
		-1: "immediately", 0: "immediately", time.Second: "12:00:01 UTC", 12*time.Hour - 1: "23:59:59 UTC", 12 * time.Hour: "Sat 00:00 UTC",
		24 * time.Hour: "Sat 12:00 UTC", 6*24*time.Hour - 1: "Thu 11:59 UTC", 6 * 24 * time.Hour: "2026-11-26 12:00 UTC",
		365 * 24 * time.Hour: "2027-11-20 12:00 UTC",
	} {
		compare.CheckNamed(t, "after "+after.String(), want, plan.Moment(now.Add(after), now))
	}
}

// TestCohorts checks the cohorts of a changed file that 12 apps read. A later cohort begins when the previous cohort has been released and
// has soaked. There are no cohorts if over is 0 or at least the number of apps.
func TestCohorts(t *testing.T) {
	for name, tt := range map[string]struct {
		settings string
		want     []int
	}{
		"defaults": {"", []int{1, 1, 10}}, "off": {"sharedChanges: {over: 0}\n", nil}, "few": {"sharedChanges: {over: 12}\n", nil},
		"two": {"sharedChanges: {cohorts: [50%, 100%], soak: 1h}\n", []int{6, 6}},
	} {
		tree := func(version string) rollout.Tree {
			const entries = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: apps/*}]\n"
			files := map[string]string{rollout.ConfigPath("prod"): entries + tt.settings,
				"base/kustomization.yaml": "resources: [web.yaml]\n",
				"base/web.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {version: " + version + "}\n"}
			for i := range 12 {
				files[fmt.Sprintf("apps/a%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../base]\nnamePrefix: a%d-\n", i)
			}
			dir := t.TempDir()
			for name, content := range files {
				must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
			}
			tree, err := worktree.OpenHashed(dir)
			must(t, err)
			return tree
		}
		s := plan.Sides{Cluster: "prod", Now: now, Renderer: render.New(render.InProcess{})}
		must(t, s.Read(tree("v1"), tree("v2")))
		p := plan.Plan{At: now}
		must(t, p.Add(&s, func() error { return nil }))
		var got []int
		for i, c := range p.Cohorts {
			got = append(got, len(c.Apps))
			soak := s.After.Config.Shared.Soak
			isShared := slices.Equal(c.Files, []string{"base/web.yaml"})
			if c.Number != i+1 || c.Of != len(tt.want) || !c.Begins.Equal(now.Add(time.Duration(i)*soak)) || !isShared {
				t.Errorf("%s: cohort %+v", name, c)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: cohorts of %v apps, want %v", name, got, tt.want)
		}
		if text := plan.Markdown([]plan.Plan{p}); strings.Contains(text,
			"- Cohort 1 of 3 takes `base/web.yaml` immediately: a") != (name == "defaults") {
			t.Errorf("%s: the comment is\n%s", name, text)
		}
	}
}
