// Package git reads commits from one remote repository and pushes commits to the same repository: steps 1 and 6 of a
// reconciler's pass. Its API uses the types of package rollout.
//
// A [Repo] is a shallow mirror in memory. [Repo.Fetch] looks up the configured branches with one request and fetches
// only new objects. [Repo.Snapshot] reads a commit without a worktree. [Repo.Push] writes commits without a worktree
// and moves any number of refs with one compare-and-swap. Package render reads Snapshots and package reconciler calls
// Fetch and Push; neither depends on Git's formats. Package wire talks to the server; package sign verifies signatures.
//
// Files, in the order of a pass:
//
//	mirror.go                     the heads of branches, and the commits in memory
//	repo.go fetch.go bring.go     requests to the server: new heads, and commits by id
//	follow.go keys.go             which commit is followed, and which state branch
//	store.go snapshot.go diff.go  objects in memory, without files that are too large, and commits as file trees
//	history.go                    earlier commits and their signers
//	tree.go push.go compact.go    edits to trees, and updates of refs
//	names.go errors.go            valid branches and paths; error values
package git
