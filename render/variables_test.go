package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// withVariables returns an app in folder a with variables.
func withVariables(values map[string]string, files ...string) rollout.App {
	return rollout.App{Name: "a", Path: "a", Namespace: "default", Variables: rollout.NewVariables(values, files)}
}

// TestExpressionsOfFlux evaluates the expressions in the documentation of Flux's Kustomization and of its library
// envsubst, with the documented results.
func TestExpressionsOfFlux(t *testing.T) {
	v := variables{"var": "abcABC123", "dotted": "a.b.c", "cluster_env": "prod", "empty": "", "quote": `"`, "n": "8"}
	for text, want := range map[string]string{
		"${var}": "abcABC123", "${#var}": "9", "${var^}": "AbcABC123", "${var^^}": "ABCABC123", "${var,}": "abcABC123", "${var,,}": "abcabc123",
		"${var:3}": "ABC123", "${var:3:2}": "AB", "${dotted#*.}": "b.c", "${dotted##*.}": "c", "${dotted%.*}": "a.b", "${dotted%%.*}": "a",
		"${empty:-default}": "default", "${unset=default}": "default", "${unset:-default}": "default",
		"${unset:=default}": "default", "${cluster_env:=dev}": "prod", "${unset:=${cluster_env}}": "prod", "${unset:=}": "",
		"${dotted/b/x}": "a.x.c", "${dotted//./-}": "a-b-c", "${var/#abc/x}": "xABC123", "${var/%123/x}": "abcABCx",
		"$var": "$var", "$${var}": "${var}", "$$": "$", "${quote}${n}${quote}": `"8"`, "a ${var} b ${n}": "a abcABC123 b 8",
	} {
		got, unset, err := v.eval(text)
		if got != want || unset != "" || err != nil {
			t.Errorf("%s is %q, unset %q, error %v, want %q", text, got, unset, err, want)
		}
	}
	for text, want := range map[string]string{
		"${unset}": "unset", "${#unset}": "unset", "${unset^^}": "unset", "${var}${other:0:1}${unset}": "other", "${empty:=${unset}}": "unset",
	} {
		if got, unset, err := v.eval(text); unset != want || err == nil {
			t.Errorf("%s is %q, unset %q, error %v, want that %s is not set", text, got, unset, err, want)
		}
	}
	for _, text := range []string{"${", "${}", "${a b}", "${var:1:9223372036854775807}", "${var:?word}", "${var:+word}", "${var", strings.Repeat("${var}", maxParts+1)} {
		if got, unset, err := v.eval(text); unset != "" || err == nil {
			t.Errorf("%.30s is %q, unset %q, and no error", text, got, unset)
		}
	}
}

const namespaceOfFlux = `apiVersion: v1
kind: Namespace
metadata:
  name: apps
  labels:
    environment: ${cluster_env:=dev}
    region: "${cluster_region}"
`

// TestVariables builds apps with variables: the example of Flux's documentation, the sources of values, unchanged
// texts, and errors.
func TestVariables(t *testing.T) {
	config := func(more string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c" + more + "}\ndata: {a: \"${x}\"}\n"
	}
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: ${n}\n  selector: {matchLabels: {app: web}}\n" +
		"  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: \"web:${tag}\"}]}}\n"
	x := map[string]string{"x": "1y"}
	for name, c := range map[string]struct {
		file   string // a/a.yaml
		more   map[string]string
		values map[string]string
		from   []string
		want   string // a part of the objects as JSON, or the error
	}{
		"of Flux's documentation":   {namespaceOfFlux, nil, map[string]string{"cluster_region": "eu-central-1"}, nil, `"labels":{"environment":"dev","region":"eu-central-1"}`},
		"with a value":              {namespaceOfFlux, nil, map[string]string{"cluster_region": "eu-central-1", "cluster_env": "prod"}, nil, `"labels":{"environment":"prod","region":"eu-central-1"}`},
		"a number":                  {deployment, nil, map[string]string{"n": "3", "tag": "v2"}, nil, `"replicas":3`},
		"an image":                  {deployment, nil, map[string]string{"n": "3", "tag": "v2"}, nil, `"image":"web:v2"`},
		"a file":                    {config(""), map[string]string{"prod.env": "# of prod\n\nexport x=\"z z\"\ny=2\n"}, nil, []string{"prod.env"}, `{"a":"z z"}`},
		"a ConfigMap":               {config(""), map[string]string{"vars.yaml": "---\n# of prod\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars}\ndata:\n  x: |\n    z\n    y\n"}, nil, []string{"vars.yaml"}, `{"a":"zy"}`},
		"the later file":            {config(""), map[string]string{"a.env": "x=k\n", "b.env": "x=l\n"}, nil, []string{"a.env", "b.env"}, `{"a":"l"}`},
		"the entry over files":      {config(""), map[string]string{"a.env": "x=k\n"}, x, []string{"a.env"}, `{"a":"1y"}`},
		"a symlink":                 {config(""), map[string]string{"a.env": linkTo + "b.env", "b.env": "x=k\n"}, nil, []string{"a.env"}, `{"a":"k"}`},
		"annotated":                 {config(", annotations: {" + substituteKey + ": disabled}"), nil, x, nil, `{"a":"${x}"}`},
		"labelled":                  {config(", labels: {" + substituteKey + ": disabled}"), nil, x, nil, `{"a":"${x}"}`},
		"annotated otherwise":       {config(", annotations: {" + substituteKey + ": enabled}"), nil, x, nil, `{"a":"1y"}`},
		"escaped":                   {strings.ReplaceAll(config(""), "${x}", "$${x} $x $$"), nil, x, nil, `{"a":"${x} $x $"}`},
		"nothing to substitute":     {strings.ReplaceAll(config(""), "${x}", "$x costs 5$"), nil, x, nil, `{"a":"$x costs 5$"}`},
		"a key":                     {strings.ReplaceAll(config(""), "{a:", "{\"k-${x}\":"), nil, x, nil, `{"k-1y":"1y"}`},
		"only defaults":             {strings.ReplaceAll(config(""), "${x}", "${x:=d}"), nil, nil, nil, `{"a":"d"}`},
		"not set":                   {config(""), nil, map[string]string{}, nil, "a/a.yaml: data.a: the variable x is not set (ConfigMap//c); give it a value in substitute or substituteFrom of the app's entry, write ${x:=default}, or $${x} where the text is meant"},
		"not set, in a list":        {deployment, nil, map[string]string{"n": "3"}, nil, "a/a.yaml: spec.template.spec.containers[0].image: the variable tag is not set (Deployment//web); give it a value in substitute or substituteFrom of the app's entry, write ${tag:=default}, or $${tag} where the text is meant"},
		"no expression":             {strings.ReplaceAll(config(""), "${x}", "${x|y}"), nil, x, nil, "a/a.yaml: data.a: has a ${ that cannot be read: missing closing brace (ConfigMap//c); write $${ where no variable is meant, or annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled"},
		"no object":                 {config(""), nil, map[string]string{"x": "{"}, nil, "a/a.yaml: is no object once variables are substituted: is not valid YAML: line 2: did not find expected ',' or '}' (ConfigMap//c); look at the values that are substituted, or annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled"},
		"no name":                   {strings.ReplaceAll(config(""), "name: c", "name: \"${x:4}\""), nil, x, nil, "a/a.yaml: is no object once variables are substituted: it has no kind or no metadata.name (ConfigMap//${x:4}); look at the values that are substituted, or annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled"},
		"aliases":                   {config(""), nil, map[string]string{"x": "&k [*k]"}, nil, "a/a.yaml: is no object once variables are substituted: line 3: the anchor k contains itself (ConfigMap//c); look at the values that are substituted, or annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled"},
		"no file":                   {config(""), nil, nil, []string{"b.env"}, "a: substituteFrom[0].file: b.env is not a file of this commit; name it from the repository's root"},
		"a folder":                  {config(""), nil, nil, []string{"a"}, "a: substituteFrom[0].file: a is not a file of this commit; name it from the repository's root"},
		"out of the repository":     {config(""), map[string]string{"b.env": linkTo + "../../x"}, nil, []string{"b.env"}, "b.env: leads out of the repository through a symlink; put the files into the repository"},
		"no line of a file":         {config(""), map[string]string{"b.env": "x=1\nsecret\n"}, nil, []string{"b.env"}, "b.env: line 2 is not NAME=value; write one variable in each line; # begins a comment"},
		"no name in a file":         {config(""), map[string]string{"b.env": "x-y=1\n"}, nil, []string{"b.env"}, `b.env: "x-y" is no name of a variable; use letters, digits and _, and no digit first`},
		"a Secret":                  {config(""), map[string]string{"b.yaml": "kind: Secret\nstringData: {x: y}\n"}, nil, []string{"b.yaml"}, "b.yaml: is not the manifest of one ConfigMap with texts as data; write one, or lines of NAME=value in a file that ends in .env"},
		"two ConfigMaps":            {config(""), map[string]string{"b.yaml": config("") + "---\n" + config("d")}, nil, []string{"b.yaml"}, "b.yaml: is not the manifest of one ConfigMap with texts as data; write one, or lines of NAME=value in a file that ends in .env"},
		"a bomb of aliases":         {config(""), map[string]string{"b.yaml": "kind: ConfigMap\ndata: &a {x: *a}\n"}, nil, []string{"b.yaml"}, "b.yaml: line 2: the anchor a contains itself"},
		"one object of two by name": {config("") + "---\n" + strings.ReplaceAll(config(""), "name: c", "name: \"${x:=c}\""), nil, map[string]string{"x": "c"}, nil, "a/kustomization.yaml: core/ConfigMap/default/c is there twice, with and without its namespace; remove one"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": c.file}
			maps.Copy(files, c.more)
			r, err := New(InProcess{}).Render(newTree(files), withVariables(c.values, c.from...), rollout.Commit{})
			if err != nil {
				if err.Error() != c.want {
					t.Errorf("error\n got %v\nwant %s", err, c.want)
				}
				return
			}
			got, err := json.Marshal(r.Objects)
			if err != nil || !strings.Contains(string(got), c.want) {
				t.Errorf("\n got %s, error %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// TestVariablesAreOptIn leaves every ${ in an app whose entry has no variables.
func TestVariablesAreOptIn(t *testing.T) {
	files := map[string]string{"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": namespaceOfFlux}
	r, err := New(InProcess{}).Render(newTree(files), rollout.App{Name: "a", Path: "a", Namespace: "default"}, rollout.Commit{})
	if err != nil || r.Objects[0].Map("metadata", "labels")["region"] != "${cluster_region}" {
		t.Errorf("%v, error %v", r, err)
	}
}

// TestVariablesAreInTheClosure builds an app again only if a file with its variables, or its entry, has changed; equal
// values give equal bytes.
func TestVariablesAreInTheClosure(t *testing.T) {
	files := map[string]string{"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": namespaceOfFlux, "prod.env": "cluster_region=eu\n"}
	r := New(InProcess{})
	render := func(values map[string]string) *rollout.Render {
		t.Helper()
		out, err := r.Render(newTree(files), withVariables(values, "prod.env"), rollout.Commit{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := render(nil)
	if !slices.Contains(first.Files, "prod.env") {
		t.Errorf("prod.env is none of the files that it was built from: %v", first.Files)
	}
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

// TestVariablesInScripts warns only of a script whose variables may have been replaced by the app's.
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
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:${x}", command: [sh, -c], args: ["cd /; ls ${x}", "--to=${x}"]}]}}}
`}
	r, err := New(InProcess{}).Render(newTree(files), withVariables(map[string]string{"x": "y"}), rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ConfigMap//c: data.hook is a script, and ${x} in it is substituted before a shell sees it; write $${x} where the shell's is meant",
		"ConfigMap//c: data[pid.sh] is a script, and $$ in it becomes $; write $$$$ where the shell's is meant",
		"ConfigMap//c: data[run.sh] is a script, and ${HOME:-/root} in it is substituted before a shell sees it; write $${HOME:-/root} where the shell's is meant",
		"Job//j: spec.template.spec.containers[0].args[0] is a script, and ${x} in it is substituted before a shell sees it; write $${x} where the shell's is meant",
	}
	if diff := compare.Diff(want, r.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
