// Package contract has the tests that each Repository, Observer and Applier of the reconciler must pass. The tests of cmd/gitrollout
// run them with a Git server and an API server, and the tests of package simulate run them with models of both servers.
package contract
