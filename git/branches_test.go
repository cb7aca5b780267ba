package git_test

import (
	"fmt"
	"maps"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestOtherBranches reads branches of other clusters. While no branch moves, one request suffices. If a branch has moved, only its changed
// files are received. A missing or deleted branch has no head. A branch whose name begins with another branch's name is not taken for the
// other branch.
func TestOtherBranches(t *testing.T) {
	for name, options := range transports {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newRepo(t, map[string]string{"f": "1"})
			opts := options(p)
			opts.Branch, opts.Cluster = "main", "prod"
			writer := open(t, git.Options{URL: p.Bare, Branch: "main", Cluster: "prod"})
			state := func(cluster, base, path string) string {
				edits := map[string][]byte{path: []byte(cluster + path + base + string(make([]byte, 1000)))}
				return push(t, writer, update(rollout.StateBranch(cluster), base, path, edits))[0]
			}
			want := map[string]string{}
			for i := range 12 { // these unchanged files are not sent again after the branch has moved
				want["gitrollout/state/dev"] = state("dev", want["gitrollout/state/dev"], fmt.Sprintf("apps/%d/a.yaml", i))
			}
			want["gitrollout/state/dev-2"] = state("dev-2", "", "cluster.yaml")
			r := open(t, opts)
			fetch(t, r)
			known := map[string]string{"gitrollout/state/dev": "", "gitrollout/state/dev-2": "", "gitrollout/state/qa": ""}
			read := func(what string, lookups, fetches int64) (received int64) {
				t.Helper()
				before := r.Stats()
				heads, err := git.Branches(t.Context(), r, "", known)
				must(t, err)
				compare.CheckNamed(t, what, want, heads)
				spent := minus(r.Stats(), before)
				if spent.Lookups != lookups || spent.Fetches != fetches {
					t.Errorf("%s: %+v, want %d look-ups and %d fetches", what, spent, lookups, fetches)
				}
				for _, id := range heads {
					if !held(r, id) {
						t.Errorf("%s: commit %s is not here", what, id)
					}
				}
				maps.Copy(known, heads)
				return spent.Received
			}
			read("at first", 1, 1)
			read("at rest", 1, 0)
			want["gitrollout/state/dev"] = state("dev", want["gitrollout/state/dev"], "apps/3/a.yaml")
			if received := read("moved", 1, 1); received > 4000 {
				t.Errorf("one changed file costs %d bytes", received)
			}
			main := fetch(t, r)
			compare.Check(t, [2]string{p.Head(), ""}, [2]string{main.Main, main.State})
			p.Git("push", "-q", "origin", ":gitrollout/state/dev-2")
			delete(want, "gitrollout/state/dev-2")
			read("deleted", 1, 0)
		})
	}
}

// TestFormerHeadsAreDropped checks that the mirror does not grow with each move of a branch, and that unreachable servers
// and invalid names are errors.
func TestFormerHeadsAreDropped(t *testing.T) {
	p := newRepo(t, map[string]string{"f": "1"})
	server := p.HTTP(gittest.HTTPOptions{})
	r := open(t, git.Options{URL: server.URL, Branch: "main", Cluster: "prod"})
	fetch(t, r)
	known := map[string]string{"gitrollout/state/dev": ""}
	for i := range 5 {
		p.Git("checkout", "-q", "--orphan", fmt.Sprint("dev", i))
		commit(p.Write(map[string]string{"large": fmt.Sprint(i) + string(make([]byte, 3<<20))}), fmt.Sprint(i))
		p.Git("push", "-q", "-f", "origin", "HEAD:gitrollout/state/dev")
		var err error
		known, err = git.Branches(t.Context(), r, "", known)
		must(t, err)
	}
	if size := r.Stats().Bytes; size > 9<<20 || !held(r, known["gitrollout/state/dev"]) {
		t.Errorf("the mirror has %d bytes", size)
	}
	_, err := git.Branches(t.Context(), r, "", map[string]string{"a..b": ""})
	compare.CheckError(t, "an invalid name", err, "not a branch name")
	server.Stop()
	_, err = git.Branches(t.Context(), r, "", known)
	wantError(t, "a stopped server", err, git.ErrUnreachable, "read branches of")
}
