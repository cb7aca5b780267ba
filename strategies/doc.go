// Package strategies decides what happens to an app. Decide returns the next State from Git's release, the recorded
// State, the observed cluster and the time. Desired returns the objects of a State. Both are pure functions.
//
// Package plan compiles a Rollout to stages. Package workloads moves and counts the pods of each kind of workload.
package strategies
