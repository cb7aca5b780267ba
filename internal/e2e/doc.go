// Package e2e tests the whole program on a real control plane with a real Git
// server: each test has a repository, a namespace and a gitrollout process of
// its own, and watches every pod from its first event to its last.
package e2e
