package rollout_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestMayWriteIn checks that an app may write only in its own namespace and in listed namespaces. The namespace kube-system must be listed
// by its full name. gitrollout's namespace is never allowed.
func TestMayWriteIn(t *testing.T) {
	for name, tt := range map[string]struct {
		app       rollout.App
		namespace string
		want      bool
	}{
		"its own":                   {rollout.App{Namespace: "shop"}, "shop", true},
		"another":                   {rollout.App{Namespace: "shop"}, "shop-eu", false},
		"listed":                    {rollout.App{Namespace: "shop", Namespaces: "till shop-*"}, "till", true},
		"by a wildcard":             {rollout.App{Namespace: "shop", Namespaces: "till shop-*"}, "shop-eu", true},
		"beside a wildcard":         {rollout.App{Namespace: "shop", Namespaces: "shop-*"}, "shopping", false},
		"any":                       {rollout.App{Namespace: "shop", Namespaces: "*"}, "payments", true},
		"kube-system by a wildcard": {rollout.App{Namespace: "shop", Namespaces: "* kube-*"}, "kube-system", false},
		"kube-system as its own":    {rollout.App{Namespace: "kube-system"}, "kube-system", false},
		"kube-system by its name":   {rollout.App{Namespace: "shop", Namespaces: "kube-system"}, "kube-system", true},
		"gitrollout's":              {rollout.App{Namespace: "gitops", Namespaces: "gitops * git*"}, "gitops", false},
		"no way around":             {rollout.App{Namespace: "shop", Namespaces: "shop-*"}, "shop-a/../payments", false},
		"no namespace at all":       {rollout.App{Namespace: "shop", Namespaces: "shop"}, "", false},
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
		compare.CheckNamed(t, name, tt.want, (rollout.App{ClusterResources: tt.listed}).MayHave(tt.kind))
	}
}

func TestAs(t *testing.T) {
	for account, want := range map[string]string{"": "", "deployer": "shop/deployer", "ops/deployer": "ops/deployer"} {
		compare.CheckNamed(t, account, want, (rollout.App{Namespace: "shop"}).As(account).ServiceAccount)
	}
}
