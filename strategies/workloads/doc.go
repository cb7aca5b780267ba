// Package workloads moves pods within the stages of package plan: by limits in Deployments, partitions in StatefulSets
// and similar kinds, and evictions in DaemonSets.
package workloads
