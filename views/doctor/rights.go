package doctor

// right is a permission. The account is an app's service account, or "" for gitrollout's own account.
type right struct{ account, namespace, group, resource, verb string }

type wants func(account, namespace, group, resource string, verbs ...string)

// jobs records the rights to get, create and delete Jobs. It needs no right to watch them.
func (as wants) jobs(account, namespace string) {
	as(account, namespace, "batch", "jobs", "get", "create", "delete")
	if account != "" { // gitrollout's own account may list pods anyway
		as(account, namespace, "", "pods", "list")
	}
}
