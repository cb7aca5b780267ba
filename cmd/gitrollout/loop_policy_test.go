package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// policyOf returns a policy with one project. The project has all apps and the given rules, and allows objects in one namespace.
func policyOf(namespace, more string) string {
	return "apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\nprojects:\n" +
		"- {name: web, apps: ['*'], namespaces: [" + namespace + "]" + more + "}\n"
}

// pushPolicy pushes the text of a policy to the branch platform.
func (w *loopWorld) pushPolicy(content string) {
	w.Helper()
	w.repo.Git("checkout", "-q", "-B", "platform")
	w.repo.Write(map[string]string{"policy/prod.yaml": content})
	w.repo.Git("add", "-A")
	w.repo.Git("commit", "-q", "--allow-empty", "-m", "a policy")
	w.repo.Git("push", "-q", "-f", "origin", "platform")
	w.repo.Git("checkout", "-q", "main")
}

// writePolicy writes a policy to a file. Processes that start later read the file.
func (w *loopWorld) writePolicy(content string) {
	w.Helper()
	w.keys.policy.file = filepath.Join(w.TempDir(), "policy.yaml")
	must(w, os.WriteFile(w.keys.policy.file, []byte(content), 0o600))
}

// TestPolicyOfABranch checks a policy on its own branch, with a real Git server and API server. An app or a release that violates the
// policy is held. While the policy is invalid or missing, no release advances, but users can revert.
func TestPolicyOfABranch(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	w.keys.policy.ref = "platform:policy/prod.yaml"
	p := w.start()
	w.wantError(p.passes(5), "policy: there is no branch platform")
	w.wantNoDeployment()
	w.pushPolicy(policyOf("elsewhere", ""))
	p.wantHeld(rollout.HeldPolicy, "project web, rule namespaces: the namespace matches none of elsewhere")
	w.wantNoDeployment()
	w.pushPolicy(policyOf(w.ns, ""))
	p.awaitHealthy(w.repo.Head())
	p.awaitPaused(w.pushVersion("v2"))
	w.pushPolicy(policyOf(w.ns, ", rollouts: {maxFirstWeight: 25}"))
	if s := p.wantHeld(rollout.HeldPolicy); s.Phase != rollout.Paused {
		t.Fatalf("%s, held %+v", s.Phase, s.Held)
	}
	w.pushPolicy("kind: Policy\n")
	w.wantError(p.passes(3), `platform:policy/prod.yaml: apiVersion: "" is not known`)
	w.push("back to v1", version("v1", halfThenGate))
	p.await("back", func(s rollout.State) bool { return s.Release == nil && s.Phase == rollout.Healthy })
	w.pushPolicy(policyOf(w.ns, ""))
	p.await("let again", notHeld)
}

// TestPolicyOfAKindThatOnlyTheClusterKnows checks that the policy restricts a custom cluster-scoped kind that the configuration allows.
// gitrollout can learn the scope of this kind only from the cluster.
func TestPolicyOfAKindThatOnlyTheClusterKnows(t *testing.T) {
	files := version("v1", halfThenGate)
	w := newLoopWorld(t, files)
	group := w.app + ".example.com"
	w.namespaces = nil
	w.createCRD(group, "Cluster")
	w.configure(w.config("- path: apps/*\n  clusterResources: ['*']"))
	files["odd.yaml"] = "apiVersion: " + group + "/v1\nkind: Odd\nmetadata: {name: APP}\n"
	files["kustomization.yaml"] = strings.Replace(files["kustomization.yaml"], "[", "[odd.yaml, ", 1)
	commit := w.push("an object without a namespace", files)
	w.keys.policy.ref = "platform:policy/prod.yaml"
	w.pushPolicy(policyOf(w.ns, ""))
	p := w.start()
	p.wantHeld(rollout.HeldPolicy, "project web, rule clusterResources: may have no "+group+"/Odd")
	w.wantNoDeployment()
	w.pushPolicy(policyOf(w.ns, ", clusterResources: ["+group+"/Odd]"))
	p.awaitHealthy(commit)
}

// TestUnsignedPolicy pushes policies without a valid signature. With --verify-commits, gitrollout reports and ignores such a policy,
// whether it is looser or stricter. The last valid policy stays in force. A process without a valid policy advances nothing.
func TestUnsignedPolicy(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	key := w.repo.NewKeyFile()
	w.keys.Commits, w.keys.policy.ref = w.list(key), "platform:policy/prod.yaml"
	w.signs(key)
	first := w.push("signed", map[string]string{"note": "1"})
	w.pushPolicy(policyOf("elsewhere", ""))
	p := w.start()
	p.await("held", func(s rollout.State) bool { return s.Held.Is(rollout.HeldPolicy) })
	doesNotCount := func(why string) {
		t.Helper()
		want := "policy: commit " + rollout.ShortID(w.repo.Ref("platform")) + " of platform does not count: "
		for range 3 {
			w.wantError(p.passes(1), want, why)
		}
	}
	for signer, why := range map[string]string{"": "not signed", w.repo.NewKeyFile(): "key is not in the file of --verify-commits"} {
		w.signs(signer)
		w.pushPolicy(policyOf(w.ns, ""))
		for range 2 {
			doesNotCount(why)
			w.wantNoDeployment()
			if s := w.state(); !s.Held.Is(rollout.HeldPolicy) {
				t.Errorf("held %+v", s.Held)
			}
			p = p.restart() // the new process has no valid policy
		}
	}
	w.signs(key)
	w.pushPolicy(policyOf(w.ns, ""))
	p.awaitHealthy(first)

	w.signs("")
	w.pushPolicy(policyOf("elsewhere", ""))
	w.signs(key)
	second := w.pushVersion("v2")
	doesNotCount("not signed")
	if s := w.state(); s.Held != nil || s.Release != nil {
		t.Errorf("held %+v, release %+v", s.Held, s.Release)
	}
	w.pushPolicy(policyOf(w.ns, ""))
	p.awaitPaused(second)
}

// TestForbiddenPromotionIsShown promotes a release fully, but the policy forbids full promotions. `get` reads the refusal from the record
// and not from the policy. A valid promotion of one step removes the refusal.
func TestForbiddenPromotionIsShown(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	w.writePolicy(policyOf(w.ns, ", rollouts: {forbid: [promoteFull]}"))
	p := w.startHealthy()
	before := p.awaitPaused(w.pushVersion("v2"))
	file := rollout.PromotionPath("test", w.app)
	push := func(through string) {
		t.Helper()
		promotion := rollout.Promotion{Release: before.Release.Hash, Decision: rollout.Promote, Through: through}
		w.edit("main", map[string]string{file: encoded(t, promotion)})
	}
	push(rollout.Full)
	s := p.await("it is ignored", func(s rollout.State) bool { return s.Ignored != "" })
	const why = "project web, rule rollouts.forbid: promoteFull does not count"
	w.wantText(w.command(exitOK, "get", w.app), "Warning     ignored:", "project web, rule rollouts.forbid:", "Paused")
	w.wantText(w.command(exitOK, "get", w.app, "-o", "json"), "ignored: "+file+": "+why)
	if s.Phase != rollout.Paused || s.Serial != before.Serial {
		t.Errorf("%s, serial %d, want %d: each Deployment would be written to", s.Phase, s.Serial, before.Serial)
	}
	push("2")
	p.awaitHealthy(before.Release.Commit)
	p.await("nothing is ignored", func(s rollout.State) bool { return s.Ignored == "" })
	if shown := w.command(exitOK, "get", w.app); strings.Contains(shown, "ignored") {
		t.Errorf("it is over:\n%s", shown)
	}
}

// TestPromotionOfABotIsShown promotes as a bot, but the policy lets no bot promote. `get` shows why the promotion has no effect, also after
// a restart. When a person merges gitrollout's new proposal, the release is promoted.
func TestPromotionOfABotIsShown(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	w.writePolicy(policyOf(w.ns, ", rollouts: {byAuthor: [{authors: ['*[bot]'], mayPromote: false}]}"))
	p := w.startHealthy()
	before := p.awaitPaused(w.pushVersion("v2"))
	w.command(exitOK, "promote", w.app, "--author", "renovate[bot] <r@example.com>")
	const why = "project web, rule rollouts.byAuthor[0].mayPromote: renovate[bot] <r@example.com> committed this promotion"
	isIgnored := func(s rollout.State) bool { return strings.HasPrefix(s.Ignored, why) }
	p.await("it is ignored", isIgnored)
	w.wantText(w.command(exitOK, "get", w.app, "-o", "json"), "ignored: "+rollout.PromotionPath("test", w.app)+": "+why, `"Paused"`)
	p = p.restart()
	p.passWell(5)
	p.await("it is ignored", func(s rollout.State) bool { return isIgnored(s) && s.Phase == rollout.Paused })
	w.wantText(w.repo.Show(w.promotion(), rollout.PromotionPath("test", w.app)), "at: ", "through: \"2\"")
	w.repo.Merge(w.promotion())
	p.awaitHealthy(before.Release.Commit)
	p.await("nothing is ignored", func(s rollout.State) bool { return s.Ignored == "" })
}

func TestPolicyFlags(t *testing.T) {
	for want, o := range map[string]policyOptions{
		"--policy and --policy-ref exclude each other":            {file: "a", ref: "b:c"},
		`--policy-ref "platform" is not branch:path`:              {ref: "platform"},
		`--policy-ref ":a" is not branch:path`:                    {ref: ":a"},
		"--policy-ref names branch main, the branch of the apps":  {ref: "main:a"},
		"--policy: open /no/such/file: no such file or directory": {file: "/no/such/file"},
	} {
		compare.Contains(t, fmt.Sprint(o.check("main")), want)
	}
}

// TestProjectOfAnApp checks that an app's project determines the app's ServiceAccount and promoters. The app's configuration entry and
// --promoters do not override them. The API server and the signatures are real.
func TestProjectOfAnApp(t *testing.T) {
	t.Parallel()
	for name, theirs := range map[string]bool{"by a promoter of the project": true, "by another promoter": false} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			key, other := w.repo.NewKeyFile(), w.repo.NewKeyFile()
			w.keys.Promoters = w.list(other)
			w.writePolicy(policyOf(w.ns, ", serviceAccount: "+w.ns+"/deployer, promoters: "+w.list(key)))
			w.configure(w.config("- path: apps/*\n  serviceAccount: default/strong"))
			p := w.start()
			p.wantHeld(rollout.HeldForbidden, `User "system:serviceaccount:`+w.ns+`:deployer" cannot patch resource`)
			w.grantDeployer()
			p.awaitHealthy(w.repo.Head())
			commit := w.pushVersion("v2")
			p.awaitPaused(commit)
			if !theirs {
				key = other
			}
			w.signs(key)
			w.repo.Merge(w.promotion())
			if !theirs {
				p.awaitHeld(rollout.PromotionPath("test", w.app), "does not count", "git commit -S")
				return
			}
			p.awaitHealthy(commit)
		})
	}
}
