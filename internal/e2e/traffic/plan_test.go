package traffic

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/tier"
)

// planMeasuresTraffic checks that a plan with a cluster takes the rate of requests and the share of bad requests from the real Prometheus.
// If Prometheus does not answer, the plan shows a line for each of three rates.
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
	planned := func() (all []detection) {
		cmd := w.gitrollout("plan", "--context", "local", "-o", "json")
		cmd.Dir = w.repo.Work
		out, err := cmd.Output()
		if exit, is := err.(*exec.ExitError); is {
			t.Fatalf("%v: %s", err, exit.Stderr)
		}
		must(t, err)
		var got struct {
			Clusters []struct {
				Apps []struct{ Detection []detection }
			}
		}
		must(t, json.Unmarshal(out, &got))
		return got.Clusters[0].Apps[0].Detection
	}
	began := time.Now()
	var got []detection
	for got = planned(); len(got) != 1 || got[0].Rate < 2; got = planned() { // the rate is the mean of five minutes
		if time.Since(began) > timeout {
			t.Fatalf("the plan shows %+v", got)
		}
	}
	most := 1.2*50*(time.Since(w.began).Seconds()/300) + 1
	t.Logf("%s after the begin: %+v", time.Since(w.began).Round(time.Second), got)
	if got[0].Rate > most || got[0].Stable < 0.1 || got[0].Stable > 0.3 {
		t.Errorf("the plan shows %+v, want at most %.1f requests a second, of which 20 %% are bad", got, most)
	}
	w.prometheus.stop()
	if got := planned(); len(got) != 3 || got[0].Rate != 1 || got[0].Stable != 0.01 {
		t.Errorf("without Prometheus, the plan shows %+v", got)
	}
}
