// Package wire speaks Git's protocol with the server of one repository. It looks up refs, fetches packs and pushes
// packs. Objects are bytes in a [Store]. Packages other than git use only [Remote], [Auth] and [GitHubApp].
//
// Package wire implements the protocol because go-git v5 lacks four features that a poller needs. Protocol version 2
// has a lookup response of 200 bytes, where version 0 lists every ref. With thin packs, a push of one file costs a
// kilobyte. go-git's Fetch sends the whole tree again at depth 1, and the history of a merged old branch at depth 0. A
// push here packs exactly the new objects, and contexts end an SSH handshake. Packs, objects and reports are go-git's.
//
//	remote.go githubapp.go tls.go      the repository's address, and credentials
//	link.go http.go stream.go ssh.go   connections: smart HTTP, and SSH, git://, local paths
//	pktline.go upload.go receive.go    the protocol
//	errors.go                          servers' messages and their meaning
package wire
