package render_test

import (
	"maps"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/convert"
	"gitrollout.dev/gitrollout/rollout"
)

// TestVersionsInOneApp converts an overlay or its vendored base to the newest apiVersion. The app must render as before: each patch finds
// its object, and a ConfigMap keeps its text.
func TestVersionsInOneApp(t *testing.T) {
	const head = "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: web}\n"
	const patch = head + "spec: {strategy: {canary: {steps: [{setWeight: 25}]}}}"
	const own = "{group: gitrollout.dev, version: v1alpha1, kind: Rollout}"
	for name, overlay := range map[string]string{
		"a patch in a file":            "patches: [{path: patch.yaml}]\n",
		"a patch in the kustomization": "patches:\n- patch: |-\n    " + strings.ReplaceAll(patch, "\n", "\n    ") + "\n",
		"a target": "patches:\n- target: " + own + "\n" +
			"  patch: |-\n    - {op: replace, path: /spec/strategy/canary/steps/0/setWeight, value: 25}\n",
		"a replacement": "replacements:\n- source: {kind: Deployment, fieldPath: spec.replicas}\n" +
			"  targets: [{select: " + own + ", fieldPaths: [spec.strategy.canary.steps.0.setWeight]}]\n",
	} {
		files := map[string]string{
			"vendored/kustomization.yaml": "resources: [all.yaml]\n",
			"vendored/all.yaml": strings.Replace(deploymentHead, "spec:\n", "spec:\n  replicas: 25\n", 1) +
				"---\n" + ownHead + "  strategy: {canary: {steps: [{setWeight: 50}]}}\n",
			"kustomization.yaml": "resources: [vendored]\nconfigMapGenerator: [{name: a, files: [data.yaml]}]\n" + overlay,
			"data.yaml":          head,
			"patch.yaml":         patch,
		}
		was := renderRepo(t, files)
		compare.CheckNamed(t, name, 25, *was.Specs[0].Canary.Steps[0].SetWeight)
		for _, converted := range []string{"vendored/all.yaml", "kustomization.yaml patch.yaml"} {
			mixed := maps.Clone(files)
			for file := range strings.FieldsSeq(converted) {
				made, err := convert.File([]byte(files[file]))
				must(t, err)
				mixed[file] = string(made)
			}
			got, err := render.New(render.InProcess{}).Render(newTree(mixed), demo, rollout.Commit{})
			if err != nil {
				t.Errorf("%s: with converted %s: %v", name, converted, err)
				continue
			}
			compare.CheckNamed(t, name+": with converted "+converted, was, got)
		}
	}
}

// TestVersionsInData converts a Rollout of an app that also has a ConfigMap. The ConfigMap's data contains the older apiVersion. The
// ConfigMap's name and data must not change.
func TestVersionsInData(t *testing.T) {
	const text = "apiVersion: gitrollout.dev/v1alpha1"
	web := deploymentHead + "---\n" + ownHead + "  strategy: {canary: {steps: [{setWeight: 50}]}}\n"
	for name, files := range map[string]map[string]string{
		"a patch in the kustomization": {
			"kustomization.yaml": "resources: [web.yaml, map.yaml, other.yaml]\npatches:\n- patch: |-\n    apiVersion: v1\n    kind: ConfigMap\n" +
				"    metadata: {name: a}\n    data:\n      a: |\n        " + text + "\n",
			"map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		},
		"a file of a generator": {"kustomization.yaml": "resources: [web.yaml, other.yaml]\n" +
			"configMapGenerator: [{name: a, files: [a=other.yaml]}]\n"},
	} {
		files["web.yaml"], files["other.yaml"] = web, strings.ReplaceAll(web, "web", "api")
		was := renderRepo(t, files)
		files["web.yaml"] = strings.Replace(web, "v1alpha1", "v1beta1", 1)
		got, err := render.New(render.InProcess{}).Render(newTree(files), demo, rollout.Commit{})
		must(t, err)
		packed := got.Packed()
		packed.Warnings = nil // the generator's file stays
		compare.CheckNamed(t, name, was.Packed(), packed)
	}
}

// TestTargetOfOneVersion adds a Rollout of the newer version to an app. A patch's target selects the older version, without a group or with
// patterns. The patch must still find its object, and a warning names the file.
func TestTargetOfOneVersion(t *testing.T) {
	for _, target := range []string{
		"version: v1alpha1, kind: Rollout", "group: gitrollout.*, version: v1alpha1", "group: gitrollout.dev, version: v1alpha.*",
	} {
		r := renderRepo(t, map[string]string{
			"kustomization.yaml": "resources: [web.yaml, api.yaml]\npatches:\n- target: {" + target + ", name: web}\n" +
				"  patch: |-\n    - {op: replace, path: /spec/strategy/canary/steps/0/setWeight, value: 5}\n",
			"web.yaml": deploymentHead + "---\n" + ownHead + "  strategy: {canary: {steps: [{setWeight: 50}]}}\n",
			"api.yaml": strings.NewReplacer("web", "api", "v1alpha1", "v1beta1").Replace(
				deploymentHead + "---\n" + ownHead + "  strategy: {canary: {steps: [{setWeight: 50}]}}\n"),
		})
		spec, _ := r.Spec(rollout.Workload{Namespace: "shop", Name: "web"})
		compare.CheckNamed(t, target, 5, *spec.Canary.Steps[0].SetWeight)
		compare.Contains(t, strings.Join(r.Warnings, "\n"), "kustomization.yaml has a target without an exact group and version")
	}
}

// TestOneVersionBesideOthers checks that v1beta1 in another group's apiVersion is not a version of gitrollout's documents. No warning is
// necessary.
func TestOneVersionBesideOthers(t *testing.T) {
	r := renderRepo(t, map[string]string{
		"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [web.yaml]\npatches:\n" +
			"- target: {version: v1alpha1, kind: Rollout}\n  patch: |-\n    apiVersion: gitrollout.dev/v1alpha1\n    kind: Rollout\n" +
			"    metadata: {name: web}\n    spec: {strategy: {canary: {steps: [{setWeight: 5}]}}}\n",
		"web.yaml": deploymentHead + "---\n" + ownHead + "  strategy: {canary: {steps: [{setWeight: 50}]}}\n",
	})
	compare.CheckNamed(t, "weight", 5, *r.Specs[0].Canary.Steps[0].SetWeight)
	compare.CheckNamed(t, "warnings", []string(nil), r.Warnings)
}

// TestTargetAfterConversion converts an app's documents, but not a patch's target without a group. The patch has no effect, so a warning
// names the file.
func TestTargetAfterConversion(t *testing.T) {
	r := renderRepo(t, map[string]string{
		"kustomization.yaml": "resources: [web.yaml]\npatches:\n- target: {version: v1alpha1, kind: Rollout}\n" +
			"  patch: |-\n    - {op: replace, path: /spec/strategy/canary/steps/0/setWeight, value: 5}\n",
		"web.yaml": deploymentHead + "---\n" + strings.Replace(ownHead, "v1alpha1", "v1beta1", 1) +
			"  strategy: {canary: {steps: [{setWeight: 50}]}}\n",
	})
	compare.Contains(t, strings.Join(r.Warnings, "\n"), "kustomization.yaml has a target without an exact group and version")
}
