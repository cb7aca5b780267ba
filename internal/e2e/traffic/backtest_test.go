package traffic

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkBacktest replays the app's newest release with the app's own template. `analysis backtest` reads the record in Git, the real
// Prometheus's history and the cluster's Secret. The command's verdict must match the release's outcome.
func (a *app) checkBacktest(rejected bool) {
	t := a.w.t
	template := filepath.Join(a.w.repo.Work, "apps", a.name, "template.yaml")
	cmd := a.w.gitrollout("analysis", "backtest", "errors", a.name, "-f", template, "--arg", "hash=Latest", "-n", a.name, "-o", "json")
	out, err := cmd.Output()
	if exit, is := err.(*exec.ExitError); is {
		t.Fatalf("%s: %v: %s", a, err, exit.Stderr)
	}
	must(t, err)
	var got struct {
		Releases []struct{ Subject, Outcome, Verdict, Message string }
	}
	must(t, json.Unmarshal(out, &got))
	if len(got.Releases) == 0 {
		t.Fatalf("%s: no release is replayed: %s", a, out)
	}
	last := got.Releases[len(got.Releases)-1]
	isGood := last.Verdict == "Successful" || last.Verdict == "Stopped" && last.Message == ""
	if last.Subject != "the new versions" || rejected != (last.Verdict == "Failed") || rejected == isGood {
		t.Errorf("%s: the replay of the newest release is %+v", a, last)
	}
	if rejected && !strings.Contains(last.Message, "metric errors") {
		t.Errorf("%s: the replay gives the reason %q", a, last.Message)
	}
}
