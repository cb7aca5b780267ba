package git_test

import (
	"path/filepath"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestBranchesOfAClone reads the remote-tracking branches of a local clone. The heads do not include later commits on the origin, or
// unpushed commits. For a shallow clone, Bring returns the older commits as missing.
func TestBranchesOfAClone(t *testing.T) {
	p := newRepo(t, map[string]string{"f": "1"})
	first := p.Head()
	second := p.CommitFiles("second", map[string]string{"f": "2"})
	p.Git("push", "-q", "origin", "main:"+stateBranch)
	clones, missing := map[string]string{}, map[string][]string{"whole": {}, "shallow": {first}}
	for name, how := range map[string][]string{"whole": nil, "shallow": {"--depth", "1", "--no-single-branch"}} {
		dir := filepath.Join(t.TempDir(), name)
		p.Git(append(append([]string{"clone", "-q"}, how...), "file://"+p.Bare, dir)...)
		p.Git("-C", dir, "commit", "-q", "--allow-empty", "-m", "not pushed")
		clones[name] = dir
	}
	p.CommitFiles("third", map[string]string{"f": "3"})
	for name, dir := range clones {
		r := open(t, git.Options{URL: filepath.Join(dir, ".git"), Branch: "main", Cluster: "prod", Refs: "refs/remotes/origin/"})
		heads := fetch(t, r)
		compare.CheckNamed(t, name+": heads", [2]string{second, second}, [2]string{heads.Main, heads.State})
		gone, err := r.Bring(t.Context(), []string{first, second})
		must(t, err)
		compare.CheckNamed(t, name+": missing", missing[name], gone)
	}
}
