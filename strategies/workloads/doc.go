// Package workloads moves the pods of a release within the stages of package plan. It writes limits into Deployments,
// and partitions into StatefulSets and similar kinds. It evicts pods of DaemonSets.
//
// Each kind of workload has one file, such as deployment.go, and one entry in Kinds.
package workloads
