package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/giteatest"
	"gitrollout.dev/gitrollout/rollout"
)

// withGitea is the forge section of the configuration. gitrollout derives the forge's address and the repository from the Git URL.
const withGitea = "forge: {type: gitea, labels: [release], reviewers: [carol]}\n"

// TestForge runs each test function on a separate repository of one real Gitea server.
func TestForge(t *testing.T) {
	t.Parallel()
	server := giteatest.Start(t)
	who := people{owner: server.User("olive"), bot: server.User("gitrollout-bot", "write:repository", "write:issue"),
		approver: server.User("ann"), other: server.User("carol")}
	for name, story := range map[string]func(t *testing.T, server *giteatest.Server, who people){
		"merge":      func(t *testing.T, s *giteatest.Server, who people) { mergeStory(t, s, who, "merge") },
		"squash":     func(t *testing.T, s *giteatest.Server, who people) { mergeStory(t, s, who, "squash") },
		"rebase":     func(t *testing.T, s *giteatest.Server, who people) { mergeStory(t, s, who, "rebase") },
		"protected":  protectedStory,
		"rejected":   rejectedStory,
		"superseded": supersededStory,
		"webhook":    webhookStory,
		"forge away": forgeAwayStory,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, server, who)
		})
	}
}

// mergeStory promotes twice, each time by merging a pull request. style is Gitea's merge style, such as squash.
func mergeStory(t *testing.T, server *giteatest.Server, who people, style string) {
	w := newForgeWorld(t, server, who, withGitea, twoGates)
	first := w.start(nil, "--interval", "300ms")
	w.awaitStatus(first, "success", "serving")
	second := w.release("Faster checkout", "v2", twoGates)
	w.awaitGate(1)
	w.awaitStatus(second, "pending", "Paused, step 2/4 (pause) at 50 %")
	p := w.awaitPull(rollout.ProposePromotion, "past step 2/4: Faster checkout")
	compare.Contains(t, p.Body, "`"+second[:7]+"`", "`shop:v1` → `shop:v2`", "step 2 of 4", "gitrollout undo "+w.ns,
		w.state().Release.Author)
	w.eventually("its label and its reviewer", func() bool {
		p := w.awaitPull(rollout.ProposePromotion, "")
		return len(p.Labels) == 1 && p.Labels[0].Name == "release" && len(p.Reviewers) == 1 && p.Reviewers[0].Login == "carol"
	})
	compare.CheckNamed(t, "its author", "gitrollout-bot", p.User.Login)
	w.merge(who.owner, p.Number, style)
	w.awaitGate(3)
	next := w.awaitPull(rollout.ProposePromotion, "past step 4/4")
	if next.Number == p.Number {
		t.Error("the second gate has the pull request of the first one")
	}
	w.merge(who.owner, next.Number, style)
	w.awaitHealthy(second)
	w.awaitStatus(second, "success", "serving")
	for _, p := range w.pulls() {
		if !p.Merged || strings.Contains(p.Body, "This proposal is over") {
			t.Errorf("pull request %d: merged %t\n%s", p.Number, p.Merged, p.Body)
		}
	}
	w.eventually("no proposal is left", func() bool { return w.git("ls-remote", "origin", "gitrollout/promote/*") == "" })
}

// protectedStory protects main, and sets a code owner for promotions. Gitea merges a promotion only after the code owner's approval.
func protectedStory(t *testing.T, server *giteatest.Server, who people) {
	w := newForgeWorld(t, server, who, withGitea, oneGate)
	w.write(map[string]string{"CODEOWNERS": "\\.gitrollout/test/promote/.* @ann\n"})
	w.push("owner of promotions")
	for _, rule := range []map[string]any{
		{"rule_name": "main", "enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"olive"},
			"required_approvals": 1, "block_on_official_review_requests": true, "block_on_rejected_reviews": true, "apply_to_admins": true,
			"block_admin_merge_override": true},
		{"rule_name": "gitrollout/state/**", "enable_push": true, "enable_push_whitelist": true,
			"push_whitelist_usernames": []string{"gitrollout-bot"}},
	} {
		w.must(who.owner, http.MethodPost, "/branch_protections", rule, nil)
	}
	w.start(nil, "--interval", "300ms")
	bot := server.CloneURL(who.bot, w.repo)
	if out, err := w.tryGit("push", bot, "HEAD~1:refs/heads/elsewhere", "+HEAD~1:refs/heads/main"); err == nil ||
		!strings.Contains(out, "elsewhere") {
		t.Errorf("the bot pushes to main: %v\n%s", err, out)
	}
	if out, err := w.tryGit("push", server.CloneURL(who.other, w.repo), "HEAD:refs/heads/gitrollout/state/test"); err == nil {
		t.Errorf("a person pushes to the state branch:\n%s", out)
	}
	second := w.release("v2", "v2", oneGate)
	w.awaitGate(1)
	p := w.awaitPull(rollout.ProposePromotion, "")
	w.eventually("Gitea itself asks the code owner, and gitrollout the one whom the configuration names", func() bool {
		asked := map[string]bool{}
		for _, r := range w.awaitPull(rollout.ProposePromotion, "").Reviewers {
			asked[r.Login] = true
		}
		return asked["ann"] && asked["carol"]
	})
	merge, approve := fmt.Sprintf("/pulls/%d/merge", p.Number), fmt.Sprintf("/pulls/%d/reviews", p.Number)
	squash, approved := map[string]any{"Do": "squash"}, map[string]any{"event": "APPROVED", "body": "fine"}
	for _, as := range []giteatest.Account{who.bot, who.other} {
		if status, text := w.api(as, http.MethodPost, merge, squash, nil); status == http.StatusOK {
			t.Fatalf("%s merges without an approval: %s", as.Name, text)
		}
	}
	// The bot cannot approve its proposal.
	if status, _ := w.api(who.bot, http.MethodPost, approve, approved, nil); status == http.StatusOK {
		t.Error("the bot approves its own pull request")
	}
	// An approval by another user does not replace the code owner's approval.
	w.must(who.other, http.MethodPost, approve, approved, nil)
	if status, text := w.api(who.other, http.MethodPost, merge, squash, nil); status == http.StatusOK {
		t.Fatalf("it is merged while the code owner has not answered: %s", text)
	}
	compare.CheckNamed(t, "the phase", rollout.Paused, w.state().Phase)
	w.must(who.approver, http.MethodPost, approve, approved, nil)
	w.merge(who.other, p.Number, "squash")
	w.awaitHealthy(second)
}

// rejectedStory aborts a release, and merges gitrollout's pull request that reverts the release in Git.
func rejectedStory(t *testing.T, server *giteatest.Server, who people) {
	w := newForgeWorld(t, server, who, withGitea, oneGate)
	first := w.start(nil, "--interval", "300ms")
	second := w.release("v2", "v2", oneGate)
	s := w.awaitGate(1)
	promotion := w.awaitPull(rollout.ProposePromotion, "")
	w.write(map[string]string{rollout.PromotionPath("test", w.ns): fmt.Sprintf(
		"apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: %s\ndecision: abort\nreason: too many errors\n", s.Release.Hash)})
	w.push("abort")
	w.await("degraded", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	revert := w.awaitPull(rollout.ProposeRevert, "to "+first[:7])
	compare.Contains(t, revert.Body, "too many errors", "`"+second[:7]+"`", "`shop:v2` → `shop:v1`", "gitrollout retry")
	w.awaitStatus(second, "failure", "too many errors")
	w.eventually("the promotion is closed, and says why", func() bool {
		return slices.ContainsFunc(w.pulls(), func(p pullRequest) bool {
			return p.Number == promotion.Number && p.State == "closed" && !p.Merged && strings.Contains(p.Body, "This proposal is over") &&
				strings.Contains(p.Body, "abort")
		})
	})
	w.merge(who.owner, revert.Number, "squash")
	w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
	w.git("pull", "-q", "origin", "main")
	compare.Contains(t, w.git("show", "HEAD:apps/"+w.ns+"/shop.yaml"), "shop:v1")
	w.eventually("no proposal is left", func() bool {
		return w.git("ls-remote", "origin", "gitrollout/promote/*", "gitrollout/revert/*") == ""
	})
}

// supersededStory pushes a new version while a pull request is open. This pull request is closed, and gitrollout opens another for the new
// release.
func supersededStory(t *testing.T, server *giteatest.Server, who people) {
	w := newForgeWorld(t, server, who, withGitea, oneGate)
	w.start(nil, "--interval", "300ms")
	second := w.release("Second try", "v2", oneGate)
	w.awaitGate(1)
	stale := w.awaitPull(rollout.ProposePromotion, "Second try")
	third := w.release("Third try", "v3", oneGate)
	w.await("the third waits", func(s rollout.State) bool {
		return s.Release != nil && s.Release.Commit == third && s.Phase == rollout.Paused
	})
	p := w.awaitPull(rollout.ProposePromotion, "Third try")
	if p.Number == stale.Number {
		t.Error("the third release has the pull request of the second")
	}
	w.awaitStatus(second, "failure", "superseded by "+third[:7])
	w.eventually("the stale one is closed", func() bool {
		return slices.ContainsFunc(w.pulls(), func(p pullRequest) bool { return p.Number == stale.Number && p.State == "closed" && !p.Merged })
	})
	w.merge(who.owner, p.Number, "rebase")
	w.awaitHealthy(third)
}

// webhookStory checks that webhooks with the right secret trigger fetches. The poll interval is longer than the test.
func webhookStory(t *testing.T, server *giteatest.Server, who people) {
	w := newForgeWorld(t, server, who, withGitea, oneGate)
	secret := "the secret of " + w.ns
	w.start([]string{"GITROLLOUT_WEBHOOK_SECRET=" + secret}, "--interval", "10m", "--webhook-address", "127.0.0.1:0")
	hook := func(secret string) int {
		t.Helper()
		var made struct{ ID int }
		body := map[string]any{"type": "gitea", "active": true, "events": []string{"push"},
			"config": map[string]any{"url": "http://" + w.hooks + "/webhook", "content_type": "json", "secret": secret}}
		w.must(who.owner, http.MethodPost, "/hooks", body, &made)
		return made.ID
	}
	wrong := hook("not the secret")
	w.release("v2", "v2", oneGate)
	time.Sleep(3 * time.Second)
	if s := w.state(); s.Release != nil {
		t.Fatalf("a webhook with a wrong secret is obeyed: %+v", s.Release)
	}
	w.must(who.owner, http.MethodDelete, fmt.Sprintf("/hooks/%d", wrong), nil, nil)
	hook(secret)
	w.write(map[string]string{"README": "anything\n"})
	w.push("a push that is told of")
	began := time.Now()
	waiting := w.awaitGate(1)
	t.Logf("a push was a release at its gate after %s", time.Since(began).Round(10*time.Millisecond))
	p := w.awaitPull(rollout.ProposePromotion, "")
	began = time.Now()
	w.merge(who.owner, p.Number, "merge")
	w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Stable.Hash == waiting.Release.Hash })
	t.Logf("a merge was a promotion after %s", time.Since(began).Round(10*time.Millisecond))
}

// forgeAwayStory checks an unreachable forge: releases work as on a plain Git server, and each error is logged once.
func forgeAwayStory(t *testing.T, server *giteatest.Server, who people) {
	w := newForgeWorld(t, server, who, "forge: {type: gitea, url: \"http://127.0.0.1:1\", repository: a/b}\n", oneGate)
	w.start([]string{"GITROLLOUT_FORGE_URL=http://127.0.0.1:1"}, "--interval", "300ms")
	second := w.release("v2", "v2", oneGate)
	w.awaitGate(1)
	w.git("fetch", "-q", "origin", rollout.ProposalBranch(rollout.ProposePromotion, "test", w.ns))
	w.git("merge", "-q", "--no-edit", "FETCH_HEAD")
	w.git("push", "-q", "origin", "main")
	w.awaitHealthy(second)
	errors := map[string]int{}
	for line := range strings.Lines(w.log.String()) {
		if _, text, is := strings.Cut(line, "msg=forge error="); is {
			errors[text]++
		}
	}
	if len(errors) == 0 {
		t.Error("no error of the forge is logged")
	}
	for text, n := range errors {
		compare.CheckNamed(t, "log lines with "+text, 1, n)
	}
}
