package git_test

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestPolicyBranch checks the policy head that Fetch returns before the branch exists, and after a creation, a push and a deletion. An
// unchanged policy branch causes no further request. A renewal of the store keeps the policy branch's commit.
func TestPolicyBranch(t *testing.T) {
	p := newRepo(t, map[string]string{"f": "1"})
	r := open(t, git.Options{URL: p.HTTP(gittest.HTTPOptions{}).URL, Policy: "platform"})
	read := func(want string) {
		t.Helper()
		heads := fetch(t, r)
		if heads.Main != p.Head() || (heads.Policy == "") != (want == "") {
			t.Fatalf("heads %+v, want the policy %q", heads, want)
		}
		if want == "" {
			return
		}
		s, held := r.Held(heads.Policy)
		if !held {
			t.Fatalf("commit %q is not here", heads.Policy)
		}
		if data, err := s.ReadFile("policy.yaml"); err != nil || string(data) != want {
			t.Fatalf("the policy is %q, %v; want %q", data, err, want)
		}
	}
	push := func(content string) {
		t.Helper()
		p.Git("checkout", "-q", "-B", "platform")
		commit(p.Write(map[string]string{"policy.yaml": content}), content)
		p.Git("push", "-q", "-f", "origin", "platform")
		p.Git("checkout", "-q", "main")
	}
	read("")
	push("one")
	read("one")
	atRest := func(want string) {
		t.Helper()
		read(want)
		before := r.Stats()
		read(want)
		if spent := minus(r.Stats(), before); spent.Requests != 1 || spent.Fetches != 0 {
			t.Errorf("at rest: %d requests, %d fetches", spent.Requests, spent.Fetches)
		}
	}
	atRest("one")
	push("two")
	read("two")
	for i := range 3 { // each commit is large enough to cause a renewal of the store
		p.CommitFiles("large", map[string]string{"large": fmt.Sprint(i) + string(make([]byte, 3<<20))})
		atRest("two")
	}
	p.Git("push", "-q", "origin", ":platform")
	read("")
}
