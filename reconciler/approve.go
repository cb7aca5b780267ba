package reconciler

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// Approver returns the promoter who approved a promotion file in a commit. "promoters" is the path of the policy's file
// of promoters, or "". With source.AnyAuthor, the promoter is the author who introduced the file. Without an error, ""
// means that every user may approve, or that the author is unknown. An InvalidError means that no promoter approved,
// and any other error means that the answer is unknown.
type Approver func(ctx context.Context, commit, path, promoters string) (who string, err error)

// approvals caches an Approver's results. Passes never call the Approver, because a call may fetch history.
type approvals struct {
	ask    Approver // nil: no approval needed
	touch  func(app string)
	wanted func()

	mu    sync.Mutex
	known map[string]approval // by app
	open  map[string]question // by app
}

// question names a promotion file by its path and blob id; "main" is the commit id of the users' branch.
type question struct{ path, file, main, promoters string }

type approval struct {
	question
	who string
	no  *rollout.InvalidError
	err error
}

func newApprovals(ask Approver, touch func(app string), wanted func()) *approvals {
	return &approvals{
		ask: ask, touch: touch, wanted: wanted, known: map[string]approval{}, open: map[string]question{},
	}
}

func (q *approvals) of(v *gitView, a *appView, head *rollout.Render, s rollout.State) (
	p *rollout.Promotion, refused *rollout.InvalidError, err error,
) {
	// A promotion counts only if it is approved. It must also name the release at the head or in flight, or restart the
	// stable version. "refused" says why the promotion of the release at the head does not count.
	p = a.promotion.File
	if p == nil || q.ask == nil {
		return p, nil, nil
	}
	forHead := head != nil && p.Release == head.Version()
	isFor := func(r *rollout.Release) bool { return r != nil && r.Hash == p.Release }
	if !forHead && !isFor(s.Release) && (p.Decision != rollout.Restart || !isFor(s.Stable)) {
		return nil, nil, nil
	}
	said, err := q.said(a.Name, v.approvalOf(a))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("find out who approved the promotion file: %w", err)
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

func (v *gitView) approvalOf(a *appView) question {
	return question{path: a.promotion.Path, file: a.promotion.ID, main: v.main(), promoters: v.branch.Promoters(a.Name)}
}

// permitted marks an app's promotion file as barred if the policy ignores the file's author, or if the author is
// unknown. The author is the signer, or else the author of the commit or merge that introduced the file.
func (q *approvals) permitted(v *gitView, a *appView) (*appView, error) {
	project, _ := v.branch.Policy.ProjectOf(a.Name)
	_, some := project.Bars("")
	file := a.promotion.File
	if file == nil {
		q.forgetApp(a.Name) // if the file is added again, it needs a new approval
	}
	if q.ask == nil || !some || file == nil || file.Decision != rollout.Promote && file.Commit == "" {
		return a, nil
	}
	said, err := q.said(a.Name, v.approvalOf(a))
	if err != nil {
		return a, fmt.Errorf("find out who committed the promotion file: %w", err)
	}
	why, _ := project.Bars(said.who)
	if said.who == "" {
		why = fmt.Sprintf("project %s, rule %s: the author of this promotion is unknown, because the promotion file "+
			"is older than the last thousand commits; promote again, or remove this file", project.Name, rollout.ByAuthor)
	}
	if why != "" && said.no == nil {
		barred, ignored := *a, *file
		ignored.Barred, ignored.Forbidden = true, why
		barred.promotion.File, a = &ignored, &barred
	}
	return a, nil
}

func (q *approvals) said(app string, about question) (approval, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	// An approval stays valid at newer commits. A missing approval is checked at each commit.
	known, answered := q.known[app]
	switch {
	case !answered || known.file != about.file || known.promoters != about.promoters,
		known.who == "" && known.main != about.main:
	case known.err != nil:
		delete(q.known, app) // the next pass repeats the question
		return approval{}, known.err
	default:
		return known, nil
	}
	q.open[app] = about
	q.wanted()
	return approval{}, source.ErrNotReady
}

func (q *approvals) answer(ctx context.Context) bool {
	q.mu.Lock()
	open := q.open
	q.open = map[string]question{}
	q.mu.Unlock()
	for _, app := range sortedKeys(open) {
		said := approval{question: open[app]}
		said.who, said.err = q.ask(ctx, said.main, said.path, said.promoters)
		Heartbeat(ctx)
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

func (q *approvals) forgetApp(app string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.known, app)
	delete(q.open, app)
}

// forget drops all results, because the trusted keys may have changed.
func (q *approvals) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.known)
}
