package reconciler

import (
	"context"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// counting notes who writes to the cluster.
type counting struct {
	Applier
	by map[string]int
}

func (c counting) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	c.by[app] += len(objects)
	return c.Applier.Apply(ctx, app, objects)
}

func (c counting) Prune(ctx context.Context, app string, refs []rollout.Ref) ([]rollout.Ref, error) {
	c.by[app] += len(refs)
	return c.Applier.Prune(ctx, app, refs)
}

// tenantConfig lets the app evil have objects in namespace evil, and in default, where shop is.
const tenantConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: apps/evil, namespace: evil, namespaces: [default, evil-*]}\n- path: apps/shop\n"

// TestTenantAttacks: what somebody may try who can push to one app's folder, and to what it includes. Each try is held with the
// sentence of the rule, nothing of it is written, and the other app goes on.
func TestTenantAttacks(t *testing.T) {
	elsewhere := func(ns string) string { return "is in namespace " + ns + ", where app evil may not write" }
	unbound := func(kind string) string {
		return "belongs to no namespace, and app evil may not have any " + kind
	}
	object := func(version, kind, metadata, more string) map[string]string {
		return map[string]string{"app.yaml": "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {" + metadata + "}\n" + more}
	}
	with := func(files map[string]string, name, content string) map[string]string {
		files[name] = content
		return files
	}
	config := func(metadata string) map[string]string { return object("v1", "ConfigMap", metadata, "") }
	pods := "spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {serviceAccountName: gitrollout, containers: [{name: x, image: x}]}}}\n"
	const kustomization = "kustomization.yaml"
	for name, tt := range map[string]struct {
		files map[string]string // below apps/evil, or from the root with a slash first
		want  string
	}{
		"another namespace":             {config("name: a, namespace: payments"), elsewhere("payments")},
		"one that begins like its own":  {config("name: a, namespace: evil2"), elsewhere("evil2")},
		"a way up":                      {config("name: a, namespace: evil-x/../payments"), `"evil-x/../payments" is no name of a namespace`},
		"of another case":               {config("name: a, namespace: Evil"), `"Evil" is no name of a namespace`},
		"kube-system":                   {config("name: a, namespace: kube-system"), elsewhere("kube-system")},
		"kube-public":                   {config("name: a, namespace: kube-public"), elsewhere("kube-public")},
		"gitrollout's own":              {config("name: a, namespace: gitrollout"), "is in namespace gitrollout, which is gitrollout's own and no app's"},
		"gitrollout itself":             {object("apps/v1", "Deployment", "name: gitrollout, namespace: gitrollout", pods), "is in namespace gitrollout, which is gitrollout's own and no app's"},
		"gitrollout's credentials":      {object("v1", "Secret", "name: gitrollout, namespace: gitrollout", "data: {}\n"), "is in namespace gitrollout, which is gitrollout's own and no app's"},
		"its account's rights":          {object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: a, namespace: gitrollout", "roleRef: {}\n"), "is in namespace gitrollout, which is gitrollout's own and no app's"},
		"a token of an account":         {object("v1", "Secret", "name: a, namespace: kube-system, annotations: {kubernetes.io/service-account.name: clusterrole-aggregation-controller}", "type: kubernetes.io/service-account-token\n"), elsewhere("kube-system")},
		"an account":                    {object("v1", "ServiceAccount", "name: a, namespace: kube-system", ""), elsewhere("kube-system")},
		"rights in another namespace":   {object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: a, namespace: payments", "roleRef: {}\n"), elsewhere("payments")},
		"pods with another's account":   {object("apps/v1", "Deployment", "name: a, namespace: payments", pods), elsewhere("payments")},
		"a Job":                         {object("batch/v1", "Job", "name: a, namespace: payments", "spec: {template: {spec: {restartPolicy: Never, containers: [{name: x, image: x}]}}}\n"), elsewhere("payments")},
		"a route":                       {object("gateway.networking.k8s.io/v1", "HTTPRoute", "name: a, namespace: payments", "spec: {}\n"), elsewhere("payments")},
		"a policy of the network":       {object("networking.k8s.io/v1", "NetworkPolicy", "name: a, namespace: payments", "spec: {podSelector: {}}\n"), elsewhere("payments")},
		"a kind that nobody knows":      {object("example.com/v1", "Widget", "name: a, namespace: payments", ""), elsewhere("payments")},
		"in a List":                     {map[string]string{"app.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: payments}}\n"}, elsewhere("payments")},
		"in a list of its kind":         {map[string]string{"app.yaml": "apiVersion: v1\nkind: ConfigMapList\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: payments}}\n"}, elsewhere("payments")},
		"behind one that it may have":   {map[string]string{"app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: payments}\n"}, elsewhere("payments")},
		"by kustomize":                  {with(config("name: a"), kustomization, "namespace: payments\nresources: [app.yaml]\n"), elsewhere("payments")},
		"by a patch":                    {with(config("name: a, namespace: evil"), kustomization, "resources: [app.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: replace, path: /metadata/namespace, value: payments}\n"), elsewhere("payments")},
		"by a transformer":              {with(with(config("name: a"), "t.yaml", "apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: t, namespace: payments}\n"), kustomization, "resources: [app.yaml]\ntransformers: [t.yaml]\n"), elsewhere("payments")},
		"by a component":                {with(with(config("name: a"), "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamespace: payments\n"), kustomization, "resources: [app.yaml]\ncomponents: [c]\n"), elsewhere("payments")},
		"by a base":                     {map[string]string{kustomization: "resources: [../../base]\n", "/base/kustomization.yaml": "namespace: payments\nresources: [a.yaml]\n", "/base/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}, elsewhere("payments")},
		"by a replacement":              {with(config("name: payments, namespace: evil"), kustomization, "resources: [app.yaml]\nreplacements:\n- source: {kind: ConfigMap, fieldPath: metadata.name}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [metadata.namespace]}]\n"), elsewhere("payments")},
		"by a generator":                {map[string]string{kustomization: "configMapGenerator: [{name: a, namespace: payments, literals: [a=b]}]\n"}, elsewhere("payments")},
		"by a generator of Secrets":     {map[string]string{kustomization: "secretGenerator: [{name: a, namespace: kube-system, literals: [a=b]}]\n"}, elsewhere("kube-system")},
		"a Namespace":                   {object("v1", "Namespace", "name: evil", ""), unbound("Namespace")},
		"a Namespace by a prefix":       {with(object("v1", "Namespace", "name: system", ""), kustomization, "namePrefix: kube-\nresources: [app.yaml]\n"), unbound("Namespace")},
		"a ClusterRole":                 {object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a", "rules: []\n"), unbound("rbac.authorization.k8s.io/ClusterRole")},
		"one that says it has one":      {object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a, namespace: evil", "rules: []\n"), unbound("rbac.authorization.k8s.io/ClusterRole")},
		"a ClusterRoleBinding":          {object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "name: a", "roleRef: {}\n"), unbound("rbac.authorization.k8s.io/ClusterRoleBinding")},
		"a definition":                  {object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "name: a", "spec: {group: rbac.authorization.k8s.io, names: {kind: ClusterRole}, scope: Namespaced}\n"), unbound("apiextensions.k8s.io/CustomResourceDefinition")},
		"a policy of admission":         {object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "name: a", "spec: {}\n"), unbound("admissionregistration.k8s.io/ValidatingAdmissionPolicy")},
		"a webhook":                     {object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "name: a", "webhooks: []\n"), unbound("admissionregistration.k8s.io/MutatingWebhookConfiguration")},
		"an APIService":                 {object("apiregistration.k8s.io/v1", "APIService", "name: v1.apps", "spec: {}\n"), unbound("apiregistration.k8s.io/APIService")},
		"a PersistentVolume":            {object("v1", "PersistentVolume", "name: a", "spec: {hostPath: {path: /}}\n"), unbound("PersistentVolume")},
		"a PriorityClass":               {object("scheduling.k8s.io/v1", "PriorityClass", "name: a", "value: 1\n"), unbound("scheduling.k8s.io/PriorityClass")},
		"a StorageClass":                {object("storage.k8s.io/v1", "StorageClass", "name: a", "provisioner: x\n"), unbound("storage.k8s.io/StorageClass")},
		"a Node":                        {object("v1", "Node", "name: a", ""), unbound("Node")},
		"a newer kind":                  {object("resource.k8s.io/v1", "DeviceClass", "name: a", "spec: {}\n"), unbound("resource.k8s.io/DeviceClass")},
		"a schema of its own":           {with(with(object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a", "rules: []\n"), "schema.json", `{"definitions": {}, "paths": {"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/clusterroles": {"get": {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": {"group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "version": "v1"}}}}}`), kustomization, "openapi: {path: schema.json}\nresources: [app.yaml]\n"), unbound("rbac.authorization.k8s.io/ClusterRole")},
		"another app's Deployment":      {map[string]string{"app.yaml": strings.Replace(version("v9"), "metadata: {name: shop}", "metadata: {name: shop, namespace: default}", 2)}, "Deployment default/shop is in app evil and in app shop, which has it"},
		"another app's configuration":   {config("name: shop, namespace: default"), "ConfigMap default/shop is in app evil and in app shop, which has it"},
		"with the label of another app": {config("name: shop, namespace: default, labels: {gitrollout.dev/app: shop}"), "ConfigMap default/shop is in app evil and in app shop, which has it"},
		"a remote base":                 {map[string]string{kustomization: "resources: ['https://example.com/org/repo']\n"}, "vendor"},
		"outside of the repository":     {map[string]string{kustomization: "resources: [../../../secrets.yaml]\n"}, "repository"},
		"a chart":                       {map[string]string{kustomization: "helmCharts: [{name: a, releaseName: a, version: 1.0.0, repo: 'https://example.com'}]\n"}, "charts are read from Git alone"},
		"a program":                     {with(config("name: a"), kustomization, "resources: [app.yaml]\ngenerators:\n- |-\n  apiVersion: x\n  kind: X\n  metadata: {name: x, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/sh}'}}\n"), "generators"},
	} {
		t.Run(name, func(t *testing.T) {
			by := map[string]int{}
			w := newWorld(t, func(o *Options) { o.Applier = counting{o.Applier, by} })
			commit := map[string]string{configFile: tenantConfig}
			if tt.files[kustomization] == "" {
				commit["apps/evil/kustomization.yaml"] = "resources: [app.yaml]\n"
			}
			for file, content := range tt.files {
				if root, is := strings.CutPrefix(file, "/"); is {
					commit[root] = content
				} else {
					commit["apps/evil/"+file] = content
				}
			}
			w.commit("an attack", commit)
			w.settle()
			if h := w.stateOf("evil").Held; h == nil || !strings.Contains(h.Message, tt.want) {
				t.Errorf("held %+v, want %s", h, tt.want)
			}
			if by["evil"] > 0 || w.images() != "v1" {
				t.Errorf("%d writes, %s runs", by["evil"], w.images())
			}
			w.commit("the other one goes on", map[string]string{"apps/shop/app.yaml": version("v2")})
			w.settle()
			if s := w.state(); s.Held != nil || s.Release == nil || w.pods("v2") == 0 {
				t.Errorf("the other one is %s, held %+v", s.Phase, s.Held)
			}
		})
	}
}
