package plain

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/rollout"
)

// TestSameAsFlux substitutes variables in objects, and compares the result with Flux's package in strict mode. Either the objects are
// equal, or both refuse the manifest. As exceptions, only gitrollout refuses expressions that Flux reads differently from a shell (${a:?b},
// ${a:+b}), and numbers where the API server needs strings.
func TestSameAsFlux(t *testing.T) {
	vars := map[string]string{"name": "web", "n": "3", "on": "true", "empty": "", "colon": "a: b", "quoted": `"q"`, "lines": "a\nb",
		"_x1": "u", "hash": "#x", "dollar": "$5", "nested": "${name}"}
	for i, value := range []string{
		"${name}", "x-${name}-y", `"${n}"`, "${n}", "${on}", `"${on}"`, "${absent}", "${absent:=d}", "${absent:-d}", "${name:=d}", "${empty:=d}",
		"${empty:-d}", "${empty}", "${name:0:2}", "${name:1}", "${name/w/b}", "${name//e/E}", "${name^^}", "${name^}", "${name,,}", "${#name}",
		"$name", "$$name", "$${name}", "$$", "$", `"${colon}"`, "${colon}", "${quoted}", "'${quoted}'", "${lines}", "${_x1}", "${hash}",
		`"${hash}"`, "${dollar}", "${nested}", "${absent:=${name}}", "${name", "${}", "${na me}", "${1a}", "a ${name} ${n} ${absent:=z}",
		"${name%b}", "${name#w}", "|\n    if [ $HOME ]; then\n      echo $${HOME} ${name}\n    fi", "${name:?no}", "${name:+yes}",
		"${absent:+yes}",
	} {
		for where, object := range map[string]string{
			"a value":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata:\n  a: %s\n",
			"a number": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, namespace: shop}\nspec:\n  count: %s\n",
		} {
			manifest := fmt.Sprintf(object, value)
			t.Run(fmt.Sprintf("%d %s in %s", i, value, where), func(t *testing.T) { sameAsFlux(t, manifest, vars) })
		}
	}
	for name, metadata := range map[string]string{
		"annotated": "annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}",
		"labelled":  "labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}",
		"otherwise": "annotations: {kustomize.toolkit.fluxcd.io/substitute: enabled}",
	} {
		t.Run(name, func(t *testing.T) {
			sameAsFlux(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop, "+metadata+"}\ndata: {a: '${name}'}\n", vars)
		})
	}
}

// sameAsFlux fails the test if gitrollout and Flux render a manifest differently.
func sameAsFlux(t *testing.T, manifest string, vars map[string]string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "shop"), map[string]string{"app.yaml": manifest, "kustomization.yaml": "resources: [app.yaml]\n"})
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(dir, "shop"))
	must(t, err)
	substitute := map[string]any{}
	for name, value := range vars {
		substitute[name] = value
	}
	of := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"postBuild": map[string]any{"substitute": substitute}}}}
	one := built.Resources()[0]
	want := ""
	_, fluxErr := kustomize.SubstituteVariables(t.Context(), nil, of, one,
		kustomize.SubstituteWithDryRun(true), kustomize.SubstituteWithStrict(true))
	if fluxErr == nil {
		o, err := one.Map()
		must(t, err)
		want = text(t, []any{o})
	}
	tree, err := worktree.OpenHashed(dir)
	must(t, err)
	r, err := render.New(render.InProcess{}).Render(tree,
		rollout.App{Name: "shop", Path: "shop", Namespace: "shop", Variables: rollout.NewVariables(vars, nil)}, rollout.Commit{})
	got := ""
	if err == nil {
		got = text(t, []any{map[string]any(r.Objects[0])})
	}
	alone := err != nil &&
		(strings.Contains(err.Error(), "is not an expression of Flux") || strings.Contains(err.Error(), "cannot be read by an API server"))
	if got != want && !alone {
		t.Errorf("got\n%s%v\nwant\n%s%v", got, err, want, fluxErr)
	}
}
