// Package vendoring copies charts, folders of other repositories, and registries' artifacts into the repository, so
// that renders need no network. A lock file records their versions.
//
// It does not trust responses: archives are unpacked in memory, within bounds, and may contain only regular files and
// folders. Only cmd/gitrollout imports this package, for the command vendor; the reconciler cannot reach it.
package vendoring
