package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/giteatest"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// forgeWorld is a repository on a real Gitea, a namespace, and a gitrollout process for both. Users act through Gitea.
type forgeWorld struct {
	*clone // the owner's clone
	t      *testing.T
	gitea  *giteatest.Server
	people people
	repo   string // owner/name
	ns     string // also the app's name
	kube   *testcluster.Cluster
	log    *lockedBuffer
	hooks  string // address for webhooks, "" for none
}

// people are the accounts on a Gitea server: the repositories' owner, gitrollout's bot, a code owner, and another user.
// All of them may push.
type people struct{ owner, bot, approver, other giteatest.Account }

var twoGates = canary("scaling: surge", "setWeight: 50", "pause: {}", "setWeight: 75", "pause: {}")
var oneGate = canary("scaling: surge", "setWeight: 50", "pause: {}")

func newForgeWorld(t *testing.T, server *giteatest.Server, who people, config string, strategy string) *forgeWorld {
	t.Helper()
	cluster := testcluster.Shared(t)
	w := &forgeWorld{t: t, gitea: server, people: who, ns: cluster.Namespace(t), kube: cluster, log: &lockedBuffer{}}
	w.repo = server.Repository(who.owner, w.ns, who.bot, who.approver, who.other)
	w.clone = newClone(t, server.CloneURL(who.owner, w.repo))
	w.write(map[string]string{configFile: configOf(w.ns, w.ns, config)})
	w.release("first version", "v1", strategy)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("gitrollout's log:\n%s", w.log.String())
			t.Logf("pull requests:\n%+v", w.pulls())
		}
	})
	return w
}

func (w *forgeWorld) release(message, version, strategy string) string {
	w.t.Helper()
	files := map[string]string{}
	for name, content := range (shop{version: version, replicas: "replicas: 2", strategy: strategy}).files() {
		files["apps/"+w.ns+"/"+name] = content
	}
	w.write(files)
	return w.push(message)
}

// start runs gitrollout as the bot until the test ends. It waits until the app is healthy at the clone's head, and
// returns this commit. It reads the address for webhooks from the log.
func (w *forgeWorld) start(environment []string, flags ...string) (commit string) {
	w.t.Helper()
	path, err := binary()
	must(w.t, err)
	process := exec.Command(path, append([]string{"run", "--repo", w.gitea.URL + "/" + w.repo + ".git", "--cluster", "test", "--kubeconfig",
		w.kube.Kubeconfig}, flags...)...)
	process.Env = append(append(gittest.Env(), "HOME="+w.t.TempDir(), "GITROLLOUT_GIT_TOKEN="+w.people.bot.Token), environment...)
	process.Stdout, process.Stderr = w.log, w.log
	must(w.t, process.Start())
	w.t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		if err := process.Wait(); err != nil {
			w.t.Errorf("gitrollout ended with %v", err)
		}
	})
	if slices.Contains(flags, "--webhook-address") {
		w.eventually("it takes webhooks", func() bool {
			_, rest, found := strings.Cut(w.log.String(), `msg="taking webhooks" address=`)
			w.hooks, _, _ = strings.Cut(rest, " ")
			return found && w.hooks != ""
		})
	}
	commit = w.git("rev-parse", "HEAD")
	w.awaitHealthy(commit)
	return commit
}

func (w *forgeWorld) eventually(what string, holds func() bool) {
	w.t.Helper()
	eventually(w.t, what, func() bool {
		time.Sleep(glance) // each poll runs several processes
		return holds()
	}, func() any { return shown(w.state()) })
}

func (w *forgeWorld) state() rollout.State {
	w.t.Helper()
	if _, err := w.tryGit("fetch", "-q", "origin", "+gitrollout/state/test:refs/remotes/origin/state"); err != nil {
		return rollout.State{} // no branch yet
	}
	file := rollout.StatePath(w.ns)
	text, err := w.tryGit("show", "refs/remotes/origin/state:"+file)
	if err != nil {
		return rollout.State{}
	}
	s, err := rollout.ParseState(file, []byte(text+"\n"))
	if err != nil {
		w.t.Fatalf("state on the branch: %v", err)
	}
	return *s
}

func (w *forgeWorld) await(what string, holds func(rollout.State) bool) rollout.State {
	w.t.Helper()
	var s rollout.State
	w.eventually(what, func() bool { s = w.state(); return holds(s) })
	return s
}

func (w *forgeWorld) awaitHealthy(commit string) rollout.State {
	w.t.Helper()
	return w.await("healthy at "+rollout.ShortID(commit), func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Stable != nil && s.Stable.Commit == commit
	})
}

func (w *forgeWorld) awaitGate(step int) rollout.State {
	w.t.Helper()
	return w.await(fmt.Sprintf("paused at step %d", step), func(s rollout.State) bool {
		return s.Phase == rollout.Paused && len(s.Progress) == 1 && s.Progress[0].Step == step
	})
}

// pullRequest has the fields of Gitea's pull request that tests use.
type pullRequest struct {
	Number       int
	Title, Body  string
	State        string
	Merged       bool
	Head         struct{ Label string }
	User         struct{ Login string }
	Labels       []struct{ Name string }
	Reviewers    []struct{ Login string } `json:"requested_reviewers"`
	MergeableNow bool                     `json:"mergeable"`
}

func (w *forgeWorld) api(as giteatest.Account, method, path string, body, into any) (int, string) {
	w.t.Helper()
	return w.gitea.API(as, method, "/repos/"+w.repo+path, body, into)
}

// must sends a request to Gitea's API, and ends the test unless the request succeeds.
func (w *forgeWorld) must(as giteatest.Account, method, path string, body, into any) {
	w.t.Helper()
	if status, text := w.api(as, method, path, body, into); status/100 != 2 {
		w.t.Fatalf("%s %s as %s: %d %s", method, path, as.Name, status, text)
	}
}

func (w *forgeWorld) pulls() []pullRequest {
	w.t.Helper()
	var all []pullRequest
	w.must(w.people.owner, http.MethodGet, "/pulls?state=all", nil, &all)
	slices.SortFunc(all, func(a, b pullRequest) int { return a.Number - b.Number })
	return all
}

// awaitPull waits for an open pull request of the given kind of proposal. Its title must contain the given text.
func (w *forgeWorld) awaitPull(kind rollout.ProposalKind, title string) pullRequest {
	w.t.Helper()
	var found pullRequest
	w.eventually(fmt.Sprintf("a pull request to %s, %q", kind, title), func() bool {
		for _, p := range w.pulls() {
			if p.State == "open" && p.Head.Label == rollout.ProposalBranch(kind, "test", w.ns) && strings.Contains(p.Title, title) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

// merge merges a pull request as an account, once Gitea reports that the pull request is mergeable.
func (w *forgeWorld) merge(as giteatest.Account, number int, style string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("pull request %d merged", number), func() bool {
		status, _ := w.api(as, http.MethodPost, fmt.Sprintf("/pulls/%d/merge", number), map[string]any{"Do": style}, nil)
		return status == http.StatusOK
	})
}

// status returns the newest status of this app on a commit.
func (w *forgeWorld) status(commit string) (state, description string) {
	w.t.Helper()
	var combined struct {
		Statuses []struct{ Context, Status, Description string }
	}
	w.must(w.people.other, http.MethodGet, "/commits/"+commit+"/status", nil, &combined)
	for _, s := range combined.Statuses {
		if s.Context == "gitrollout/test/"+w.ns {
			return s.Status, s.Description
		}
	}
	return "", ""
}

func (w *forgeWorld) awaitStatus(commit, state, description string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("status %s %q", state, description), func() bool {
		s, d := w.status(commit)
		return s == state && strings.Contains(d, description)
	})
}
