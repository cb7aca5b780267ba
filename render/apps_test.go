package render_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

func TestFindApps(t *testing.T) {
	tree := newTree(map[string]string{
		"apps/shop/overlays/prod/kustomization.yaml":    "x",
		"apps/shop/overlays/staging/kustomization.yaml": "x",
		"apps/mail/overlays/prod/kustomization.yml":     "x",
		"apps/none/overlays/prod/deployment.yaml":       "x",
		"apps/README.md": "x",
		"apps/linked":    linkTo + "shop",
		"apps/Upper/overlays/prod/kustomization.yaml": "x",
		"infra/ingress/Kustomization":                 "x",
		"infra/folder/kustomization.yaml/x":           "x",
		"teams/a/shop/kustomization.yaml":             "x",
		"teams/b/shop/kustomization.yaml":             "x",
	})
	const linked = "apps/linked: is a symbolic link, and links to apps are not followed; " +
		"list the folder that it leads to, or make it a folder"
	for name, tt := range map[string]struct {
		entries string
		want    string // each app's name, path and namespace, or the error
	}{
		"named by a wildcard's match; a folder without a kustomization is none": {"{path: \"apps/[a-z]*/overlays/prod\", namespace: x}",
			"mail apps/mail/overlays/prod x; shop apps/shop/overlays/prod x"},
		"two wildcards are joined by -": {"{path: teams/*/shop/}, {path: apps/s*/overlays/*}", "a teams/a/shop default; " +
			"b teams/b/shop default; shop-prod apps/shop/overlays/prod default; shop-staging apps/shop/overlays/staging default"},
		"without a wildcard, by the last folder or the name": {"{path: infra/ingress, namespace: edge}, {path: teams/a/shop, name: a-shop}",
			"a-shop teams/a/shop default; ingress infra/ingress edge"},
		"a folder may come later": {"{path: gone/*}, {path: infra/folder}, {path: apps/README.md}", ""},
		"the first entry wins":    {"{path: infra/ingress, namespace: edge}, {path: infra/*}", "ingress infra/ingress edge"},
		"same name": {"{path: teams/a/shop}, {path: teams/b/shop}",
			"c.yaml: apps[1].path: teams/a/shop and teams/b/shop are both the app shop; give one app another name"},
		"a link":   {"{path: apps/linked}", linked},
		"of links": {"{path: \"apps/l*\"}", linked},
		"not a name": {"{path: apps/*/overlays/prod}", `c.yaml: apps[0].path: apps/Upper/overlays/prod would be the app "Upper", ` +
			"which is not a name; rename the folder (lower-case letters, digits and -, at most 63), or give it its own entry with a name"},
	} {
		t.Run(name, func(t *testing.T) {
			apps, err := render.FindApps(tree, configured(t, tt.entries))
			got := strings.Join(rollout.Mapped(apps, func(a rollout.App) string {
				compare.Check(t, rollout.App{Name: a.Name, Path: a.Path, Namespace: a.Namespace}, a)
				return a.Name + " " + a.Path + " " + a.Namespace
			}), "; ")
			if err != nil {
				got = err.Error()
			}
			if got != tt.want || err != nil && !rollout.IsInvalid(err) {
				t.Errorf("\n got: %s\nwant: %s", got, tt.want)
			}
		})
	}
}

// TestMostFolders checks that matched folders beyond the limit mostFolders are reported and are no apps. All other folders stay apps.
func TestMostFolders(t *testing.T) {
	files := map[string]string{"first/kustomization.yaml": "x"}
	for i := range 20_000 + 10 {
		files[fmt.Sprintf("apps/a%05d/kustomization.yaml", i)] = "x"
	}
	apps, unnamed, err := render.FindAll(newTree(files), configured(t, "{path: first}, {path: apps/*}"))
	if err != nil || len(apps) != 20_000+1 || apps[len(apps)-1].Name != "first" {
		t.Errorf("%d apps, %v", len(apps), err)
	}
	const want = "c.yaml: apps[1].path: apps/* and the entries before it match more than 20000 folders"
	if len(unnamed) != 1 || !strings.Contains(unnamed[0].Err.Error(), want) {
		t.Errorf("%v", unnamed)
	}
}
