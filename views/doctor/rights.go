package doctor

import (
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// right is one thing that somebody may do or not: the account that an app is written as, or "" for gitrollout itself.
// A subresource is named as a role names it: pods/log.
type right struct{ account, namespace, group, resource, verb string }

// asked is how the API server is asked about it.
func (r right) asked() *authorizationv1.ResourceAttributes {
	resource, part, _ := strings.Cut(r.resource, "/")
	return &authorizationv1.ResourceAttributes{
		Namespace: r.namespace, Group: r.group, Resource: resource, Subresource: part, Verb: r.verb,
	}
}

// wants notes rights that an account needs.
type wants func(account, namespace, group, resource string, verbs ...string)

// jobs are the rights to those that an account makes and looks for; nobody watches them.
func (as wants) jobs(account, namespace string) {
	as(account, namespace, "batch", "jobs", "get", "create", "delete")
	if account != "" { // gitrollout itself lists all pods
		as(account, namespace, "", "pods", "list")
	}
}

// hook are the rights to a Job that runs around releases.
func (as wants) hook(account string, job rollout.Object) {
	as.jobs(account, job.Namespace())
	if job.Annotation(rollout.AnnotationHookLog) != "" {
		as(account, job.Namespace(), "", "pods/log", "get")
	}
}
