package render_test

import (
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// shops is the CRD of kind Shop.
const shops = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  names: {kind: Shop, plural: shops}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          spec:
            type: object
            properties:
              size: {type: integer}
              share: {type: number}
              open: {type: boolean}
              port: {x-kubernetes-int-or-string: true}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              doors:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, side]
                items: {type: object, properties: {name: {type: string}, side: {type: string}}}
              labels: {type: object, additionalProperties: {type: string}}
              more: {type: object, additionalProperties: true}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer}}}
              pod: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

// TestStrict checks which rendered objects Strict refuses because of the app's Kubernetes version or a CRD.
func TestStrict(t *testing.T) {
	pod := func(spec string) string {
		return strings.Replace(deploymentHead, "containers:", spec+", containers:", 1)
	}
	shop := func(spec string) string {
		return "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop}\nspec: {" + spec + "}\n" + shops
	}
	budget := func(version string) string {
		return "apiVersion: " + version + "\nkind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {maxUnavailable: 1}\n"
	}
	scaler := "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n" +
		"spec: {maxReplicas: 9, scaleTargetRef: {kind: Deployment, name: other, apiVersion: apps/v1}}\n"
	const or = ", or set kubernetes.version to the cluster's version"
	const unreadable = "write the field as `kubectl explain` describes it"
	for name, c := range map[string]struct{ kubernetes, object, want string }{
		"a field that the version has": {"1.32.1", pod("resources: {limits: {cpu: 1}}"), ""},
		"a field of a later version": {"v1.31.9-gke.1", pod("resources: {limits: {cpu: 1}}"),
			"app.yaml:8: spec.template.spec.resources: is not a field of Kubernetes 1.31, but of 1.32 and later (Deployment/shop/web); " +
				"leave it out" + or},
		"a field of an embedded struct": {"1.30.0", pod("volumes: [{name: a, image: {reference: a}}]"),
			"app.yaml:8: spec.template.spec.volumes[0].image: is not a field of Kubernetes 1.30, but of 1.31 and later (Deployment/shop/web); " +
				"leave it out" + or},
		"the default version has all fields": {"", pod("resources: {limits: {cpu: 1}}"), ""},
		"a version that is served":           {"", budget("policy/v1"), ""},
		"a version that was served":          {"1.24.0", budget("policy/v1beta1"), ""},
		"a version that is gone": {"", budget("policy/v1beta1"),
			"app.yaml:1: apiVersion: Kubernetes 1.36 does not serve PodDisruptionBudget of policy/v1beta1 (PodDisruptionBudget/shop/web); " +
				"write policy/v1" + or},
		"a version that never was": {"", budget("policy/v2"),
			"app.yaml:1: apiVersion: Kubernetes 1.36 does not serve PodDisruptionBudget of policy/v2 (PodDisruptionBudget/shop/web); " +
				"write policy/v1" + or},
		"a version that may come":     {"1.99.0", budget("policy/v2"), ""},
		"a version without a Go type": {"1.25.0", scaler, ""},
		"the version that replaces one, not the first": {"", scaler,
			"app.yaml:1: apiVersion: Kubernetes 1.36 does not serve HorizontalPodAutoscaler of autoscaling/v2beta2 " +
				"(HorizontalPodAutoscaler/shop/web); write autoscaling/v2" + or},
		"a kind that came later": {"1.28.0",
			"apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: a}\nspec: {cidrs: [10.0.0.0/8]}\n",
			"app.yaml:1: apiVersion: Kubernetes 1.28 does not serve ServiceCIDR of networking.k8s.io/v1 (ServiceCIDR//a); " +
				"leave the object out" + or},

		"a custom object": {"", shop("size: 1, share: 1, open: true, port: http, tags: [a, b], labels: {a: b}, more: {a: {b: 1}}, " +
			"extra: {size: 1, a: {b: 1}}, pod: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}, " +
			"doors: [{name: a, side: x}, {name: a, side: y}]"), ""},
		"null in a custom object": {"", shop("size: null"), ""},
		"a whole number as 1.0":   {"", shop("size: 1.0, share: 0.5, port: 80"), ""},
		"all mistakes in a custom object": {"", shop("sise: 1, size: '1', open: 1, share: x, tags: [a, a], labels: {a: 1}, more: [], " +
			"extra: {size: 1.5}, pod: {spce: {}}, doors: [{name: a, side: x}, {name: a, side: x}]"),
			`app.yaml:4: spec.doors[1].name: "a" is listed twice (Shop/shop/shop); keep one: an API server refuses both; ` +
				"also app.yaml:4: spec.extra.size: 1.5 cannot be read by an API server: it is of type number, and not of type integer " +
				"(Shop/shop/shop); " + unreadable + "; " +
				"also app.yaml:4: spec.labels.a: 1 cannot be read by an API server: it is of type integer, and not of type string " +
				"(Shop/shop/shop); " + unreadable + "; " +
				"also app.yaml:4: spec.more: the value cannot be read by an API server: it is of type array, and not of type object " +
				"(Shop/shop/shop); " + unreadable + "; " +
				"also app.yaml:4: spec.open: 1 cannot be read by an API server: it is of type integer, and not of type boolean " +
				"(Shop/shop/shop); " + unreadable + "; " +
				"also app.yaml:4: spec.pod.spce: is not a field of the CRD of Shop (Shop/shop/shop); did you mean spec?; " +
				"also app.yaml:4: spec.share: \"x\" cannot be read by an API server: it is of type string, and not of type number " +
				"(Shop/shop/shop); " + unreadable + "; " +
				"also app.yaml:4: spec.sise: is not a field of the CRD of Shop (Shop/shop/shop); did you mean size?; " +
				"also app.yaml:4: spec.size: \"1\" cannot be read by an API server: it is of type string, and not of type integer " +
				"(Shop/shop/shop); " + unreadable + "; " +
				`also app.yaml:4: spec.tags[1]: "a" is listed twice (Shop/shop/shop); keep one: an API server refuses both`},
		"metadata of a custom object": {"", strings.Replace(shop(""), "name: shop}", "name: shop, lables: {}}", 1),
			"app.yaml:3: metadata.lables: is not a field of Kubernetes 1.36 (Shop/shop/shop); did you mean labels?"},
		"a version that the CRD does not serve": {"", strings.Replace(shop(""), "example.com/v1", "example.com/v1alpha1", 1),
			"app.yaml:1: apiVersion: the CRD of Shop does not serve example.com/v1alpha1 (Shop/shop/shop); write example.com/v1"},
		"a status of a custom object":   {"", strings.Replace(shop(""), "spec: {}", "status: {a: 1}", 1), ""},
		"a custom object without a CRD": {"", "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop}\nsize: 1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			app := demo
			app.Kubernetes = c.kubernetes
			files := map[string]string{"kustomization.yaml": "resources: [app.yaml]\n", "app.yaml": c.object}
			r := mustRender(t, render.New(render.InProcess{}), files, app)
			got := ""
			if err := render.Strict([]*rollout.Render{nil, r})(newTree(files), r); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Error(compare.Diff(strings.ReplaceAll(c.want, "; also ", "\nalso "), strings.ReplaceAll(got, "; also ", "\nalso ")))
			}
		})
	}
}

// TestLines checks the file and line in errors about objects in several files and documents, in a patch, and with a name prefix.
func TestLines(t *testing.T) {
	bad := strings.Replace(deploymentHead, "template:\n", "template:\n    spce: {}\n", 1)
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  ports:\n  - {port: 80}\n  - port: 80\n  type: [a]\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a second document, a second file": {map[string]string{
			"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": "# first\r\n---\n" + configMap("a") + "---\n" + bad, "b.yaml": service},
			"a.yaml:13 spec.template.spce, b.yaml:7 spec.ports[1].port, b.yaml:8 spec.type"},
		"a patch": {map[string]string{
			"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\nnamePrefix: my-\n", "a.yaml": deploymentHead,
			"p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      hostNetwrk: true\n"},
			"p.yaml:7 spec.template.spec.hostNetwrk"},
		"a field that no file has": {map[string]string{
			"kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: Deployment}, " +
				"patch: '[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": 1}]'}]\n", "a.yaml": deploymentHead},
			"a.yaml:0 spec.x"},
		"an alias": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n",
			"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: &d\n  a: 1\nstringData: *d\n"},
			"a.yaml:5 data.a, a.yaml:5 stringData.a"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rendered(c.files, demo)
			if err == nil {
				t.Fatal("no error")
			}
			var got []string
			for _, text := range strings.Split(err.Error(), "; also ") {
				part := strings.SplitN(text, ": ", 3)
				if !strings.Contains(part[0], ":") {
					part[0] += ":0"
				}
				got = append(got, part[0]+" "+part[1])
			}
			slices.Sort(got)
			compare.CheckNamed(t, "places", c.want, strings.Join(got, ", "))
		})
	}
}

// TestExamplesAreStrict checks that Strict accepts all objects of the examples.
func TestExamplesAreStrict(t *testing.T) {
	checked := 0
	for _, root := range []string{"../examples", "testdata/getting-started"} {
		files := readFiles(t, root)
		for _, dir := range kustomizations(files) {
			app := demo
			app.Path = dir
			r, err := rendered(files, app)
			if err != nil {
				t.Logf("%s: %v", dir, err)
				continue
			}
			if err := render.Strict([]*rollout.Render{r})(newTree(files), r); err != nil {
				t.Errorf("%s: %v", dir, err)
			}
			checked += len(r.Objects)
		}
	}
	if checked < 30 {
		t.Errorf("%d objects checked, want at least 30", checked)
	}
}
