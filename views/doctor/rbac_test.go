package doctor

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func object(version, kind, namespace string) rollout.Object {
	return rollout.Object{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "a", "namespace": namespace}}
}

// TestRoles checks the roles for two apps: the first app's service account writes its objects, and gitrollout's own account writes the
// second app's objects. The roles also allow the Jobs of analyses and hooks, and the deletion of pods for restarts.
func TestRoles(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	web := rollout.Workload{Namespace: "shop", Name: "a"}
	measured := &rollout.Analysis{Metrics: []rollout.Metric{{Provider: "job", Secrets: map[string]rollout.SecretRef{"token": {}}}}}
	migration := object("batch/v1", "Job", "edge")
	migration.Map("metadata")["annotations"] = map[string]any{"helm.sh/hook": "pre-upgrade", rollout.AnnotationHookLog: "record"}
	apps := []App{
		{Name: "shop", Restarts: true, Render: &rollout.Render{
			App: rollout.App{Name: "shop", ServiceAccount: "shop/deployer"}, Objects: []rollout.Object{object("apps/v1", "Deployment", "shop")},
			Templates: map[rollout.Workload]rollout.Hash{web: "h1-a"},
			Specs: []rollout.Spec{{Workload: web, StableMetadata: `{"labels":{"role":"stable"}}`, Canary: &rollout.Canary{Steps: []rollout.Step{
				{Experiment: &rollout.Experiment{Analyses: []rollout.ExperimentAnalysis{{Analysis: measured}}}}}}}},
		}},
		{Name: "edge", Render: &rollout.Render{App: rollout.App{Name: "edge", Namespace: "edge", Decryption: "keys"},
			Objects: []rollout.Object{object("v1", "Namespace", ""), object("example.com/v1", "Widget", "edge"), migration}},
			Has: []rollout.Ref{{Kind: "ConfigMap", Namespace: "edge", Name: "gone"},
				{Group: "gone.example.com", Kind: "Gone", Namespace: "edge", Name: "a"}}},
		{Name: "broken"},
	}
	x := &rightsExam{e: &Examination{}}
	x.needs(apps, mapper)
	var b strings.Builder
	writeRoles(&b, x.wanted, "gitrollout/gitrollout", "kube-system")
	head := func(kind, name, where string) string {
		return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + where + "}\nrules:\n"
	}
	bound := func(kind, name, where, account, namespace string) string {
		return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "Binding\nmetadata: {name: " + name + where + "}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: " + kind + ", name: " + name + "}\n" +
			"subjects: [{kind: ServiceAccount, name: " + account + ", namespace: " + namespace + "}]\n"
	}
	want := head("ClusterRole", "gitrollout", "") +
		"- apiGroups: [\"\"]\n  resources: [namespaces]\n  verbs: [create, delete, get, list, patch, watch]\n" +
		"- apiGroups: [\"\"]\n  resources: [namespaces]\n  resourceNames: [kube-system]\n  verbs: [get]\n" +
		"- apiGroups: [\"\"]\n  resources: [configmaps, pods]\n  verbs: [list, watch]\n" +
		"- apiGroups: [\"apps\"]\n  resources: [controllerrevisions, daemonsets, deployments, replicasets, statefulsets]\n" +
		"  verbs: [list, watch]\n" +
		bound("ClusterRole", "gitrollout", "", "gitrollout", "gitrollout") +
		head("Role", "gitrollout", ", namespace: edge") +
		"- apiGroups: [\"\"]\n  resources: [configmaps]\n  verbs: [create, delete, get, patch]\n" +
		"- apiGroups: [\"\"]\n  resources: [pods/log, secrets]\n  verbs: [get]\n" +
		"- apiGroups: [\"batch\"]\n  resources: [jobs]\n  verbs: [create, delete, get]\n" +
		bound("Role", "gitrollout", ", namespace: edge", "gitrollout", "gitrollout") +
		head("Role", "gitrollout", ", namespace: shop") +
		"- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [delete]\n" +
		"- apiGroups: [\"\"]\n  resources: [serviceaccounts]\n  resourceNames: [deployer]\n  verbs: [impersonate]\n" +
		"- apiGroups: [\"events.k8s.io\"]\n  resources: [events]\n  verbs: [create]\n" +
		bound("Role", "gitrollout", ", namespace: shop", "gitrollout", "gitrollout") +
		head("Role", "gitrollout-shop-deployer", ", namespace: shop") +
		"- apiGroups: [\"\"]\n  resources: [secrets]\n  verbs: [get]\n" +
		"- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [list, patch]\n" +
		"- apiGroups: [\"apps\"]\n  resources: [deployments]\n  verbs: [create, delete, get, patch]\n" +
		"- apiGroups: [\"batch\"]\n  resources: [jobs]\n  verbs: [create, delete, get]\n" +
		bound("Role", "gitrollout-shop-deployer", ", namespace: shop", "deployer", "shop")
	compare.Check(t, want, b.String())
	if x.e.Problems != 1 || x.e.Findings[0].Message != "the cluster has no kind example.com/v1 Widget, but Git has such an object" {
		t.Errorf("findings %+v", x.e.Findings)
	}
}
