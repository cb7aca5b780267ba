package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// errorOf returns only the error of a call that also has another result.
func errorOf(_ any, err error) error { return err }

// writeFile writes a file, and creates its folder if necessary.
func writeFile(tb testing.TB, path, content string) {
	tb.Helper()
	must(tb, os.MkdirAll(filepath.Dir(path), 0o755))
	must(tb, os.WriteFile(path, []byte(content), 0o644))
}

// encoded returns the content of a record's file in Git.
func encoded(tb testing.TB, record interface{ Encode() ([]byte, error) }) string {
	tb.Helper()
	data, err := record.Encode()
	must(tb, err)
	return string(data)
}

// wantExit runs gitrollout with the given arguments, checks the exit code, and returns the output.
func wantExit(t testing.TB, want exitCode, args ...string) string {
	t.Helper()
	out := &safeBuffer{}
	if got := run(t.Context(), args, strings.NewReader(""), out, out); exitCode(got) != want {
		t.Errorf("gitrollout %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, want, out)
	}
	return out.String()
}

// command runs gitrollout on the test's repository, without access to the cluster. It checks the exit code and returns the output.
func (w *loopWorld) command(want exitCode, args ...string) string {
	w.Helper()
	return wantExit(w, want, append(args, "--repo", w.server.URL, "--cluster", "test")...)
}

// clusterCommand runs gitrollout on the test's repository and cluster. It checks the exit code and returns the output.
func (w *loopWorld) clusterCommand(want exitCode, args ...string) string {
	w.Helper()
	return w.command(want, append(args, "--kubeconfig", w.api.kubeconfig)...)
}

// wantText checks that a text contains all parts.
func (w *loopWorld) wantText(text string, parts ...string) {
	w.Helper()
	compare.Contains(w, text, parts...)
}

// wantError checks that the text of an error contains all parts.
func (w *loopWorld) wantError(err error, parts ...string) {
	w.Helper()
	w.wantText(fmt.Sprint(err), parts...)
}

// wantImage checks the image tag of the live Deployment.
func (w *loopWorld) wantImage(tag string) {
	w.Helper()
	if got := w.image(); got != tag {
		w.Errorf("the Deployment asks for %s, want %s", got, tag)
	}
}

// wantPods checks the names of the pods in the namespace, by image tag.
func (w *loopWorld) wantPods(pods map[string][]string) {
	w.Helper()
	compare.CheckNamed(w, "pods", pods, w.pods())
}

// wantNoWritesSince checks that the API server got no writes after the first n.
func (w *loopWorld) wantNoWritesSince(n int) {
	w.Helper()
	if made := w.api.since(n); len(made) > 0 {
		w.Errorf("the cluster was written to: %v", made)
	}
}

// wantBranch checks that a branch is at the given commit, or does not exist if commit is "".
func (w *loopWorld) wantBranch(branch, commit string) {
	w.Helper()
	if now := w.repo.Ref(branch); now != commit {
		w.Errorf("%s is at %q, want %q", branch, now, commit)
	}
}

// wantRecorded checks that the state branch is at the given commit.
func (w *loopWorld) wantRecorded(commit string) {
	w.Helper()
	w.wantBranch(stateBranch, commit)
}

// wantHistory checks the subjects of the state commits after the commit since, oldest first. Each must begin with its text in want.
func (w *loopWorld) wantHistory(since string, want ...string) {
	w.Helper()
	got := w.history()
	if since != "" {
		n := strings.Count(w.repo.InBare("rev-list", since+".."+stateBranch), "\n") + 1
		got = got[:n]
	}
	slices.Reverse(got)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		w.Errorf("recorded:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// wantNoWrites makes n passes, and checks that they write nothing to the API server.
func (p *loopProcess) wantNoWrites(n int) {
	p.w.Helper()
	before := p.w.api.count()
	p.passWell(n)
	p.w.wantNoWritesSince(before)
}

// wantUnmoved makes n passes, and checks that they return no errors and do not move the branch.
func (p *loopProcess) wantUnmoved(branch string, n int) {
	p.w.Helper()
	before := p.w.repo.Ref(branch)
	p.passWell(n)
	p.w.wantBranch(branch, before)
}

// wantHeld makes passes until the app is held. It checks that the message contains the words, and checks the reason unless reason is "".
func (p *loopProcess) wantHeld(reason rollout.HeldReason, words ...string) rollout.State {
	p.w.Helper()
	return p.wantHeldOf(p.w.app, reason, words...)
}

func (p *loopProcess) wantHeldOf(app string, reason rollout.HeldReason, words ...string) rollout.State {
	p.w.Helper()
	s := p.awaitOf(app, app+" held", isHeld)
	if reason != "" && s.Held.Reason != reason {
		p.w.Errorf("held for %s, want %s: %s", s.Held.Reason, reason, s.Held.Message)
	}
	p.w.wantText(s.Held.Message, words...)
	return s
}

// wantRejected makes passes until a rejected release has been rolled back. The record must have one rejection, and its reason all words.
func (p *loopProcess) wantRejected(words ...string) {
	p.w.Helper()
	s := p.awaitPhase(rollout.Degraded)
	if len(s.Rejected) != 1 {
		p.w.Fatalf("rejected are %+v, want one release", s.Rejected)
	}
	p.w.wantText(s.Rejected[0].Reason, words...)
}

func isHeld(s rollout.State) bool  { return s.Held != nil }
func notHeld(s rollout.State) bool { return s.Held == nil }
