package rollout

import (
	"path"
	"slices"
	"strings"
)

// OwnNamespace is gitrollout's default namespace.
const OwnNamespace = "gitrollout"

// MayWriteIn reports whether the app may have objects in a namespace: its own, or one that Namespaces matches. For
// kube-system, Namespaces must have the full name. gitrollout's namespace (own) is forbidden.
func (a App) MayWriteIn(namespace, own string) bool {
	listed := strings.Fields(a.Namespaces)
	switch namespace {
	case own:
		return false
	case "kube-system":
		return slices.Contains(listed, namespace)
	case a.Namespace:
		return true
	}
	return matchesAny(listed, namespace)
}

// MayHave reports whether ClusterResources permits a kind, in the form of Ref.GroupKind.
func (a App) MayHave(kind string) bool {
	listed := strings.Fields(a.ClusterResources)
	return slices.Contains(listed, "*") || matchesAny(listed, kind)
}

// As returns the app with a service account: "namespace/name", a name in the app's namespace, or "" for the default
// account.
func (a App) As(account string) App {
	if a.ServiceAccount = account; account != "" && !strings.Contains(account, "/") {
		a.ServiceAccount = a.Namespace + "/" + account
	}
	return a
}

// GroupKind returns "group/Kind", or "Kind" for the core group.
func (r Ref) GroupKind() string { return strings.TrimPrefix(r.Group+"/"+r.Kind, "/") }

func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, err := path.Match(pattern, text)
		return err == nil && is
	})
}
