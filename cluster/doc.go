// Package cluster alone talks to a Kubernetes API server. Server-side apply records each field's manager. Drift is
// another manager's change to a field that gitrollout owned, so an autoscaler's replicas are no drift. Objects are
// written with one PATCH, only after drift or a change in Git (LabelApplied: also after a restart).
package cluster
