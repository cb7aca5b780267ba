package render_test

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// shopChart returns the files of a small chart in a folder.
func shopChart(dir string) map[string]string {
	return map[string]string{
		dir + "/Chart.yaml":  "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		dir + "/values.yaml": "replicas: 1\ncolour: red\nlist: [a]\n",
		dir + "/templates/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}-web\n" +
			"  labels: {in: \"{{ .Release.Namespace }}\"}\nspec:\n  replicas: {{ .Values.replicas }}\n  selector: {matchLabels: {app: web}}\n" +
			"  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: \"web:{{ .Values.colour }}\"}]}\n",
		dir + "/templates/NOTES.txt": "Thank you for {{ .Release.Name }}\n",
	}
}

// seen lists the objects of a render of shopChart. For a Deployment, it adds the release's namespace, one # per
// replica, and the image.
func seen(t *testing.T, r *rollout.Render) string {
	t.Helper()
	var all []string
	for _, o := range r.Objects {
		text := o.Kind() + "/" + o.Namespace() + "/" + o.Name()
		if o.Kind() == "Deployment" {
			labels := o.Map("metadata", "labels")
			image := o.Map("spec", "template", "spec")["containers"].([]any)[0].(map[string]any)["image"]
			text += " " + labels["in"].(string) + " " + strings.Repeat("#", int(o.Map("spec")["replicas"].(int64))) + " " + image.(string)
		}
		notes := maps.Clone(o.Map("metadata", "annotations"))
		delete(notes, "helm.sh/hook")
		if len(notes) > 0 {
			t.Errorf("%s has annotations: %v", o.Name(), notes)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// definition is the manifest of a CustomResourceDefinition.
const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\n" +
	"spec: {group: example.com, scope: Namespaced, names: {kind: X, plural: xs}, versions: []}\n"

// TestHelmCharts checks the effect of each supported field of helmCharts, the warnings about fields without effect, and
// the errors about charts that cannot be rendered.
func TestHelmCharts(t *testing.T) {
	const app, chart = "apps/shop/", "apps/shop/charts/shop"
	type more map[string]string
	hooks := more{
		chart + "/templates/hook.yaml": configMap("migrate, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}"),
		chart + "/templates/test.yaml": configMap("try, annotations: {helm.sh/hook: test}"),
		chart + "/crds/x.yaml":         definition,
	}
	charts := func(fields string) string { return "helmCharts: [{name: shop, releaseName: eu" + fields + "}]" }
	const file, eu = ", valuesFile: v.yaml", "Deployment/shop/eu-web shop "
	const here = "apps/shop/kustomization.yaml: "
	missing := func(chart, folder string) string {
		return here + "helmCharts[0].name: the chart " + chart + " is not in this commit: there is no folder apps/shop/charts/" + folder +
			"; commit the output of helm pull --untar there: charts are read only from Git"
	}
	depends := "apiVersion: v2\nname: shop\nversion: 1.0.0\n" +
		"dependencies: [{name: lib, version: 1.0.0, repository: 'file://../../../../lib'}]\n"
	for name, c := range map[string]struct {
		kustomization string
		more          more
		want          string // the text from seen(), or the error
		warns         string
	}{
		"a chart":          {charts(""), nil, eu + "# web:red", ""},
		"inline values":    {charts(", valuesInline: {replicas: 3}"), nil, eu + "### web:red", ""},
		"values of a file": {charts(file), more{app + "v.yaml": "replicas: 2\n"}, eu + "## web:red", ""},
		"more files": {charts(file + ", additionalValuesFiles: [w.yaml]"),
			more{app + "v.yaml": "replicas: 2\n", app + "w.yaml": "colour: blue\n"}, eu + "## web:blue", ""},
		"merged": {charts(file + ", valuesMerge: merge, valuesInline: {replicas: 3, colour: green}"),
			more{app + "v.yaml": "replicas: 2\n"}, eu + "## web:green", ""},
		"override": {charts(file + ", valuesMerge: override, valuesInline: {replicas: 3}"),
			more{app + "v.yaml": "replicas: 2\ncolour: blue\n"}, eu + "### web:blue", ""},
		"replaced": {charts(file + ", valuesMerge: replace, valuesInline: {replicas: 3}"),
			more{app + "v.yaml": "colour: blue\n"}, eu + "### web:red", ""},
		"its own namespace":  {charts(", namespace: other"), nil, "Deployment/other/eu-web other # web:red", ""},
		"a namespace of all": {"namespace: all\n" + charts(""), nil, "Deployment/all/eu-web all # web:red", ""},
		"named and patched": {"namePrefix: my-\nimages: [{name: web, newTag: '9'}]\n" + charts(""), nil,
			"Deployment/shop/my-eu-web shop # web:9", ""},
		"a template of a name": {"helmCharts: [{name: shop, nameTemplate: '{{ \"EU\" | lower }}'}]", nil, eu + "# web:red", ""},
		"another home": {"helmGlobals: {chartHome: ../../vendor, configHome: x}\n" + charts(""), shopChart("vendor/shop"), eu + "# web:red",
			here + "the configHome of helm is ignored: no helm program runs"},
		"by its version": {charts(", repo: 'https://x', version: 1.0.0, debug: true"), shopChart("apps/shop/charts/shop-1.0.0/shop"),
			eu + "# web:red", here + "debug and devel of helmCharts[0] are ignored: no helm program runs"},
		"the old generator": {"helmChartInflationGenerator: [{chartName: shop, releaseName: eu, valuesLocal: {replicas: 2}}]", nil,
			eu + "## web:red", ""},
		"a linked kustomization": {"", more{app + "kustomization.yaml": linkTo + "../../shared/k.yaml",
			"shared/k.yaml": "namePrefix: my-\n" + charts("")}, "Deployment/shop/my-eu-web shop # web:red", ""},
		"two":   {charts("}, {name: shop, releaseName: us"), nil, eu + "# web:red; Deployment/shop/us-web shop # web:red", ""},
		"hooks": {charts(""), hooks, "ConfigMap/shop/migrate; " + eu + "# web:red", ""},
		"a test by chance": {charts(""), more{chart + "/templates/test.yaml": configMap("try-{{ randAlpha 3 | lower }}, " +
			"annotations: {helm.sh/hook: test}")}, eu + "# web:red", ""},
		"a chart of this commit": {charts(""), more{chart + "/Chart.yaml": depends}, "apps/shop/charts/shop/Chart.yaml: dependencies[0]: " +
			"the chart lib is not in charts/; if this repository has the chart, commit charts/lib as a symbolic link to ../../../../../lib", ""},
		"a chart by its link": {charts(""), more{chart + "/Chart.yaml": depends, chart + "/charts/lib": linkTo + "../../../../../lib",
			"lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\n"}, eu + "# web:red", ""},
		"without hooks": {charts(", skipHooks: true, includeCRDs: true"), hooks,
			"CustomResourceDefinition//xs.example.com; " + eu + "# web:red", ""},
		"in a base": {"namespace: deep\nresources: [../base]",
			with(shopChart("apps/base/charts/shop"), "apps/base/kustomization.yaml", charts("")), "Deployment/deep/eu-web deep # web:red", ""},

		"no chart":        {"helmCharts: [{name: redis, releaseName: eu}]", nil, missing("redis", "redis"), ""},
		"no such version": {charts(", repo: 'https://x', version: 1.0.1"), nil, missing("shop", "shop-1.0.1/shop"), ""},
		"no name": {"helmCharts: [{name: shop}]", nil,
			here + "helmCharts[0].releaseName: is missing, so kustomize would generate another name at each build; write one", ""},
		"a bad name": {"helmCharts: [{name: shop, releaseName: 'A b'}]", nil,
			`apps/shop/charts/shop: the release name "A b" is not valid; use at most 53 lower-case letters, digits, - and .`, ""},
		"chance": {"helmCharts: [{name: shop, nameTemplate: 'x-{{ randAlpha 3 }}'}]", nil,
			here + "helmCharts[0].nameTemplate: would differ at each render; write a releaseName", ""},
		"merge how": {charts(", valuesMerge: mix"), nil, here + `helmCharts[0].valuesMerge: "mix" must be merge, override or replace`, ""},
		"out of the repository": {"helmGlobals: {chartHome: ../../..}\n" + charts(""), nil,
			here + "helmCharts[0].name: ../../../shop leaves the repository; put the files into the repository", ""},
		"two namespaces": {"resources: [a, b]", merged(shopChart("apps/shop/c/charts/shop"), more{
			app + "c/kustomization.yaml": charts(""), app + "a/kustomization.yaml": "namespace: a\nresources: [../c]\n",
			app + "b/kustomization.yaml": "namespace: b\nresources: [../c]\n"}), "apps/shop/c/kustomization.yaml: helmCharts: " +
			`is used for the namespaces "a" and "b", but its charts set no namespace; give the charts a namespace`, ""},
		"a template that fails": {charts(""), more{chart + "/templates/f.yaml": "{{ fail \"no way\" }}"},
			"apps/shop/charts/shop: Helm: execution error at (shop/templates/f.yaml:1:3): no way", ""},
		"a key twice": {charts(""), more{chart + "/templates/f.yaml": configMap("a, name: b, labels: {x: a, y: b, x: c}")},
			"ConfigMap/shop/b; " + eu + "# web:red",
			"apps/shop/charts/shop/templates/f.yaml: line 3: the key name is listed twice: the last value counts, as in Helm"},
		"a symlink out": {charts(""), more{chart + "/templates/f.yaml": linkTo + "../../../../../../etc/passwd"},
			"apps/shop/charts/shop/templates/f.yaml: leads out of the repository through a symlink; put the files into the repository", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := merged(shopChart(chart), more{app + "kustomization.yaml": c.kustomization + "\n"}, c.more)
			r, err := rendered(files, rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop"})
			if err != nil {
				compare.CheckNamed(t, "error", c.want, err.Error())
				return
			}
			compare.Check(t, c.want, seen(t, r))
			compare.CheckNamed(t, "warnings", c.warns, strings.Join(r.Warnings, "\n"))
		})
	}
}

// chartShop returns an app whose folder apps/shop is a chart. The app's entry has the given helm block.
func chartShop(h rollout.Helm) rollout.App {
	return rollout.App{Name: "eu", Path: "apps/shop", Namespace: "shop", Helm: h, Kubernetes: "1.30.2", APIVersions: "example.com/v1 v2"}
}

// TestChartFolders checks that an app whose folder is a chart is rendered with the settings of its entry.
func TestChartFolders(t *testing.T) {
	const app = "apps/shop"
	type more map[string]string
	const eu = "Deployment/shop/eu-web shop "
	crd := more{app + "/crds/x.yaml": definition}
	asks := func(what string) more {
		return more{app + "/templates/web.yaml": "", app + "/templates/a.yaml": configMap("\"x{{ " + what + " }}\"")}
	}
	for name, c := range map[string]struct {
		helm rollout.Helm
		more more
		want string
	}{
		"by itself": {rollout.Helm{}, nil, eu + "# web:red"},
		"a name":    {rollout.Helm{ReleaseName: "us"}, nil, "Deployment/shop/us-web shop # web:red"},
		"values":    {rollout.Helm{Values: `{"replicas": 3}`}, nil, eu + "### web:red"},
		"files": {rollout.Helm{ValueFiles: "a b.yaml\n../x.yaml", Values: `{"replicas": 4}`},
			more{app + "/a b.yaml": "replicas: 2\ncolour: blue\n", "apps/x.yaml": "colour: green\n"}, eu + "#### web:green"},
		"null":    {rollout.Helm{Values: `{"colour": null}`}, nil, eu + "# web:"},
		"CRDs":    {rollout.Helm{}, crd, "CustomResourceDefinition//xs.example.com; " + eu + "# web:red"},
		"no CRDs": {rollout.Helm{SkipCRDs: true}, crd, eu + "# web:red"},
		"a kustomization": {rollout.Helm{}, more{app + "/kustomization.yaml": "resources: [a.yaml]\n", app + "/a.yaml": configMap("own")},
			"ConfigMap/shop/own"},
		"the version": {rollout.Helm{}, asks(".Capabilities.KubeVersion.Minor"), "ConfigMap/shop/x30"},
		"an API":      {rollout.Helm{}, asks(`.Capabilities.APIVersions.Has "example.com/v1"`), "ConfigMap/shop/xtrue"},
		"not ignored": {rollout.Helm{}, more{app + "/.helmignore": "templates/w*\n", app + "/templates/a.yaml": configMap("own")},
			"ConfigMap/shop/own"},

		"no such file": {rollout.Helm{ValueFiles: "v.yaml"}, nil, app + ": helm.valueFiles[0]: v.yaml does not exist in this commit"},
		"a folder":     {rollout.Helm{ValueFiles: "templates"}, nil, app + ": helm.valueFiles[0]: templates is not a file"},
		"out of it": {rollout.Helm{ValueFiles: "../../../x"}, nil,
			app + ": helm.valueFiles[0]: ../../../x leaves the repository; put the files into the repository"},
		"an address": {rollout.Helm{ValueFiles: "https://x/v.yaml"}, nil, app + ": helm.valueFiles[0]: https://x/v.yaml is remote: " +
			"only files in this commit are rendered; vendor it into the repository, and name its path"},
		"no values": {rollout.Helm{ValueFiles: "v.yaml"}, more{app + "/v.yaml": "- a\n"},
			app + "/v.yaml: is not valid YAML: cannot unmarshal yaml document: error unmarshaling JSON: " +
				"while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := rendered(merged(shopChart(app), c.more), chartShop(c.helm))
			got := fmt.Sprint(err)
			if err == nil {
				got = seen(t, r)
			}
			compare.Check(t, c.want, got)
		})
	}
}

// TestUnchangedChartCostsNothing checks which changes cause a build: a change of a chart's files, of its values, or of
// the target of a symlink in the chart. A changed file beside the chart causes no build.
func TestUnchangedChartCostsNothing(t *testing.T) {
	files := merged(shopChart("apps/shop/charts/shop"), map[string]string{
		"apps/shop/kustomization.yaml":       "helmCharts: [{name: shop, releaseName: eu, additionalValuesFiles: [v.yaml]}]\n",
		"apps/shop/v.yaml":                   "replicas: 2\n",
		"apps/shop/charts/shop/files":        linkTo + "../../../../shared",
		"shared/a.txt":                       "a",
		"apps/shop/charts/other/Chart.yaml":  "x",
		"apps/shop/charts/shop/crds/ad.yaml": "",
	})
	app := rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop"}
	for name, c := range map[string]struct {
		file, content string
		builds        int
	}{
		"nothing":              {"other/x", "x", 1},
		"another chart":        {"apps/shop/charts/other/Chart.yaml", "y", 1},
		"a template":           {"apps/shop/charts/shop/templates/web.yaml", configMap("x"), 2},
		"one more":             {"apps/shop/charts/shop/templates/more.yaml", configMap("x"), 2},
		"one that goes":        {"apps/shop/charts/shop/templates/NOTES.txt", "", 2},
		"values":               {"apps/shop/v.yaml", "replicas: 3\n", 2},
		"the target of a link": {"shared/b.txt", "b", 2},
		"a file there changes": {"shared/a.txt", "b", 2},
	} {
		r := render.New(render.InProcess{})
		for _, commit := range []map[string]string{files, files, with(files, c.file, c.content)} {
			mustRender(t, r, commit, app)
		}
		compare.CheckNamed(t, name+": builds", c.builds, r.Builds())
	}
}

// TestKept checks that an object with Helm's annotation "keep" gets the annotation that prevents pruning.
func TestKept(t *testing.T) {
	r := renderDocs(t, configMap("a, annotations: {helm.sh/resource-policy: keep}")+"---\n"+configMap("b"))
	kept, other := r.Objects[0].Map("metadata", "annotations"), r.Objects[1].Map("metadata", "annotations")
	if kept[rollout.AnnotationPrune] != "disabled" || other[rollout.AnnotationPrune] != nil {
		t.Errorf("annotations %v and %v", kept, other)
	}
}

// TestSameKustomization adds an empty helmGlobals to each kustomization, so that render rewrites the file. The output must not change.
func TestSameKustomization(t *testing.T) {
	features, err := filepath.Glob("testdata/corpus/*")
	must(t, err)
	builds := 0
	for _, feature := range features {
		files := readFiles(t, feature)
		rewritten := map[string]string{}
		for name, content := range files {
			if path.Base(name) == "kustomization.yaml" && name != "shared/kustomization.yaml" && !strings.HasPrefix(content, linkTo) {
				content += "\nhelmGlobals: {}\n"
			}
			rewritten[name] = content
		}
		for _, dir := range kustomizations(files) {
			want, _, err := render.BuildYAML(newTree(files), dir)
			if err != nil {
				continue // TestSameBytesAsKustomize checks the error
			}
			got, _, err := render.BuildYAML(newTree(rewritten), dir)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s/%s: got %s (%v), want %s", feature, dir, got, err, want)
			}
			builds++
		}
	}
	if builds < 30 {
		t.Errorf("%d builds compared", builds)
	}
}
