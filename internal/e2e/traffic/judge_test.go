package traffic

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// clients sends requests to the reporters of all apps and versions. Each key has the names of an app and a version.
type clients struct {
	rates     map[[2]string]int // requests for each scrape interval
	reporters map[[2]string]*reporter
}

// newClients starts a reporter for each rate. The reporters of version `slow` report slower requests.
func newClients(t *testing.T, slow string, rates map[[2]string]int) *clients {
	c := &clients{rates: rates, reporters: map[[2]string]*reporter{}}
	for key := range rates {
		factor := 1.0
		if key[1] == slow {
			factor = 1.2
		}
		c.reporters[key] = startReporter(t, "", factor)
	}
	return c
}

// send sends requests until the context ends. Their latencies are random, with the distribution of reporter.latency.
func (c *clients) send(ctx context.Context) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, r := range c.reporters {
		r.requests = 100_000
	}
	for ctx.Err() == nil {
		for key, r := range c.reporters {
			for range c.rates[key] {
				r.classic.Observe(r.latency(rng.IntN(r.requests)))
			}
		}
		select {
		case <-time.After(scrape):
		case <-ctx.Done():
		}
	}
}

// latencyWithoutThreshold releases two apps with the same strategy on a real control plane. Prometheus scrapes the latencies. The new
// version that is 20 % slower at the 99th percentile is rolled back. The new version that is as fast as stable, but gets less traffic, is
// promoted.
func latencyWithoutThreshold(t *testing.T) {
	tier.All(t)
	t.Parallel()
	const buckets = `sum by (le) (increase(http_request_duration_seconds_bucket{app="NS",pod_template_hash="{{args.hash}}"}[{{elapsed}}s]))`
	strategy := measured{plain: true, steps: []string{"setWeight: 50", inline},
		metric: metric("latency", buckets, "", "interval: 1s", "count: 60", "compare: {to: stable, histogram: true}")}
	slow, equal := strategy, strategy
	slow.name, equal.name = "slow", "equal"
	w := newMeasured(t, slow, equal)
	c := newClients(t, "v2", map[[2]string]int{
		{w.app("slow").name, "v1"}: 2000, {w.app("slow").name, "v2"}: 500, {w.app("equal").name, "v1"}: 2000, {w.app("equal").name, "v3"}: 250})
	w.prometheus.serve(c)
	w.background(c.send)
	_, pushed := w.push("the new versions", func(s shop) shop {
		s.version = map[string]string{"slow": "v2", "equal": "v3"}[s.name]
		return s
	})
	w.app("slow").awaitRejected(pushed)
	w.app("equal").awaitReleased(pushed)
	for name, want := range map[string]rollout.AnalysisPhase{"slow": rollout.AnalysisFailed, "equal": rollout.AnalysisSuccessful} {
		got := w.app(name).runs()[0].Metrics[0]
		t.Logf("%s: %s after %d looks, %+v", name, got.Phase, got.Count, got.Measurements[len(got.Measurements)-1])
		if got.Phase != want || got.Evidence == nil || len(got.Evidence.Tests) != 3 {
			t.Errorf("the metric of %s is %+v, want %s with three bounds", name, got, want)
		}
	}
}
