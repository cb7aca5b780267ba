// Package wire speaks Git's protocol with the server of one repository: look up refs, fetch a pack, push a pack.
// Objects are bytes in a [Store]. Its only user is package git, except for [Remote], [Auth] and [GitHubApp]: the
// repository's address and the credentials.
//
// It implements the protocol because go-git v5 lacks features that a poller needs: protocol version 2 (one response of
// 200 bytes where version 0 lists every ref), thin packs (a push of one file costs a kilobyte; go-git's Fetch sends the
// whole tree again at depth 1, and the history of an old branch's merge at depth 0), a push that packs exactly the new
// objects (go-git's walks the history), and contexts that end an SSH handshake. Packs, objects and reports are
// go-git's.
//
//	remote.go githubapp.go tls.go      the repository's address, and credentials
//	link.go http.go stream.go ssh.go   connections: smart HTTP, and SSH, git://, local paths
//	pktline.go upload.go receive.go    the protocol
//	errors.go                          servers' messages and their meaning
package wire
