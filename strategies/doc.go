// Package strategies decides. Decide returns the next State from Git's release, recorded State, observed cluster and
// time. Desired turns a State into the objects to apply. Both are pure: no clock, client, logger or randomness.
//
// A strategy, and a kind of workload, is one file (canary.go, deployment.go) and one line of a table.
package strategies
