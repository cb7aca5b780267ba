// Package vendoring copies charts, folders of other repositories and artifacts of registries into the repository, with
// a lock of their versions, so that renders need no network.
//
// Responses are not trusted: archives are unpacked in memory, within bounds, and may contain only regular files and
// folders. The reconciler cannot reach this package: only cmd/gitrollout imports it, for the command vendor.
package vendoring
