// Package wire speaks Git's protocol with the server of one repository. go-git v5 lacks protocol version 2 (a lookup in
// 200 bytes, not all refs). It also lacks thin packs (a changed file in a kilobyte, not the whole tree), pushes of only
// new objects, and cancelable SSH handshakes. For packs, objects and reports, it uses go-git.
package wire
