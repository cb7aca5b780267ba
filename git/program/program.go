// Package program asks the git program, which need not be there, about a working copy and about the user's settings.
// What is in a repository is package git's.
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

// Says is what git answers in the current folder, without the white space around it.
func Says(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Repository is the one that the current folder is a working copy of: its origin, or the folder itself if it has none;
// "" if it is no working copy.
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

// Commit makes a full commit id of what people write: HEAD~3, a branch, a tag, the start of an id. A full one need not
// be known here.
func Commit(ctx context.Context, name string) (id string, known bool) {
	if commitID.MatchString(name) {
		return name, true
	}
	id, err := Says(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	return id, err == nil && commitID.MatchString(id)
}

// Parted is the commit at which two histories have parted, or the first of both if they have nothing in common that a
// shallow working copy knows of.
func Parted(ctx context.Context, tip, other string) string {
	if id, err := Says(ctx, "merge-base", "--end-of-options", tip, other); err == nil && commitID.MatchString(id) {
		return id
	}
	return tip
}

// Author is who the user commits as, by the environment or git's settings; "" for what neither says.
func Author(ctx context.Context, env func(string) string) (name, email string) {
	if name = env("GIT_AUTHOR_NAME"); name == "" {
		name, _ = Says(ctx, "config", "--get", "user.name")
	}
	if email = env("GIT_AUTHOR_EMAIL"); email == "" {
		email, _ = Says(ctx, "config", "--get", "user.email")
	}
	return name, email
}
