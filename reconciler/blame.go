package reconciler

import (
	"context"
	"fmt"
	"sync"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type blame struct {
	reader *source.Reader
	wanted func()

	mu       sync.Mutex
	unblamed map[string]string     // first commit of each requested history, by app
	authors  map[string]authorship // by app
}

// authorship names a promotion file by its blob id. The author is "" if unknown.
type authorship struct{ file, author string }

// head sets the head's Commit to the last commit in j.line that changed the render or error. Reverts use this commit,
// and its author is the release's author. If j.line has no such commit, but is the history (j.isHistory), a render gets
// the first commit. Any other line becomes nil, because only the history has the change. A head with an error may have
// no commit.
func (b *blame) head(j *job, head strategies.Head) strategies.Head {
	if head.Err != nil {
		head.Commit = rollout.Commit{}
	}
	i := len(j.line) - 2
	for i >= 0 && b.isAsBefore(j.line[i], j.app, head) {
		i--
	}
	if i < 0 && !j.isHistory {
		j.line = nil
	}
	if i < 0 && (!j.isHistory || head.Err != nil) {
		return head
	}
	head.Commit = j.line[i+1].Commit()
	if head.Render != nil {
		named := *head.Render
		named.Commit, head.Render = head.Commit, &named
	}
	return head
}

func (b *blame) isAsBefore(tree Snapshot, app rollout.App, head strategies.Head) bool {
	if head.Err == nil {
		before, err := b.reader.Render(tree, app)
		return err == nil && before.Digest == head.Render.Digest
	}
	_, err := b.reader.RenderHead(tree, b.reader.AppAt(tree, app))
	return err != nil && err.Error() == head.Err.Error()
}

func (b *blame) want(app, from string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unblamed[app] = from
	b.wanted()
}

func (b *blame) take() (all map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, b.unblamed = b.unblamed, map[string]string{}
	return all
}

// withAuthor returns the promotion file with its author. For a file older than this process, it requests the history.
// Until the history is read, it returns an error, which permits only a rollback.
func (b *blame) withAuthor(a *appView, in strategies.Input) (*rollout.Promotion, error) {
	s, file, head := in.State, in.Promotion, in.Head.Render
	awaited := head != nil && head.Release() == file.Release && (s.Stable == nil || s.Stable.Hash != file.Release)
	if file.Author != "" || s.Source == "" || !awaited && (s.Release == nil || s.Release.Hash != file.Release) {
		return file, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if by := b.authors[a.Name]; by.file == a.promotion.ID {
		named := *file
		named.Author = by.author
		return &named, nil
	}
	b.unblamed[a.Name] = s.Source
	b.wanted()
	return file, fmt.Errorf("the author of %s %w", a.promotion.Path, source.ErrNotReady)
}

func changed(line []Snapshot, paths ...string) rollout.Commit {
	for i := len(line) - 1; i > 0; i-- {
		if is, _ := source.Differ(line[i-1], line[i], paths...); is {
			return line[i].Commit()
		}
	}
	return rollout.Commit{}
}

func (b *blame) setHistory(app string, v *gitView, line []Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	file := v.promotionOf(app)
	b.authors[app] = authorship{file.ID, changed(line, file.Path).Author}
}

func (b *blame) forget(app string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.authors, app)
}

// ofUnknown is the head with an unknown author. It stands for commits that are too old to read.
type ofUnknown struct{ Snapshot }

func (s ofUnknown) Commit() rollout.Commit {
	c := s.Snapshot.Commit()
	c.Author = rollout.UnknownAuthor
	return c
}

// readHistory reads the requested histories. If the requested commit is too old to read, only newer commits are
// searched, and the author of an older render or promotion file is unknown. If no commit is readable, a later pass
// requests the history.
func (l *poller) readHistory(ctx context.Context, v *gitView) (any bool, failed error) {
	requests := l.blame.take()
	for _, app := range sortedKeys(requests) {
		line, err := l.Past.Between(ctx, requests[app], v.main())
		Heartbeat(ctx)
		if err != nil && len(line) == 0 {
			l.unreachable, failed = true, fmt.Errorf("read the history of %s: %w", app, err)
			continue
		}
		l.blame.setHistory(app, v, line)
		searched := line
		if err != nil {
			searched = append([]Snapshot{ofUnknown{v.branch.Tree}}, line...)
		}
		l.renders.setHistory(app, v.branch.Tree, searched)
		l.stages.setLine(v, requests[app], line, err)
		l.fetcher.follow(line)
	}
	return len(requests) > 0, failed
}
