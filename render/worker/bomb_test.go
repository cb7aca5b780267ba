package worker

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// bomb is a small app that asks for a lot. Its files are below "app" unless they name another folder.
type bomb struct {
	files files
	want  string // the message, as a regular expression; "" if it is built after all
}

// held is what an app gets that takes too much: which of the two it is depends on the machine.
const held = `takes more than (256Mi of memory|5s) to render`

var bombs = map[string]bomb{
	"templates that name the next one twice": {files: templates(41)},
	"a text that doubles 40 times": {files{
		"kustomization.yaml": "resources: [cm.yaml]\nreplacements:\n- source: {kind: ConfigMap, fieldPath: data.s}\n  targets:\n  - select: {kind: ConfigMap}\n" +
			"    options: {delimiter: '|', index: -1}\n    fieldPaths: [" + strings.Repeat("data.s, ", 39) + "data.s]\n",
		"cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {s: aaaaaaaaaaaaaaaa}\n",
	}, held},
	"a mapping that doubles 40 times": {files{
		"kustomization.yaml": "resources: [cm.yaml]\nreplacements:\n" + each(40, "- source: {kind: ConfigMap, fieldPath: data}\n"+
			"  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.x%d], options: {create: true}}]\n"),
		"cm.yaml": configMap,
	}, held},
	"a megabyte of annotations on 200 objects": {files{
		"kustomization.yaml": "resources: [all.yaml]\ncommonAnnotations: {a: " + strings.Repeat("x", 1<<20) + "}\n",
		"all.yaml":           configMaps(200),
	}, held},
	"a list of 990,000 numbers": {files{
		"kustomization.yaml": "resources: [list.yaml]\n",
		"list.yaml":          "apiVersion: example.com/v1\nkind: List1\nmetadata: {name: l}\nspec: [" + strings.Repeat("1,", 989_990) + "1]\n",
	}, held},
	"a replacement with 100,000 targets on 1,000 objects": {files{
		"kustomization.yaml": "resources: [all.yaml]\nreplacements:\n- source: {kind: ConfigMap, name: c1, fieldPath: data.a}\n  targets:\n" +
			each(100_000, "  - {select: {kind: ConfigMap}, fieldPaths: [data.a%d], options: {create: true}}\n"),
		"all.yaml": configMaps(1000),
	}, held + `|more than 1000000 YAML values`},
	"a variable in itself 40 times": {files{
		"kustomization.yaml": "resources: [cm.yaml]\n",
		"cm.yaml":            configMap + "x: \"" + strings.Repeat("${x//x/", 40) + "a" + strings.Repeat("}", 40) + "\"\n",
	}, held + "|cannot be read"},
	"500,000 variables": {files{
		"kustomization.yaml": "resources: [cm.yaml]\n", "cm.yaml": configMap + "x: " + strings.Repeat("${x}", 500_000) + "\n",
	}, held + "|there are 500000 of them"},
	"a megabyte of dollars": {files{
		"kustomization.yaml": "resources: [cm.yaml]\n", "cm.yaml": configMap + "x: " + strings.Repeat("$", 1<<20) + "\n",
	}, "there are 524288 of them"},
	"aliases of aliases": {files{
		"kustomization.yaml": "resources: [cm.yaml]\n",
		"cm.yaml":            "a0: &a0 [x, x]\n" + each(40, "a%[2]d: &a%[2]d [*a%[1]d, *a%[1]d]\n") + configMap,
	}, "expands to more than 1000000 YAML values"},
	"9,000 levels": {files{
		"kustomization.yaml": "resources: [cm.yaml]\n",
		"cm.yaml":            configMap + "x: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "\n",
	}, "nested more than 200 deep"},
	"4,000 objects": {files{
		"kustomization.yaml": "resources: [all.yaml]\n", "all.yaml": configMaps(4000),
	}, "more than 2000 objects"},
	"bases that name the next one twice": {bases(40), "more than 1000 kustomizations"},
	"patches that copy": {files{
		"kustomization.yaml": "resources: [cm.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |\n" +
			each(40, "    - {op: copy, from: /data, path: /data/x%d}\n"),
		"cm.yaml": configMap,
	}, "more than 16 copy operations"},
	"a name prefix of a megabyte": {files{
		"kustomization.yaml": "resources: [all.yaml]\nnamePrefix: " + strings.Repeat("x", 1<<20) + "\n",
		"all.yaml":           configMaps(500),
	}, held},
	"a large file in 60 overlays": {overlays(60, 12<<20), held},
	"30,000 containers and a patch of each": {files{
		"kustomization.yaml": "resources: [d.yaml]\npatches: [{path: p.yaml}]\n",
		"d.yaml":             deployment(30_000, "image: a"), "p.yaml": deployment(30_000, "image: b"),
	}, held},
	"an argument of a megabyte, a thousand times": {files{
		"kustomization.yaml": "resources: [d.yaml, r.yaml, t.yaml]\n",
		"d.yaml":             deployment(1, "image: a"),
		"r.yaml":             rolloutOf("t"),
		"t.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: t}\nspec:\n  args: [{name: a, value: " + strings.Repeat("x", 1<<20) +
			"}]\n  metrics: [{name: m, provider: {web: {url: \"http://m/" + strings.Repeat("{{args.a}}", 1000) + "\"}}}]\n",
	}, held},
	"a megabyte of labels that select": {files{
		"kustomization.yaml": "resources: [all.yaml]\nlabels: [{includeSelectors: true, pairs: {a: " + strings.Repeat("x", 4<<20) + "}}]\n",
		"all.yaml":           strings.Repeat("---\n"+deployment(1, "image: a"), 1) + configMaps(300),
	}, held},
	"a template with two billion rounds":  {chart(`{{ range until 2000000000 }}{{ end }}`, ""), held},
	"a template that doubles 40 times":    {chart(`{{ $x := "a" }}{{ range until 40 }}{{ $x = cat $x $x }}{{ end }}{{ $x }}`, ""), held},
	"a value that renders itself":         {chart(`{{ tpl .Values.x . }}`, "x: '{{ tpl .Values.x . }}'\n"), held},
	"a template that includes itself":     {chart(`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, ""), held + "|nested reference name"},
	"a template that goes on for 8 hours": {chart(`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, ""), held},
	"values that are aliases of aliases":  {chart(``, "a0: &a0 [x, x]\n"+each(40, "a%[2]d: &a%[2]d [*a%[1]d, *a%[1]d]\n")), "excessive aliasing"},
	"50,000 objects of a template":        {chart(`{{ range until 50000 }}---{{ print "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c" . "}\n" }}{{ end }}`, ""), held + "|more than 2000 objects"},
}

// chart is an app of a chart with one template.
func chart(template, values string) files {
	return files{"kustomization.yaml": "helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: c, releaseName: r}]\n",
		"charts/c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "charts/c/values.yaml": values, "charts/c/templates/t.yaml": template}
}

// each is a line for 0, 1 … with that number, and the next one, in it.
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

func rolloutOf(template string) string {
	return "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: d}\nspec:\n  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: d}\n" +
		"  strategy: {canary: {steps: [{setWeight: 20}, {analysis: {templates: [{templateName: " + template + "}]}}]}}\n"
}

// templates lead to the last one by 2^(n-1) ways.
func templates(n int) files {
	const template = "---\napiVersion: gitrollout.dev/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: t%d}\nspec: "
	return files{
		"kustomization.yaml": "resources: [d.yaml, r.yaml, t.yaml]\n", "d.yaml": deployment(1, "image: a"), "r.yaml": rolloutOf("t0"),
		"t.yaml": each(n-1, strings.Replace(template, "%d", "%[1]d", 1)+"{templates: [{templateName: t%[2]d}, {templateName: t%[2]d}]}\n") +
			fmt.Sprintf(template, n-1) + "{metrics: [{name: m, provider: {web: {url: \"http://m\"}}}]}\n",
	}
}

func bases(n int) files {
	f := files{"kustomization.yaml": "resources: [../b0]\n", fmt.Sprintf("b%d/kustomization.yaml", n): "resources: [cm.yaml]\n",
		fmt.Sprintf("b%d/cm.yaml", n): configMap}
	for i := range n {
		f[fmt.Sprintf("b%d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: a\nresources: [../b%d, ../b%d]\n", i+1, i+1)
	}
	return f
}

func overlays(n, size int) files {
	f := files{"b/kustomization.yaml": "configMapGenerator: [{name: big, files: [big.txt]}]\n", "b/big.txt": strings.Repeat("x", size)}
	var all []string
	for i := range n {
		f[fmt.Sprintf("o%d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: o%d-\nresources: [../b]\n", i)
		all = append(all, fmt.Sprintf("../o%d", i))
	}
	f["kustomization.yaml"] = "resources: [" + strings.Join(all, ", ") + "]\n"
	return f
}

// tree puts the files below app, but for those that are in a folder.
func (b bomb) tree() files {
	f := files{}
	for name, content := range b.files {
		if !strings.Contains(name, "/") {
			name = "app/" + name
		}
		f[name] = content
	}
	return f
}

// TestBombs: each of them is held by a reason, or is none. The process that asks keeps its memory, and the next app is
// built.
func TestBombs(t *testing.T) {
	p := pool(t, 1)
	builds(t, p)
	var before, after runtime.MemStats
	for name, b := range bombs {
		t.Run(name, func(t *testing.T) {
			tree := b.tree()
			runtime.ReadMemStats(&before)
			_, _, err := p.Build(tree, rollout.App{Name: "bomb", Path: "app", Namespace: "shop",
				Variables: rollout.NewVariables(map[string]string{"x": strings.Repeat("x", 20)}, nil),
				Limits:    rollout.Limits{Memory: 256 << 20, RenderTime: 5 * time.Second}})
			runtime.ReadMemStats(&after)
			var invalid *rollout.InvalidError
			switch {
			case b.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case b.want != "" && !errors.As(err, &invalid):
				t.Errorf("error %v, want it held: %s", err, b.want)
			case b.want != "" && !regexp.MustCompile(b.want).MatchString(err.Error()):
				t.Errorf("held: %v, want %s", err, b.want)
			}
			if err != nil {
				t.Logf("%.200s", err)
			}
			// Sys is what there ever was of it: all that it needs for a bomb are its files, once for each message.
			if grown := int64(after.Sys-before.Sys) >> 20; grown > 128 {
				t.Errorf("the asking process has grown by %d MiB", grown)
			}
			builds(t, p)
		})
	}
}
