// Package vendoring copies charts, folders of other repositories and artifacts of registries into the repository, with
// a lock of their versions, so that renders need no network.
//
// Responses are not trusted: an archive is unpacked in memory, within bounds, and must contain only regular files and
// folders.
//
// Only cmd/gitrollout imports it, for the command vendor: the reconciler cannot reach it. Its neighbour is rollout,
// which reads vendor.yaml.
package vendoring
