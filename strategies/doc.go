// Package strategies decides what happens to an app. Decide returns its next State from its render in Git, the recorded
// State, the observed cluster and the time. Desired returns a State's objects. Both are pure functions.
//
// Package plan compiles a Rollout document to stages. Package workloads moves and counts the pods of workloads.
package strategies
