// Package workloads moves the pods of a release: limits for Deployments, partitions for StatefulSets and kinds like
// them, evictions for DaemonSets. It lays these over the objects, within the stages of package plan.
//
// A kind of workload is one file (deployment.go) and one line of a table.
package workloads
