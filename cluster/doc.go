// Package cluster is the only package that talks to a Kubernetes API server. It applies objects, watches them, and
// deletes objects that left Git. It decides nothing about releases.
//
// # Server-side apply
//
// Server-side apply (stable since Kubernetes 1.22) records in metadata.managedFields which manager set which field.
// Drift is another manager's change to a field that gitrollout owned. An autoscaler's replicas, a controller's status
// or another tool's annotation are not drift, because gitrollout never owned these fields. So:
//
//   - an object is usually written with one PATCH, without a read;
//   - an object is written again only after a change in Git, or a watched change of gitrollout's fields;
//   - the API server removes or defaults a field that leaves Git, if no other manager owns the field.
//     gitrollout therefore first takes over fields that other tools applied.
//
// An applied object has a label with its digest (LabelApplied). So gitrollout need not write it again after a restart.
package cluster
