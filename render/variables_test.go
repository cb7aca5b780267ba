package render_test

import (
	"maps"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// withVariables returns the app in folder a with the variables in values and in files.
func withVariables(values map[string]string, files ...string) rollout.App {
	return rollout.App{Name: "a", Path: "a", Namespace: "default", Variables: rollout.NewVariables(values, files)}
}

const namespaceOfFlux = `apiVersion: v1
kind: Namespace
metadata:
  name: apps
  labels:
    environment: ${cluster_env:=dev}
    region: "${cluster_region}"
`

// TestVariables checks apps with variables: the example in Flux's documentation, sources of values, texts that stay unchanged, and errors.
func TestVariables(t *testing.T) {
	config := func(x string) string { return configMap("c") + "data: {a: \"" + x + "\"}\n" }
	flagged := func(what, value string) string {
		return configMap("c, "+what+": {"+"kustomize.toolkit.fluxcd.io/substitute"+": "+value+"}") + "data: {a: \"${x}\"}\n"
	}
	deployment := strings.Replace(deploymentHead, "web:1", "web:${tag}", 1) + "  replicas: ${n}\n"
	type vars map[string]string
	x, fluxed := vars{"x": "1y"}, `"labels":{"environment":"`
	const disabled = "or annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled"
	const broken, look = "a/a.yaml: is not a valid object after the substitution of variables: ", "; check the substituted values, " + disabled
	const oneMap = "b.yaml: is not one ConfigMap with only strings in data; " +
		"write one ConfigMap, or lines of NAME=value in a file that ends in .env"
	const noFile = " is not a file of this commit; name it from the repository's root"
	unset := func(name string) string {
		return "; give it a value in substitute or substituteFrom of the app's entry, write ${" + name + ":=default}, or $${" + name +
			"} for the text itself"
	}
	for name, c := range map[string]struct {
		file   string // the content of a/a.yaml
		values vars
		from   string // the files with variables
		more   vars   // contents of other files
		want   string // a part of the objects' JSON, or the error
	}{
		"of Flux's documentation": {namespaceOfFlux, vars{"cluster_region": "eu-central-1"}, "", nil, fluxed + `dev","region":"eu-central-1"}`},
		"with a value": {namespaceOfFlux, vars{"cluster_region": "eu-central-1", "cluster_env": "prod"}, "", nil,
			fluxed + `prod","region":"eu-central-1"}`},
		"a number": {deployment, vars{"n": "3", "tag": "v2"}, "", nil, `"replicas":3`},
		"an image": {deployment, vars{"n": "3", "tag": "v2"}, "", nil, `"image":"web:v2"`},
		"a file":   {config("${x}"), nil, "prod.env", vars{"prod.env": "# of prod\n\nexport x=\"z z\"\ny=2\n"}, `{"a":"z z"}`},
		"a ConfigMap": {config("${x}"), nil, "vars.yaml",
			vars{"vars.yaml": "---\n# of prod\n" + configMap("vars") + "data:\n  x: |\n    z\n    y\n"}, `{"a":"zy"}`},
		"the later file":        {config("${x}"), nil, "a.env b.env", vars{"a.env": "x=k\n", "b.env": "x=l\n"}, `{"a":"l"}`},
		"the entry over files":  {config("${x}"), x, "a.env", vars{"a.env": "x=k\n"}, `{"a":"1y"}`},
		"a symlink":             {config("${x}"), nil, "a.env", vars{"a.env": linkTo + "b.env", "b.env": "x=k\n"}, `{"a":"k"}`},
		"annotated":             {flagged("annotations", "disabled"), x, "", nil, `{"a":"${x}"}`},
		"labelled":              {flagged("labels", "disabled"), x, "", nil, `{"a":"${x}"}`},
		"annotated otherwise":   {flagged("annotations", "enabled"), x, "", nil, `{"a":"1y"}`},
		"escaped":               {config("$${x} $x $$"), x, "", nil, `{"a":"${x} $x $"}`},
		"nothing to substitute": {config("$x costs 5$"), x, "", nil, `{"a":"$x costs 5$"}`},
		"a key":                 {configMap("c") + "data: {\"k-${x}\": \"${x}\"}\n", x, "", nil, `{"k-1y":"1y"}`},
		"only defaults":         {config("${x:=d}"), nil, "", nil, `{"a":"d"}`},
		"not set":               {config("${x}"), vars{}, "", nil, "a/a.yaml: data.a: the variable x is not set (ConfigMap//c)" + unset("x")},
		"not set, in a list": {deployment, vars{"n": "3"}, "", nil,
			"a/a.yaml: spec.template.spec.containers[0].image: the variable tag is not set (Deployment//web)" + unset("tag")},
		"no expression": {config("${x|y}"), x, "", nil, "a/a.yaml: data.a: has a ${ that cannot be read: missing closing brace (ConfigMap//c); " +
			"write $${ where no variable is meant, " + disabled},
		"no object": {config("${x}"), vars{"x": "{"}, "", nil,
			broken + "is not valid YAML: line 2: did not find expected ',' or '}' (ConfigMap//c)" + look},
		"no name":  {configMap("\"${x:4}\""), x, "", nil, broken + "it has no kind or no metadata.name (ConfigMap//${x:4})" + look},
		"aliases":  {config("${x}"), vars{"x": "&k [*k]"}, "", nil, broken + "line 3: the anchor k contains itself (ConfigMap//c)" + look},
		"no file":  {config("${x}"), nil, "b.env", nil, "a: substituteFrom[0].file: b.env" + noFile},
		"a folder": {config("${x}"), nil, "a", nil, "a: substituteFrom[0].file: a" + noFile},
		"out of the repository": {config("${x}"), nil, "b.env", vars{"b.env": linkTo + "../../x"},
			"b.env: leads out of the repository through a symlink; put the files into the repository"},
		"no line of a file": {config("${x}"), nil, "b.env", vars{"b.env": "x=1\nsecret\n"},
			"b.env: line 2 is not NAME=value; write one variable in each line; # begins a comment"},
		"no name in a file": {config("${x}"), nil, "b.env", vars{"b.env": "x-y=1\n"},
			`b.env: "x-y" is not a valid variable name; use letters, digits and _, and no digit first`},
		"a Secret":       {config("${x}"), nil, "b.yaml", vars{"b.yaml": "kind: Secret\nstringData: {x: y}\n"}, oneMap},
		"two ConfigMaps": {config("${x}"), nil, "b.yaml", vars{"b.yaml": config("1") + "---\n" + configMap("d")}, oneMap},
		"a bomb of aliases": {config("${x}"), nil, "b.yaml", vars{"b.yaml": "kind: ConfigMap\ndata: &a {x: *a}\n"},
			"b.yaml: line 2: the anchor a contains itself"},
		"one object of two by name": {configMap("c") + "---\n" + configMap("\"${x:=c}\""), vars{"x": "c"}, "", nil,
			"a/kustomization.yaml: core/ConfigMap/default/c is defined twice, once with and once without its namespace; remove one"},
	} {
		t.Run(name, func(t *testing.T) {
			files := merged(vars{"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": c.file}, c.more)
			r, err := rendered(files, withVariables(c.values, strings.Fields(c.from)...))
			if err != nil {
				compare.CheckNamed(t, "error", c.want, err.Error())
				return
			}
			compare.Contains(t, inText(t, r), c.want)
		})
	}
}

// TestVariablesAreOptIn checks that every ${ stays in an app whose entry defines no variables.
func TestVariablesAreOptIn(t *testing.T) {
	files := map[string]string{"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": namespaceOfFlux}
	labels := mustRender(t, render.New(render.InProcess{}), files, appA).Objects[0].Map("metadata", "labels")
	compare.Check(t, map[string]any{"environment": "${cluster_env:=dev}", "region": "${cluster_region}"}, labels)
}

// TestVariablesAreInTheClosure checks that a change of a file that defines variables, or of the app's entry, causes a build. Other changes
// cause no build. Equal variables give equal digests.
func TestVariablesAreInTheClosure(t *testing.T) {
	files := map[string]string{"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": namespaceOfFlux, "prod.env": "cluster_region=eu\n"}
	r := render.New(render.InProcess{})
	render := func(values map[string]string) *rollout.Render {
		t.Helper()
		return mustRender(t, r, files, withVariables(values, "prod.env"))
	}
	first := render(nil)
	compare.CheckNamed(t, "files", []string{"a/a.yaml", "a/kustomization.yaml", "prod.env"}, first.Files)
	files["README.md"] = "x"
	if render(nil); r.Builds() != 1 {
		t.Errorf("%d builds where nothing changed, want 1", r.Builds())
	}
	files["prod.env"] = "cluster_region=us\n"
	if second := render(nil); r.Builds() != 2 || second.Digest == first.Digest {
		t.Errorf("%d builds after a change of the file, want 2 and another digest", r.Builds())
	}
	many := map[string]string{"cluster_env": "x", "a": "b", "c": "d", "e": "f"}
	if third := render(many); r.Builds() != 3 || third.Digest != render(maps.Clone(many)).Digest || r.Builds() != 3 {
		t.Errorf("%d builds after a change of the entry, want 3", r.Builds())
	}
}

// TestVariablesInScripts checks the warnings about scripts whose shell variables gitrollout may have replaced.
func TestVariablesInScripts(t *testing.T) {
	files := map[string]string{"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  run.sh: |
    echo ${HOME:-/root} $HOME
  escaped.sh: |
    echo $${HOME}
  pid.sh: |
    echo $$
  hook: |
    #!/bin/sh
    echo ${x}
  nginx.conf: |
    server ${x};
---
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: "a:${x}", command: [sh, -c], args: ["cd /; ls ${x}", "--to=${x}"]}]}
`}
	r := mustRender(t, render.New(render.InProcess{}), files, withVariables(map[string]string{"x": "y"}))
	script := func(at, found string) string {
		return at + " is a script, and " + found + " in the script is substituted before the shell reads it; write $" + found +
			" for the shell's own variable"
	}
	want := []string{script("ConfigMap//c: data.hook", "${x}"),
		"ConfigMap//c: data[pid.sh] is a script, and $$ in it becomes $; write $$$$ for the shell's own variable",
		script("ConfigMap//c: data[run.sh]", "${HOME:-/root}"), script("Job//j: spec.template.spec.containers[0].args[0]", "${x}"),
	}
	compare.CheckNamed(t, "warnings", want, r.Warnings)
}
