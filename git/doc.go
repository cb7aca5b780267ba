// Package git reads commits of one remote repository, and pushes commits to this repository.
//
// A [Repo] is a shallow mirror in memory. [Repo.Fetch] looks up the configured branches with one request and fetches
// only new objects. [Repo.Snapshot] reads commits and [Repo.Push] writes commits, without a worktree. One push moves
// any number of refs by compare-and-swap. Git's formats stay inside this package. Package wire talks to the server;
// package sign verifies signatures.
//
// Files, in the order of a pass:
//
//	mirror.go                     the heads of branches, and the commits in memory
//	repo.go fetch.go bring.go     requests to the server: new heads, and commits by id
//	follow.go keys.go             the commit and state branch to read; accepted keys
//	store.go snapshot.go diff.go  objects in memory, without files that are too large, and commits as file trees
//	history.go                    earlier commits and their signers
//	tree.go push.go               edits to trees, and updates of refs
//	names.go errors.go            valid branches and paths; error values
package git
