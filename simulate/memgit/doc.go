// Package memgit models a Git server and its mirrors in memory. Equal content gives equal ids. It imports no package
// whose tests use the model.
package memgit
