package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// Pull opens or updates a branch's pull request. It opens none if a user has closed the pull request of the given
// commit.
func Pull(
	ctx context.Context, o Options, config rollout.Forge, branch, commit, title, body string,
) (number int, isOpen bool, err error) {
	h, err := o.connect(config)
	if err != nil {
		return 0, false, err
	}
	want := text{title, body}
	was, found, err := h.find(ctx, branch)
	switch {
	case err != nil:
		return 0, false, err
	case found && was.isOpen:
		return was.number, true, update(ctx, h, was, want, false)
	case found && !was.merged && was.commit == commit:
		return was.number, false, nil
	}
	is, err := h.create(ctx, branch, want)
	return is.number, err == nil, err
}

type commentPaths struct {
	list string
	one  string // with "%d" for its id
	edit string
}

func issueComments(repository string, number int) commentPaths {
	return commentPaths{
		list: fmt.Sprintf("/repos/%s/issues/%d/comments", repository, number),
		one:  "/repos/" + repository + "/issues/comments/%d", edit: http.MethodPatch,
	}
}

type comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
}

// Comment replaces the newest comment that begins with the mark, or adds a comment. If the forge refuses because
// another user wrote the comment, Comment tries the next older comment.
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
