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

// Errors for errors.Is. None of this package holds a credential.
var (
	ErrAuth        = errors.New("not authorised") // or the server's host key is not accepted
	ErrUnreachable = rollout.ErrUnreachable
	ErrNotFound    = errors.New("not found")              // a repository, branch or commit
	ErrRejected    = errors.New("rejected by the server") // a push; its message is in the text
)

// serverError is a server's message instead of a response: an ERR packet, stderr's first kilobyte, or HTTP's text.
type serverError struct{ text string }

func (e *serverError) Error() string { return "the server says: " + e.text }

// Classify wraps an error of network or protocol with its sentinel, here alone by servers' and x/crypto/ssh's texts.
func Classify(err error) error {
	switch {
	case err == nil:
		return nil
	case IsKnown(err):
		return err
	case errors.Is(err, context.Canceled):
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
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || containsAny(text, "ssh: handshake failed", "broken pipe") {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return err
}

// IsMissing reports whether the server lacks a commit, or does not send it by id.
func IsMissing(err error) bool {
	var server *serverError
	return errors.As(err, &server) && containsAny(strings.ToLower(server.text),
		"not our ref", "no such remote ref", "not valid", "unadvertised object", "bad object", "not a valid object")
}

// movedTexts are the servers' messages for a ref that is not at Old: git (all versions), libgit2, JGit,
// go-git, GitHub and GitLab.
var movedTexts = []string{
	"non-fast-forward", "fetch first", "cannot lock ref", "incorrect old value provided", "stale info",
	"failed to update ref", "reference already exists", "failed to lock", "failed to write", "lock_failure",
	"lock error", "atomic transaction failed", "unable to create", "but expected", "already exists",
}

// consequenceTexts report only the failure of another ref in the atomic push.
var consequenceTexts = []string{
	"atomic push fail", "atomic push reject", "atomic transaction failed", "transaction aborted",
}

func saysMoved(reason string) bool {
	reason = strings.ToLower(reason)
	// A hook's message is free text and may contain these words.
	return !strings.Contains(reason, "hook declined") && containsAny(reason, movedTexts...)
}

// saysRace reports whether a later lookup may show the ref at Old: another push held its lock. A non-fast-forward is
// no race: a protected branch says so to a forced push.
func saysRace(reason string) bool {
	return saysMoved(reason) && !containsAny(strings.ToLower(reason), "non-fast-forward", "fetch first")
}

// IsKnown reports whether an error already wraps a sentinel.
func IsKnown(err error) bool {
	known := []error{rollout.ErrConflict, ErrAuth, ErrUnreachable, ErrNotFound, ErrRejected}
	return slices.ContainsFunc(known, func(sentinel error) bool { return errors.Is(err, sentinel) })
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(s, part) })
}

// oneLine makes a server's text fit for an error: one line, no control characters, at most 300 bytes.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.TrimSpace(text))
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "..."
	}
	return text
}
