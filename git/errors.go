package git

import (
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// Callers test these errors with errors.Is. No error contains a credential.
var (
	// ErrConflict: a ref was locked, or not at the expected commit. Callers fetch and decide again.
	ErrConflict = rollout.ErrConflict
	// ErrAuth: the server refuses the credentials, or its host key is not in the known hosts.
	ErrAuth = wire.ErrAuth
	// ErrUnreachable: no connection or response, or a server failure. A push may have been applied; a repeat is harmless.
	ErrUnreachable = wire.ErrUnreachable
	// ErrNotFound: no such repository, branch or commit.
	ErrNotFound = wire.ErrNotFound
	// ErrRejected: the server refused a push, for example by a hook.
	ErrRejected = wire.ErrRejected
)
