package git_test

import (
	"errors"
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// promoted is a repository with Ann's key. list is a policy that accepts only signatures by this key.
type promoted struct {
	*gittest.Repo
	t    *testing.T
	key  string
	list sign.Policy

	signing bool
}

const promotion = ".gitrollout/prod/promote/shop.yaml"

func newPromoted(t *testing.T) *promoted {
	p := &promoted{Repo: gittest.New(t), t: t}
	p.key = p.NewKeyFile()
	key, _ := signer(t, p.key)
	p.list = sign.Policy{SSH: key.Signers("ann")}
	p.Git("config", "gpg.format", "ssh")
	p.CommitFiles("first", map[string]string{"f": "1"})
	return p
}

// signs sets the key that signs the next commits. If key is "", they are unsigned.
func (p *promoted) signs(key string) *promoted {
	p.Git("config", "commit.gpgsign", fmt.Sprint(key != ""))
	p.Git("config", "user.signingkey", key)
	p.signing = key != ""
	return p
}

// promote commits a promotion file with the given content.
func (p *promoted) promote(content string) string {
	return p.CommitFiles("promote", map[string]string{promotion: content})
}

// other adds n empty commits to main. CommitNothing makes all commits in one process, but cannot sign them.
func (p *promoted) other(n int) {
	if !p.signing {
		p.CommitNothing(n)
		return
	}
	for range n {
		p.Git("commit", "-q", "--allow-empty", "-m", "something else")
	}
	p.Push()
}

func (p *promoted) branch(name string, do func()) { onBranch(p.Repo, name, "main", do) }

// onBranch makes a new branch at a commit, calls `do` there, and then checks out main.
func onBranch(r *gittest.Repo, name, at string, do func()) {
	r.Git("checkout", "-q", "-b", name, at)
	do()
	r.Git("checkout", "-q", "main")
}

func TestIntroducer(t *testing.T) {
	cases := map[string]struct {
		do   func(p *promoted)
		want bool
	}{
		"signed commit":                {func(p *promoted) { p.signs(p.key).promote("x") }, true},
		"unsigned commit":              {func(p *promoted) { p.promote("x") }, false},
		"another key":                  {func(p *promoted) { p.signs(p.NewKeyFile()).promote("x") }, false},
		"signed, then unsigned others": {func(p *promoted) { p.signs(p.key).promote("x"); p.signs("").other(3) }, true},
		"unsigned, then signed others": {func(p *promoted) { p.promote("x"); p.signs(p.key).other(3) }, false},
		"signed change of an unsigned": {func(p *promoted) { p.promote("x"); p.signs(p.key).promote("y") }, true},
		"unsigned change of a signed":  {func(p *promoted) { p.signs(p.key).promote("x"); p.signs("").promote("y") }, false},
		"unsigned return to a signed": {func(p *promoted) {
			p.signs(p.key).promote("x")
			p.promote("y")
			p.signs("").promote("x")
		}, false},
		"old":                           {func(p *promoted) { p.signs(p.key).promote("x"); p.signs("").other(120) }, true},
		"old and unsigned":              {func(p *promoted) { p.promote("x"); p.signs(p.key).other(70) }, false},
		"unsigned branch, signed merge": {func(p *promoted) { p.branch("b", func() { p.promote("x") }); p.signs(p.key).Merge("b") }, true},
		"signed branch, unsigned merge": {func(p *promoted) {
			p.branch("b", func() { p.signs(p.key).promote("x") })
			p.signs("").Merge("b")
		}, true},
		"unsigned branch, unsigned merge": {func(p *promoted) { p.branch("b", func() { p.promote("x") }); p.Merge("b") }, false},
		"signed merge of something else": {func(p *promoted) {
			p.promote("x")
			p.branch("b", func() { p.CommitFiles("other", map[string]string{"g": "1"}) })
			p.signs(p.key).Merge("b")
		}, false},
		"branch that is behind, signed merge": {func(p *promoted) {
			p.branch("b", func() { p.CommitFiles("other", map[string]string{"g": "1"}) })
			p.promote("x")
			p.signs(p.key).Merge("b")
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPromoted(t)
			c.do(p)
			s := p.HTTP(gittest.HTTPOptions{})
			for _, old := range []bool{false, true} {
				s.Fault(gittest.Faults{ProtocolV0: old})
				r := open(t, git.Options{URL: s.URL, Branch: "main"})
				who, err := r.Introducer(t.Context(), fetch(t, r).Main, promotion, p.list)
				if c.want && (err != nil || who != "ann") || !c.want && !errors.Is(err, git.ErrUnapproved) {
					t.Errorf("old server %v: %q, %v", old, who, err)
				}
			}
		})
	}
}

func TestIntroducerCannotTell(t *testing.T) {
	p := newPromoted(t)
	p.signs(p.key).promote("x")
	p.CommitNothing(1100)
	s := p.HTTP(gittest.HTTPOptions{})
	r := open(t, git.Options{URL: s.URL, Branch: "main"})
	main := fetch(t, r).Main
	_, err := r.Introducer(t.Context(), main, promotion, p.list)
	wantError(t, "from before the limit", err, git.ErrUnapproved, "last 1000")
	_, err = r.Introducer(t.Context(), main, "nothing", p.list)
	wantError(t, "no such file", err, git.ErrNotFound)
	s.Stop()
	_, err = open(t, git.Options{URL: s.URL, Branch: "main"}).Introducer(t.Context(), main, promotion, p.list)
	wantError(t, "server gone", err, git.ErrUnreachable)
}

func TestLastSigned(t *testing.T) {
	p := newPromoted(t)
	r := mirrorOf(t, p.Repo)
	_, err := r.LastSigned(t.Context(), p.Head(), p.list)
	wantError(t, "nothing is signed", err, git.ErrUnapproved)
	signed := p.signs(p.key).promote("x")
	p.signs("").other(60)
	for _, head := range []string{signed, p.Head()} {
		if id, err := r.LastSigned(t.Context(), head, p.list); err != nil || id != signed {
			t.Errorf("from %s: %s, %v; want %s", head, id, err, signed)
		}
	}
	late, err := sign.ParseSigners("signers", []byte(`ann valid-after="20300101" `+read(t, p.key+".pub")))
	must(t, err)
	_, err = r.LastSigned(t.Context(), p.Head(), sign.Policy{SSH: late})
	wantError(t, "nothing is signed with a valid key", err, git.ErrUnapproved)
}

// TestAuthorOfAPromotion checks the author of the commit or merge that introduced a promotion file. Committers and co-authors are ignored.
func TestAuthorOfAPromotion(t *testing.T) {
	const bot, dev = "renovate[bot] <r@example.com>", "Dev <dev@example.com>"
	byBot := func(r *gittest.Repo, message string) {
		r.Write(map[string]string{promotion: "x"}).Git("add", "--all")
		r.Git("commit", "-q", "--author", bot, "-m", message)
	}
	onBot := func(r *gittest.Repo) { // on a branch, with another commit on main
		onBranch(r, "b", "main", func() { byBot(r, "promote"); r.Push() })
		r.CommitFiles("other", map[string]string{"g": "1"})
	}
	// After a promotion on main, updated merges main into an older branch. A person then merges this branch into main.
	updated := func(r *gittest.Repo, by string, promote func()) {
		onBranch(r, "b", "main", func() { r.CommitFiles("other", map[string]string{"g": "1"}) })
		promote()
		r.Git("checkout", "-q", "b")
		r.Git("merge", "-q", "--no-ff", "--no-commit", "main")
		r.Git("commit", "-q", "--author", by, "-m", "update the branch")
		r.Git("checkout", "-q", "main")
		r.Merge("b")
	}
	for name, c := range map[string]struct {
		do   func(r *gittest.Repo)
		want string
	}{
		"a bot, in a branch that a person updated": {func(r *gittest.Repo) {
			updated(r, dev, func() { byBot(r, "promote"); r.Push() })
		}, bot},
		"a person, in a branch that a bot updated": {func(r *gittest.Repo) {
			updated(r, bot, func() { r.CommitFiles("promote", map[string]string{promotion: "x"}) })
		}, dev},
		"a person":                   {func(r *gittest.Repo) { r.CommitFiles("promote", map[string]string{promotion: "x"}) }, dev},
		"a bot":                      {func(r *gittest.Repo) { byBot(r, "promote"); r.Push() }, bot},
		"with a person as co-author": {func(r *gittest.Repo) { byBot(r, "promote\n\nCo-authored-by: "+dev); r.Push() }, bot},
		"a bot as co-author": {func(r *gittest.Repo) {
			r.CommitFiles("promote\n\nCo-authored-by: "+bot, map[string]string{promotion: "x"})
		}, dev},
		"then others":       {func(r *gittest.Repo) { byBot(r, "promote"); r.Push(); r.CommitNothing(60) }, bot},
		"a person's merge":  {func(r *gittest.Repo) { onBot(r); r.Merge("b") }, dev},
		"a person's rebase": {func(r *gittest.Repo) { onBot(r); r.Git("cherry-pick", "b"); r.Push() }, bot},
		"a squash with the bot as author": {func(r *gittest.Repo) {
			onBot(r)
			r.Git("merge", "-q", "--squash", "b")
			r.Git("commit", "-q", "--author", bot, "-m", "squash")
			r.Push()
		}, bot},
		"a person's change of the bot's file": {func(r *gittest.Repo) {
			byBot(r, "promote")
			r.CommitFiles("again", map[string]string{promotion: "y"})
		}, dev},
		"the bot's merge of a person's branch": {func(r *gittest.Repo) {
			onBranch(r, "b", "main", func() { r.CommitFiles("promote", map[string]string{promotion: "x"}) })
			r.CommitFiles("other", map[string]string{"g": "1"})
			r.Git("merge", "-q", "--no-ff", "--no-commit", "b")
			r.Git("commit", "-q", "--author", bot, "-m", "merge")
			r.Push()
		}, bot},
	} {
		t.Run(name, func(t *testing.T) {
			repo := gittest.New(t)
			repo.CommitFiles("first", map[string]string{"f": "1"})
			c.do(repo)
			r := open(t, git.Options{URL: repo.HTTP(gittest.HTTPOptions{}).URL, Branch: "main"})
			who, err := r.Introducer(t.Context(), fetch(t, r).Main, promotion, nil)
			if err != nil || who != c.want {
				t.Errorf("%q, %v; want %q", who, err, c.want)
			}
		})
	}
}
