// Package program runs the installed git program in the working copy, with the user's settings.
package program

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"gitrollout.dev/gitrollout/git/wire"
)

// Says returns a git command's output, trimmed.
func Says(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Repository returns the URL of the remote "origin". Without this remote, it returns the working copy's path. Outside
// of a working copy, it returns "".
func Repository(ctx context.Context) string {
	top, err := Says(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return ""
	}
	origin, err := Says(ctx, "remote", "get-url", "origin")
	if err != nil || origin == "" {
		return top
	}
	if remote, _, err := wire.ParseRemote(origin); err == nil && remote.Local() && !strings.Contains(origin, "://") &&
		!filepath.IsAbs(origin) {
		return filepath.Join(top, origin)
	}
	return origin
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Commit resolves a revision, such as HEAD~3, to a full id. A full id is not checked.
func Commit(ctx context.Context, name string) (id string, known bool) {
	if commitID.MatchString(name) {
		return name, true
	}
	id, err := Says(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	return id, err == nil && commitID.MatchString(id)
}

// Parted returns the merge base of two commits. If git finds none, such as in a shallow working copy, Parted returns
// `tip`.
func Parted(ctx context.Context, tip, other string) string {
	if id, err := Says(ctx, "merge-base", "--end-of-options", tip, other); err == nil && commitID.MatchString(id) {
		return id
	}
	return tip
}

// Author returns the user's name and e-mail address from the environment or git's settings, or "".
func Author(ctx context.Context, env func(string) string) (name, email string) {
	if name = env("GIT_AUTHOR_NAME"); name == "" {
		name, _ = Says(ctx, "config", "--get", "user.name")
	}
	if email = env("GIT_AUTHOR_EMAIL"); email == "" {
		email, _ = Says(ctx, "config", "--get", "user.email")
	}
	return name, email
}
