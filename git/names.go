package git

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/rollout"
)

const headsPrefix = "refs/heads/"

func branchRef(branch string) (plumbing.ReferenceName, error) {
	short := strings.TrimPrefix(branch, headsPrefix)
	ref := plumbing.ReferenceName(headsPrefix + short)
	if err := ref.Validate(); err != nil || len(short) > 244 || strings.HasPrefix(short, "refs/") || short == "HEAD" {
		return "", fmt.Errorf("%q is not a branch name", branch)
	}
	return ref, nil
}

func parseID(id string) (plumbing.Hash, error) {
	if len(id) != 40 || !plumbing.IsHash(id) || strings.ToLower(id) != id {
		return plumbing.ZeroHash, fmt.Errorf("%q is not a commit id of 40 hex digits", id)
	}
	return plumbing.NewHash(id), nil
}

// checkEditPath refuses .gitmodules, and paths that a checkout would refuse or misinterpret (see git fsck --strict).
func checkEditPath(name string) error {
	if name == "." || !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%q is not a path inside the repository", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch own := rollout.GitName(part); {
		case own == ".git" || strings.ContainsRune(part, '\\'):
			return fmt.Errorf("%q is not a path that Git allows", name)
		case own == ".gitmodules":
			return fmt.Errorf("%q may not be written: it changes which other repositories a clone fetches", name)
		}
	}
	return nil
}
