package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// No error of this package contains a credential.
var (
	ErrAuth        = errors.New("not authorised") // the server refuses the credentials, or its host key is not accepted
	ErrUnreachable = rollout.ErrUnreachable
	ErrNotFound    = errors.New("not found")              // the repository, branch or commit
	ErrRejected    = errors.New("rejected by the server") // a refused push; the text has the server's message
)

// serverError is the server's message: an ERR packet, the first kilobyte of stderr, or the text of an HTTP error.
type serverError struct{ text string }

func (e *serverError) Error() string { return "the server says: " + e.text }

// Classify wraps a network or protocol error in one of the errors above.
func Classify(err error) error {
	switch {
	case err == nil, IsKnown(err), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer in time: %w", ErrUnreachable, err)
	}
	text := strings.ToLower(err.Error())
	if server := new(serverError); errors.As(err, &server) {
		switch {
		case containsAny(text, "not our ref", "not found", "does not appear to be a git repository",
			"does not exist", "no such repository", "could not be found", "not exported", "no such file or directory"):
			return fmt.Errorf("%w: %w", ErrNotFound, err)
		case containsAny(text, "denied", "not authorized", "unauthorized", "authentication", "not allowed",
			"not enabled", "don't have access", "insufficient permission"):
			return fmt.Errorf("%w: %w", ErrAuth, err)
		}
		return err
	}
	if containsAny(text, "ssh: unable to authenticate", "ssh: handshake failed: ssh: no auth") {
		return fmt.Errorf("%w: %w", ErrAuth, err)
	}
	if errors.As(err, new(net.Error)) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || containsAny(text, "ssh: handshake failed", "broken pipe") {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// IsMissing reports whether the server lacks a commit, or refuses to send commits by id.
func IsMissing(err error) bool {
	var server *serverError
	return errors.As(err, &server) && containsAny(strings.ToLower(server.text),
		"not our ref", "no such remote ref", "not valid", "unadvertised object", "bad object", "not a valid object")
}

// movedTexts are messages of git, libgit2, JGit and forges about a ref that is not at the expected id.
var movedTexts = []string{
	"non-fast-forward", "fetch first", "cannot lock ref", "incorrect old value provided", "stale info",
	"failed to update ref", "reference already exists", "failed to lock", "failed to write", "lock_failure",
	"lock error", "atomic transaction failed", "unable to create", "but expected", "already exists",
}

// consequenceTexts are messages about a ref that failed only because another ref of the atomic push failed.
var consequenceTexts = []string{
	"atomic push fail", "atomic push reject", "atomic transaction failed", "transaction aborted",
}

func saysMoved(reason string) bool {
	reason = strings.ToLower(reason)
	// A hook's message may also contain movedTexts.
	return !strings.Contains(reason, "hook declined") && containsAny(reason, movedTexts...)
}

// saysRace reports whether another push may have locked the ref. Non-fast-forward does not count, because servers also
// send this text for forced pushes to protected branches.
func saysRace(reason string) bool {
	return saysMoved(reason) && !containsAny(strings.ToLower(reason), "non-fast-forward", "fetch first")
}

// IsKnown reports whether an error wraps ErrConflict or one of the errors above.
func IsKnown(err error) bool {
	known := []error{rollout.ErrConflict, ErrAuth, ErrUnreachable, ErrNotFound, ErrRejected}
	return slices.ContainsFunc(known, func(sentinel error) bool { return errors.Is(err, sentinel) })
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return rollout.Cut(rollout.OneLine(strings.Join(lines, "; ")), 300)
}
