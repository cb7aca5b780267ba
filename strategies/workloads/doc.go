// Package workloads moves the pods of a release within the stages of package plan. It writes limits into Deployments,
// and partitions into StatefulSets and similar kinds. It evicts pods of DaemonSets.
//
// A kind of workload is one file (deployment.go) and one entry of Kinds.
package workloads
