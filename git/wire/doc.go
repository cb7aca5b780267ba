// Package wire speaks Git's protocol with the server of one repository. It looks up refs, fetches packs and pushes
// packs. A [Store] holds the objects as bytes. Packages other than git use only [Remote], [Auth] and [GitHubApp].
//
// The package exists because go-git v5 lacks four features. Protocol version 2 answers a lookup in 200 bytes, but
// version 0 lists every ref. Thin packs fetch a change to one file in a kilobyte, not the whole tree. A push packs only
// new objects. A context can end an SSH handshake. Packs, objects and reports are go-git's.
//
//	remote.go githubapp.go tls.go      the repository's address, and credentials
//	files.go                           files that may change, such as keys
//	link.go http.go stream.go ssh.go   connections: smart HTTP, and SSH, git://, local paths
//	pktline.go upload.go receive.go    the protocol
//	errors.go                          servers' messages and their meaning
package wire
