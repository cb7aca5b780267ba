package rollout

import (
	"path"
	"slices"
	"strings"
)

// OwnNamespace is where gitrollout runs unless somebody says otherwise.
const OwnNamespace = "gitrollout"

// MayWriteIn reports whether the app may have objects in a namespace: in its own, and in those that its entry of the
// configuration lists, where * and ? are wildcards. Kube-system has to be listed by its name. Own, which is
// gitrollout's, is no app's: whoever writes there has its credentials.
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

// MayHave reports whether the app may have objects of a kind that belongs to no namespace: those that its entry of
// the configuration lists.
func (a App) MayHave(kind string) bool {
	listed := strings.Fields(a.ClusterResources)
	return slices.Contains(listed, "*") || matchesAny(listed, kind)
}

// As is the app with another service account: namespace/name, or the name of one in its namespace. "" is none.
func (a App) As(account string) App {
	if a.ServiceAccount = account; account != "" && !strings.Contains(account, "/") {
		a.ServiceAccount = a.Namespace + "/" + account
	}
	return a
}

// GroupKind is how a configuration names the kind of an object: group/Kind, or Kind for one of the core group.
func (r Ref) GroupKind() string { return strings.TrimPrefix(r.Group+"/"+r.Kind, "/") }

func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		is, err := path.Match(pattern, text)
		return err == nil && is
	})
}
