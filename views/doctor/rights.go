package doctor

// right is a permission of an app's service account; the account "" is gitrollout's own.
type right struct{ account, namespace, group, resource, verb string }

type wants func(account, namespace, group, resource string, verbs ...string)

// jobs records the rights to get, create and delete Jobs, without watch.
func (as wants) jobs(account, namespace string) {
	as(account, namespace, "batch", "jobs", "get", "create", "delete")
	if account != "" { // gitrollout's account may list pods anyway
		as(account, namespace, "", "pods", "list")
	}
}
