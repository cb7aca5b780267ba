// Package contract tests the behaviour that the reconciler needs of a Repository, an Observer and an Applier.
// cmd/gitrollout tests a Git server and an API server with it, and package simulate its models.
package contract
