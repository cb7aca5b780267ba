package rollout

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestMayWriteIn checks that an app may write only in its own namespace and in listed namespaces. The namespace kube-system must be listed
// by its full name. gitrollout's namespace is never allowed.
func TestMayWriteIn(t *testing.T) {
	for name, tt := range map[string]struct {
		app       App
		namespace string
		want      bool
	}{
		"its own":                   {App{Namespace: "shop"}, "shop", true},
		"another":                   {App{Namespace: "shop"}, "shop-eu", false},
		"listed":                    {App{Namespace: "shop", Namespaces: "till shop-*"}, "till", true},
		"by a wildcard":             {App{Namespace: "shop", Namespaces: "till shop-*"}, "shop-eu", true},
		"beside a wildcard":         {App{Namespace: "shop", Namespaces: "shop-*"}, "shopping", false},
		"any":                       {App{Namespace: "shop", Namespaces: "*"}, "payments", true},
		"kube-system by a wildcard": {App{Namespace: "shop", Namespaces: "* kube-*"}, "kube-system", false},
		"kube-system as its own":    {App{Namespace: "kube-system"}, "kube-system", false},
		"kube-system by its name":   {App{Namespace: "shop", Namespaces: "kube-system"}, "kube-system", true},
		"gitrollout's":              {App{Namespace: "gitops", Namespaces: "gitops * git*"}, "gitops", false},
		"no way around":             {App{Namespace: "shop", Namespaces: "shop-*"}, "shop-a/../payments", false},
		"no namespace at all":       {App{Namespace: "shop", Namespaces: "shop"}, "", false},
	} {
		compare.CheckNamed(t, name, tt.want, tt.app.MayWriteIn(tt.namespace, "gitops"))
	}
}

func TestMayHave(t *testing.T) {
	for name, tt := range map[string]struct {
		listed, kind string
		want         bool
	}{
		"nothing is listed":    {"", "Namespace", false},
		"of the core group":    {"Namespace", "Namespace", true},
		"of another group":     {"Namespace", "example.com/Namespace", false},
		"by its group":         {"rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRole", true},
		"another of its group": {"rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding", false},
		"a whole group":        {"example.com/*", "example.com/Widget", true},
		"anything":             {"*", "example.com/Widget", true},
	} {
		compare.CheckNamed(t, name, tt.want, (App{ClusterResources: tt.listed}).MayHave(tt.kind))
	}
}

func TestAs(t *testing.T) {
	for account, want := range map[string]string{"": "", "deployer": "shop/deployer", "ops/deployer": "ops/deployer"} {
		compare.CheckNamed(t, account, want, (App{Namespace: "shop"}).As(account).ServiceAccount)
	}
}
