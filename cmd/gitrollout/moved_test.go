package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestMovedAppIsSeenWhereItIs moves an app's files to another folder and namespace while no reconciler runs. The app
// stays at the previous commit, and the commands must read it in the old folder, with the old namespace.
func TestMovedAppIsSeenWhereItIs(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	second := w.push("v2", version("v2", halfThenGate))
	p.awaitPaused(second)
	if err := p.passes(3); err != nil {
		t.Fatal(err)
	}
	p.end()
	w.repo.Pull()
	w.repo.Git("mv", "apps/"+w.app, "elsewhere")
	w.repo.Write(map[string]string{configFile: strings.ReplaceAll(w.config("- path: elsewhere\n  name: "+w.app), "namespace: "+w.ns, "namespace: other")})
	w.repo.Commit("another folder and another namespace")

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
	if a.Phase != rollout.Paused || a.Source == nil || a.Source.ID != second || a.Source.Subject != "v2" {
		t.Errorf("get: it is %s at %+v, want Paused at %s", a.Phase, a.Source, second)
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
