// Package contract tests the behaviour that the reconciler needs of a Repository, an Observer and an Applier.
// cmd/gitrollout runs these tests against a Git server and an API server, and package simulate against its models.
package contract
