// Package memgit models a Git server and its mirrors in memory. Equal content has equal ids.
package memgit
