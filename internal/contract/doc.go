// Package contract has the tests that each Repository, Observer and Applier of the reconciler must pass. The tests of cmd/gitrollout use a
// Git server and an API server. The tests of package simulate use models of both servers.
package contract
