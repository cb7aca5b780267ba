// Package cluster is the only package that talks to a Kubernetes API server. Drift means that another manager changed a
// field that gitrollout owned. An autoscaler's replicas are no drift, because gitrollout does not own them. A Client
// writes an object with one PATCH, and only after drift or a change in Git. A restart causes no writes (LabelApplied).
package cluster
