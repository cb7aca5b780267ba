package traffic

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/tier"
)

// planMeasuresTraffic runs `plan` and `validate` with --context. Both take the rate of requests and the share of bad requests from the real
// Prometheus. If Prometheus does not answer, both show a note, and one line for each of three assumed rates.
func planMeasuresTraffic(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newMeasured(t, measured{name: "compared", version: "v1-fail0.2", steps: []string{"setWeight: 20", inline},
		metric: metric("errors", both, "{{elapsed}}s", "interval: 10s", "count: 10", "compare: {to: stable}")})
	a := w.app("compared")
	w.users(50)
	a.shop.version = "v2" // only in the working copy
	for name, content := range a.shop.files() {
		w.repo.Write(map[string]string{"apps/" + a.name + "/" + name: w.filled(a, content)})
	}
	type detection struct{ Rate, Stable float64 }
	own := "GITROLLOUT_PROMETHEUS_ADDRESS=" + w.prometheus.URL // validate asks only this address, and ignores addresses in files
	planned := func(command string, env ...string) (all []detection, note string) {
		cmd := w.gitrollout(command, "--context", "local", "-o", "json")
		var notes strings.Builder
		cmd.Dir, cmd.Stderr, cmd.Env = w.repo.Work, &notes, append(cmd.Env, env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, notes.String())
		}
		var got struct {
			Clusters []struct {
				Apps []struct{ Detection []detection }
			}
		}
		must(t, json.Unmarshal(out, &got))
		return got.Clusters[0].Apps[0].Detection, notes.String()
	}
	began := time.Now()
	commands := []string{"plan", "validate"}
	if got, note := planned("validate"); len(got) != 3 || !strings.Contains(note, "set GITROLLOUT_PROMETHEUS_ADDRESS") {
		t.Errorf("without an address, validate shows %+v and notes %q", got, note)
	}
	for _, command := range commands {
		got, _ := planned(command, own)
		for ; len(got) != 1 || got[0].Rate < 2; got, _ = planned(command, own) { // the rate is a mean over five minutes, so it rises slowly
			if time.Since(began) > timeout {
				t.Fatalf("%s shows %+v", command, got)
			}
		}
		most := 1.2*50*(time.Since(w.began).Seconds()/300) + 1
		t.Logf("%s after the begin, %s: %+v", time.Since(w.began).Round(time.Second), command, got)
		if got[0].Rate > most || got[0].Stable < 0.1 || got[0].Stable > 0.3 {
			t.Errorf("%s shows %+v, want at most %.1f requests a second, of which 20 %% are bad", command, got, most)
		}
	}
	w.prometheus.stop()
	for _, command := range commands {
		if got, note := planned(command, own); len(got) != 3 || got[0].Rate != 1 || got[0].Stable != 0.01 ||
			!strings.Contains(note, "metric errors: the plan assumes the traffic of shop") {
			t.Errorf("without Prometheus, %s shows %+v and notes %q", command, got, note)
		}
	}
}
