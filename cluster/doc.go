// Package cluster is the only package that talks to a Kubernetes API server. Drift means that another manager changed a
// field that gitrollout owned, so an autoscaler's replicas are not drift. An object is written with one PATCH, only
// after drift or a change in Git (LabelApplied: also after a restart).
package cluster
