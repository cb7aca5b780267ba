package forge

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// bench is a forge with a repository, for the cases in contract. GitHub and GitLab are fakes that follow the documented APIs. Gitea is a
// real server.
type bench interface {
	push(branch, content string) (commit string) // moves the branch to a new commit on top of main
	drop(branch string)                          // deletes the branch, as a push by gitrollout does
	merge(number int)
	close(number int) // closes the pull request, as a user does
	propose(branch, title string) int
	list() []seen // sorted by number
	marks(commit string) []fakeStatus
}

// seen has the properties of a pull request that its page shows.
type seen struct {
	number              int
	title, body, branch string
	state               string // open, closed or merged
	labels, reviewers   []string
}

// maker returns a new bench for a test case.
type maker func(t *testing.T) (bench, Options, rollout.Forge)

// benches has the forges that must pass all cases in contract. Each function may start a server for all cases of its forge.
var benches = map[string]func(t *testing.T) maker{
	"GitHub": func(*testing.T) maker { return newGitHubBench },
	"GitLab": func(*testing.T) maker { return newGitLabBench },
	"Gitea":  newGiteaMaker,
}

func newGitHubBench(t *testing.T) (bench, Options, rollout.Forge) {
	f := newFake(t, serveGitHub)
	return f, f.options("/acme/deploy.git"), rollout.Forge{Type: rollout.GitHub}
}

func newGitLabBench(t *testing.T) (bench, Options, rollout.Forge) {
	f := newFake(t, serveGitLab)
	return f, f.options("/acme/team/deploy.git"), rollout.Forge{Type: rollout.GitLab}
}

func (f *fake) options(path string) Options {
	return Options{Remote: f.server.URL + path, Token: tokenOf(f.token)}
}

// drop deletes a branch. GitHub then closes the branch's pull request. GitLab does not.
func (f *fake) drop(branch string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.branches, branch)
	for _, p := range f.pulls {
		if p.branch == branch && !p.merged && !strings.Contains(f.t.Name(), "GitLab") {
			p.closed = true
		}
	}
}

// rig is a worker whose forge is a bench.
type rig struct {
	bench
	t       *testing.T
	options Options
	config  rollout.Forge
	worker  *Worker
	stop    func()

	mu       sync.Mutex
	problems []string
}

func newRig(t *testing.T, newBench maker) *rig {
	t.Helper()
	b, options, config := newBench(t)
	r := &rig{bench: b, t: t, config: config}
	r.config.Labels, r.config.Reviewers = []string{"release", "prod"}, []string{"ann"}
	options.Cluster, options.Branch, options.Now = "prod", "main", time.Now
	options.Settle = 300 * time.Millisecond
	options.Log = func(problem error, _ string) {
		if problem != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.problems = append(r.problems, problem.Error())
		}
	}
	if options.forges == nil {
		options.forges = slices.Clone(forges)
		for i := range options.forges {
			options.forges[i].spacing = 0 // test servers need no pauses
		}
	}
	r.options = options
	r.restart()
	t.Cleanup(func() { r.stop() })
	return r
}

// restart replaces the worker by a new worker without state, as a restart of the process does.
func (r *rig) restart() {
	r.t.Helper()
	if r.stop != nil {
		r.stop()
	}
	r.options.Spread = exactly
	r.worker = NewWorker(r.options)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.worker.Run(ctx); close(ended) }()
	r.stop = func() { cancel(); <-ended }
}

// settle waits until the worker's queue is empty.
func (r *rig) settle() {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r.worker.mu.Lock()
		left := len(r.worker.jobs)
		r.worker.mu.Unlock()
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d orders are left; problems: %v", left, r.problems)
		}
	}
}

// wantStates ends the test unless the pull requests, sorted by number, have the given states.
func (r *rig) wantStates(all []seen, states ...string) {
	r.t.Helper()
	got := rollout.Mapped(all, func(p seen) string { return p.state })
	if !slices.Equal(got, states) {
		r.t.Fatalf("the states are %q, want %q, of %+v", got, states, all)
	}
}

func (r *rig) show(ts ...rollout.ForgeUpdate) []seen {
	r.t.Helper()
	r.worker.Show(r.config, ts)
	r.settle()
	return r.list()
}

func (r *rig) resume(branches []string, ts ...rollout.ForgeUpdate) []seen {
	r.t.Helper()
	r.worker.Resume(r.config, ts, branches)
	r.settle()
	return r.list()
}

const (
	promoteBranch = "gitrollout/promote/prod/shop"
	revertBranch  = "gitrollout/revert/prod/shop"
)

// paused returns an update in which a commit's release waits at a step's gate.
func paused(commit string, gate int, proposals ...rollout.Proposal) rollout.ForgeUpdate {
	w := rollout.Workload{Namespace: "shop", Name: "web"}
	pr := rollout.Progress{Workload: w, Step: gate, Of: 4, Name: "pause", Weight: 20, Entered: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i := range proposals {
		proposals[i].Gate = gate
		proposals[i].Standing = []rollout.Standing{{Progress: pr, Ready: 2, Replicas: 10}}
		proposals[i].Changes = []rollout.Change{{Ref: w.Ref(), Verb: "changed",
			Images: []rollout.ImageChange{{Container: "app", From: "shop:1", To: "shop:2"}}}}
	}
	return rollout.ForgeUpdate{Cluster: "prod", Subject: "shop step 2/4", Proposals: proposals, After: rollout.State{
		App: "shop", Phase: rollout.Paused, Progress: []rollout.Progress{pr},
		Release: &rollout.Release{Commit: commit, Hash: "h1-aaaaaaaaaa", Author: "Ann <ann@example.com>", Subject: "Faster @checkout `now`"},
		Stable:  &rollout.Release{Commit: sha("stable"), Hash: "h1-bbbbbbbbbb", Subject: "before"},
	}}
}

func promotes(commit string) rollout.Proposal {
	return rollout.Proposal{Kind: rollout.ProposePromotion, Branch: promoteBranch, Commit: commit}
}

func TestContract(t *testing.T) {
	for kind, prepare := range benches {
		t.Run(kind, func(t *testing.T) {
			if kind == "Gitea" && testing.Short() {
				t.Skip("starts a server; without -short it is run")
			}
			newBench := prepare(t)
			for name, story := range contract {
				t.Run(name, func(t *testing.T) { story(t, newRig(t, newBench)) })
			}
		})
	}
}

// contract has the cases that each forge must pass.
var contract = map[string]func(t *testing.T, r *rig){
	"a job's proposal": func(t *testing.T, r *rig) {
		const branch = "gitrollout-vendor"
		propose := func(commit, body string, wantOpen bool) int {
			t.Helper()
			number, isOpen, err := Pull(t.Context(), r.options, r.config, branch, commit, "Vendor: redis", body)
			if err != nil || isOpen != wantOpen {
				t.Fatalf("%d, open %t, %v", number, isOpen, err)
			}
			return number
		}
		first := r.push(branch, "redis 1")
		number := propose(first, "one", true)
		compare.CheckNamed(t, "the same pull request", number, propose(r.push(branch, "redis 2"), "two", true))
		all := r.list()
		r.wantStates(all, "open")
		compare.CheckNamed(t, "title and body", text{"Vendor: redis", "two"}, text{all[0].title, all[0].body})
		last := r.push(branch, "redis 3")
		propose(last, "two", true)
		r.close(number)
		compare.CheckNamed(t, "the closed proposal, of", [2]int{number, 1}, [2]int{propose(last, "two", false), len(r.list())})
		other := propose(r.push(branch, "redis 4"), "four", true)
		compare.CheckNamed(t, "the closed proposal again, of", []any{false, 2}, []any{other == number, len(r.list())})
	},
	"a proposal's life": func(t *testing.T, r *rig) {
		release := r.push("release", "the release")
		all := r.show(paused(release, 1, promotes(r.push(promoteBranch, "first"))))
		r.wantStates(all, "open")
		slices.Sort(all[0].labels)
		if !slices.Equal(all[0].labels, []string{"prod", "release"}) || !slices.Contains(all[0].reviewers, "ann") {
			t.Errorf("labels %v, reviewers %v", all[0].labels, all[0].reviewers)
		}
		compare.Check(t, promoteBranch, all[0].branch)
		compare.Check(t, "Promote shop in prod past step 2/4: Faster @checkout `now`", all[0].title)
		compare.Contains(t, all[0].body, "`h1-aaaaaaaaaa`", "`"+release[:7]+"`", "`Ann <ann@example.com>`", "`Faster @checkout 'now'`",
			"image of `app`: `shop:1` → `shop:2`", "step 2 of 4", "weight of 20 %", "2 of 10 pods", "`.gitrollout/prod/promote/shop.yaml`",
			"`gitrollout undo shop`", "`gitrollout abort shop`")
		// The next gate's proposal uses the same pull request, even after a restart.
		r.restart()
		all = r.show(paused(release, 2, promotes(r.push(promoteBranch, "second"))))
		if len(all) != 1 || !strings.Contains(all[0].title, "past step 3/4") || len(all[0].labels) != 2 {
			t.Fatalf("after the next gate: %+v", all)
		}
		again := r.show(paused(release, 2, promotes(r.push(promoteBranch, "second"))))
		r.wantStates(again, "open")
		compare.CheckNamed(t, "the body told again", all[0].body, again[0].body)
		// The proposal is removed, because the release was superseded.
		r.drop(promoteBranch)
		gone := paused(release, 2)
		gone.Subject, gone.Proposals = "shop superseded", []rollout.Proposal{{Branch: promoteBranch}}
		all = r.show(gone)
		r.wantStates(all, "closed")
		compare.Contains(t, all[0].body, "`shop superseded`")
		// The same commit is proposed again. The first pull request was not closed by a user, so a second one is opened.
		r.restart()
		r.wantStates(r.show(paused(release, 2, promotes(r.push(promoteBranch, "second")))), "closed", "open")
	},
	"merged": func(t *testing.T, r *rig) {
		release := r.push("release", "the release")
		commit := r.push(promoteBranch, "first")
		all := r.show(paused(release, 1, promotes(commit)))
		r.merge(all[0].number)
		body := all[0].body
		r.wantStates(r.resume([]string{promoteBranch}, paused(release, 1, promotes(commit))), "merged")
		r.drop(promoteBranch)
		all = r.show(paused(release, 1, rollout.Proposal{Branch: promoteBranch}))
		if r.wantStates(all, "merged"); !same(all[0].body, body) {
			t.Errorf("after the promotion: %+v", all)
		}
	},
	"closed by a person": func(t *testing.T, r *rig) {
		release := r.push("release", "the release")
		commit := r.push(promoteBranch, "first")
		all := r.show(paused(release, 1, promotes(commit)))
		r.close(all[0].number)
		r.restart()
		r.wantStates(r.resume([]string{promoteBranch}, paused(release, 1, promotes(commit))), "closed")
		r.wantStates(r.show(paused(release, 2, promotes(r.push(promoteBranch, "another")))), "closed", "open")
	},
	"left over": func(t *testing.T, r *rig) {
		r.push(promoteBranch, "first")
		r.push("gitrollout/promote/staging/shop", "staging")
		r.push("feature", "a feature")
		for _, branch := range []string{promoteBranch, "gitrollout/promote/staging/shop", "feature"} {
			r.propose(branch, "title of "+branch)
		}
		r.wantStates(r.resume(nil), "closed", "open", "open")
	},
	"a reviewer that does not exist": func(t *testing.T, r *rig) {
		r.config.Reviewers = []string{"nobody-at-all"}
		r.restart()
		all := r.show(paused(r.push("release", "the release"), 1, promotes(r.push(promoteBranch, "first"))))
		if r.wantStates(all, "open"); len(all[0].labels) != 2 || len(r.problems) != 1 {
			t.Errorf("labels %v, problems %v", all[0].labels, r.problems)
		}
	},
	"a revert": func(t *testing.T, r *rig) {
		release := r.push("release", "the release")
		failed := paused(release, 1)
		failed.After.Phase, failed.After.Release = rollout.Degraded, nil
		failed.After.Rejected = []rollout.Rejection{{Hash: "h1-aaaaaaaaaa", Commit: release, Reason: "no progress for 10m",
			At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
		failed.Proposals = []rollout.Proposal{{Kind: rollout.ProposeRevert, Branch: revertBranch, Commit: r.push(revertBranch, "the revert"),
			Sharers: []string{"cart"}, Retries: true}}
		all := r.show(failed)
		r.wantStates(all, "open")
		compare.Check(t, "Revert shop in prod to "+sha("stable")[:7], all[0].title)
		compare.Contains(t, all[0].body, "`no progress for 10m`", "`cart`", "`gitrollout retry shop`", release[:7])
		if got := r.marks(release); len(got) != 1 || (got[0].State != "failure" && got[0].State != "failed") {
			t.Errorf("status %v", got)
		}
	},
	"statuses": func(t *testing.T, r *rig) {
		release := r.push("release", "the release")
		const name = "gitrollout/prod/shop"
		waiting := paused(release, 1)
		r.show(waiting)
		if got := r.marks(release); len(got) != 1 || got[0].Context != name ||
			!strings.Contains(got[0].Description, "Paused, step 2/4 (pause) at 20 %") {
			t.Fatalf("waiting: %v", got)
		}
		r.restart()
		r.resume(nil, waiting)
		if got := r.marks(release); len(got) != 1 {
			t.Fatalf("after a start: %v", got)
		}
		done := rollout.ForgeUpdate{Cluster: "prod", Before: waiting.After,
			After: rollout.State{App: "shop", Phase: rollout.Healthy, Stable: waiting.After.Release}}
		r.show(done)
		got := r.marks(release)
		if len(got) != 2 || got[1].State != "success" {
			t.Fatalf("healthy: %v", got)
		}
		pruned := rollout.ForgeUpdate{Cluster: "prod", Before: done.After, After: done.After}
		r.show(pruned)
		compare.CheckNamed(t, "statuses after a transition that is none for the release", 2, len(r.marks(release)))
	},
}
