// Package attacks has attacks by a user who can push only to one app's folder. Tests run the attacks against
// a reconciler in memory, and against the program on a real API server with the installed RBAC rights.
package attacks

import (
	"fmt"
	"maps"
)

// Namespace is the namespace of the attacking app.
const Namespace = "evil"

// Policy has the fields of the attacking app's project, except for the project's name and its list of apps.
const Policy = "namespaces: [evil, evil-*], sources: [apps/**, base/**], resources: {deny: [/Secret, /ServiceAccount, rbac.authorization.k8s.io/RoleBinding]}, " +
	"rollouts: {required: true, maxFirstWeight: 25, minDuration: 30m}"

// Attack is one attack: files in the repository, and the expected refusal.
type Attack struct {
	Files map[string]string // by path, relative to the app's folder, or to the repository's root if the path begins with a slash
	Refusal
}

// Refusal is the error with which gitrollout must refuse an attack.
type Refusal struct {
	Config string // part of the error if the app may write only to its own and the victim's namespaces; "": no error
	Policy string // the rule of Policy that refuses the attack if the configuration allows everything; "": see Config
}

// by returns a copy of r with the given rule of Policy.
func (r Refusal) by(rule string) Refusal {
	r.Policy = rule
	return r
}

// Victim is the app that some attacks target.
type Victim struct {
	App       string
	Objects   string // name of the victim's Deployment and ConfigMap
	Namespace string
}

// Of returns an app's attacks on the cluster and on the victim. The key is the attack's name.
func Of(app string, victim Victim) map[string]Attack {
	shop, home := victim.Objects, victim.Namespace
	elsewhere := func(ns string) Refusal {
		return Refusal{"is in namespace " + ns + ", where app " + app + " may not write", "namespaces"}
	}
	unbound := func(kind string) Refusal {
		return Refusal{"belongs to no namespace, and app " + app + " may not have any " + kind, "clusterResources"}
	}
	taken := func(kind string) Refusal {
		return Refusal{Config: fmt.Sprintf("%s %s/%s is in app %s and in app %s, which owns the object", kind, home, shop, app, victim.App)}
	}
	ours := Refusal{Config: "is in namespace gitrollout, which belongs to gitrollout and to no app"}
	all := map[string]Attack{
		"another namespace":            {config("name: a, namespace: payments"), elsewhere("payments")},
		"one that begins like its own": {config("name: a, namespace: evil2"), elsewhere("evil2")},
		"a way up": {config("name: a, namespace: evil-x/../payments"),
			Refusal{Config: `"evil-x/../payments" is not a valid namespace`}},
		"of another case":                {config("name: a, namespace: Evil"), Refusal{Config: `"Evil" is not a valid namespace`}},
		"kube-system":                    {config("name: a, namespace: kube-system"), elsewhere("kube-system")},
		"kube-public":                    {config("name: a, namespace: kube-public"), elsewhere("kube-public")},
		"gitrollout's own":               {config("name: a, namespace: gitrollout"), ours},
		"gitrollout itself":              {object("apps/v1", "Deployment", "name: gitrollout, namespace: gitrollout", pods), ours},
		"gitrollout's credentials":       {object("v1", "Secret", "name: gitrollout, namespace: gitrollout", "data: {}\n"), ours},
		"its account's rights":           {object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: a, namespace: gitrollout", "roleRef: {}\n"), ours},
		"a token of an account":          {object("v1", "Secret", "name: a, namespace: kube-system, annotations: {kubernetes.io/service-account.name: clusterrole-aggregation-controller}", "type: kubernetes.io/service-account-token\n"), elsewhere("kube-system").by("resources.deny")},
		"an account":                     {object("v1", "ServiceAccount", "name: a, namespace: kube-system", ""), elsewhere("kube-system").by("resources.deny")},
		"rights in another namespace":    {object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: a, namespace: payments", "roleRef: {}\n"), elsewhere("payments").by("resources.deny")},
		"pods with another's account":    {object("apps/v1", "Deployment", "name: a, namespace: payments", pods), elsewhere("payments")},
		"a Job":                          {object("batch/v1", "Job", "name: a, namespace: payments", "spec: {template: {spec: {restartPolicy: Never, containers: [{name: x, image: x}]}}}\n"), elsewhere("payments")},
		"a route":                        {object("gateway.networking.k8s.io/v1", "HTTPRoute", "name: a, namespace: payments", "spec: {}\n"), elsewhere("payments")},
		"a policy of the network":        {object("networking.k8s.io/v1", "NetworkPolicy", "name: a, namespace: payments", "spec: {podSelector: {}}\n"), elsewhere("payments")},
		"an unknown kind":                {object("example.com/v1", "Widget", "name: a, namespace: payments", ""), elsewhere("payments")},
		"in a List":                      {map[string]string{"app.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: payments}}\n"}, elsewhere("payments")},
		"in a list of its kind":          {map[string]string{"app.yaml": "apiVersion: v1\nkind: ConfigMapList\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: payments}}\n"}, elsewhere("payments")},
		"behind an allowed object":       {map[string]string{"app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: payments}\n"}, elsewhere("payments")},
		"by kustomize":                   {with(config("name: a"), kustomization, "namespace: payments\nresources: [app.yaml]\n"), elsewhere("payments")},
		"by a patch":                     {with(config("name: a, namespace: evil"), kustomization, "resources: [app.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: replace, path: /metadata/namespace, value: payments}\n"), elsewhere("payments")},
		"by a transformer":               {with(with(config("name: a"), "t.yaml", "apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: t, namespace: payments}\n"), kustomization, "resources: [app.yaml]\ntransformers: [t.yaml]\n"), elsewhere("payments")},
		"by a component":                 {with(with(config("name: a"), "c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamespace: payments\n"), kustomization, "resources: [app.yaml]\ncomponents: [c]\n"), elsewhere("payments")},
		"by a base":                      {map[string]string{kustomization: "resources: [../../base]\n", "/base/kustomization.yaml": "namespace: payments\nresources: [a.yaml]\n", "/base/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}, elsewhere("payments")},
		"by a replacement":               {with(config("name: payments, namespace: evil"), kustomization, "resources: [app.yaml]\nreplacements:\n- source: {kind: ConfigMap, fieldPath: metadata.name}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [metadata.namespace]}]\n"), elsewhere("payments")},
		"by a generator":                 {map[string]string{kustomization: "configMapGenerator: [{name: a, namespace: payments, literals: [a=b]}]\n"}, elsewhere("payments")},
		"by a generator of Secrets":      {map[string]string{kustomization: "secretGenerator: [{name: a, namespace: kube-system, literals: [a=b]}]\n"}, elsewhere("kube-system").by("resources.deny")},
		"a Namespace":                    {object("v1", "Namespace", "name: evil", ""), unbound("Namespace")},
		"a Namespace by a prefix":        {with(object("v1", "Namespace", "name: system", ""), kustomization, "namePrefix: kube-\nresources: [app.yaml]\n"), unbound("Namespace")},
		"a ClusterRole":                  {object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a", "rules: []\n"), unbound("rbac.authorization.k8s.io/ClusterRole")},
		"a ClusterRole with a namespace": {object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a, namespace: evil", "rules: []\n"), unbound("rbac.authorization.k8s.io/ClusterRole")},
		"a ClusterRoleBinding":           {object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "name: a", "roleRef: {}\n"), unbound("rbac.authorization.k8s.io/ClusterRoleBinding")},
		"a definition":                   {object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "name: a", "spec: {group: rbac.authorization.k8s.io, names: {kind: ClusterRole}, scope: Namespaced}\n"), unbound("apiextensions.k8s.io/CustomResourceDefinition")},
		"a policy of admission":          {object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "name: a", "spec: {}\n"), unbound("admissionregistration.k8s.io/ValidatingAdmissionPolicy")},
		"a webhook":                      {object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "name: a", "webhooks: []\n"), unbound("admissionregistration.k8s.io/MutatingWebhookConfiguration")},
		"an APIService":                  {object("apiregistration.k8s.io/v1", "APIService", "name: v1.apps", "spec: {}\n"), unbound("apiregistration.k8s.io/APIService")},
		"a PersistentVolume":             {object("v1", "PersistentVolume", "name: a", "spec: {hostPath: {path: /}}\n"), unbound("PersistentVolume")},
		"a PriorityClass":                {object("scheduling.k8s.io/v1", "PriorityClass", "name: a", "value: 1\n"), unbound("scheduling.k8s.io/PriorityClass")},
		"a StorageClass":                 {object("storage.k8s.io/v1", "StorageClass", "name: a", "provisioner: x\n"), unbound("storage.k8s.io/StorageClass")},
		"a Node":                         {object("v1", "Node", "name: a", ""), unbound("Node")},
		"a newer kind":                   {object("resource.k8s.io/v1", "DeviceClass", "name: a", "spec: {}\n"), unbound("resource.k8s.io/DeviceClass")},
		"a schema in the app's files":    {with(with(object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a", "rules: []\n"), "schema.json", `{"definitions": {}, "paths": {"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/clusterroles": {"get": {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": {"group": "rbac.authorization.k8s.io", "kind": "ClusterRole", "version": "v1"}}}}}`), kustomization, "openapi: {path: schema.json}\nresources: [app.yaml]\n"), unbound("rbac.authorization.k8s.io/ClusterRole")},
		"another app's Deployment":       {object("apps/v1", "Deployment", "name: "+shop+", namespace: "+home, pods), taken("Deployment").by("rollouts.required")},
		"another app's configuration":    {config("name: " + shop + ", namespace: " + home), taken("ConfigMap")},
		"with the label of another app":  {config("name: " + shop + ", namespace: " + home + ", labels: {gitrollout.dev/app: " + shop + "}"), taken("ConfigMap")},
		"a remote base":                  {map[string]string{kustomization: "resources: ['https://example.com/org/repo']\n"}, Refusal{Config: "vendor"}},
		"outside of the repository":      {map[string]string{kustomization: "resources: [../../../secrets.yaml]\n"}, Refusal{Config: "repository"}},
		"a chart":                        {map[string]string{kustomization: "helmCharts: [{name: a, releaseName: a, version: 1.0.0, repo: 'https://example.com'}]\n"}, Refusal{Config: "charts are read only from Git"}},
		"a program":                      {with(config("name: a"), kustomization, "resources: [app.yaml]\ngenerators:\n- |-\n  apiVersion: x\n  kind: X\n  metadata: {name: x, annotations: {config.kubernetes.io/function: 'exec: {path: /bin/sh}'}}\n"), Refusal{Config: "generators"}},
	}
	maps.Copy(all, withinItsOwn())
	return all
}

// withinItsOwn returns attacks inside the app's own namespace. Only a rule of Policy can refuse these attacks.
func withinItsOwn() map[string]Attack {
	released := func(strategy string) map[string]string {
		return object("apps/v1", "Deployment", "name: a", pods+"---\napiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: a}\n"+
			"spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: a}, strategy: {"+strategy+"}}\n")
	}
	return map[string]Attack{
		"a base of another team":  {map[string]string{kustomization: "resources: [../../other]\n", "/other/kustomization.yaml": "resources: [a.yaml]\n", "/other/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}, Refusal{Policy: "sources"}},
		"a file of another team":  {map[string]string{kustomization: "components: [../../component]\n", "/component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nconfigMapGenerator: [{name: a, literals: [a=b]}]\n"}, Refusal{Policy: "sources"}},
		"a Secret":                {object("v1", "Secret", "name: a", "data: {}\n"), Refusal{Policy: "resources.deny"}},
		"a Secret by a generator": {map[string]string{kustomization: "secretGenerator: [{name: a, literals: [a=b]}]\n"}, Refusal{Policy: "resources.deny"}},
		"an account for itself":   {object("v1", "ServiceAccount", "name: a", ""), Refusal{Policy: "resources.deny"}},
		"more rights for itself":  {object("rbac.authorization.k8s.io/v1", "RoleBinding", "name: a", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n"), Refusal{Policy: "resources.deny"}},
		"a version at once":       {object("apps/v1", "Deployment", "name: a", pods), Refusal{Policy: "rollouts.required"}},
		"all users first":         {released("canary: {steps: [{setWeight: 80}]}"), Refusal{Policy: "rollouts.maxFirstWeight"}},
		"no time to look":         {released("canary: {steps: [{setWeight: 10}, {pause: {duration: 1s}}]}"), Refusal{Policy: "rollouts.minDuration"}},
	}
}

const (
	kustomization = "kustomization.yaml"
	pods          = "spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {serviceAccountName: gitrollout, containers: [{name: x, image: x}]}}}\n"
)

// object returns the files of an app with one object.
func object(version, kind, metadata, more string) map[string]string {
	return map[string]string{"app.yaml": "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {" + metadata + "}\n" + more}
}

func config(metadata string) map[string]string { return object("v1", "ConfigMap", metadata, "") }

// with adds a file to files, and returns files.
func with(files map[string]string, name, content string) map[string]string {
	files[name] = content
	return files
}
