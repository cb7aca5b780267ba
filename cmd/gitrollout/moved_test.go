package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestMovedAppIsSeenWhereItIs moves an app to another folder and namespace in Git while no reconciler runs. The app's record still has the
// commit before the move, so commands must show the app in its old folder and namespace.
func TestMovedAppIsSeenWhereItIs(t *testing.T) {
	w, p, two := newPausedWorld(t)
	must(t, p.passes(3))
	p.end()
	w.repo.Pull()
	w.repo.Git("mv", "apps/"+w.app, "elsewhere")
	config := w.config("- path: elsewhere\n  name: " + w.app)
	w.repo.CommitFiles("another folder and another namespace", map[string]string{
		configFile: strings.ReplaceAll(config, "namespace: "+w.ns, "namespace: other"),
	})

	command := func(args ...string) (string, int) {
		t.Helper()
		var out, errs bytes.Buffer
		args = append(args, "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.api.kubeconfig)
		code := run(t.Context(), args, strings.NewReader(""), &out, &errs)
		t.Log(errs.String())
		return out.String(), code
	}
	out, code := command("get", w.app, "-o", "json")
	var a status.App
	if err := json.Unmarshal([]byte(out), &a); err != nil || code != 0 {
		t.Fatalf("get: exit code %d, %v", code, err)
	}
	if a.Phase != rollout.Paused || a.Source == nil || a.Source.ID != two.Release.Commit || a.Source.Subject != "v2" {
		t.Errorf("get: it is %s at %+v, want Paused at %s", a.Phase, a.Source, two.Release.Commit)
	}
	if len(a.Workloads) != 1 || a.Workloads[0].Workload != w.ns+"/"+w.app || len(a.Workloads[0].Steps) == 0 || a.Workloads[0].Ready == 0 {
		t.Errorf("get: its workloads are %+v", a.Workloads)
	}
	out, code = command("render", w.app, "--with-state")
	if code != 0 || strings.Count(out, "namespace: "+w.ns) == 0 || strings.Contains(out, "namespace: other") {
		t.Errorf("render --with-state: exit code %d, and the desired objects are\n%s", code, out)
	}
	if out, code := command("diff", w.app); code != 0 || out != "" {
		t.Errorf("diff: exit code %d, although the cluster holds the desired objects:\n%s", code, out)
	}
}
