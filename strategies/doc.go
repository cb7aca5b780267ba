// Package strategies decides. Decide takes what Git asks for, what the state branch records, what the cluster shows and
// what time it is, and returns the next State; Desired turns a State into the exact objects that the cluster should
// hold. Both are pure: no clock, no client, no logger, no randomness, and the same input gives the same answer.
//
// A strategy is one file (canary.go, bluegreen.go) and one line of a table, and so is a kind of workload
// (deployment.go).
package strategies
