package git

import (
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Errors for errors.Is; all others are plain. None holds a credential.
var (
	// ErrConflict: a ref was not at the expected commit: nothing was written. Fetch and decide again.
	ErrConflict = rollout.ErrConflict
	// ErrAuth: our credentials, or the server's host key, are not accepted.
	ErrAuth = wire.ErrAuth
	// ErrUnreachable: no connection, no response in time, or a server failure. A push's outcome is unknown: the next
	// Fetch shows it, and a repetition is harmless.
	ErrUnreachable = wire.ErrUnreachable
	// ErrNotFound: no such repository, branch or commit.
	ErrNotFound = wire.ErrNotFound
	// ErrRejected: the server refused a push (a hook, a protected branch); its message is in the text.
	ErrRejected = wire.ErrRejected
)
