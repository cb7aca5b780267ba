// Package memgit models a Git server and its mirrors in memory. Equal content has equal ids. The package imports no
// package whose tests use the model.
package memgit
