package render_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// forbidden renders the app at apps/shop with the given entry. It returns the text of Allow's error (or "") and the violations.
func forbidden(t *testing.T, app rollout.App, kustomization, yaml string) (string, render.Violations) {
	t.Helper()
	app.Name, app.Path, app.Namespace = "shop", "apps/shop", "shop"
	files := map[string]string{"apps/shop/kustomization.yaml": kustomization + "resources: [app.yaml]\n", "apps/shop/app.yaml": yaml}
	r := mustRender(t, render.New(render.InProcess{}), files, app)
	err := render.Allow(newTree(files), r, ".gitrollout/prod/config.yaml", "gitrollout")
	if err == nil {
		return "", render.BeyondOf(r, "gitrollout")
	}
	if !rollout.IsInvalid(err) || rollout.ReasonOf(err) != rollout.HeldForbidden {
		t.Fatalf("the error is %v", err)
	}
	return err.Error(), render.BeyondOf(r, "gitrollout")
}

// TestAllow checks the messages about objects that an entry does not allow. The author of a commit sees only these messages.
func TestAllow(t *testing.T) {
	const config = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"
	const inPayments = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: payments}\n"
	const wayOut = "; to allow the object, add to the app's entry in .gitrollout/prod/config.yaml: "
	const file = "apps/shop/app.yaml: "
	const notInPayments = file + "metadata.namespace: is in namespace payments, where app shop may not write (ConfigMap/payments/a)" + wayOut +
		"namespaces: [payments]"
	role := func(more string) string {
		return "kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/" + more + "}\n"
	}
	none := func(kind, object string) string {
		return file + "kind: belongs to no namespace, and app shop may not have any " + kind + " (" + object + ")" + wayOut
	}
	const ofRoles, ofReviews = "rbac.authorization.k8s.io/ClusterRole", "authentication.k8s.io/TokenReview"
	for name, tt := range map[string]struct {
		app                 rollout.App
		kustomization, yaml string // kustomization is the text before the line "resources: [app.yaml]"
		want                string
	}{
		"nothing":           {rollout.App{}, "", config, ""},
		"another namespace": {rollout.App{}, "", inPayments, notInPayments},
		"by kustomize":      {rollout.App{}, "namespace: payments\n", config, notInPayments},
		"all missing entries, beside present ones": {rollout.App{Namespaces: "shop-*", ClusterResources: "*.example.com/*"}, "",
			"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, namespace: till}\n---\n" + inPayments + "---\n" + role("v1\nmetadata: {name: a"),
			none(ofRoles, "ClusterRole//a") + "namespaces: [shop-*, payments, till], clusterResources: ['*.example.com/*', " + ofRoles + "]"},
		"a Namespace": {rollout.App{}, "", "kind: Namespace\napiVersion: v1\nmetadata: {name: shop}\n",
			none("Namespace", "Namespace//shop") + "clusterResources: [Namespace]"},
		"another's Namespace": {rollout.App{ClusterResources: "Namespace"}, "", "kind: Namespace\napiVersion: v1\nmetadata: {name: payments}\n",
			file + "metadata.name: is a namespace where app shop may not write (Namespace//payments)" + wayOut + "namespaces: [payments]"},
		"gitrollout's own": {rollout.App{Namespaces: "* gitrollout"}, "", strings.Replace(inPayments, "payments", "gitrollout", 1),
			file + "metadata.namespace: is in namespace gitrollout, which belongs to gitrollout and to no app (ConfigMap/gitrollout/a); " +
				"remove the object from the app, or move it to another namespace"},
		"an unknown version of a kind without namespaces": {rollout.App{}, "", role("v9\nmetadata: {name: a"),
			none(ofRoles, "ClusterRole//a") + "clusterResources: [" + ofRoles + "]"},
		"a question to the server": {rollout.App{}, "",
			"kind: TokenReview\napiVersion: authentication.k8s.io/v1\nmetadata: {name: a}\nspec: {token: a}\n",
			none(ofReviews, "TokenReview//a") + "clusterResources: [" + ofReviews + "]"},
		"a kind without namespaces that says it has one": {rollout.App{}, "", role("v1\nmetadata: {name: a, namespace: shop"),
			none(ofRoles, "ClusterRole/shop/a") + "clusterResources: [" + ofRoles + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := forbidden(t, tt.app, tt.kustomization, tt.yaml)
			compare.Check(t, tt.want, got)
		})
	}
}

// TestADefinitionChangesNoKindOfKubernetes checks that a CRD in an app sets the scope of custom kinds, but not of Kubernetes' own kinds.
func TestADefinitionChangesNoKindOfKubernetes(t *testing.T) {
	for name, tt := range map[string]struct{ group, kind, scope, object, want string }{
		"a kind of Kubernetes": {"rbac.authorization.k8s.io", "ClusterRole", "Namespaced", "rbac.authorization.k8s.io/v1",
			"rbac.authorization.k8s.io/ClusterRole"},
		"a newer one":              {"resource.k8s.io", "DeviceClass", "Namespaced", "resource.k8s.io/v1", "resource.k8s.io/DeviceClass"},
		"its own, of no namespace": {"example.com", "Widget", "Cluster", "example.com/v1", "example.com/Widget"},
		"its own":                  {"example.com", "Widget", "Namespaced", "example.com/v1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\nmetadata: {name: a}\n" +
				"spec: {group: " + tt.group + ", names: {kind: " + tt.kind + "}, scope: " + tt.scope + "}\n" +
				"---\nkind: " + tt.kind + "\napiVersion: " + tt.object + "\nmetadata: {name: a}\n"
			_, b := forbidden(t, rollout.App{ClusterResources: "apiextensions.k8s.io/*"}, "", text)
			compare.CheckNamed(t, "forbidden", tt.want, strings.Join(b.ClusterResources, " "))
		})
	}
}

// TestLimitsCostNoBuild checks that a change of an app's permitted namespaces causes no new build.
func TestLimitsCostNoBuild(t *testing.T) {
	files := map[string]string{"apps/shop/kustomization.yaml": "namespace: shop\n", "apps/shop/a.yaml": ""}
	r := render.New(render.InProcess{})
	for _, namespaces := range []string{"", "shop", "shop till"} {
		app := rollout.App{Name: "shop", Path: "apps/shop", Namespace: "shop", Namespaces: namespaces}
		compare.Check(t, app, mustRender(t, r, files, app).App)
	}
	compare.CheckNamed(t, "builds", 1, r.Builds())
}
