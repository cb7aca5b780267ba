// Package cluster is the only package that talks to a Kubernetes API server. It applies objects, watches them, and
// deletes objects that left Git. It decides nothing about releases.
//
// # Server-side apply
//
// Server-side apply (stable since Kubernetes 1.22) records in metadata.managedFields which manager set which field.
// A field that gitrollout owned and another manager changed is drift. An autoscaler's replicas, a controller's status
// or a foreign annotation never were gitrollout's fields. So:
//
//   - a known object is written with one PATCH, without a read before;
//   - it is written again only when its content in Git or gitrollout's fields
//     of the live object changed, which a watch shows;
//   - a field that leaves Git is removed or set back to its default by the API
//     server, unless another manager owns it too: gitrollout first takes over
//     fields that other tools applied.
//
// The applied object's digest is on it (LabelApplied): a restarted process finds that nothing has to be written.
package cluster
