// Package program runs the git program, if any, for a working copy and the user's settings, not for contents.
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

// Says returns git's output in the current folder, without surrounding white space.
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

// Repository returns the working copy's origin, or its top folder without one; "" outside of a working copy.
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

// Commit resolves a revision to a full id: HEAD~3, a branch, a tag, an abbreviation. A full id is unchecked.
func Commit(ctx context.Context, name string) (id string, known bool) {
	if commitID.MatchString(name) {
		return name, true
	}
	id, err := Says(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	return id, err == nil && commitID.MatchString(id)
}

// Parted returns two commits' merge base, or tip if a shallow working copy knows none.
func Parted(ctx context.Context, tip, other string) string {
	if id, err := Says(ctx, "merge-base", "--end-of-options", tip, other); err == nil && commitID.MatchString(id) {
		return id
	}
	return tip
}

// Author returns the user's name and e-mail address from environment or git's settings; "" if unset.
func Author(ctx context.Context, env func(string) string) (name, email string) {
	if name = env("GIT_AUTHOR_NAME"); name == "" {
		name, _ = Says(ctx, "config", "--get", "user.name")
	}
	if email = env("GIT_AUTHOR_EMAIL"); email == "" {
		email, _ = Says(ctx, "config", "--get", "user.email")
	}
	return name, email
}
