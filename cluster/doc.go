// Package cluster is the only package that talks to a Kubernetes API server. Drift means that another manager changed a
// field that gitrollout owned, so an autoscaler's replicas are not drift. A Client writes an object with one PATCH, and
// only after drift or a change in Git, even after a restart (LabelApplied).
package cluster
