package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// policyOf returns a policy of one project whose apps may be in a namespace.
func policyOf(namespace, more string) string {
	return "apiVersion: gitrollout.dev/v1alpha1\nkind: Policy\nprojects:\n- {name: web, apps: ['*'], namespaces: [" + namespace + "]" + more + "}\n"
}

// pushPolicy pushes a policy to a separate branch, or removes it.
func (w *loopWorld) pushPolicy(content string) {
	w.Helper()
	w.repo.Git("checkout", "-q", "-B", "platform")
	w.repo.Write(map[string]string{"policy/prod.yaml": content})
	w.repo.Git("add", "-A")
	w.repo.Git("commit", "-q", "--allow-empty", "-m", "a policy")
	w.repo.Git("push", "-q", "-f", "origin", "platform")
	w.repo.Git("checkout", "-q", "main")
}

// TestPolicyOfABranch follows a policy on its branch, with a real Git server and API server. An app that it refuses is
// held, a release that it refuses later is rolled back, and nothing advances without it.
func TestPolicyOfABranch(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	w.keys.policy.ref = "platform:policy/prod.yaml"
	p := w.start()
	if err := p.passes(5); err == nil || !strings.Contains(err.Error(), "policy: there is no branch platform") || w.hasDeployment() {
		t.Fatalf("without the branch: %v, written: %t", err, w.hasDeployment())
	}
	w.pushPolicy(policyOf("elsewhere", ""))
	s := p.await("held", func(s rollout.State) bool { return s.Held != nil })
	if s.Held.Reason != rollout.HeldPolicy || !strings.Contains(s.Held.Message, "project web, rule namespaces: is in none of elsewhere") || w.hasDeployment() {
		t.Fatalf("held %+v, written: %t", s.Held, w.hasDeployment())
	}
	w.pushPolicy(policyOf(w.ns, ""))
	p.awaitHealthy(w.repo.Head())
	p.awaitPaused(w.push("v2", version("v2", halfThenGate)))
	w.pushPolicy(policyOf(w.ns, ", rollouts: {maxFirstWeight: 25}"))
	s = p.await("held", func(s rollout.State) bool { return s.Held != nil })
	if s.Held.Reason != rollout.HeldPolicy || s.Phase != rollout.Paused {
		t.Fatalf("%s, held %+v", s.Phase, s.Held)
	}
	w.pushPolicy("kind: Policy\n")
	if err := p.passes(3); err == nil || !strings.Contains(err.Error(), `platform:policy/prod.yaml: apiVersion: "" is not known`) {
		t.Errorf("one that cannot be read: %v", err)
	}
	w.push("back to v1", version("v1", halfThenGate))
	p.await("back", func(s rollout.State) bool { return s.Release == nil && s.Phase == rollout.Healthy })
	w.pushPolicy(policyOf(w.ns, ""))
	p.await("let again", func(s rollout.State) bool { return s.Held == nil })
}

// TestPolicyOfAKindThatOnlyTheClusterKnows applies the policy to a cluster-scoped kind whose scope only the cluster
// knows, whatever the configuration allows.
func TestPolicyOfAKindThatOnlyTheClusterKnows(t *testing.T) {
	files := version("v1", halfThenGate)
	w := newLoopWorld(t, files)
	group := w.app + ".example.com"
	w.namespaces = nil
	w.createCRD(group, "Cluster")
	w.repo.CommitFiles("all kinds", map[string]string{configFile: w.config("- path: apps/*\n  clusterResources: ['*']")})
	files["odd.yaml"] = "apiVersion: " + group + "/v1\nkind: Odd\nmetadata: {name: APP}\n"
	files["kustomization.yaml"] = strings.Replace(files["kustomization.yaml"], "[", "[odd.yaml, ", 1)
	commit := w.push("an object without a namespace", files)
	w.keys.policy.ref = "platform:policy/prod.yaml"
	w.pushPolicy(policyOf(w.ns, ""))
	p := w.start()
	s := p.await("held", func(s rollout.State) bool { return s.Held != nil })
	if s.Held.Reason != rollout.HeldPolicy || !strings.Contains(s.Held.Message, "project web, rule clusterResources: may have no "+group+"/Odd") || w.hasDeployment() {
		t.Fatalf("held %+v, written: %t", s.Held, w.hasDeployment())
	}
	w.pushPolicy(policyOf(w.ns, ", clusterResources: ["+group+"/Odd]"))
	p.awaitHealthy(commit)
}

// TestUnsignedPolicy uses --verify-commits: a head of the policy's branch without a valid signature is ignored, whether
// it allows more or less. The last valid policy stays in force, a process without one lets nothing advance, and both
// report the reason.
func TestUnsignedPolicy(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	key := w.repo.NewKeyFile()
	w.keys.commits, w.keys.policy.ref = w.list(key), "platform:policy/prod.yaml"
	w.signs(key)
	first := w.push("signed", map[string]string{"note": "1"})
	w.pushPolicy(policyOf("elsewhere", ""))
	p := w.start()
	p.await("held", func(s rollout.State) bool { return s.Held != nil && s.Held.Reason == rollout.HeldPolicy })
	doesNotCount := func(why string) {
		t.Helper()
		want := "policy: commit " + rollout.ShortID(w.repo.Ref("platform")) + " of platform does not count: "
		for range 3 {
			if err := p.passes(1); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), why) {
				t.Errorf("%v, want %s … %s", err, want, why)
			}
		}
	}
	for signer, why := range map[string]string{"": "not signed", w.repo.NewKeyFile(): "key is not in the file of --verify-commits"} {
		w.signs(signer)
		w.pushPolicy(policyOf(w.ns, ""))
		for range 2 {
			doesNotCount(why)
			if s := w.state(); w.hasDeployment() || s.Held == nil || s.Held.Reason != rollout.HeldPolicy {
				t.Errorf("written: %t, held %+v", w.hasDeployment(), s.Held)
			}
			p.end()
			p = w.start() // and has no valid one
		}
	}
	w.signs(key)
	w.pushPolicy(policyOf(w.ns, ""))
	p.awaitHealthy(first)

	w.signs("")
	w.pushPolicy(policyOf("elsewhere", ""))
	w.signs(key)
	second := w.push("v2", version("v2", halfThenGate))
	doesNotCount("not signed")
	if s := w.state(); s.Held != nil || s.Release != nil {
		t.Errorf("held %+v, release %+v", s.Held, s.Release)
	}
	w.pushPolicy(policyOf(w.ns, ""))
	p.awaitPaused(second)
}

// TestForbiddenPromotionIsShown records that the policy forbids a full promotion, so that commands without the policy
// can show it: get, and its JSON. A valid promotion of one step ends that.
func TestForbiddenPromotionIsShown(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	w.keys.policy.file = filepath.Join(t.TempDir(), "policy.yaml")
	rules := policyOf(w.ns, ", rollouts: {forbid: [promoteFull]}")
	if err := os.WriteFile(w.keys.policy.file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	commit := w.push("v2", version("v2", halfThenGate))
	before := p.awaitPaused(commit)
	file := rollout.PromotionPath("test", w.app)
	push := func(through string) {
		t.Helper()
		decision := rollout.Promotion{Release: before.Release.Hash, Decision: rollout.Promote, Through: through}
		data, err := decision.Encode()
		if err != nil {
			t.Fatal(err)
		}
		w.edit("main", map[string]string{file: string(data)})
	}
	push(rollout.Full)
	s := p.await("it is ignored", func(s rollout.State) bool { return s.Ignored != "" })
	const why = "project web, rule rollouts.forbid: promoteFull does not count"
	w.wantText(w.command(exitOK, "get", w.app), "Warning    ignored:", "project web, rule rollouts.forbid:", "Paused")
	w.wantText(w.command(exitOK, "get", w.app, "-o", "json"), "ignored: "+file+": "+why)
	if s.Phase != rollout.Paused || s.Serial != before.Serial {
		t.Errorf("%s, serial %d, want %d: each Deployment would be written to", s.Phase, s.Serial, before.Serial)
	}
	push("2")
	p.awaitHealthy(commit)
	p.await("nothing is ignored", func(s rollout.State) bool { return s.Ignored == "" })
	if shown := w.command(exitOK, "get", w.app); strings.Contains(shown, "ignored") {
		t.Errorf("it is over:\n%s", shown)
	}
}

// TestPolicyFlags refuses invalid flags at the start.
func TestPolicyFlags(t *testing.T) {
	for want, o := range map[string]policyOptions{
		"--policy and --policy-ref exclude each other":            {file: "a", ref: "b:c"},
		`--policy-ref "platform" is not branch:path`:              {ref: "platform"},
		`--policy-ref ":a" is not branch:path`:                    {ref: ":a"},
		"--policy-ref names branch main, the branch of the apps":  {ref: "main:a"},
		"--policy: open /no/such/file: no such file or directory": {file: "/no/such/file"},
	} {
		if err := o.check("main"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
}

// TestProjectOfAnApp writes an app with its project's account and accepts its project's promoters, whatever its entry
// and --promoters say. It has a real API server and real signatures.
func TestProjectOfAnApp(t *testing.T) {
	for name, theirs := range map[string]bool{"by a promoter of the project": true, "by another promoter": false} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			key, other := w.repo.NewKeyFile(), w.repo.NewKeyFile()
			w.keys.promoters = w.list(other)
			w.keys.policy.file = filepath.Join(t.TempDir(), "policy.yaml")
			rules := policyOf(w.ns, ", serviceAccount: "+w.ns+"/deployer, promoters: "+w.list(key))
			if err := os.WriteFile(w.keys.policy.file, []byte(rules), 0o600); err != nil {
				t.Fatal(err)
			}
			w.repo.CommitFiles("an account", map[string]string{configFile: w.config("- path: apps/*\n  serviceAccount: default/strong")})
			p := w.start()
			s := p.await("held", func(s rollout.State) bool { return s.Held != nil })
			if s.Held.Reason != rollout.HeldForbidden || !strings.Contains(s.Held.Message, `User "system:serviceaccount:`+w.ns+`:deployer" cannot patch resource`) {
				t.Fatalf("held %+v", s.Held)
			}
			w.grantDeployer()
			p.awaitHealthy(w.repo.Head())
			commit := w.push("v2", version("v2", halfThenGate))
			p.awaitPaused(commit)
			if !theirs {
				key = other
			}
			w.signs(key)
			w.repo.Merge("gitrollout/promote/test/" + w.app)
			if !theirs {
				p.awaitHeld(rollout.PromotionPath("test", w.app), "does not count", "git commit -S")
				return
			}
			p.awaitHealthy(commit)
		})
	}
}
