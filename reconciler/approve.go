package reconciler

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// Approver tells who approved a promotion file that is in a commit of the users' branch. Promoters is the file of those
// who may by the policy, "" if it names none. Nobody and no error means that everybody may. An error that wraps a
// *rollout.InvalidError means that nobody did who may; any other error says nothing.
type Approver func(ctx context.Context, commit, path, promoters string) (who string, err error)

// approvals are what an Approver has said of promotion files. It may have to fetch a branch's history, so it is
// asked where Git is looked at, and a visit that needs its answer comes again.
type approvals struct {
	ask    Approver // nil: every promotion file counts
	touch  func(app string)
	wanted func()

	mu    sync.Mutex
	known map[string]approval // by app
	open  map[string]question // by app
}

// question is who of some promoters approved a file, by its blob, as of a commit of the users' branch.
type question struct{ path, file, main, promoters string }

// approval is what was said.
type approval struct {
	question
	who string
	no  *rollout.InvalidError
	err error // nobody knows
}

func newApprovals(ask Approver) *approvals {
	return &approvals{ask: ask, known: map[string]approval{}, open: map[string]question{}}
}

// of returns the app's promotion if it counts. A promotion without the approval of a promoter does not count. If it is
// for the release that Git asks for, refused says why. A promotion for another release is not checked.
func (q *approvals) of(v *view, a *appView, head *rollout.Render, s rollout.State) (
	p *rollout.Promotion, refused *rollout.InvalidError, err error,
) {
	p = a.promotion.File
	if p == nil || q.ask == nil {
		return p, nil, nil
	}
	forHead := head != nil && p.Release == head.Release()
	if !forHead && (s.Release == nil || p.Release != s.Release.Hash) {
		return nil, nil, nil
	}
	said, err := q.said(a.Name, question{
		path: a.promotion.Path, file: a.promotion.ID, main: v.main(), promoters: v.branch.Promoters(a.Name),
	})
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("who approved the promotion file: %w", err)
	case said.no != nil && forHead:
		return nil, said.no, nil
	case said.no != nil:
		return nil, nil, nil
	case said.who == "":
		return p, nil, nil
	}
	by := *p
	by.Author = said.who
	return &by, nil, nil
}

// said is the answer to a question, or source.ErrNotReady. Who approved a file stays so on newer commits; that
// nobody did may change with each.
func (q *approvals) said(app string, about question) (approval, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	known, answered := q.known[app]
	switch {
	case !answered || known.file != about.file || known.promoters != about.promoters,
		known.who == "" && known.main != about.main:
	case known.err != nil:
		delete(q.known, app) // and is asked again at the next visit
		return approval{}, known.err
	default:
		return known, nil
	}
	q.open[app] = about
	q.wanted()
	return approval{}, source.ErrNotReady
}

// answer asks what is open. It reports whether anything was.
func (q *approvals) answer(ctx context.Context) bool {
	q.mu.Lock()
	open := q.open
	q.open = map[string]question{}
	q.mu.Unlock()
	for _, app := range sortedKeys(open) {
		said := approval{question: open[app]}
		said.who, said.err = q.ask(ctx, said.main, said.path, said.promoters)
		Beat(ctx)
		if errors.As(said.err, &said.no) {
			said.err = nil
		}
		q.mu.Lock()
		q.known[app] = said
		q.mu.Unlock()
		q.touch(app)
	}
	return len(open) > 0
}

// forgetApp drops what was said of an app that is no more.
func (q *approvals) forgetApp(app string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.known, app)
	delete(q.open, app)
}

// forget asks everything anew, as when other keys are trusted than before.
func (q *approvals) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.known)
}
