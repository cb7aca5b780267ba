package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
)

// talking returns a version whose pods have an init container, and a container that prints the tag of the version.
func talking(tag string) map[string]string {
	app := `- {name: app, image: "APP:` + tag + `"`
	say := func(text string) string { return `, env: [{name: LOCALCLUSTER_LOG, value: "` + text + `"}]}` }
	files := version(tag, halfThenGate)
	files["app.yaml"] = strings.Replace(files["app.yaml"], "      containers:\n      "+app+"}",
		"      initContainers:\n      - {name: migrate, image: migrate"+say("migrated "+tag)+"\n"+
			"      containers:\n      "+app+say("old\\nbegun "+tag), 1)
	return files
}

// appendLog adds lines at the end of the logs of a version's running pods. A later call replaces these lines.
func (w *loopWorld) appendLog(tag, text string) {
	w.Helper()
	pods := w.kube.Kube.CoreV1().Pods(w.ns)
	all, err := pods.List(w.Context(), metav1.ListOptions{})
	must(w, err)
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"localcluster/log": %q}}}`, text)
	for _, p := range all.Items {
		if p.Spec.Containers[0].Image == w.app+":"+tag {
			must(w, errorOf(pods.Patch(w.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{})))
		}
	}
}

// followed starts a command that follows logs. It returns the output, and a function that interrupts the command and returns its exit code.
func (w *loopWorld) followed(args ...string) (*safeBuffer, func() exitCode) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	out, done := &safeBuffer{}, make(chan exitCode, 1)
	go func() { done <- exitCode(run(ctx, args, strings.NewReader(""), out, out)) }()
	w.Cleanup(func() {
		if stop(); w.Failed() {
			w.Logf("gitrollout %s prints:\n%s", strings.Join(args, " "), out)
		}
	})
	return out, func() exitCode { stop(); return <-done }
}

// TestLogs checks the logs of each version during a release. The user has the ClusterRole view in one namespace.
func TestLogs(t *testing.T) {
	w, p := newHealthyWorld(t, talking("v1"))
	viewer := w.viewer()
	args := func(kubeconfig string, more ...string) []string {
		return append([]string{"logs", w.app, "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", kubeconfig}, more...)
	}
	logs := func(want exitCode, more ...string) string {
		t.Helper()
		return wantExit(t, want, args(viewer, more...)...)
	}
	count := func(text, part string, want int) {
		t.Helper()
		if got := strings.Count(text, part); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", part, got, want, text)
		}
	}
	stable := logs(exitOK, "--stable")
	count(stable, " migrate | migrated v1\n", 2)
	count(stable, " app | old\n", 2)
	count(stable, " app | begun v1\n", 2)
	// No note about missing rights is printed. The only other lines are progress messages on a slow machine.
	count(stable, "\n", 6+strings.Count(stable, "looking at the cluster"))
	count(logs(exitOK, "--tail", "1"), " app | ", 2)
	count(logs(exitOK, "--tail", "0"), " | ", 0)
	w.wantText(logs(exitFailed, "--canary"), "app "+w.app+" has no pods of the new version, because no release is in flight; "+
		"these versions run: stable h1-", "(2 pods)")

	// While both commands follow, the release adds a pod, and one log gets another line.
	canary, endCanary := w.followed(args(viewer, "--canary", "-f", "--tail", "0")...)
	other, endStable := w.followed(args(viewer, "--stable", "-f")...)
	await(t, "the note about missing pods", func() bool { return strings.Contains(canary.String(), "; waiting for pods") })
	await(t, "the stable pods", func() bool { return strings.Count(other.String(), " app | begun v1\n") == 2 })
	s := p.awaitPaused(w.push("v2", talking("v2")))
	await(t, "the new pod", func() bool { return strings.Contains(canary.String(), " app | begun v2\n") })
	w.appendLog("v2", "grown")
	await(t, "the new line", func() bool { return strings.Contains(canary.String(), " app | grown\n") })
	count(logs(exitOK, "--canary"), " | begun v1\n", 0)
	count(logs(exitOK, "--canary"), " | grown\n", 1)
	count(logs(exitOK, "--stable"), "v2\n", 0)
	count(logs(exitOK), " | begun v", 3)
	count(other.String(), "v2\n", 0)

	// After the promotion, the new pod counts as stable. After a container's crash, the command follows the container's next run.
	w.decide(s.Release.Hash, "promote", "")
	p.awaitHealthy(s.Release.Commit)
	w.appendLog("v2", "grown\npromoted")
	await(t, "the promoted pod", func() bool { return strings.Contains(other.String(), " app | promoted\n") })
	w.push("v3", talking("v3-crash"))
	await(t, "two runs", func() bool {
		_ = p.passes(1)
		return strings.Count(canary.String(), " app | begun v3-crash\n") >= 2
	})
	for name, end := range map[string]func() exitCode{"canary": endCanary, "stable": endStable} {
		if code := end(); code != exitOK {
			t.Errorf("--%s -f: exit code %d after an interruption", name, code)
		}
	}
	text := canary.String()
	count(text, "v1\n", 0)
	// Perhaps the second pod of v2 is still listed as canary, and the text has its lines. But no pod's line must repeat.
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, " v2\n") || strings.HasSuffix(line, " | grown\n") {
			count(text, line, 1)
		}
	}
}

// TestLogsOverABrokenConnection checks that each line is printed exactly once if the connection breaks while logs are followed.
func TestLogsOverABrokenConnection(t *testing.T) {
	w, p := newHealthyWorld(t, talking("v1"))
	p.end()
	connection, cut := context.WithCancel(t.Context())
	defer cut()
	w.api.hold(func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/log") && connection.Err() == nil {
			ctx, stop := context.WithCancel(r.Context())
			context.AfterFunc(connection, stop)
			*r = *r.WithContext(ctx)
		}
	})
	out, end := w.followed("logs", w.app, "-f", "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.api.kubeconfig)
	await(t, "all pods", func() bool { return strings.Count(out.String(), " app | begun v1\n") == 2 })
	cut()
	w.appendLog("v1", "after the break")
	await(t, "the later lines, and the lines of init containers", func() bool {
		return strings.Count(out.String(), " app | after the break\n") == 2 && strings.Count(out.String(), " migrate | migrated v1\n") >= 2
	})
	for _, line := range []string{" migrate | migrated v1\n", " app | old\n", " app | begun v1\n"} {
		if n := strings.Count(out.String(), line); n != 2 {
			t.Errorf("%q is there %d times", line, n)
		}
	}
	if code := end(); code != exitOK {
		t.Errorf("exit code %d after an interruption", code)
	}
}

// TestLogsWithoutTheRight checks that the error has the API server's message, and names the right that the user needs.
func TestLogsWithoutTheRight(t *testing.T) {
	w, p := newHealthyWorld(t, talking("v1"))
	p.end()
	kubeconfig := w.limited()
	for _, more := range []string{"", " -f", " --stable -f --tail 3"} {
		line := "logs " + w.app + " --cluster test --repo " + w.server.URL + " --kubeconfig " + kubeconfig + more
		w.wantText(wantExit(t, exitCluster, strings.Fields(line)...),
			`cannot get resource "pods/log" in API group "" in the namespace "`+w.ns+`"`,
			"allow this user to get pods/log, as the ClusterRole view does")
	}

	// The record has the UID of kube-system, but the user cannot read this namespace. Without Git, the versions are read from the cluster.
	elsewhere := rollout.Cluster{Cluster: "test", UID: "uid-of-kube-system", Source: rollout.Source{Repo: w.server.URL, Branch: "main"}}
	w.edit(stateBranch, map[string]string{rollout.ClusterPath: encoded(t, elsewhere)})
	viewer := w.viewer()
	text := wantExit(t, exitOK, "logs", w.app, "--cluster", "test", "--repo", w.server.URL, "--kubeconfig", viewer)
	w.wantText(text, "cluster not verified", " app | begun v1\n")
	text = wantExit(t, exitOK, "logs", w.app, "--stable", "--cluster", "test", "--repo", "http://127.0.0.1:1/x.git", "--kubeconfig", viewer,
		"--namespaces", w.ns)
	w.wantText(text, "shown from the cluster alone", "connection refused", " app | begun v1\n")
}
