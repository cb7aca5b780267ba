package doctor

// right is a service account's; "" is gitrollout's.
type right struct{ account, namespace, group, resource, verb string }

type wants func(account, namespace, group, resource string, verbs ...string)

// jobs omits watch.
func (as wants) jobs(account, namespace string) {
	as(account, namespace, "batch", "jobs", "get", "create", "delete")
	if account != "" { // gitrollout may list pods anyway
		as(account, namespace, "", "pods", "list")
	}
}
