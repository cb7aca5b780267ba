// Package wire speaks Git's protocol with the server of one repository: look up refs, fetch a pack, push a pack.
// It knows objects only as bytes that go into a store or come out of one; package git is its only user, but for
// [Remote], [Auth] and [GitHubApp], which say where a repository is and who we are.
//
// The protocol is our own because go-git v5 cannot do what a poller needs: protocol version 2 (one answer of 200
// bytes where version 0 lists every ref), thin packs (a push that touches one file costs a kilobyte; go-git's Fetch
// at depth 1 sends the whole tree again, and at depth 0 a merge of an old branch sends that branch's history), a push
// that packs exactly the new objects (go-git's walks the history), and contexts that end an SSH handshake. Packs,
// objects and reports are go-git's.
//
//	remote.go githubapp.go tls.go      where the repository is, and who we are
//	link.go http.go stream.go ssh.go   connections: smart HTTP, and SSH, git://, local paths
//	pktline.go upload.go receive.go    the protocol
//	errors.go                          what servers say, and what it means
package wire
