// Package vendoring brings charts, folders of other repositories and artifacts of registries into the repository, with
// a lock that says which they are, so that renders need no network.
//
// Nothing that it is sent is trusted: an archive is unpacked in memory, within bounds, and holds plain files in plain
// folders or is refused.
//
// Only cmd/gitrollout imports it, for the command vendor: the reconciler cannot reach it. Its neighbour is rollout,
// which reads vendor.yaml.
package vendoring
