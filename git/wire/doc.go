// Package wire speaks Git's protocol with the server of one repository. go-git v5 lacks protocol version 2 and thin
// packs. These reduce a lookup to 200 bytes, and a changed file to a kilobyte. go-git can neither push only new
// objects, nor cancel SSH handshakes. wire uses go-git for packs, objects and reports.
package wire
