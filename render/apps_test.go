package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
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
	app := func(name, path, namespace string) rollout.App {
		return rollout.App{Name: name, Path: path, Namespace: namespace}
	}
	tests := map[string]struct {
		reason string
		apps   string
		want   []rollout.App
		err    string
	}{
		"wildcard":    {"named by what it matched; a folder without a kustomization is none", "[{path: \"apps/[a-z]*/overlays/prod\", namespace: x}]", []rollout.App{app("mail", "apps/mail/overlays/prod", "x"), app("shop", "apps/shop/overlays/prod", "x")}, ""},
		"two":         {"joined by -", "[{path: teams/*/shop/}, {path: apps/s*/overlays/*}]", []rollout.App{app("a", "teams/a/shop", "default"), app("b", "teams/b/shop", "default"), app("shop-prod", "apps/shop/overlays/prod", "default"), app("shop-staging", "apps/shop/overlays/staging", "default")}, ""},
		"no wildcard": {"the last folder, or the name", "[{path: infra/ingress, namespace: edge}, {path: teams/a/shop, name: a-shop}]", []rollout.App{app("a-shop", "teams/a/shop", "default"), app("ingress", "infra/ingress", "edge")}, ""},
		"nothing":     {"a folder may come later", "[{path: gone/*}, {path: infra/folder}, {path: apps/README.md}]", []rollout.App{}, ""},
		"twice":       {"the first entry wins", "[{path: infra/ingress, namespace: edge}, {path: infra/*}]", []rollout.App{app("ingress", "infra/ingress", "edge")}, ""},
		"same name":   {"", "[{path: teams/a/shop}, {path: teams/b/shop}]", nil, "c.yaml: apps[1].path: teams/a/shop and teams/b/shop are both the app shop; give one app another name"},
		"a link":      {"to a folder, in place of one", "[{path: apps/linked}]", nil, "apps/linked: is a symbolic link, and links to apps are not followed; list the folder that it leads to, or make it a folder"},
		"of links":    {"", "[{path: \"apps/l*\"}]", nil, "apps/linked: is a symbolic link, and links to apps are not followed; list the folder that it leads to, or make it a folder"},
		"not a name":  {"", "[{path: apps/*/overlays/prod}]", nil, `c.yaml: apps[0].path: apps/Upper/overlays/prod would be the app "Upper", which is not a name; rename the folder (lower-case letters, digits and -, at most 63), or list it by itself with a name`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg, err := rollout.ParseConfig("c.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\nstateBranch: gitrollout/state/x\napps: "+tt.apps+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := FindApps(tree, cfg)
			var invalid *rollout.InvalidError
			if tt.err != "" {
				if !errors.As(err, &invalid) || invalid.Error() != tt.err {
					t.Errorf("error\n got: %v\nwant: %s", err, tt.err)
				}
				return
			}
			if diff := compare.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%s: error %v, apps (-want +got):\n%s", tt.reason, err, diff)
			}
		})
	}
}

// TestMostFolders cuts off a pattern that matches too many folders, with a message, and keeps the first ones.
func TestMostFolders(t *testing.T) {
	files := map[string]string{"first/kustomization.yaml": "x"}
	for i := range mostFolders + 10 {
		files[fmt.Sprintf("apps/a%05d/kustomization.yaml", i)] = "x"
	}
	cfg, err := rollout.ParseConfig("c.yaml", []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\nstateBranch: gitrollout/state/x\napps: [{path: first}, {path: apps/*}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	apps, unnamed, err := FindAll(newTree(files), cfg)
	if err != nil || len(apps) != mostFolders+1 || apps[len(apps)-1].Name != "first" {
		t.Errorf("%d apps, %v", len(apps), err)
	}
	if len(unnamed) != 1 || !strings.Contains(unnamed[0].Err.Error(), "c.yaml: apps[1].path: apps/* and the entries before it match more than 20000 folders") {
		t.Errorf("%v", unnamed)
	}
}
