package render_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/render"
)

// TestFieldsThatTheServerDecides checks fields that the Go types do not have. Such a field is accepted if an API server may know it.
func TestFieldsThatTheServerDecides(t *testing.T) {
	for name, c := range map[string]struct{ kubernetes, object string }{
		"a field of a newer Kubernetes":  {"v1.37.0-gke.1", deploymentHead + "  newInKubernetes: 1\n"},
		"a status, which is not applied": {"", deploymentHead + "status: {replicas: many, newInKubernetes: 1}\n"},
		"a kind without a known type":    {"", "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop}\nspec: {container: {}}\n"},
		"a version without a known type": {"", strings.Replace(deploymentHead, "apps/v1", "apps/v3", 1) + "  container: 1\n"},
		"an object of any kind in a field": {"",
			"apiVersion: apps/v1\nkind: ControllerRevision\nmetadata: {name: shop}\nrevision: 1\ndata: {spec: {container: 1}}\n"},
		"a kind defined by a CRD": {"",
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: shops.example.com}\n" +
				"spec: {group: example.com, names: {kind: Shop, plural: shops}, scope: Namespaced, " +
				"versions: [{name: v1, served: true, storage: true, " +
				"schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}\n" +
				"---\napiVersion: example.com/v1\nkind: Shop\nmetadata: {name: shop}\nanything: 1\n"},
		"parameters of a driver": {"", "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: shop}\n" +
			"spec: {config: [{opaque: {driver: d.example.com, parameters: {anything: {b: 1}}}}]}\n"},
		"a list of objects": {"",
			"apiVersion: v1\nkind: List\nmetadata: {anything: 1}\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: shop}}\n"},
		"fields in letters of another case than their struct": {"", "apiVersion: v1\nkind: Service\nmetadata: {name: shop}\n" +
			"spec: {clusterIP: None, externalIPs: [192.0.2.1], ports: [{port: 80, targetPort: http}]}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			app := demo
			app.Kubernetes = c.kubernetes
			mustRender(t, render.New(render.InProcess{}), map[string]string{"kustomization.yaml": "resources: [app.yaml]\n", "app.yaml": c.object},
				app)
		})
	}
}
