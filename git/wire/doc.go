// Package wire speaks Git's protocol with the server of one repository. go-git v5 lacks protocol version 2 (a lookup
// takes 200 bytes) and thin packs (a changed file takes a kilobyte). It also lacks pushes of only new objects, and
// cancelable SSH handshakes. wire uses go-git for packs, objects and reports.
package wire
