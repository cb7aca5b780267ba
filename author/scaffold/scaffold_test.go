package scaffold

import (
	"errors"
	"path"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// empty is a tree without files: With adds some.
type empty struct{}

func (empty) Lookup(name string) (rollout.Entry, bool, error) {
	return rollout.Entry{Kind: rollout.Dir}, name == "", nil
}
func (empty) ReadDir(string) ([]rollout.Entry, error) { return nil, nil }
func (empty) ReadBlob(id string) ([]byte, error)      { return nil, errors.New("no blob " + id) }

// treeOf returns a tree with files; a path alone is a kustomization without resources.
func treeOf(files map[string]string, kustomizations ...string) rollout.Tree {
	var all []File
	for name, content := range files {
		all = append(all, File{Path: name, Content: content})
	}
	for _, dir := range kustomizations {
		all = append(all, File{Path: dir + "/kustomization.yaml", Content: "resources: []\n"})
	}
	return With(empty{}, all)
}

func look(t *testing.T, tree rollout.Tree) Survey {
	t.Helper()
	s, err := Look(tree)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
		"flux/apps.yaml":                    "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: {path: ./apps/web}\n",
		"flux/git.yml":                      "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n",
		"argo/app.yaml":                     "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: {source: {path: apps/web}, sources: [{path: apps/db}]}\n",
		"argo/kustomization.yaml":           "resources: [app.yaml]\n",
		"node_modules/x/kustomization.yaml": "resources: []\n",
		".gitrollout/prod/config.yaml":      "kind: Config\n",
		"README.md":                         "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\n",
	}))
	want := Survey{
		Kustomizations: []Kustomization{
			{Path: "apps/base", Uses: []string{"apps/base/all.yaml"}},
			{Path: "apps/broken"},
			{Path: "apps/parts", Component: true},
			{Path: "apps/web", Uses: []string{"apps/base", "apps/parts"}},
			{Path: "argo", Uses: []string{"argo/app.yaml"}, Engine: "Argo CD"},
			{Path: "flux", Uses: []string{"flux/apps.yaml"}, Engine: "Flux"},
		},
		Flux: []string{"apps/web"}, ArgoCD: []string{"apps/db", "apps/web"},
		ArgoRollouts: []string{"apps/base/all.yaml"}, Charts: []Chart{{Path: "charts/db"}},
	}
	want.Given = got.Given
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := compare.Diff([]string{"apps/broken", "apps/web"}, got.roots()); diff != "" {
		t.Errorf("roots (-want +got):\n%s", diff)
	}
}

func bare(a rollout.App) (*rollout.Render, error) { return &rollout.Render{App: a}, nil }

// TestOneObjectOneApp has the same services as plain manifests, as a kustomization and as one file for releases. The
// configuration has only one form, and the others are reported.
func TestOneObjectOneApp(t *testing.T) {
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	tree := treeOf(map[string]string{
		"manifests/web.yaml": web, "release/all.yaml": web, "kustomize/base/web.yaml": web,
		"kustomize/base/kustomization.yaml": "resources: [web.yaml]\n", "kustomize/kustomization.yaml": "resources: [base]\n",
		"other/kustomization.yaml": "resources: [settings.yaml]\n",
	})
	p, err := Propose(tree, look(t, tree), "", "gitrollout", func(a rollout.App) (*rollout.Render, error) {
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
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range p.Apps {
		got = append(got, a.Path)
	}
	for _, l := range p.LeftOut {
		got = append(got, l.Path+" "+l.Why)
	}
	why := " has objects that kustomize has, too, such as Service default/web; an object belongs to one app: " +
		"list only one, or give this one another namespace"
	want := []string{"kustomize", "other", "manifests" + why, "release" + why}
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPlainFolders makes folders of manifests apps if they have a workload that no other app has.
func TestPlainFolders(t *testing.T) {
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
	tree := treeOf(map[string]string{
		"guestbook/web.yaml": web, "guestbook/settings.yaml": settings,
		"apps/cart/web.yaml": web, "apps/cart/db/db.yaml": web, "apps/pay/web.yaml": web, "apps/pay/worker/w.yaml": web,
		"shop/base/web.yaml": web, "shop/prod/kustomization.yaml": "resources: [../base/web.yaml]\n",
		"chart/Chart.yaml": "name: x\n", "chart/templates/web.yaml": web,
		"notes/settings.yaml": settings, "argo/app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\n",
		"patched/kustomization.yaml": "resources: []\n", "patched/patches/web.yaml": web, "web.yaml": web,
		"guestbook/package.json": `{"name": "guestbook"}`, "guestbook/list.json": `[1]`, "guestbook/typo.yaml": "a: {{",
		"guestbook/empty.yaml": "# nothing\n", "apps/notes.json": `{"a": 1}`,
	})
	p, err := Propose(tree, look(t, tree), "", "gitrollout", bare)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: apps/*
  directory: {recurse: true}
- path: chart
  helm: {}
- path: guestbook
  directory: {exclude: '{list.json,package.json}'}
- path: patched
- path: '*/prod'
`
	if got := configText(p.Entries); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	var names []string
	for _, a := range p.Apps {
		names = append(names, a.Name)
	}
	if got := strings.Join(names, " "); got != "cart pay chart guestbook patched shop" {
		t.Errorf("apps %s", got)
	}
	notes := []string{"guestbook: files without Kubernetes objects are excluded: {list.json,package.json}"}
	if diff := compare.Diff(notes, p.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestPropose makes entries for the apps of one environment only.
func TestPropose(t *testing.T) {
	for name, tt := range map[string]struct {
		dirs            []string
		cluster, broken string
		want            Proposal
		names           string
	}{
		"a folder for each app": {
			dirs: []string{"apps/api", "apps/web"},
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "apps/*"}}}, names: "api web",
		},
		"overlays, of which prod is meant": {
			dirs: []string{"apps/api/overlays/prod", "apps/api/overlays/dev", "apps/web/overlays/prod"},
			want: Proposal{
				Cluster: "prod", Entries: []Entry{{Path: "apps/*/overlays/prod"}}, LeftOut: []LeftOut{{"apps/api/overlays/dev", "is for dev"}},
			}, names: "api web",
		},
		"another environment is asked for": {
			dirs: []string{"apps/api/overlays/prod", "apps/api/overlays/dev"}, cluster: "dev",
			want: Proposal{
				Cluster: "dev", Entries: []Entry{{Path: "apps/*/overlays/dev"}}, LeftOut: []LeftOut{{"apps/api/overlays/prod", "is for prod"}},
			}, names: "api",
		},
		"a cluster of an environment": {
			dirs: []string{"prod/web", "dev/web"}, cluster: "prod-eu",
			want: Proposal{Cluster: "prod-eu", Entries: []Entry{{Path: "prod/*"}}, LeftOut: []LeftOut{{"dev/web", "is for dev"}}}, names: "web",
		},
		"an environment by its other name": {
			dirs: []string{"dev/web", "production/web"}, cluster: "prod",
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "production/*"}}, LeftOut: []LeftOut{{"dev/web", "is for dev"}}}, names: "web",
		},
		"an environment by all its names": {
			dirs: []string{"apps/a/live", "apps/b/prod", "apps/b/production", "apps/c/production"}, cluster: "prod", want: Proposal{Cluster: "prod",
				Entries: []Entry{{Path: "apps/*/live"}, {Path: "apps/*/prod"}, {Path: "apps/c/production", Name: "c"}},
				LeftOut: []LeftOut{{"apps/b/production", "is for production"}}}, names: "a b c",
		},
		"an environment of which nothing is here has nothing of another one": {
			dirs: []string{"apps/staging", "apps/dev", "web"}, cluster: "production",
			want: Proposal{Cluster: "production", Entries: []Entry{{Path: "web"}},
				LeftOut: []LeftOut{{"apps/dev", "is for dev"}, {"apps/staging", "is for staging"}}}, names: "web",
		},
		"a folder that is named for no app": {
			dirs: []string{"deploy/k8s"},
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "deploy/k8s"}}}, names: "k8s",
		},
		"one that cannot be rendered is left out, and no pattern covers it": {
			dirs: []string{"apps/api", "apps/bad", "apps/web"}, broken: "apps/bad",
			want: Proposal{
				Cluster: "prod", Entries: []Entry{{Path: "apps/api"}, {Path: "apps/web"}},
				LeftOut: []LeftOut{{"apps/bad", "cannot be rendered: it is broken"}},
			}, names: "api web",
		},
		"the only overlay of an app": {
			dirs: []string{"apps/api/overlays/default"}, cluster: "prod",
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "apps/*/overlays/default"}}}, names: "api",
		},
		"an overlay among several": {
			dirs: []string{"apps/api/overlays/default", "apps/api/overlays/prod"},
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "apps/*/overlays/prod"}},
				LeftOut: []LeftOut{{"apps/api/overlays/default", "is for default"}}}, names: "api",
		},
		"folders that only show something": {
			dirs: []string{"apps/web", "apps/web/tests/kube", "docs/example", "scripts/ci"},
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "apps/*"}}, LeftOut: []LeftOut{
				{"apps/web/tests/kube", "is in apps/web/tests, and nothing deploys it; list it if it is an app"},
				{"docs/example", "is in docs/example, and nothing deploys it; list it if it is an app"},
				{"scripts/ci", "is in scripts, and nothing deploys it; list it if it is an app"},
			}}, names: "web",
		},
		"an app that is named docs": {
			dirs: []string{"apps/docs", "apps/web", "docs/example"},
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "apps/*"}}, LeftOut: []LeftOut{
				{"docs/example", "is in docs/example, and nothing deploys it; list it if it is an app"},
			}}, names: "docs web",
		},
		"a repository of examples": {
			dirs: []string{"examples/api", "examples/web"},
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "examples/*"}}}, names: "api web",
		},
		"one app for each of two clusters": {
			dirs: []string{"clusters/cloud/web", "clusters/home/shop"}, cluster: "home",
			want: Proposal{Cluster: "home", Entries: []Entry{{Path: "clusters/home/*"}}, LeftOut: []LeftOut{{"clusters/cloud/web", "is for cloud"}}}, names: "shop",
		},
		"a folder whose name is none of an app": {
			dirs: []string{"apps/Till_API"},
			want: Proposal{Cluster: "prod", Entries: []Entry{{Path: "apps/Till_API", Name: "till-api"}}}, names: "till-api",
		},
		"two of one name": {
			dirs: []string{"a/overlays/prod/web", "b/overlays/prod/web"},
			want: Proposal{
				Cluster: "prod", Entries: []Entry{{Path: "a/overlays/prod/*"}},
				LeftOut: []LeftOut{{"b/overlays/prod/web", "would be the app web, which a/overlays/prod/web is"}},
			}, names: "web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := treeOf(nil, tt.dirs...)
			got, err := Propose(tree, look(t, tree), tt.cluster, "gitrollout", func(a rollout.App) (*rollout.Render, error) {
				if a.Path == tt.broken {
					return nil, errors.New("it is broken")
				}
				return bare(a)
			})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, a := range got.Apps {
				names = append(names, a.Name)
			}
			if got.Apps = nil; strings.Join(names, " ") != tt.names {
				t.Errorf("apps %v, want %s", names, tt.names)
			}
			if diff := compare.Diff(tt.want, got, render.Violations{}, Proposal{}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
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
		{"web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"},
	} {
		tree := treeOf(files)
		_, err := Propose(tree, look(t, tree), "", "gitrollout", bare)
		if err == nil || !strings.Contains(err.Error(), "move the files into one, such as apps/shop") {
			t.Errorf("error %v", err)
		}
		files["apps/shop/kustomization.yaml"] = "resources: []\n"
		tree = treeOf(files)
		p, err := Propose(tree, look(t, tree), "", "gitrollout", bare)
		if err != nil || len(p.Apps) != 1 || len(p.LeftOut) != 1 || p.LeftOut[0].Path != "." {
			t.Errorf("apps %v, left out %v, error %v", p.Apps, p.LeftOut, err)
		}
	}
}

func TestConfigFile(t *testing.T) {
	got := Proposal{Cluster: "prod", Entries: []Entry{{Path: "*/prod"}, {Path: "infra", Name: "edge",
		Needs: render.Violations{Namespaces: []string{"edge"}, ClusterResources: []string{"Namespace"}}}}}.ConfigFile()
	want := File{Path: ".gitrollout/prod/config.yaml", Content: `# yaml-language-server: $schema=../schemas/config.json
apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: '*/prod'
- path: infra
  name: edge
  namespaces: [edge]
  clusterResources: [Namespace]
`}
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func deployment(name, strategy string) rollout.Object {
	return rollout.Object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name, "namespace": "shop"},
		"spec": map[string]any{"strategy": map[string]any{"type": strategy}},
	}
}

// TestRollouts adds lines to a kustomization without other changes.
func TestRollouts(t *testing.T) {
	for name, tt := range map[string]struct {
		kustomization string
		deployments   []rollout.Object
		staged        string
		want          string // of the kustomization
		files         string
		told          string
	}{
		"one": {
			"resources:\n- web.yaml\nnamePrefix: a-\n", []rollout.Object{deployment("web", "")}, "",
			"resources:\n- rollout.yaml\n- web.yaml\nnamePrefix: a-\n", "apps/web/rollout.yaml apps/web/kustomization.yaml", "",
		},
		"two, and the lines are indented": {
			"resources: # all\n  - web.yaml\n", []rollout.Object{deployment("api", ""), deployment("web", "")}, "",
			"resources: # all\n  - rollout-api.yaml\n  - rollout-web.yaml\n  - web.yaml\n",
			"apps/web/rollout-api.yaml apps/web/rollout-web.yaml apps/web/kustomization.yaml", "",
		},
		"in brackets": {
			"resources: [ web.yaml, '../b' ] \nnamePrefix: a-\n", []rollout.Object{deployment("web", "")}, "",
			"resources:\n- rollout.yaml\n- web.yaml\n- ../b\nnamePrefix: a-\n", "apps/web/rollout.yaml apps/web/kustomization.yaml", "",
		},
		"none in brackets": {
			"resources: []\n", []rollout.Object{deployment("web", "")}, "",
			"resources:\n- rollout.yaml\n", "apps/web/rollout.yaml apps/web/kustomization.yaml", "",
		},
		"no resources": {
			"namePrefix: a-\n", []rollout.Object{deployment("web", "")}, "",
			"namePrefix: a-\nresources:\n- rollout.yaml\n", "apps/web/rollout.yaml apps/web/kustomization.yaml", "",
		},
		"staged already": {
			"resources: []\n", []rollout.Object{deployment("web", "")}, "web", "", "",
			"Deployment web has a Rollout document already; apps/web has no Deployment that needs a Rollout document",
		},
		"objects other than Deployments": {
			"resources: []\n", []rollout.Object{
				{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": map[string]any{"name": "web"}},
				{"apiVersion": "example.org/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}},
			}, "", "", "", "apps/web has no Deployment that needs a Rollout document",
		},
		"Recreate": {
			"resources: []\n", []rollout.Object{deployment("web", "Recreate")}, "", "", "",
			"Deployment web has strategy Recreate: old and new pods cannot run side by side, as steps need; " +
				"apps/web has no Deployment that needs a Rollout document",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := treeOf(map[string]string{"apps/web/kustomization.yaml": tt.kustomization})
			r := &rollout.Render{App: rollout.App{Name: "web", Path: "apps/web"}, Objects: tt.deployments}
			if tt.staged != "" {
				r.Specs = []rollout.Spec{{Workload: rollout.Workload{Namespace: "shop", Name: tt.staged}}}
			}
			files, told, err := Rollouts(tree, r)
			if err != nil {
				t.Fatal(err)
			}
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

// TestRolloutsAreRendered checks that the written files can be read.
func TestRolloutsAreRendered(t *testing.T) {
	tree := treeOf(map[string]string{
		"apps/web/kustomization.yaml": "resources:\n- web.yaml\n",
		"apps/web/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n" +
			"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: x}]}}\n",
	})
	app := rollout.App{Name: "web", Path: "apps/web", Namespace: "shop"}
	before, err := render.New(render.InProcess{}).Render(tree, app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := Rollouts(tree, before)
	if err != nil {
		t.Fatal(err)
	}
	after, err := render.New(render.InProcess{}).Render(With(tree, files), app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Specs) != 1 || len(after.Specs[0].Canary.Steps) != 4 || after.Specs[0].Workload.Name != "web" {
		t.Errorf("read as %+v", after.Specs)
	}
}

func TestRolloutsRefuse(t *testing.T) {
	r := &rollout.Render{App: rollout.App{Path: "apps/web"}, Objects: []rollout.Object{deployment("web", "")}}
	_, _, err := Rollouts(treeOf(map[string]string{"apps/web/kustomization.yaml": "resources: [web.yaml,\n  api.yaml]\n"}), r)
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "resources" || !strings.Contains(invalid.Fix, "rollout.yaml") {
		t.Errorf("resources in brackets over lines: %v", err)
	}
	chart := treeOf(map[string]string{"apps/web/Chart.yaml": "name: web\n"})
	if files, _, err := Rollouts(chart, r); err != nil || len(files) != 1 || files[0].Path != "apps/web/templates/rollout.yaml" {
		t.Errorf("a chart: %v, %v", files, err)
	}
	if _, _, err := Rollouts(treeOf(nil), r); !errors.As(err, &invalid) || !strings.Contains(invalid.Msg, "no kustomization") {
		t.Errorf("no kustomization: %v", err)
	}
	there := treeOf(map[string]string{"apps/web/kustomization.yaml": "resources: []\n", "apps/web/rollout.yaml": "x: y\n"})
	if files, told, err := Rollouts(there, r); err != nil || files != nil || !strings.Contains(strings.Join(told, ""), "nothing is overwritten") {
		t.Errorf("a file that is there: %v, %v, %v", files, told, err)
	}
}

// TestWith hides existing files behind unwritten ones.
func TestWith(t *testing.T) {
	tree := With(treeOf(map[string]string{"a/one": "1", "a/two": "2"}), []File{{Path: "a/two", Content: "new"}, {Path: "b/c/three", Content: "3"}})
	var names []string
	for _, dir := range []string{"", "a", "b", "b/c"} {
		entries, err := tree.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name)
		}
	}
	if diff := compare.Diff([]string{"/a", "/b", "a/one", "a/two", "b/c", "b/c/three"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
}

// TestCharts makes charts apps with the values of their environment, except charts that others use.
func TestCharts(t *testing.T) {
	const main = "apiVersion: v2\nname: x\nversion: 1.0.0\n"
	tree := treeOf(map[string]string{
		"charts/shop/Chart.yaml": main, "charts/shop/values-prod.yaml": "a: 1\n", "charts/shop/values-dev.yaml": "a: 2\n",
		"charts/pay/Chart.yaml": main, "charts/pay/values-prod.yaml": "a: 1\n",
		"charts/pay/charts/sub/Chart.yaml":    main,
		"lib/common/Chart.yaml":               main + "type: library\n",
		"vendor/redis-1.0.0/redis/Chart.yaml": main, "vendor/mail/Chart.yaml": main,
		"apps/cache/kustomization.yaml": "helmGlobals: {chartHome: ../../vendor}\nhelmCharts: [{name: redis, version: 1.0.0, repo: 'https://x'}, {name: mail}]\n",
		"tools/db/Chart.yaml":           main,
		"tools/db/values.yaml":          "a: 1\n",
		"tools/db/templates/a.yaml":     "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
		"charts/both/Chart.yaml":        main, "charts/both/kustomization.yaml": "resources: []\n",
	})
	for cluster, values := range map[string]string{"": "prod", "prod": "prod", "dev": "dev"} {
		p, err := Propose(tree, look(t, tree), cluster, "gitrollout", bare)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"prod": "- path: apps/*\n- path: charts/*\n  helm: {valueFiles: [values-prod.yaml]}\n- path: tools/db\n  helm: {}\n",
			"dev":  "- path: apps/*\n- path: charts/both\n- path: charts/pay\n  helm: {}\n- path: charts/shop\n  helm: {valueFiles: [values-dev.yaml]}\n- path: tools/db\n  helm: {}\n",
		}[values]
		got := strings.TrimPrefix(configText(p.Entries), "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n")
		if got != want {
			t.Errorf("cluster %q: got\n%swant\n%s", cluster, got, want)
		}
	}
}
