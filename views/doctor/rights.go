package doctor

import (
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// right is a permission. The account is an app's service account, or "" for gitrollout's own account.
type right struct{ account, namespace, group, resource, verb string }

// asked converts the right to the attributes of an access review.
func (r right) asked() *authorizationv1.ResourceAttributes {
	resource, part, _ := strings.Cut(r.resource, "/")
	return &authorizationv1.ResourceAttributes{
		Namespace: r.namespace, Group: r.group, Resource: resource, Subresource: part, Verb: r.verb,
	}
}

type wants func(account, namespace, group, resource string, verbs ...string)

// jobs records the rights to get, create and delete Jobs. It needs no right to watch them.
func (as wants) jobs(account, namespace string) {
	as(account, namespace, "batch", "jobs", "get", "create", "delete")
	if account != "" { // gitrollout's own account may list pods anyway
		as(account, namespace, "", "pods", "list")
	}
}
