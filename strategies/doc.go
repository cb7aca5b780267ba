// Package strategies decides. Decide reads Git's desired release, the recorded State, the observed cluster and the
// time, and returns the next State. Desired turns a State into the exact objects to apply. Both are pure: no clock, no
// client, no logger, no randomness. The same input gives the same answer.
//
// A strategy is one file (canary.go, bluegreen.go) and one line of a table, and so is a kind of workload
// (deployment.go).
package strategies
