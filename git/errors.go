package git

import (
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Errors that callers test with errors.Is; all others are plain. No error of this package holds a credential.
var (
	// ErrConflict: a ref was not at the expected commit, so nothing was written. Fetch and decide again.
	ErrConflict = rollout.ErrConflict
	// ErrAuth: the server does not accept our credentials, or we do not accept its host key.
	ErrAuth = wire.ErrAuth
	// ErrUnreachable: no connection, no response in time, or a server failure. After a push the outcome is unknown: the
	// next Fetch shows it, and repeating the same push is harmless.
	ErrUnreachable = wire.ErrUnreachable
	// ErrNotFound: no such repository, branch or commit.
	ErrNotFound = wire.ErrNotFound
	// ErrRejected: the server refused a push (a hook, a protected branch); its message is in the text.
	ErrRejected = wire.ErrRejected
)
