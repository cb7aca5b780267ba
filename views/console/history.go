package console

import (
	"context"
	"fmt"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/views/status"
)

// History returns at most limit releases of an app, newest first. It reads the last depth commits of the state branch.
func (w *Session) History(ctx context.Context, app string, limit, depth int) (status.History, error) {
	r := status.NewRecord(app)
	whole, err := w.Repo.Log(ctx, w.Heads.State, depth, func(s *git.Snapshot) (bool, error) {
		releases, err := r.Visit(s)
		return releases <= limit+1, err
	})
	h := status.History{App: app, Cluster: w.Cluster}
	if err == nil {
		h.Releases, err = r.Releases(whole)
	}
	if err != nil {
		return status.History{}, err
	}
	w.nameAuthors(ctx, h.Releases[:min(limit, len(h.Releases))])
	switch {
	case len(h.Releases) > limit:
		h.Releases = h.Releases[:limit]
		h.Note = fmt.Sprintf("there are older releases; to show them, use --limit %d", 2*limit)
	case !whole:
		h.Note = fmt.Sprintf("only the last %d commits of %s were searched; to search more, use --depth %d", depth,
			w.Config().StateBranch, 10*depth)
	}
	return h, nil
}

// nameAuthors adds the commits' authors to releases whose records have no author, such as early rejections.
func (w *Session) nameAuthors(ctx context.Context, releases []status.Past) {
	var commits []string
	for _, p := range releases {
		if p.Author == "" {
			commits = append(commits, p.Commit)
		}
	}
	_, _ = w.Repo.Bring(ctx, commits) // a release whose commit is unreadable stays without an author
	for i, p := range releases {
		if s, held := w.Repo.Held(p.Commit); held && p.Author == "" {
			releases[i].Author, releases[i].Subject = s.Commit().Author, s.Commit().Subject
		}
	}
}
