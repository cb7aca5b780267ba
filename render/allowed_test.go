package render

import (
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// forbidden renders the app at apps/shop with the given entry, and returns why the entry forbids its objects.
func forbidden(t *testing.T, app rollout.App, files map[string]string) (string, Violations) {
	t.Helper()
	app.Name, app.Path = "shop", "apps/shop"
	tree := newTree(files)
	r, err := New(InProcess{}).Render(tree, app, rollout.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	err = Allow(tree, r, ".gitrollout/prod/config.yaml", "gitrollout")
	if err == nil {
		return "", BeyondOf(r, "gitrollout")
	}
	var invalid *rollout.InvalidError
	if !errors.As(err, &invalid) || rollout.ReasonOf(err) != rollout.HeldForbidden {
		t.Fatalf("the error is %v", err)
	}
	return err.Error(), BeyondOf(r, "gitrollout")
}

// TestAllow checks the messages: they are all that the author of a commit reads, and must suffice for an upgrade.
func TestAllow(t *testing.T) {
	const config = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"
	tests := map[string]struct {
		app  rollout.App
		file string // the kustomization's only resource is app.yaml
		yaml string
		want string
	}{
		"nothing": {rollout.App{Namespace: "shop"}, "", config, ""},
		"another namespace": {rollout.App{Namespace: "shop"}, "", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: payments}\n",
			"apps/shop/app.yaml: metadata.namespace: is in namespace payments, where app shop may not write (ConfigMap/payments/a); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: namespaces: [payments]"},
		"by kustomize": {rollout.App{Namespace: "shop"}, "namespace: payments\n", config,
			"apps/shop/app.yaml: metadata.namespace: is in namespace payments, where app shop may not write (ConfigMap/payments/a); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: namespaces: [payments]"},
		"all missing entries, beside present ones": {rollout.App{Namespace: "shop", Namespaces: "shop-*", ClusterResources: "*.example.com/*"}, "",
			"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: till}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: payments}\n---\n" +
				"kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: a}\n",
			"apps/shop/app.yaml: kind: belongs to no namespace, and app shop may not have any rbac.authorization.k8s.io/ClusterRole (ClusterRole//a); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: namespaces: [shop-*, payments, till], " +
				"clusterResources: ['*.example.com/*', rbac.authorization.k8s.io/ClusterRole]"},
		"a Namespace": {rollout.App{Namespace: "shop"}, "", "kind: Namespace\napiVersion: v1\nmetadata: {name: shop}\n",
			"apps/shop/app.yaml: kind: belongs to no namespace, and app shop may not have any Namespace (Namespace//shop); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: clusterResources: [Namespace]"},
		"another's Namespace": {rollout.App{Namespace: "shop", ClusterResources: "Namespace"}, "", "kind: Namespace\napiVersion: v1\nmetadata: {name: payments}\n",
			"apps/shop/app.yaml: metadata.name: is a namespace where app shop may not write (Namespace//payments); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: namespaces: [payments]"},
		"gitrollout's own": {rollout.App{Namespace: "shop", Namespaces: "* gitrollout"}, "", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: gitrollout}\n",
			"apps/shop/app.yaml: metadata.namespace: is in namespace gitrollout, which is gitrollout's own and no app's (ConfigMap/gitrollout/a); " +
				"take it out, or put it into another namespace"},
		"an unknown version of a kind without namespaces": {rollout.App{Namespace: "shop"}, "", "kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v9\nmetadata: {name: a}\n",
			"apps/shop/app.yaml: kind: belongs to no namespace, and app shop may not have any rbac.authorization.k8s.io/ClusterRole (ClusterRole//a); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: clusterResources: [rbac.authorization.k8s.io/ClusterRole]"},
		"a question to the server": {rollout.App{Namespace: "shop"}, "", "kind: TokenReview\napiVersion: authentication.k8s.io/v1\nmetadata: {name: a}\nspec: {token: a}\n",
			"apps/shop/app.yaml: kind: belongs to no namespace, and app shop may not have any authentication.k8s.io/TokenReview (TokenReview//a); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: clusterResources: [authentication.k8s.io/TokenReview]"},
		"a kind without namespaces that says it has one": {rollout.App{Namespace: "shop"}, "", "kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: a, namespace: shop}\n",
			"apps/shop/app.yaml: kind: belongs to no namespace, and app shop may not have any rbac.authorization.k8s.io/ClusterRole (ClusterRole/shop/a); " +
				"if it is to have that, add to its entry in .gitrollout/prod/config.yaml: clusterResources: [rbac.authorization.k8s.io/ClusterRole]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := forbidden(t, tt.app, map[string]string{"apps/shop/kustomization.yaml": tt.file + "resources: [app.yaml]\n", "apps/shop/app.yaml": tt.yaml})
			if got != tt.want {
				t.Errorf("\n got: %s\nwant: %s", got, tt.want)
			}
		})
	}
}

// TestADefinitionChangesNoKindOfKubernetes lets a kustomization define custom kinds, but not redefine Kubernetes'
// kinds.
func TestADefinitionChangesNoKindOfKubernetes(t *testing.T) {
	const definition = "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: a}\nspec: {group: GROUP, names: {kind: KIND}, scope: SCOPE}\n---\n"
	tests := map[string]struct{ group, kind, scope, object, want string }{
		"a kind of Kubernetes":     {"rbac.authorization.k8s.io", "ClusterRole", "Namespaced", "apiVersion: rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io/ClusterRole"},
		"a newer one":              {"resource.k8s.io", "DeviceClass", "Namespaced", "apiVersion: resource.k8s.io/v1", "resource.k8s.io/DeviceClass"},
		"its own, of no namespace": {"example.com", "Widget", "Cluster", "apiVersion: example.com/v1", "example.com/Widget"},
		"its own":                  {"example.com", "Widget", "Namespaced", "apiVersion: example.com/v1", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("GROUP", tt.group, "KIND", tt.kind, "SCOPE", tt.scope).Replace(definition) + "kind: " + tt.kind + "\n" + tt.object + "\nmetadata: {name: a}\n"
			_, b := forbidden(t, rollout.App{Namespace: "shop", ClusterResources: "apiextensions.k8s.io/*"}, map[string]string{
				"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": text})
			if diff := compare.Diff(strings.Fields(tt.want), b.ClusterResources); len(b.ClusterResources)+len(tt.want) > 0 && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimitsCostNoBuild checks that a change of an app's limits needs no build.
func TestLimitsCostNoBuild(t *testing.T) {
	tree := newTree(map[string]string{"apps/shop/kustomization.yaml": "namespace: shop\n", "apps/shop/a.yaml": ""})
	r := New(InProcess{})
	for _, namespaces := range []string{"", "shop", "shop till"} {
		app := rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop", Namespaces: namespaces}
		built, err := r.Render(tree, app, rollout.Commit{})
		if err != nil || built.App != app {
			t.Fatalf("app %+v, error %v", built, err)
		}
	}
	if r.Builds() != 1 {
		t.Errorf("%d builds", r.Builds())
	}
}
