package reconciler

import (
	"context"
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// readable is a commit without files.
type readable string

func (c readable) Commit() rollout.Commit                   { return rollout.Commit{ID: string(c)} }
func (readable) Lookup(string) (rollout.Entry, bool, error) { return rollout.Entry{}, false, nil }
func (readable) ReadDir(string) ([]rollout.Entry, error)    { return nil, nil }
func (readable) ReadBlob(string) ([]byte, error)            { return nil, errors.New("no blobs") }

// TestApprovals checks that a promotion waits for the Approver's answer. An approval stays valid when the branch gets newer commits. After
// a refusal, the Approver is called again at each newer commit. If the promotion file is removed and added again, the Approver is also
// called again.
func TestApprovals(t *testing.T) {
	const hash = "h1-2222222222"
	var answer error
	asked, wanted, touched := 0, 0, 0
	q := newApprovals(func(context.Context, string, string, string) (string, error) {
		asked++
		return map[bool]string{true: "ann"}[answer == nil], answer
	}, func(string) { touched++ }, func() { wanted++ })
	a := &appView{App: rollout.App{Name: "shop"}, promotion: source.Promotion{ID: "blob", File: &rollout.Promotion{Release: hash}}}
	viewAt := func(commit readable) *gitView { return &gitView{branch: &source.Branch{Cluster: "prod", Tree: commit}} }
	state := rollout.State{Release: &rollout.Release{Hash: hash}}

	v := viewAt("first")
	counts := func(when string, v *gitView, s rollout.State, by string, want error) { // by is "" if the promotion does not count
		t.Helper()
		p, no, err := q.of(v, a, nil, s)
		if !errors.Is(err, want) || no != nil || (p != nil) != (by != "") || p != nil && p.Author != by {
			t.Errorf("%s: %+v, %v, %v", when, p, no, err)
		}
	}
	if counts("a promotion of something else", v, rollout.State{}, "", nil); wanted > 0 {
		t.Error("a promotion of something else is asked about")
	}
	if counts("before the first question", v, state, "", source.ErrNotReady); wanted != 1 {
		t.Errorf("%d questions are wanted", wanted)
	}
	away := errors.New("no route")
	if answer = away; !q.answer(t.Context()) || touched != 1 {
		t.Error("no question was asked")
	}
	counts("Git is away", v, state, "", away)
	counts("it is asked again", v, state, "", source.ErrNotReady)
	answer = rollout.Invalidf("promote.yaml", "", "nobody signed it")
	q.answer(t.Context())
	if p, _, err := q.of(v, a, nil, state); p != nil || err != nil {
		t.Errorf("refused: %v, %v", p, err)
	}
	v, answer = viewAt("second"), nil
	counts("a newer commit may have signed it", v, state, "", source.ErrNotReady)
	q.answer(t.Context())
	counts("approved", viewAt("third"), state, "ann", nil)
	state = rollout.State{Stable: state.Release}
	counts("a promotion of the stable version", viewAt("third"), state, "", nil)
	a.promotion.File.Decision = rollout.Restart
	counts("a restart of the stable version", viewAt("third"), state, "ann", nil)
	file := a.promotion.File
	a.promotion.File = nil
	if _, err := q.permitted(v, a); err != nil {
		t.Error(err)
	}
	a.promotion.File = file
	counts("the removed file is back", viewAt("fourth"), state, "", source.ErrNotReady)
	q.answer(t.Context())
	if before := asked; q.answer(t.Context()) || asked != before {
		t.Error("a question is asked without a need")
	}
}
