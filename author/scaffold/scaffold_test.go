package scaffold_test

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/scaffold"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// empty is a tree without files. The function With adds files.
type empty struct{}

func (empty) Lookup(name string) (rollout.Entry, bool, error) {
	return rollout.Entry{Kind: rollout.Dir}, name == "", nil
}
func (empty) ReadDir(string) ([]rollout.Entry, error) { return nil, nil }
func (empty) ReadBlob(id string) ([]byte, error)      { return nil, errors.New("no blob " + id) }

// treeOf returns a tree with the files, and with an empty kustomization in each of the folders.
func treeOf(files map[string]string, kustomizations ...string) rollout.Tree {
	var all []scaffold.File
	for name, content := range files {
		all = append(all, scaffold.File{Path: name, Content: content})
	}
	for _, dir := range kustomizations {
		all = append(all, scaffold.File{Path: dir + "/kustomization.yaml", Content: "resources: []\n"})
	}
	return scaffold.With(empty{}, all)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, tree rollout.Tree) scaffold.Survey {
	t.Helper()
	s, err := scaffold.Look(tree)
	must(t, err)
	return s
}

// propose returns the proposal for a cluster. If cluster is "", Propose chooses the cluster's name.
func propose(t *testing.T, tree rollout.Tree, cluster string, build scaffold.Builder) scaffold.Proposal {
	t.Helper()
	p, err := scaffold.Propose(tree, look(t, tree), cluster, "gitrollout", build)
	must(t, err)
	return p
}

func entriesOf(p scaffold.Proposal) string {
	return strings.TrimPrefix(scaffold.ConfigText(p.Entries), "apiVersion: gitrollout.dev/v1beta1\nkind: Config\napps:\n")
}

func namesOf(p scaffold.Proposal) string {
	return strings.Join(rollout.Mapped(p.Apps, func(a rollout.App) string { return a.Name }), " ")
}

func TestLook(t *testing.T) {
	got := look(t, treeOf(map[string]string{
		"apps/web/kustomization.yml":        "resources: [../base, https://example.com/x, ../../../up]\ncomponents: [../parts]\n",
		"apps/base/Kustomization":           "resources: [all.yaml]\n",
		"apps/base/all.yaml":                "apiVersion: v1\nkind: Service\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\n",
		"apps/parts/kustomization.yaml":     "kind: Component\n",
		"apps/broken/kustomization.yaml":    "resources: [\n",
		"charts/db/Chart.yaml":              "name: db\n",
		"flux/kustomization.yaml":           "resources: [apps.yaml]\n",
		"flux/apps.yaml":                    document(fluxFolder, "x", "{path: ./apps/web}"),
		"flux/git.yml":                      "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n",
		"argo/app.yaml":                     unnamed + "{source: {path: apps/web}, sources: [{path: apps/db}]}\n",
		"argo/kustomization.yaml":           "resources: [app.yaml]\n",
		"node_modules/x/kustomization.yaml": "resources: []\n",
		".gitrollout/prod/config.yaml":      "kind: Config\n",
		"README.md":                         "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\n",
	}))
	want := scaffold.Survey{
		Kustomizations: []scaffold.Kustomization{
			{Path: "apps/base", Uses: []string{"apps/base/all.yaml"}},
			{Path: "apps/broken"},
			{Path: "apps/parts", Component: true},
			{Path: "apps/web", Uses: []string{"apps/base", "apps/parts"}},
			{Path: "argo", Uses: []string{"argo/app.yaml"}, Engine: "Argo CD"},
			{Path: "flux", Uses: []string{"flux/apps.yaml"}, Engine: "Flux"},
		},
		Flux: []string{"apps/web"}, ArgoCD: []string{"apps/db", "apps/web"},
		ArgoRollouts: []string{"apps/base/all.yaml"}, Charts: []scaffold.Chart{{Path: "charts/db"}},
	}
	want.Given = got.Given
	compare.Check(t, want.Looked(), got)
	compare.CheckNamed(t, "roots", []string{"apps/broken", "apps/web"}, got.Roots())
}

func bare(a rollout.App) (*rollout.Render, error) { return &rollout.Render{App: a}, nil }

// TestOneObjectOneApp checks an object that exists in plain manifests, in a kustomization and in a release's file.
// Only one of these three folders becomes an app, and the others are reported.
func TestOneObjectOneApp(t *testing.T) {
	p := propose(t, treeOf(map[string]string{
		"manifests/web.yaml": workload, "release/all.yaml": workload, "kustomize/base/web.yaml": workload,
		"kustomize/base/kustomization.yaml": "resources: [web.yaml]\n", "kustomize/kustomization.yaml": "resources: [base]\n",
		"other/kustomization.yaml": "resources: [settings.yaml]\n",
	}), "", func(a rollout.App) (*rollout.Render, error) {
		name := "web"
		if a.Path == "other" {
			name = a.Path
		}
		metadata := map[string]any{"name": name, "namespace": "default"}
		return &rollout.Render{App: a, Objects: []rollout.Object{
			{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shared"}},
			{"apiVersion": "v1", "kind": "Service", "metadata": metadata},
		}}, nil
	})
	got := rollout.Mapped(p.Apps, func(a rollout.App) string { return a.Path })
	got = append(got, rollout.Mapped(p.LeftOut, func(l scaffold.LeftOut) string { return l.Path + " " + l.Why })...)
	why := " has objects that kustomize also has, such as Service default/web; an object belongs to one app: " +
		"list only one of the two apps, or give this app another namespace"
	want := []string{"kustomize", "other", "manifests" + why, "release" + why}
	compare.Check(t, want, got)
}

// TestPlainFolders checks that a folder of manifests is an app if it has a workload and if no kustomization or chart uses its files.
func TestPlainFolders(t *testing.T) {
	const web, settings = workload, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
	p := propose(t, treeOf(map[string]string{
		"guestbook/web.yaml": web, "guestbook/settings.yaml": settings,
		"apps/cart/web.yaml": web, "apps/cart/db/db.yaml": web, "apps/pay/web.yaml": web, "apps/pay/worker/w.yaml": web,
		"shop/base/web.yaml": web, "shop/prod/kustomization.yaml": "resources: [../base/web.yaml]\n",
		"chart/Chart.yaml": "name: x\n", "chart/templates/web.yaml": web,
		"notes/settings.yaml": settings, "argo/app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\n",
		"patched/kustomization.yaml": "resources: []\n", "patched/patches/web.yaml": web, "web.yaml": web,
		"guestbook/package.json": `{"name": "guestbook"}`, "guestbook/list.json": `[1]`, "guestbook/typo.yaml": "a: {{",
		"guestbook/empty.yaml": "# nothing\n", "apps/notes.json": `{"a": 1}`,
	}), "", bare)
	compare.Check(t, `- path: apps/*
  directory: {recurse: true}
- path: chart
  helm: {}
- path: guestbook
  directory: {exclude: '{list.json,package.json}'}
- path: patched
- path: '*/prod'
`, entriesOf(p))
	compare.CheckNamed(t, "apps", "cart pay chart guestbook patched shop", namesOf(p))
	notes := []string{"guestbook: files without Kubernetes objects are excluded: {list.json,package.json}"}
	compare.CheckNamed(t, "notes", notes, p.Notes)
}

// TestPropose checks that entries match only the apps of one environment.
func TestPropose(t *testing.T) {
	type left = []scaffold.LeftOut
	shown := func(path, folder string) scaffold.LeftOut {
		return scaffold.LeftOut{path, "is in " + folder + ", and nothing deploys it; list it if it is an app"}
	}
	for name, tt := range map[string]struct {
		dirs, cluster string
		want          string // the cluster, each entry's path and name, and the apps' names
		leftOut       left
	}{
		"a folder for each app": {"apps/api apps/web", "", "prod: apps/*; api web", nil},
		"overlays, of which prod is meant": {"apps/api/overlays/prod apps/api/overlays/dev apps/web/overlays/prod", "",
			"prod: apps/*/overlays/prod; api web", left{{"apps/api/overlays/dev", "is for dev"}}},
		"another environment is asked for": {"apps/api/overlays/prod apps/api/overlays/dev", "dev",
			"dev: apps/*/overlays/dev; api", left{{"apps/api/overlays/prod", "is for prod"}}},
		"a cluster of an environment":      {"prod/web dev/web", "prod-eu", "prod-eu: prod/*; web", left{{"dev/web", "is for dev"}}},
		"an environment by its other name": {"dev/web production/web", "prod", "prod: production/*; web", left{{"dev/web", "is for dev"}}},
		"an environment by all its names": {"apps/a/live apps/b/prod apps/b/production apps/c/production", "prod",
			"prod: apps/*/live, apps/*/prod, apps/c/production (c); a b c", left{{"apps/b/production", "is for production"}}},
		"an environment of which nothing is here has nothing of another one": {"apps/staging apps/dev web", "production",
			"production: web; web", left{{"apps/dev", "is for dev"}, {"apps/staging", "is for staging"}}},
		"a folder that is named for no app": {"deploy/k8s", "", "prod: deploy/k8s; k8s", nil},
		"one that cannot be rendered is left out, and no pattern covers it": {"apps/api apps/bad apps/web", "",
			"prod: apps/api, apps/web; api web", left{{"apps/bad", "cannot be rendered: it is broken"}}},
		"the only overlay of an app": {"apps/api/overlays/default", "prod", "prod: apps/*/overlays/default; api", nil},
		"an overlay among several": {"apps/api/overlays/default apps/api/overlays/prod", "",
			"prod: apps/*/overlays/prod; api", left{{"apps/api/overlays/default", "is for default"}}},
		"folders that only show something": {"apps/web apps/web/tests/kube docs/example scripts/ci", "", "prod: apps/*; web", left{
			shown("apps/web/tests/kube", "apps/web/tests"), shown("docs/example", "docs/example"), shown("scripts/ci", "scripts")}},
		"an app that is named docs": {"apps/docs apps/web docs/example", "", "prod: apps/*; docs web",
			left{shown("docs/example", "docs/example")}},
		"a repository of examples": {"examples/api examples/web", "", "prod: examples/*; api web", nil},
		"one app for each of two clusters": {"clusters/cloud/web clusters/home/shop", "home",
			"home: clusters/home/*; shop", left{{"clusters/cloud/web", "is for cloud"}}},
		"a folder whose name is none of an app": {"apps/Till_API", "", "prod: apps/Till_API (till-api); till-api", nil},
		"two of one name": {"a/overlays/prod/web b/overlays/prod/web", "", "prod: a/overlays/prod/*; web",
			left{{"b/overlays/prod/web", "would be the app web, but a/overlays/prod/web has this name already"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := propose(t, treeOf(nil, strings.Fields(tt.dirs)...), tt.cluster, func(a rollout.App) (*rollout.Render, error) {
				if a.Path == "apps/bad" {
					return nil, errors.New("it is broken")
				}
				return bare(a)
			})
			paths := rollout.Mapped(got.Entries, func(e scaffold.Entry) string {
				compare.Check(t, scaffold.Entry{Path: e.Path, Name: e.Name}, e, render.Violations{})
				if e.Name != "" {
					return e.Path + " (" + e.Name + ")"
				}
				return e.Path
			})
			compare.Check(t, tt.want, got.Cluster+": "+strings.Join(paths, ", ")+"; "+namesOf(got))
			compare.CheckNamed(t, "left out", tt.leftOut, got.LeftOut)
			if len(got.Notes) > 0 {
				t.Errorf("notes %q", got.Notes)
			}
			if _, err := rollout.ParseConfig(got.ConfigFile().Path, []byte(got.ConfigFile().Content)); err != nil {
				t.Errorf("the configuration cannot be read: %v", err)
			}
		})
	}
}

func TestTheRootIsNoApp(t *testing.T) {
	for _, files := range []map[string]string{
		{"kustomization.yaml": "resources: []\n"},
		{"web.yaml": workload},
	} {
		tree := treeOf(files)
		_, err := scaffold.Propose(tree, look(t, tree), "", "gitrollout", bare)
		compare.Contains(t, fmt.Sprint(err), "move the files into one, such as apps/shop")
		files["apps/shop/kustomization.yaml"] = "resources: []\n"
		if p := propose(t, treeOf(files), "", bare); len(p.Apps) != 1 || len(p.LeftOut) != 1 || p.LeftOut[0].Path != "." {
			t.Errorf("apps %v, left out %v", p.Apps, p.LeftOut)
		}
	}
}

func TestConfigFile(t *testing.T) {
	got := scaffold.Proposal{Cluster: "prod", StateRepo: "git@git.example.com:state.git", Entries: []scaffold.Entry{{Path: "*/prod"}, {
		Path: "infra", Name: "edge",
		Needs: render.Violations{Namespaces: []string{"edge"}, ClusterResources: []string{"Namespace"}}}}}.ConfigFile()
	want := scaffold.File{Path: ".gitrollout/prod/config.yaml", Content: `# yaml-language-server: $schema=../schemas/config.json
apiVersion: gitrollout.dev/v1beta1
kind: Config
stateRepo: git@git.example.com:state.git
apps:
- path: '*/prod'
- path: infra
  name: edge
  namespaces: [edge]
  clusterResources: [Namespace]
`}
	compare.Check(t, want, got)
}

func deployment(name, strategy string) rollout.Object {
	return rollout.Object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "shop"},
		"spec": map[string]any{"strategy": map[string]any{"type": strategy}},
	}
}

// TestRollouts checks that a kustomization gets lines for the new Rollout documents, and keeps its other lines.
func TestRollouts(t *testing.T) {
	const none = "apps/web has no Deployment that needs a Rollout document"
	const documents = "apps/web/rollout.yaml apps/web/kustomization.yaml"
	web := []rollout.Object{deployment("web", "")}
	for name, tt := range map[string]struct {
		kustomization string
		deployments   []rollout.Object
		want          string // the expected kustomization
		files, told   string
	}{
		"one": {"resources:\n- web.yaml\nnamePrefix: a-\n", web, "resources:\n- rollout.yaml\n- web.yaml\nnamePrefix: a-\n", documents, ""},
		"two, and the lines are indented": {"resources: # all\n  - web.yaml\n", []rollout.Object{deployment("api", ""), deployment("web", "")},
			"resources: # all\n  - rollout-api.yaml\n  - rollout-web.yaml\n  - web.yaml\n",
			"apps/web/rollout-api.yaml apps/web/rollout-web.yaml apps/web/kustomization.yaml", ""},
		"in brackets": {"resources: [ web.yaml, '../b' ] \nnamePrefix: a-\n", web,
			"resources:\n- rollout.yaml\n- web.yaml\n- ../b\nnamePrefix: a-\n", documents, ""},
		"none in brackets": {"resources: []\n", web, "resources:\n- rollout.yaml\n", documents, ""},
		"no resources":     {"namePrefix: a-\n", web, "namePrefix: a-\nresources:\n- rollout.yaml\n", documents, ""},
		"staged already":   {"resources: []\n", web, "", "", "Deployment web has a Rollout document already; " + none},
		"objects other than Deployments": {"resources: []\n", []rollout.Object{
			{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": map[string]any{"name": "web"}},
			{"apiVersion": "example.org/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}},
		}, "", "", none},
		"Recreate": {"resources: []\n", []rollout.Object{deployment("web", "Recreate")}, "", "",
			"Deployment web has strategy Recreate, but steps need old and new pods side by side; " + none},
	} {
		t.Run(name, func(t *testing.T) {
			tree := treeOf(map[string]string{"apps/web/kustomization.yaml": tt.kustomization})
			r := &rollout.Render{App: rollout.App{Name: "web", Path: "apps/web"}, Objects: tt.deployments}
			if name == "staged already" {
				r.Specs = []rollout.Spec{{Workload: rollout.Workload{Namespace: "shop", Name: "web"}}}
			}
			files, told, err := scaffold.Rollouts(tree, r)
			must(t, err)
			var paths []string
			for _, f := range files {
				if f.Changes != (path.Base(f.Path) == "kustomization.yaml") {
					t.Errorf("%s was there: %t", f.Path, f.Changes)
				}
				if paths = append(paths, f.Path); f.Changes && f.Content != tt.want {
					t.Errorf("%s is\n%swant\n%s", f.Path, f.Content, tt.want)
				}
			}
			if got := strings.Join(paths, " "); got != tt.files || strings.Join(told, "; ") != tt.told {
				t.Errorf("files %s, want %s; told %q", got, tt.files, told)
			}
		})
	}
}

// TestRolloutsAreRendered checks that an app renders with the generated files.
func TestRolloutsAreRendered(t *testing.T) {
	tree := treeOf(map[string]string{
		"apps/web/kustomization.yaml": "resources:\n- web.yaml\n",
		"apps/web/web.yaml":           podsOf("web"),
	})
	app := rollout.App{Name: "web", Path: "apps/web", Namespace: "shop"}
	before, err := render.New(render.InProcess{}).Render(tree, app, rollout.Commit{})
	must(t, err)
	files, _, err := scaffold.Rollouts(tree, before)
	must(t, err)
	after, err := render.New(render.InProcess{}).Render(scaffold.With(tree, files), app, rollout.Commit{})
	must(t, err)
	if len(after.Specs) != 1 || len(after.Specs[0].Canary.Steps) != 4 || after.Specs[0].Workload.Name != "web" {
		t.Errorf("read as %+v", after.Specs)
	}
}

func TestRolloutsRefuse(t *testing.T) {
	r := &rollout.Render{App: rollout.App{Path: "apps/web"}, Objects: []rollout.Object{deployment("web", "")}}
	_, _, err := scaffold.Rollouts(treeOf(map[string]string{"apps/web/kustomization.yaml": "resources: [web.yaml,\n  api.yaml]\n"}), r)
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "resources" || !strings.Contains(invalid.Fix, "rollout.yaml") {
		t.Errorf("resources in brackets over lines: %v", err)
	}
	chart := treeOf(map[string]string{"apps/web/Chart.yaml": "name: web\n"})
	if files, _, err := scaffold.Rollouts(chart, r); err != nil || len(files) != 1 || files[0].Path != "apps/web/templates/rollout.yaml" {
		t.Errorf("a chart: %v, %v", files, err)
	}
	if _, _, err := scaffold.Rollouts(treeOf(nil), r); !errors.As(err, &invalid) || !strings.Contains(invalid.Msg, "no kustomization") {
		t.Errorf("no kustomization: %v", err)
	}
	there := treeOf(map[string]string{"apps/web/kustomization.yaml": "resources: []\n", "apps/web/rollout.yaml": "x: y\n"})
	files, told, err := scaffold.Rollouts(there, r)
	if err != nil || files != nil || !strings.Contains(strings.Join(told, ""), "nothing is overwritten") {
		t.Errorf("a file that is there: %v, %v, %v", files, told, err)
	}
}

// TestWith checks that added files replace existing files with the same path.
func TestWith(t *testing.T) {
	tree := scaffold.With(treeOf(map[string]string{"a/one": "1", "a/two": "2"}),
		[]scaffold.File{{Path: "a/two", Content: "new"}, {Path: "b/c/three", Content: "3"}})
	var names []string
	for _, dir := range []string{"", "a", "b", "b/c"} {
		entries, err := tree.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if data, err := tree.ReadBlob(e.ID); e.Name == "two" && (err != nil || string(data) != "new") {
				t.Errorf("a listed file is %q, %v", data, err)
			}
		}
		names = append(names, rollout.Mapped(entries, func(e rollout.Entry) string { return dir + "/" + e.Name })...)
	}
	compare.Check(t, []string{"/a", "/b", "a/one", "a/two", "b/c", "b/c/three"}, names)
	for file, want := range map[string]string{"a/one": "1", "a/two": "new", "b/c/three": "3"} {
		e, found, err := tree.Lookup(file)
		if err != nil || !found {
			t.Fatalf("%s: %v, %v", file, found, err)
		}
		if data, err := tree.ReadBlob(e.ID); err != nil || string(data) != want {
			t.Errorf("%s is %q, %v", file, data, err)
		}
	}
	if _, found, _ := tree.Lookup("c"); found {
		t.Error("a missing file is found")
	}
	other := scaffold.With(tree, []scaffold.File{{Path: "a/two", Content: "newer"}})
	if a, _, _ := tree.Lookup("a/two"); a.ID == "" {
		t.Error("a file has no ID")
	} else if b, _, _ := other.Lookup("a/two"); a.ID == b.ID {
		t.Error("two contents have one ID")
	}
}

// TestCharts checks that a chart is an app with its environment's values, unless another chart or a kustomization uses the chart.
func TestCharts(t *testing.T) {
	const main = "apiVersion: v2\nname: x\nversion: 1.0.0\n"
	tree := treeOf(map[string]string{
		"charts/shop/Chart.yaml": main, "charts/shop/values-prod.yaml": "a: 1\n", "charts/shop/values-dev.yaml": "a: 2\n",
		"charts/pay/Chart.yaml": main, "charts/pay/values-prod.yaml": "a: 1\n",
		"charts/pay/charts/sub/Chart.yaml":    main,
		"lib/common/Chart.yaml":               main + "type: library\n",
		"vendor/redis-1.0.0/redis/Chart.yaml": main, "vendor/mail/Chart.yaml": main,
		"apps/cache/kustomization.yaml": "helmGlobals: {chartHome: ../../vendor}\n" +
			"helmCharts: [{name: redis, version: 1.0.0, repo: 'https://x'}, {name: mail}]\n",
		"tools/db/Chart.yaml": main, "tools/db/values.yaml": "a: 1\n", "tools/db/templates/a.yaml": workload,
		"charts/both/Chart.yaml": main, "charts/both/kustomization.yaml": "resources: []\n",
	})
	const ofProd = "- path: apps/*\n- path: charts/*\n  helm: {valueFiles: [values-prod.yaml]}\n- path: tools/db\n  helm: {}\n"
	const ofDev = "- path: apps/*\n- path: charts/both\n- path: charts/pay\n  helm: {}\n" +
		"- path: charts/shop\n  helm: {valueFiles: [values-dev.yaml]}\n- path: tools/db\n  helm: {}\n"
	for cluster, want := range map[string]string{"": ofProd, "prod": ofProd, "dev": ofDev} {
		compare.CheckNamed(t, "cluster "+cluster, want, entriesOf(propose(t, tree, cluster, bare)))
	}
}
