package traffic

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// weight is the percentage of requests that a measured new version gets.
const weight = 20

// story is one app's new version and the expected result.
type story struct {
	measured
	next  string  // the new version
	rate  float64 // users' requests per second
	fails float64 // share of failing requests to the new version
	base  float64 // share of failing requests to the old version
	all   bool    // the new version gets all requests instead of 20 %
	back  string  // the metric that rejects the new version; "": it is promoted
	// within is the expected time from the new version's first bad request to the version's last request: `some`, plus the time that the
	// metric's fields allow. The test only logs this time, because a busy machine may take longer.
	within time.Duration
}

// `some` is the time for two scrapes (a rate needs two), a pass, a push and the proxy. Stories add `counted` if each pod fails only once in
// four seconds: Prometheus does not count the first failure, which creates the counter.
const (
	some    = 2*scrape + 2*time.Second
	counted = 4 * time.Second
)

func stories(t *testing.T) []story {
	set := "setWeight: 20"
	in := []string{set, inline, "pause: {}"}
	behind := "analysis: {" + templates + "}"
	while := []string{set, "pause: {duration: 80s}"}
	compare := `compare: {to: stable}`
	return []story{
		{measured: measured{name: "fails 20 %", steps: in, metric: failuresBelow("0.05", "interval: 1s", "count: 20", "failureLimit: 2")},
			next: "v2-fail0.2", rate: 50, fails: 0.2, back: "errors", within: 3*time.Second + some},
		{measured: measured{name: "fails 5 %", steps: while, fields: behind, metric: failuresBelow("0.01", "interval: 1s", "failureLimit: 2")},
			next: "v2-fail0.05", rate: 50, fails: 0.05, back: "errors", within: 3*time.Second + counted + some},
		// The new version gets 20 requests per second, and fails one every 2.5 s. If stable has no failures, Fisher's test needs about 9
		// failures.
		{measured: measured{name: "fails 2 %", steps: while, fields: behind,
			metric: metric("errors", both, "{{elapsed}}s", "interval: 2s", "minSamples: 50", compare)},
			next: "v2-fail0.02", rate: 100, fails: 0.02, back: "errors", within: 30*time.Second + some},
		// The new version gets 50 requests per second, and fails one every 4 s.
		{measured: measured{name: "fails 0.5 %", steps: in,
			metric: metric("errors", both, "5m", "interval: 5s", "count: 24", "minSamples: 50", compare)},
			next: "v2-fail0.005", rate: 250, fails: 0.005, back: "errors", within: 60*time.Second + some},
		{measured: measured{name: "slow", steps: in, metric: metric("latency", slowness, "10s", "interval: 1s", "count: 20", "failureLimit: 2",
			"onNoData: wait", "failureCondition: result[0] >= 0.25")},
			next: "v2-latency300ms", rate: 50, back: "latency", within: 3*time.Second + some},
		{measured: measured{name: "switched, fails 20 %", switches: true, fields: "postPromotionAnalysis: {" + templates + "}",
			metric: failuresBelow("0.05", "interval: 1s", "count: 20", "failureLimit: 2")},
			next: "v2-fail0.2", rate: 50, fails: 0.2, all: true, back: "errors", within: 3*time.Second + some},
		{measured: measured{name: "good", steps: []string{set, inline}, fields: behind,
			metric: failuresBelow("0.01", "interval: 1s", "count: 8") +
				metric("against-stable", both, "5m", "interval: 1s", "count: 8", "minSamples: 50", compare) +
				metric("as-shipped", shipped(t), "", "interval: 1s", "count: 8", "minSamples: 50", compare)},
			next: "v2", rate: 50},
		{measured: measured{name: "bad day, compared", version: "v1-fail0.05", steps: []string{set, inline},
			metric: metric("errors", both, "5m", "interval: 2s", "count: 8", "minSamples: 50", compare)},
			next: "v2-fail0.05", rate: 100, fails: 0.05, base: 0.05},
		{measured: measured{name: "bad day, not compared", version: "v1-fail0.05", steps: in,
			metric: failuresBelow("0.01", "interval: 1s", "count: 20", "failureLimit: 2")},
			next: "v2-fail0.05", rate: 50, fails: 0.05, base: 0.05, back: "errors", within: 3*time.Second + counted + some},
	}
}

// TestMeasured runs the tests with measurements. They run in parallel, because they check failed requests and not shares.
func TestMeasured(t *testing.T) {
	t.Run("good and bad releases", goodAndBadReleases)
	t.Run("odd servers", oddServers)
	t.Run("killed", killedWhileMeasuring)
	t.Run("Prometheus is away", prometheusIsAwayForAWhile)
	t.Run("latency without a threshold", latencyWithoutThreshold)
	t.Run("plan", planMeasuresTraffic)
}

// goodAndBadReleases releases the new versions of all stories at the same time. Bad versions are rolled back
// automatically. The good version is promoted, and so is the version that fails as often as the stable version.
//
// While a bad version serves, the share of failed requests is at most the version's failure rate times its weight.
func goodAndBadReleases(t *testing.T) {
	tier.All(t)
	t.Parallel()
	all := stories(t)
	w := newMeasured(t, rollout.Mapped(all, func(s story) measured { return s.measured })...)
	for i, a := range w.apps {
		a.load = proxytest.StartLoad(t, all[i].rate, proxytest.Always(a.user()))
	}
	time.Sleep(5 * time.Second) // collects stable's requests for the comparison
	next := map[string]string{}
	for _, s := range all {
		next[s.name] = s.next
	}
	_, pushed := w.push("the new versions", func(s shop) shop { s.version = next[s.name]; return s })
	for i, s := range all {
		if a := w.apps[i]; s.back == "" {
			a.awaitReleased(pushed)
		} else {
			a.awaitRejected(pushed)
		}
	}
	for i, s := range all {
		results := w.apps[i].load.Stop().Where(func(r proxytest.Result) bool { return !r.At.Before(pushed) })
		if s.back == "" {
			w.apps[i].checkThrough(s, pushed, results)
		} else {
			w.apps[i].checkBack(s, pushed, results)
		}
	}
	for i, s := range all {
		if s.name == "fails 20 %" || s.name == "good" {
			w.apps[i].checkBacktest(s.back != "")
		}
	}
}

// bad reports whether the new version got a request, and failed or delayed the request.
func (s story) bad(r proxytest.Result) bool {
	return r.Version == s.next && (r.Failed() || s.back == "latency")
}

func (a *app) checkBack(s story, pushed time.Time, results proxytest.Results) {
	t := a.w.t
	bad := results.Where(s.bad)
	served := results.Where(func(r proxytest.Result) bool { return r.Version == s.next })
	if len(bad) == 0 {
		t.Errorf("%s: of %d requests none was bad", a, len(results))
		return
	}
	first, last := bad[0].At, served[len(served)-1].At
	during := results.Between(served[0].At, last.Add(time.Nanosecond))
	took := last.Sub(first)
	t.Logf("%-22s %5.1f s from the first bad request to the last one to the new version (expected %s); "+
		"meanwhile %d of %d requests were bad: %.2f %%; it had %d; %.1f s from the push",
		a, took.Seconds(), s.within, len(bad), len(during), 100*float64(len(bad))/float64(len(during)), len(served), last.Sub(pushed).Seconds())
	share := s.fails
	if s.back == "latency" {
		share = 1
	}
	if !s.all {
		share *= weight / 100.0
	}
	if got, most := float64(len(bad)), share*float64(len(during)); got > 1.5*most+5 {
		t.Errorf("%s: %v of %d requests were bad, want at most %.0f", a, got, len(during), most)
	}
	if other := results.Where(func(r proxytest.Result) bool { return r.Failed() && r.Version != s.next }); s.base == 0 && len(other) > 0 {
		t.Errorf("%s: %d requests failed that were not the new version's: %s", a, len(other), other[0])
	}
	state := a.state()
	if len(state.Rejected) != 1 || !strings.Contains(state.Rejected[0].Reason, "metric "+s.back) ||
		!strings.Contains(state.Rejected[0].Reason, "last values: ") {
		t.Errorf("%s: Git says %+v", a, state.Rejected)
	}
	if len(state.Analyses) != 1 || state.Analyses[0].Phase != rollout.AnalysisFailed {
		t.Errorf("%s: the evidence in Git is %+v", a, state.Analyses)
	}
	if a.w.repo.Ref("gitrollout/revert/test/"+a.name) == "" {
		t.Errorf("%s: no revert is proposed", a)
	}
}

func (a *app) checkThrough(s story, pushed time.Time, results proxytest.Results) {
	t := a.w.t
	failures := results.Failures()
	t.Logf("%-22s through after %.1f s; %d of %d requests failed", a, a.awaitReleased(pushed).at.Sub(pushed).Seconds(),
		len(failures), len(results))
	if s.fails == 0 && len(failures) > 0 {
		t.Errorf("%s: %d requests failed: %s", a, len(failures), failures[0])
	}
	for _, r := range a.runs() {
		if r.Phase != rollout.AnalysisSuccessful {
			t.Errorf("%s: analysis %s is %s", a, r.Name, r.Phase)
		}
	}
	if state := a.state(); len(state.Rejected) > 0 || results[len(results)-1].Version != s.next {
		t.Errorf("%s: rejected %+v, and the last request went to %s", a, state.Rejected, results[len(results)-1].Version)
	}
}
