// Package cluster is the one place that speaks to a Kubernetes API server: it applies objects, watches what becomes of
// them, and deletes what Git no longer holds. It decides nothing about releases.
//
// # What it relies on
//
// Server-side apply (stable since Kubernetes 1.22) records in metadata.managedFields which manager set which field.
// That record is what tells drift from other actors' work: a field that we own and that somebody else changes is lost
// to us and drift, whereas an autoscaler's replicas, a controller's status or a foreign annotation were never ours. So:
//
//   - an object that is known is written with one PATCH, without reading it first;
//   - it is written again only when its content in Git or the fields that we own
//     in the live object changed, which a watch tells;
//   - a field that Git stops naming is removed or set back to its default by the
//     API server, provided that nobody else owns it too: what other tools applied
//     before becomes ours first.
//
// What was applied is also written on the object (LabelApplied), so that a
// restarted process finds that there is nothing to write.
package cluster
