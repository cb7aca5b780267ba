// Package git reads commits from one remote repository and writes commits back to it: steps 1 and 6 of a
// reconciler's pass. It is the only package that imports go-git.
//
// A [Repo] is a shallow mirror in memory. [Repo.Fetch] looks up the refs that matter with one request and
// fetches only the objects that are new; [Repo.Snapshot] reads a commit without a worktree; [Repo.Push]
// writes commits without a worktree and moves any number of refs with one compare-and-swap. Package render
// reads Snapshots, package reconciler calls Fetch and Push, and neither knows anything of Git's formats.
//
// The wire protocol is our own, a few hundred lines, because go-git v5 cannot do what a poller needs:
// protocol version 2 (one answer of 200 bytes where version 0 lists every ref), thin packs (a push that
// touches one file costs a kilobyte; go-git's Fetch at depth 1 sends the whole tree again, and at depth 0 a
// merge of an old branch sends that branch's history), a push that packs exactly the new objects (go-git's
// walks the history), and contexts that end an SSH handshake. Packs, objects and reports are go-git's.
//
// Files, in the order of a pass:
//
//	remote.go githubapp.go tls.go      where the repository is, and who we are
//	link.go http.go stream.go ssh.go   connections: smart HTTP, and SSH, git://, local paths
//	pktline.go upload.go receive.go    the protocol: look up refs, fetch a pack, push a pack
//	store.go snapshot.go diff.go       objects in memory, and commits as file trees
//	repo.go fetch.go mirror.go         the mirror: what it knows, brings in and forgets
//	history.go                         who signed what came before
//	tree.go push.go                    edits to trees, and updates of refs
//	names.go errors.go                 what is a branch or a path; what went wrong
package git
