// Package strategies decides. Decide returns the next State from Git's release, recorded State, observed cluster and
// time. Desired turns a State into the objects to apply. Both are pure: no clock, client, logger or randomness.
//
// Package plan compiles the stages, and package workloads counts the pods of each kind of workload.
package strategies
