// Package contract tests the behaviour that the reconciler needs of a Repository, an Observer and an Applier. The tests
// of cmd/gitrollout apply it to a Git server and an API server, and the tests of package simulate to models of both.
package contract
