package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/publish/call"
	"gitrollout.dev/gitrollout/rollout"
)

// commentPaths are where a forge has the comments of one pull request.
type commentPaths struct {
	list string // those of the pull request
	one  string // one of them, with "%d" for its id
	edit string // the method that changes one
}

// issueComments are GitHub's, and Gitea's, which took them from GitHub.
func issueComments(repository string, number int) commentPaths {
	return commentPaths{
		list: fmt.Sprintf("/repos/%s/issues/%d/comments", repository, number),
		one:  "/repos/" + repository + "/issues/comments/%d", edit: http.MethodPatch,
	}
}

// comment is a comment of a pull request. All forges that are known name these fields alike.
type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
}

// Comment makes the body the one comment of a pull request that begins with the mark: the newest of those that
// there are and that the forge lets be changed, or a new one. Anybody can write a comment that begins so; one that is
// somebody else's is passed over.
func Comment(ctx context.Context, o Options, config rollout.Forge, number int, mark, body string) error {
	t, a, err := o.reach(config)
	if err != nil {
		return err
	}
	paths := t.kind.comments(t.repository, number)
	all, err := pages[comment](ctx, a, paths.list, "")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(c comment) bool { return !strings.HasPrefix(c.Body, mark) })
	slices.SortFunc(all, func(a, b comment) int { return int(b.ID - a.ID) })
	for _, c := range all {
		err := a.call(ctx, paths.edit, fmt.Sprintf(paths.one, c.ID), map[string]string{"body": body}, nil)
		if refused := new(call.Error); !errors.As(err, &refused) ||
			refused.Status != http.StatusForbidden && refused.Status != http.StatusNotFound {
			return err
		}
	}
	return a.call(ctx, http.MethodPost, paths.list, map[string]string{"body": body}, nil)
}
