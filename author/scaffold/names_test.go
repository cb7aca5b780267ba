package scaffold_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/scaffold"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestNames checks three values from a folder's path: the environment, the app's name, and the glob for similar apps.
func TestNames(t *testing.T) {
	long := strings.Repeat("a", 62) + "-bc"
	for dir, want := range map[string][3]string{ // the environment, the name and the glob
		"web":                           {"", "", "web"},
		"apps/web":                      {"", "", "apps/*"},
		"web/overlays/prod":             {"prod", "web", "*/overlays/prod"},
		"web/overlays/eu-1":             {"eu-1", "web", "*/overlays/eu-1"},
		"clusters/eu-1/web":             {"eu-1", "", "clusters/eu-1/*"},
		"web/live":                      {"live", "web", "*/live"},
		"deploy/k8s":                    {"", "", "deploy/k8s"},
		"overlays":                      {"", "", "overlays"},
		"apps/My_Shop.0z9Z/k8s":         {"", "my-shop-0z9z", "apps/*/k8s"},
		"apps/-a{b`:[z-/base":           {"", "a-b---z", "apps/*/base"},
		"apps/" + long + "/base":        {"", long[:62], "apps/*/base"},
		"apps/" + long[:61] + "zyx/k8s": {"", long[:61] + "zy", "apps/*/k8s"},
	} {
		compare.CheckNamed(t, dir, want, [3]string{scaffold.Environment(dir), scaffold.NameOf(dir), scaffold.GlobOf(dir)})
	}
}

// TestWhichCluster checks the chosen environment and cluster name. Common environments come first, in order of preference, then other
// environments by name. If there is neither an environment nor a given name, the cluster is prod. A given name may begin or end with the
// environment.
func TestWhichCluster(t *testing.T) {
	for _, c := range []struct{ roots, cluster, want, env string }{
		{"web/overlays/us web/overlays/eu", "", "eu", "eu"},
		{"web/overlays/us web/overlays/dev web/overlays/staging", "", "staging", "staging"},
		{"web", "", "prod", ""}, {"web", "edge", "edge", ""},
		{"web/prod web/dev", "dev", "dev", "dev"}, {"web/prod web/dev", "dev-eu", "dev-eu", "dev"},
		{"web/prod web/dev", "eu-dev", "eu-dev", "dev"}, {"web/prod web/dev", "device", "device", "prod"},
	} {
		p := scaffold.Proposal{Cluster: c.cluster}
		if env := p.Choose(strings.Fields(c.roots)); env != c.env || p.Cluster != c.want {
			t.Errorf("%q of %s: cluster %s with the files for %q, want %s and %q", c.cluster, c.roots, p.Cluster, env, c.want, c.env)
		}
	}
}

const (
	workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	unnamed  = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec: "
)

// TestWhatALookFinds checks that Look lists each folder once and in order, down to maxDepth. It recognizes objects of
// Flux and Argo CD by their API groups, and skips unreadable files.
func TestWhatALookFinds(t *testing.T) {
	const deep = "a/b/c/d/e/f/g/"
	got := look(t, treeOf(map[string]string{
		"charts/p/Chart.yaml": "name: p\n", "charts/p/A/Chart.yaml": "name: a\n",
		"flux/a.yaml": document(fluxFolder, "x", "{path: apps/web}"), "flux/b.yaml": document(fluxFolder, "x", "{path: ./apps/web}"),
		"flux/c.yaml": document(fluxFolder, "x", "{}"), "flux/d.yaml": document(fluxFolder, "x", "{path: [x]}"),
		"crds/app.yaml":     "apiVersion: app.k8s.io/v1beta1\nkind: Application\nspec: {source: {path: apps/other}}\n",
		"argo/bad.yaml":     unnamed + "{source: [x]}\n",
		"argo/none.yaml":    unnamed + "{source: {chart: x}}\n",
		"rollouts/web.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\n",
	}, "apps", "apps/web", deep+"h", deep+"h/i"))
	want := scaffold.Survey{
		Kustomizations: []scaffold.Kustomization{{Path: deep + "h"}, {Path: "apps"}, {Path: "apps/web"}},
		Charts:         []scaffold.Chart{{Path: "charts/p"}, {Path: "charts/p/A"}},
		Flux:           []string{"apps/web"}, Plain: []string{"rollouts"}, ArgoRollouts: []string{"rollouts/web.yaml"},
		Given: []scaffold.Given{{File: "argo/none.yaml", Entry: scaffold.Entry{Helm: &rollout.Helm{}}},
			{File: "flux/a.yaml", Entry: scaffold.Entry{Path: "apps/web"}}, {File: "flux/b.yaml", Entry: scaffold.Entry{Path: "apps/web"}}},
	}
	compare.Check(t, want.Looked("argo", "flux"), got, scaffold.Given{}, render.Violations{})
}

// TestWhatIsAnApp checks that a folder that Flux or Argo CD deploys is an app, even if another folder uses it. A folder whose files define
// objects of Flux or Argo CD is no app. A folder of manifests includes its subfolders, unless a subfolder has a kustomization.
func TestWhatIsAnApp(t *testing.T) {
	other := strings.Replace(workload, "web", "other", 1)
	p := propose(t, treeOf(map[string]string{
		"flux/web.yaml": document(fluxFolder, "x", "{path: svc/web}"), "flux/kustomization.yaml": "resources: [web.yaml]\n",
		"argo/api.yaml":          unnamed + "{source: {path: svc/api}}\n",
		"all/kustomization.yaml": "resources: [../svc/web, ../svc/api, ../svc/db]\n",
		"plain/web.yaml":         workload, "plain/more/web.yaml": other,
		"mixed/web.yaml": workload, "mixed/more/web.yaml": other, "mixed/built/kustomization.yaml": "resources: []\n",
		"many/a/x.yaml": workload, "many/b/x.yaml": workload, "many/b/y.json": "{}",
	}, "svc/web", "svc/api", "svc/db"), "", bare)
	compare.Check(t, `- path: all
- path: many/a
  directory: {}
- path: many/b
  directory: {exclude: y.json}
- path: mixed
  directory: {}
- path: mixed/*
  directory: {}
- path: plain
  directory: {recurse: true}
- path: svc/api
- path: svc/web
`, entriesOf(p))
	compare.CheckNamed(t, "left out", []scaffold.LeftOut{{"flux", "has objects of Flux"}}, p.LeftOut)
}

// TestWhatIsNoApp checks that a folder whose render has objects of Argo CD is omitted, and that jsonnet files are reported.
func TestWhatIsNoApp(t *testing.T) {
	tree := treeOf(map[string]string{"apps/Chart.yaml": chartOfShop, "web/main.jsonnet": "[]", "web/params.libsonnet": "{}"}, "svc/web")
	p := propose(t, tree, "", func(a rollout.App) (*rollout.Render, error) {
		r := &rollout.Render{App: a}
		if a.Path == "apps" {
			r.Objects = []rollout.Object{{"apiVersion": "v1", "kind": "Secret"}, {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}}
		}
		return r, nil
	})
	want := []scaffold.LeftOut{
		{"web/main.jsonnet", "is jsonnet, which is not run here: have CI run it, and commit the manifests that it prints"},
		{"apps", "has objects of Argo CD"},
	}
	compare.CheckNamed(t, "left out", want, p.LeftOut)
	compare.CheckNamed(t, "apps", 1, len(p.Apps))
}

// TestManyLeftOut checks that the message lists at most five omitted paths per reason, and the number of the other paths.
func TestManyLeftOut(t *testing.T) {
	p := scaffold.Proposal{LeftOut: []scaffold.LeftOut{{"x", "is for dev"}}}
	for _, name := range strings.Fields("a b c d e f g") {
		p.LeftOut = append(p.LeftOut, scaffold.LeftOut{name, "is jsonnet"})
	}
	want := []string{"left out x: is for dev", "left out a: is jsonnet", "left out b: is jsonnet", "left out c: is jsonnet",
		"left out d: is jsonnet", "left out e: is jsonnet", "left out 2 more: is jsonnet"}
	compare.Check(t, want, p.Told(scaffold.Survey{}))
}

// TestWhoKeepsAnObject checks that, if a kustomization and a chart have the same object, only the kustomization becomes an app. It also
// checks that an entry allows its apps' cluster-scoped objects.
func TestWhoKeepsAnObject(t *testing.T) {
	p := propose(t, treeOf(map[string]string{"a/Chart.yaml": chartOfShop}, "b"), "", func(a rollout.App) (*rollout.Render, error) {
		return &rollout.Render{App: a, Objects: []rollout.Object{
			{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "shop"}},
			{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "web"}},
		}}, nil
	})
	if len(p.LeftOut) != 1 || p.LeftOut[0].Path != "a" ||
		!strings.HasPrefix(p.LeftOut[0].Why, "has objects that b also has, such as Service shop/web;") {
		t.Errorf("left out: %v", p.LeftOut)
	}
	compare.Contains(t, entriesOf(p), "clusterResources: [rbac.authorization.k8s.io/ClusterRole]")
}

// TestWhatEnginesSayThatIsLost checks the messages about settings of Flux or Argo CD that an entry cannot have.
func TestWhatEnginesSayThatIsLost(t *testing.T) {
	got := proposed(t, withCharts(map[string]string{
		"env/prod.yaml":               "a: 3\n",
		"apps/web/kustomization.yaml": built("web", "b"),
		"engines/flux.yaml": document(fluxFolder, "x", "{path: apps/web, targetNamespace: web, patches: [{}], images: [{}], components: [x], "+
			"decryption: {provider: sops}}") + document(fluxFolder, "x", "{path: apps/absent, patches: [{}]}"),
		"engines/releases.yaml": document(helmRelease, "one, namespace: flux-system",
			"{targetNamespace: shops, chart: {spec: {chart: charts/one}}, postRenderers: [{}]}") +
			document(helmRelease, "referred", "{chartRef: {kind: OCIRepository, name: x}}") +
			document(helmRelease, "none", "") + document(helmRelease, "wrong", "{chart: [x]}"),
		"engines/argo.yaml": document(argoApp, "two", `{source: {path: charts/two, plugin: {name: x}, helm: {values: "a: 7", `+
			`valueFiles: [/env/prod.yaml, "https://example.com/v.yaml"]}}}`) +
			document(argoApp, "three", `{source: {path: charts/three, helm: {parameters: [{name: a, value: "8"}]}}}`) +
			document(argoApp, "four", `{source: {path: charts/four, helm: {values: "["}}}`) +
			document(argoApp, "web-folder", "{source: {path: plain}}"),
		"plain/web.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: x}\nspec: {containers: [{name: a, image: a}]}\n",
	}, "charts/one", "charts/two", "charts/three", "charts/four"))
	compare.Check(t, `- path: apps/web
  namespace: web
- path: charts/four
  helm: {releaseName: four}
- path: charts/one
  namespace: shops
  helm: {releaseName: shops-one}
- path: charts/three
  helm:
    releaseName: three
    valuesObject:
      a: 8
- path: charts/two
  helm:
    releaseName: two
    valueFiles:
    - ../../env/prod.yaml
    valuesObject:
      a: 7
- path: plain
  directory: {}
  namespaces: [x]
left out engines/flux.yaml: names the folder apps/absent, which is not in this repository: `+
		`add it with gitrollout vendor, and list the folder that gitrollout vendor writes
left out engines/releases.yaml: HelmRelease referred uses the chart x, which is not in this repository: `+
		`add it with gitrollout vendor --from engines, commit it, and run this again
note apps/web: settings of engines/flux.yaml are not carried over (spec.patches, spec.images, spec.components, spec.decryption): `+
		`put them into the folder
note charts/four: settings of engines/argo.yaml are not carried over (source.helm.values): put them into the folder
note charts/one: settings of engines/releases.yaml are not carried over (spec.postRenderers): put them into the folder
note charts/two: settings of engines/argo.yaml are not carried over (source.plugin, source.helm.valueFiles https://example.com/v.yaml): `+
		`put them into the folder`, got)
}

// TestVariablesText checks the text of variables. Empty variables differ from absent variables.
func TestVariablesText(t *testing.T) {
	for want, v := range map[string]rollout.Variables{
		"": {}, "  substitute: {}\n": rollout.NewVariables(nil, nil),
		"  substitute:\n    a: b\n":             rollout.NewVariables(map[string]string{"a": "b"}, nil),
		"  substituteFrom:\n  - file: a.yaml\n": rollout.NewVariables(nil, []string{"a.yaml"}),
	} {
		compare.Check(t, want, scaffold.VariablesText(v))
	}
}

// TestOneEntryForAll checks that folders with equal settings share one entry, and that folders with different settings have separate
// entries.
func TestOneEntryForAll(t *testing.T) {
	recursing, flat := &rollout.Directory{Recurse: true}, &rollout.Directory{}
	one, other := &rollout.Helm{ReleaseName: "one"}, &rollout.Helm{ReleaseName: "other"}
	for name, c := range map[string]struct {
		a, b  scaffold.Entry
		alike bool
	}{
		"nothing is said":       {scaffold.Entry{}, scaffold.Entry{}, true},
		"one has a directory":   {scaffold.Entry{}, scaffold.Entry{Directory: flat}, true},
		"the same directories":  {scaffold.Entry{Directory: flat}, scaffold.Entry{Directory: &rollout.Directory{}}, true},
		"different directories": {scaffold.Entry{Directory: flat}, scaffold.Entry{Directory: recursing}, false},
		"different charts":      {scaffold.Entry{Helm: one}, scaffold.Entry{Helm: other}, false},
		"the same charts":       {scaffold.Entry{Helm: one}, scaffold.Entry{Helm: &rollout.Helm{ReleaseName: "one"}}, true},
		"different namespaces":  {scaffold.Entry{Namespace: "x"}, scaffold.Entry{Namespace: "y"}, false},
		"different variables":   {scaffold.Entry{Variables: rollout.NewVariables(nil, nil)}, scaffold.Entry{}, false},
	} {
		for _, first := range []string{"a", "b"} {
			group := []string{first, map[string]string{"a": "b", "b": "a"}[first]}
			if _, alike := scaffold.LikeAll(group, map[string]scaffold.Entry{"a": c.a, "b": c.b}); alike != c.alike {
				t.Errorf("%s, from %s: alike %t", name, first, alike)
			}
		}
	}
	p := scaffold.Proposal{}
	tree := treeOf(nil, "apps/a", "apps/b", "apps/c")
	for want, folders := range map[bool][]string{true: {"apps/a", "apps/b", "apps/c"}, false: {"apps/a", "apps/b", "apps/d"}} {
		if p.Matches(tree, scaffold.Entry{Path: "apps/*"}, folders) != want || p.Matches(tree, scaffold.Entry{Path: "apps/*"}, folders[:2]) {
			t.Errorf("apps/* is %v: %t", folders, !want)
		}
	}
}
