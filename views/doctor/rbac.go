package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// RBAC returns YAML with minimal roles and bindings for account (NAMESPACE/NAME) and the apps' service accounts. It
// requests only discovery data. Unknown kinds become comments.
func (c Cluster) RBAC(account string) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(c.Config))
	if err != nil {
		return "", err
	}
	if _, err := client.ServerVersion(); err != nil {
		return "", fmt.Errorf("%s does not answer: %w", c.Config.Host, err)
	}
	x := &rightsExam{e: &Examination{}, namespaces: c.Namespaces}
	x.needs(c.Apps, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)))
	var b strings.Builder
	for _, f := range x.e.Findings {
		if f.Status == Problem {
			fmt.Fprintf(&b, "# %s; the roles below lack rights for this\n", f.Message)
		}
	}
	writeRoles(&b, x.wanted, account, c.IdentifiedBy)
	return b.String(), nil
}

type role struct{ account, namespace string }

func writeRoles(b *strings.Builder, wanted map[right]bool, own, identifiedBy string) {
	roles := map[role]map[string][]string{} // verbs by "group resource"
	add := func(to role, what, verb string) {
		if roles[to] == nil {
			roles[to] = map[string][]string{}
		}
		roles[to][what] = append(roles[to][what], verb)
	}
	for r := range wanted {
		add(role{cmp.Or(r.account, own), r.namespace}, r.group+" "+r.resource, r.verb)
		if namespace, name, is := strings.Cut(r.account, "/"); is {
			add(role{own, namespace}, " serviceaccounts "+name, "impersonate")
		}
	}
	identity := role{own, identifiedBy}
	if identifiedBy == metav1.NamespaceSystem {
		identity.namespace = ""
	}
	add(identity, " namespaces "+identifiedBy, "get") // the uid of this namespace identifies the cluster
	for _, at := range slices.SortedFunc(maps.Keys(roles), func(a, b role) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.namespace, b.namespace))
	}) {
		kind, where := "ClusterRole", ""
		if at.namespace != "" {
			kind, where = "Role", ", namespace: "+at.namespace
		}
		namespace, account, _ := strings.Cut(at.account, "/")
		name := "gitrollout"
		if at.account != own { // a namespace can have roles for several accounts
			name += "-" + namespace + "-" + account
		}
		fmt.Fprintf(b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: %s%s}\nrules:\n",
			kind, name, where)
		writeRules(b, roles[at])
		fmt.Fprintf(b, "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: %sBinding\nmetadata: {name: %s%s}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}\n"+
			"subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]\n", kind, name, where, kind, name, account, namespace)
	}
}

func writeRules(b *strings.Builder, rights map[string][]string) {
	rules := map[string][]string{} // resources by "group verbs name"
	for what, verbs := range rights {
		words := strings.SplitN(what+" ", " ", 3)
		slices.Sort(verbs)
		rule := words[0] + " [" + strings.Join(slices.Compact(verbs), ", ") + "] " + strings.TrimSpace(words[2])
		rules[rule] = append(rules[rule], words[1])
	}
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		group, rest, _ := strings.Cut(rule, " ")
		verbs, name, _ := strings.Cut(rest, "] ")
		slices.Sort(rules[rule])
		fmt.Fprintf(b, "- apiGroups: [%q]\n  resources: [%s]\n", group, strings.Join(rules[rule], ", "))
		if name != "" {
			fmt.Fprintf(b, "  resourceNames: [%s]\n", name)
		}
		fmt.Fprintf(b, "  verbs: %s]\n", verbs)
	}
}

// right belongs to gitrollout's account if the field account is "".
type right struct{ account, namespace, group, resource, verb string }

func (r right) compare(o right) int {
	return cmp.Or(cmp.Compare(r.group, o.group), cmp.Compare(r.resource, o.resource),
		cmp.Compare(r.namespace, o.namespace), cmp.Compare(r.verb, o.verb))
}

type wants func(account, namespace, group, resource string, verbs ...string)

func (as wants) jobs(account, namespace string) {
	as(account, namespace, "batch", "jobs", "get", "create", "delete")
	if account != "" { // gitrollout's own account may list pods anyway
		as(account, namespace, "", "pods", "list")
	}
}
