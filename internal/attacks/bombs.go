package attacks

import (
	"fmt"
	"maps"
	"strings"
)

// Bomb is an app whose rendering or analysis would take too much time or memory.
type Bomb struct {
	Files map[string]string // a path without a slash is in the app's folder; others are relative to the folder's parent
	Want  string            // pattern of the error that holds the app (State.Held); "" if the app can be rendered
}

// OutOfBounds matches the error for an app that exceeds the limit of time or memory. The exceeded limit depends on the machine.
const OutOfBounds = `takes more than \S+ (of memory )?to render`

// Bombs returns the bombs by name. Some bombs use the variable x, whose value must have 20 characters.
func Bombs() map[string]Bomb {
	all := map[string]Bomb{
		"templates that name the next one twice": {Files: templates(41)},
		"a text that doubles 40 times": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\nreplacements:\n- source: {kind: ConfigMap, fieldPath: data.s}\n  targets:\n  - select: {kind: ConfigMap}\n" +
				"    options: {delimiter: '|', index: -1}\n    fieldPaths: [" + strings.Repeat("data.s, ", 39) + "data.s]\n",
			"cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {s: aaaaaaaaaaaaaaaa}\n",
		}, OutOfBounds},
		"a mapping that doubles 40 times": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\nreplacements:\n" + each(40, "- source: {kind: ConfigMap, fieldPath: data}\n"+
				"  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x%d], options: {create: true}}]\n"),
			"cm.yaml": configMap,
		}, OutOfBounds},
		"a megabyte of annotations on 200 objects": {map[string]string{
			"kustomization.yaml": "resources: [all.yaml]\ncommonAnnotations: {a: " + strings.Repeat("x", 1<<20) + "}\n",
			"all.yaml":           configMaps(200),
		}, OutOfBounds},
		"a list of 990,000 numbers": {map[string]string{
			"kustomization.yaml": "resources: [list.yaml]\n",
			"list.yaml":          "apiVersion: example.com/v1\nkind: List1\nmetadata: {name: l}\nspec: [" + strings.Repeat("1,", 989_990) + "1]\n",
		}, OutOfBounds},
		"a replacement with 100,000 targets on 1,000 objects": {map[string]string{
			"kustomization.yaml": "resources: [all.yaml]\nreplacements:\n- source: {kind: ConfigMap, name: c1, fieldPath: data.a}\n  targets:\n" +
				each(100_000, "  - {select: {kind: ConfigMap}, fieldPaths: [data.a%d], options: {create: true}}\n"),
			"all.yaml": configMaps(1000),
		}, OutOfBounds + `|more than 1000000 YAML values`},
		"a mapping where a text is selected": {map[string]string{
			"kustomization.yaml": "resources: [d.yaml, r.yaml]\n", "r.yaml": rolloutOf("{setWeight: 20}"),
			"d.yaml": strings.ReplaceAll(deployment(1, "image: a"), "{a: b}", "{app: {a: b}}"),
		}, "not of type string"},
		"aliases of aliases": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\n",
			"cm.yaml":            "a0: &a0 [x, x]\n" + each(40, "a%[2]d: &a%[2]d [*a%[1]d, *a%[1]d]\n") + configMap,
		}, "expands to more than 1000000 YAML values"},
		"9,000 levels": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\n",
			"cm.yaml":            configMap + "x: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "\n",
		}, "nested more than 200 deep"},
		"4,000 objects": {map[string]string{
			"kustomization.yaml": "resources: [all.yaml]\n", "all.yaml": configMaps(4000),
		}, "more than 2000 objects"},
		"bases that name the next one twice": {bases(40), "more than 1000 kustomizations"},
		"patches that copy": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n" +
				each(40, "    - {op: copy, from: /data, path: /data/x%d}\n"),
			"cm.yaml": configMap,
		}, "more than 16 copy operations"},
		"a name prefix of a megabyte": {map[string]string{
			"kustomization.yaml": "resources: [all.yaml]\nnamePrefix: " + strings.Repeat("x", 1<<20) + "\n",
			"all.yaml":           configMaps(500),
		}, OutOfBounds},
		"a large file in 60 overlays": {overlays(60, 12<<20), OutOfBounds},
		"30,000 containers and a patch of each": {map[string]string{
			"kustomization.yaml": "resources: [d.yaml]\npatches: [{path: p.yaml}]\n",
			"d.yaml":             deployment(30_000, "image: a"), "p.yaml": deployment(30_000, "image: b"),
		}, OutOfBounds},
		"an argument of a megabyte, a thousand times": {map[string]string{
			"kustomization.yaml": "resources: [d.yaml, r.yaml, t.yaml]\n",
			"d.yaml":             deployment(1, "image: a"),
			"r.yaml":             rolloutOf(judged),
			"t.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: t}\nspec:\n  args: [{name: a, value: " + strings.Repeat("x", 1<<20) +
				"}]\n  metrics: [{name: m, provider: {web: {url: \"http://m/" + strings.Repeat("{{args.a}}", 1000) + "\"}}}]\n",
		}, OutOfBounds},
		"a megabyte of labels that select": {map[string]string{
			"kustomization.yaml": "resources: [all.yaml]\nlabels: [{includeSelectors: true, pairs: {a: " + strings.Repeat("x", 4<<20) + "}}]\n",
			"all.yaml":           strings.Repeat("---\n"+deployment(1, "image: a"), 1) + configMaps(300),
		}, OutOfBounds},
	}
	maps.Copy(all, written())
	return all
}

// written returns the bombs with Helm templates or variables.
func written() map[string]Bomb {
	return map[string]Bomb{
		"a template with two billion rounds":               {Chart(`{{ range until 2000000000 }}{{ end }}`, ""), OutOfBounds},
		"a template that doubles 40 times":                 {Chart(`{{ $x := "a" }}{{ range until 40 }}{{ $x = cat $x $x }}{{ end }}{{ $x }}`, ""), OutOfBounds},
		"a value that renders itself":                      {Chart(`{{ tpl .Values.x . }}`, "x: '{{ tpl .Values.x . }}'\n"), OutOfBounds},
		"a template that includes itself":                  {Chart(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, ""), OutOfBounds + "|nested reference name"},
		"a template that goes on for 8 hours":              {Chart(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, ""), OutOfBounds},
		"values that are aliases of aliases":               {Chart(``, "a0: &a0 [x, x]\n"+each(40, "a%[2]d: &a%[2]d [*a%[1]d, *a%[1]d]\n")), "excessive aliasing"},
		"a schema that leads to the last one by 2^40 ways": schemaOf(40),
		"a variable in itself 40 times": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\n",
			"cm.yaml":            configMap + "x: \"" + strings.Repeat("${x//x/", 40) + "a" + strings.Repeat("}", 40) + "\"\n",
		}, OutOfBounds + "|cannot be read"},
		"500,000 variables": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\n", "cm.yaml": configMap + "x: " + strings.Repeat("${x}", 500_000) + "\n",
		}, OutOfBounds + "|there are 500000 expressions"},
		"a megabyte of dollars": {map[string]string{
			"kustomization.yaml": "resources: [cm.yaml]\n", "cm.yaml": configMap + "x: " + strings.Repeat("$", 1<<20) + "\n",
		}, "there are 524288 expressions"},
		"50,000 objects of a template": {Chart(`{{ range until 50000 }}---{{ print "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c" . "}\n" }}{{ end }}`, ""), OutOfBounds + "|more than 2000 objects"},
	}
}

// Chart returns the files of an app with a Helm chart that has one template.
func Chart(template, values string) map[string]string {
	return map[string]string{"kustomization.yaml": "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: c, releaseName: r}]\n",
		"charts/c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "charts/c/values.yaml": values, "charts/c/templates/t.yaml": template}
}

// each returns n lines. It formats line i with the numbers i and i+1.
func each(n int, line string) string {
	var b strings.Builder
	for i := range n {
		if strings.Contains(line, "%[") {
			fmt.Fprintf(&b, line, i, i+1)
		} else {
			fmt.Fprintf(&b, line, i)
		}
	}
	return b.String()
}

func configMaps(n int) string {
	return each(n, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%d}\ndata: {a: b}\n")
}

func deployment(containers int, with string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n" +
		"  template:\n    metadata: {labels: {a: b}}\n    spec:\n      containers:\n" + each(containers, "      - {name: c%d, "+with+"}\n")
}

const judged = "{setWeight: 20}, {analysis: {templates: [{templateName: t}]}}"

func rolloutOf(steps string) string {
	return "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: d}\nspec:\n  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}\n" +
		"  strategy: {canary: {steps: [" + steps + "]}}\n"
}

// templates returns an app with n AnalysisTemplates. Each template names the next twice, so 2^(n-1) paths lead to the last template.
func templates(n int) map[string]string {
	const template = "---\napiVersion: gitrollout.dev/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: t%d}\nspec: "
	return map[string]string{
		"kustomization.yaml": "resources: [d.yaml, r.yaml, t.yaml]\n", "d.yaml": deployment(1, "image: a"), "r.yaml": rolloutOf(strings.Replace(judged, "t}", "t0}", 1)),
		"t.yaml": each(n-1, strings.Replace(template, "%d", "%[1]d", 1)+"{templates: [{templateName: t%[2]d}, {templateName: t%[2]d}]}\n") +
			fmt.Sprintf(template, n-1) + "{metrics: [{name: m, provider: {web: {url: \"http://m\"}}}]}\n",
	}
}

func bases(n int) map[string]string {
	f := map[string]string{"kustomization.yaml": "resources: [../b0]\n", fmt.Sprintf("b%d/kustomization.yaml", n): "resources: [cm.yaml]\n",
		fmt.Sprintf("b%d/cm.yaml", n): configMap}
	for i := range n {
		f[fmt.Sprintf("b%d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: a\nresources: [../b%d, ../b%d]\n", i+1, i+1)
	}
	return f
}

func overlays(n, size int) map[string]string {
	f := map[string]string{"b/kustomization.yaml": "configMapGenerator: [{name: big, files: [big.txt]}]\n", "b/big.txt": strings.Repeat("x", size)}
	var all []string
	for i := range n {
		f[fmt.Sprintf("o%d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: o%d-\nresources: [../b]\n", i)
		all = append(all, fmt.Sprintf("../o%d", i))
	}
	f["kustomization.yaml"] = "resources: [" + strings.Join(all, ", ") + "]\n"
	return f
}

// schemaOf returns an app with a Helm chart. In the chart's JSON schema, 2^n paths of references lead to the last definition.
func schemaOf(n int) Bomb {
	files := Chart("", "x: 1\n")
	files["charts/c/values.schema.json"] = `{"$ref": "#/definitions/a0", "definitions": {` +
		each(n, `"a%[1]d": {"allOf": [{"$ref": "#/definitions/a%[2]d"}, {"$ref": "#/definitions/a%[2]d"}]}, `) + fmt.Sprintf(`"a%d": {}}}`, n)
	return Bomb{files, OutOfBounds}
}

// configMap is the manifest of one ConfigMap.
const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"

// Tree returns the bomb's files. Files without a folder are in the folder "app".
func (b Bomb) Tree() map[string]string {
	tree := map[string]string{}
	for name, content := range b.Files {
		if !strings.Contains(name, "/") {
			name = "app/" + name
		}
		tree[name] = content
	}
	return tree
}

// Judged returns apps that can be rendered. Each app has a new version of Deployment d, and an analysis whose evaluation would take too
// much time or memory. The server at url returns a JSON document for /load, and two large numbers for /requests.
func Judged(url string) map[string]Bomb {
	withHash := strings.Replace(judged, "t}]", "t}], args: [{name: hash, valueFrom: {podTemplateHashValue: Latest}}]", 1)
	asks := func(version, metric string) Bomb {
		return Bomb{Files: map[string]string{
			"kustomization.yaml": "resources: [d.yaml, r.yaml, t.yaml]\n", "d.yaml": deployment(1, "image: "+version), "r.yaml": rolloutOf(withHash),
			"t.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: t}\nspec:\n  args: [{name: hash}]\n" +
				"  metrics:\n  - {name: m, consecutiveErrorLimit: 0, " + metric + "}\n",
		}}
	}
	web := "provider: {web: {url: '" + url + "/load'"
	return map[string]Bomb{
		"a condition that takes all memory":  asks("memory", `successCondition: "len(reduce(1..60, #acc + #acc, 'aaaaaaaa')) > 0", `+web+"}}"),
		"a condition that never ends":        asks("time", `successCondition: "let r = 1..9000; all(r, {all(r, {all(r, {true})})})", `+web+"}}"),
		"a path that finds 2^24 values":      asks("path", `successCondition: "len(result) > 0", `+web+`, jsonPath: "{$.a`+strings.Repeat("[0,0]", 24)+`}"}}`),
		"two trillion requests, and another": asks("requests", "compare: {to: stable, maxIncrease: 0.1}, count: 3, interval: 1s, provider: {web: {url: '"+url+"/requests?of={{args.hash}}'}}"),
	}
}

// Quiet returns a harmless app with the first version of Deployment d. Each app of Judged updates this Deployment.
func Quiet() map[string]string {
	return map[string]string{"kustomization.yaml": "resources: [d.yaml, r.yaml]\n", "d.yaml": deployment(1, "image: a"),
		"r.yaml": rolloutOf("{setWeight: 20}, {pause: {duration: 1s}}")}
}
