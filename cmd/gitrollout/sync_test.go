package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestSync checks that, after `gitrollout sync`, a reconciler with hourly polls reads Git at once. A wrong secret has no effect. During a
// release, sync reports a pushed commit that cannot be rendered.
func TestSync(t *testing.T) {
	w, p := runningWorld(t, time.Hour)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	stop, err := serveHooks(listener, "s3cret", p.loop, p.Log)
	must(t, err)
	t.Cleanup(stop)
	secret := filepath.Join(t.TempDir(), "secret")
	sync := func(want exitCode, with string, apps ...string) string {
		t.Helper()
		writeFile(t, secret, with)
		return wantExit(t, want, append([]string{"sync", "--repo", w.server.URL, "--cluster", "test", "--webhook-secret-file", secret,
			"--webhook", "http://" + listener.Addr().String() + "/webhook"}, apps...)...)
	}
	commit := w.pushVersion("v2")
	polls := "main is at " + rollout.ShortID(commit) + ", and the reconciler reads Git every 30s"
	shown := wantExit(t, exitOK, "get", w.app, "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.viewer())
	w.wantText(strings.Join(strings.Fields(shown), " "), "Waits for the next poll: "+polls)
	w.wantText(sync(exitFailed, "guess"), "401 Unauthorized", "use the secret of the reconciler; "+polls)
	if s := w.state(); s.Release != nil {
		t.Errorf("a release without a poll: %+v", s.Release)
	}
	w.wantText(sync(exitOK, "s3cret\n"), "asked the reconciler to read Git now; "+polls)
	w.wantText(sync(exitOK, "s3cret", w.app), "\n"+w.app+": up to date with "+rollout.ShortID(commit)+"\n")
	if s := w.state(); s.Release == nil || s.Release.Commit != commit {
		t.Errorf("after sync %s, the record has %+v", w.app, s.Release)
	}
	w.repo.Git("push", "-q", "origin", "HEAD:refs/heads/next")
	w.wantText(sync(exitFailed, "s3cret", w.app, "--branch", "next"), "200 OK: ignored: push to branch next, this reconciler follows main")
	w.push("a commit that cannot be rendered", map[string]string{"kustomization.yaml": "resources: [gone.yaml]\n"})
	w.wantText(sync(exitHeld, "s3cret", w.app), "\n"+w.app+": held: ", "gone.yaml")
}
