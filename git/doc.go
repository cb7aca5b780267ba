// Package git reads commits from one remote repository and writes commits back to it: steps 1 and 6 of a
// reconciler's pass. It speaks in rollout's nouns.
//
// A [Repo] is a shallow mirror in memory. [Repo.Fetch] looks up the refs that matter with one request and
// fetches only the objects that are new; [Repo.Snapshot] reads a commit without a worktree; [Repo.Push]
// writes commits without a worktree and moves any number of refs with one compare-and-swap. Package render
// reads Snapshots, package reconciler calls Fetch and Push, and neither knows anything of Git's formats.
// The server is spoken to by package wire, and signatures are judged by package sign.
//
// Files, in the order of a pass:
//
//	mirror.go                     what is known: where branches are, and which commits are here
//	repo.go fetch.go bring.go     what is asked of the server: new heads, and commits by their ids
//	follow.go keys.go             which commit is followed, and which state branch
//	store.go snapshot.go diff.go  objects in memory, without files that are too large, and commits as file trees
//	history.go                    what came before, and who signed it
//	tree.go push.go compact.go    edits to trees, and updates of refs
//	names.go errors.go            what is a branch or a path; what went wrong
package git
