package git

import (
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Callers test for these errors with errors.Is. No error contains a credential.
var (
	// ErrConflict: a ref was locked, or not at the expected commit, and did not move. Callers fetch and decide again.
	ErrConflict = rollout.ErrConflict
	// ErrAuth: the server refuses the credentials, or the known hosts do not contain the server's host key.
	ErrAuth = wire.ErrAuth
	// ErrUnreachable: no connection, no response in time, or a server failure. A failed push may have been applied; a
	// repeated push is harmless.
	ErrUnreachable = wire.ErrUnreachable
	// ErrNotFound: the repository, branch or commit does not exist.
	ErrNotFound = wire.ErrNotFound
	// ErrRejected: the server refused a push, for example because of a hook.
	ErrRejected = wire.ErrRejected
)
