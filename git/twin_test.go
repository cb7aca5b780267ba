package git_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

const configPath = ".gitrollout/prod/config.yaml"

// configAt returns a configuration with the given stateRepo. If url is "", the state branch is in the users' repository.
func configAt(url string) map[string]string {
	text := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n"
	if url != "" {
		text += "stateRepo: " + url + "\n"
	}
	return map[string]string{configPath: text}
}

// beside clones repo into a bare repository on the same server. It returns the clone's path and URL.
func beside(repo *gittest.Repo, url string) (bare, at string) {
	bare = repo.Bare + "-state.git"
	repo.Git("clone", "-q", "--bare", repo.Bare, bare)
	repo.Git("--git-dir", bare, "config", "http.receivepack", "true")
	return bare, url + "-state.git"
}

// TestStateRepo checks a state branch in another repository on the same server, over HTTP and on disk. Fetch, Push, CommitToBranch, Log and
// Compact find the state branch there. Proposals use the users' repository. A change of stateRepo takes effect.
func TestStateRepo(t *testing.T) {
	for _, transport := range []string{"http", "http-v0", "path"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			p := newRepo(t, configAt(""))
			opts := git.Options{URL: p.Bare, Branch: "main", Cluster: "prod"}
			if transport != "path" {
				server := p.HTTP(gittest.HTTPOptions{Direct: true}) // the server's cache would miss changes of the second repository
				server.Fault(gittest.Faults{ProtocolV0: transport == "http-v0"})
				opts.URL = server.URL
			}
			bare, url := beside(p, opts.URL)
			p.CommitFiles("elsewhere", configAt(url))
			ref := func(branch string) string {
				return p.Git("--git-dir", bare, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
			}
			r := open(t, opts)
			heads := fetch(t, r)
			compare.CheckNamed(t, "at first", [2]string{p.Head(), ""}, [2]string{heads.Main, heads.State})
			ids := push(t, r, proposal("shop", "", heads.Main), stateUpdate("", "x", "1"))
			compare.CheckNamed(t, "pushed", []string{p.Ref("gitrollout/promote/prod/shop"), ref(stateBranch)}, ids)
			if p.Ref(stateBranch) != "" || ref("gitrollout/promote/prod/shop") != "" {
				t.Errorf("wrong repository: %v, %q", p.Refs(), ref("gitrollout"))
			}
			heads = fetch(t, r)
			compare.CheckNamed(t, "proposals", map[string]string{"gitrollout/promote/prod/shop": ids[0]}, heads.Proposals)
			// Another process reads and continues the branch.
			other := open(t, opts)
			wantState(t, "another mirror", other, ids[1])
			second, err := other.CommitToBranch(t.Context(), stateBranch, func(s *git.Snapshot) (rollout.Update, error) {
				data, err := s.ReadFile("x")
				return rollout.Update{Edits: map[string][]byte{"x": append(data, '2')}, Message: "2", When: when}, err
			})
			must(t, err)
			wantState(t, "moved", r, second)
			var log []string
			whole, err := open(t, opts).Log(t.Context(), second, 10, func(*git.Snapshot) (bool, error) { return true, nil })
			if err == nil || whole {
				t.Errorf("before the first Fetch, the repository of the state branch is unknown: %v", err)
			}
			newcomer := open(t, opts)
			fetch(t, newcomer)
			whole, err = newcomer.Log(t.Context(), second, 10, func(s *git.Snapshot) (bool, error) {
				log = append(log, s.Commit().ID)
				return true, nil
			})
			must(t, err)
			compare.CheckNamed(t, "history", []string{second, ids[1]}, log)
			if !whole {
				t.Error("the history is not whole")
			}
			gone, err := newcomer.Bring(t.Context(), []string{heads.Main, ids[1], "0123456789012345678901234567890123456789"})
			must(t, err)
			compare.CheckNamed(t, "gone", []string{"0123456789012345678901234567890123456789"}, gone)
			root, err := other.Compact(t.Context(), stateBranch, "gitrollout/archive/prod", second, "compact", when)
			must(t, err)
			compare.CheckNamed(t, "compacted", []string{root, second}, []string{ref(stateBranch), ref("gitrollout/archive/prod")})
			wantState(t, "compacted", r, root)
			_, err = pushAll(t.Context(), r, proposal("cart", "", heads.Main), stateUpdate(second, "x", "3"))
			wantError(t, "a stale state", err, git.ErrConflict)
			p.CommitFiles("back", configAt(""))
			wantState(t, "back", r, "")
		})
	}
}

// TestStateRepoAtRest checks that a poll with two repositories makes one look-up in each.
func TestStateRepoAtRest(t *testing.T) {
	p := newRepo(t, nil)
	server := p.HTTP(gittest.HTTPOptions{})
	_, url := beside(p, server.URL)
	p.CommitFiles("elsewhere", configAt(url))
	r := open(t, git.Options{URL: server.URL, Branch: "main", Cluster: "prod"})
	heads := fetch(t, r)
	push(t, r, stateUpdate("", "x", "1"))
	before := len(server.Requests())
	compare.Check(t, heads.Main, fetch(t, r).Main)
	if n := len(server.Requests()) - before; n != 2 {
		t.Errorf("%d requests: %q", n, server.Requests()[before:])
	}
}

// TestStateRepoElsewhere checks that Fetch refuses a stateRepo on another server, which must not get the credentials. A later commit can
// correct stateRepo.
func TestStateRepoElsewhere(t *testing.T) {
	p := newRepo(t, configAt("https://git.example.com/state.git"))
	r := open(t, git.Options{URL: p.Bare, Branch: "main", Cluster: "prod"})
	for range 2 {
		_, err := r.Fetch(t.Context())
		if !rollout.IsInvalid(err) {
			t.Errorf("%v is no InvalidError", err)
		}
		compare.Contains(t, fmt.Sprint(err), configPath+": stateRepo: https://git.example.com/state.git is not on the server of "+p.Bare)
	}
	// In a user's clone, gitrollout ignores stateRepo. The state branch is a remote-tracking branch.
	p.Git("push", "-q", "origin", "main:"+stateBranch)
	clone := filepath.Join(t.TempDir(), "clone")
	p.Git("clone", "-q", p.Bare, clone)
	local := open(t, git.Options{URL: filepath.Join(clone, ".git"), Branch: "main", Cluster: "prod", Refs: "refs/remotes/origin/"})
	wantState(t, "a clone", local, p.Head())
	p.Git("push", "-q", "origin", ":"+stateBranch)
	p.CommitFiles("corrected", configAt(""))
	fetch(t, r)
	bare, _ := beside(p, p.Bare)
	id := push(t, open(t, git.Options{URL: bare, Branch: "main", Cluster: "prod"}), stateUpdate("", "x", "1"))[0]
	named := open(t, git.Options{URL: p.Bare, Branch: "main", Cluster: "prod", StateBranch: stateBranch, StateRepo: bare})
	wantState(t, "named by options", named, id)
}
