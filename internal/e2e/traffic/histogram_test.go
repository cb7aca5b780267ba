package traffic

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gitrollout.dev/gitrollout/analysis"
	sources "gitrollout.dev/gitrollout/analysis/provider"
)

// reporter is a program that reports the latency of its requests to Prometheus, in a classic and in a native histogram.
type reporter struct {
	hash            string  // the label pod_template_hash
	slower          float64 // multiplies the latency of the slowest 5 % of the requests
	requests        int     // the number of requests so far
	classic, native metrics.Histogram
	address         string
}

func startReporter(t *testing.T, hash string, slower float64) *reporter {
	s := &reporter{hash: hash, slower: slower,
		classic: metrics.NewHistogram(metrics.HistogramOpts{Name: "http_request_duration_seconds", Buckets: metrics.DefBuckets}),
		native:  metrics.NewHistogram(metrics.HistogramOpts{Name: "http_native_seconds", NativeHistogramBucketFactor: 1.1})}
	registry := metrics.NewRegistry()
	registry.MustRegister(s.classic, s.native)
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(web.Close)
	s.address = strings.TrimPrefix(web.URL, "http://")
	return s
}

// latency returns the latency of request i in seconds. A higher i has a higher latency. The distribution is log-normal with a median of 50
// ms, so that p90 is 139 ms and p99 is 321 ms.
func (s *reporter) latency(i int) float64 {
	quantile := (float64(i) + 0.5) / float64(s.requests)
	v := 0.05 * math.Exp(0.8*math.Sqrt2*math.Erfinv(2*quantile-1))
	if quantile > 0.95 {
		v *= s.slower
	}
	return v
}

// serve reports a number of requests. Tests call serve at most once for each reporter.
func (s *reporter) serve(requests int) {
	s.requests = requests
	for i := range requests {
		s.classic.Observe(s.latency(i))
		s.native.Observe(s.latency(i))
	}
}

// within returns the number of requests that took at most the given seconds.
func (s *reporter) within(seconds float64) (n int) {
	for i := range s.requests {
		if s.latency(i) <= seconds {
			n++
		}
	}
	return n
}

// watch gives Prometheus the list of reporters.
func (p *prometheus) watch(reporters ...*reporter) {
	p.t.Helper()
	var groups []map[string]any
	for _, s := range reporters {
		groups = append(groups, map[string]any{"targets": []string{s.address}, "labels": map[string]string{"pod_template_hash": s.hash}})
	}
	data, err := json.Marshal(groups)
	must(p.t, err)
	must(p.t, os.WriteFile(p.targets()+".new", data, 0o600))
	must(p.t, os.Rename(p.targets()+".new", p.targets()))
}

// histogram returns the result of a metric that compares histograms, or nil if there is no data.
func (p *prometheus) histogram(query string) analysis.Histogram {
	p.t.Helper()
	got, err := sources.Measure(p.t.Context(), sources.Deps{Client: func(bool) *http.Client { return http.DefaultClient },
		Getenv: os.Getenv, ReadFile: os.ReadFile, Now: time.Now},
		sources.Request{Kind: "prometheus", Config: map[string]any{"address": p.URL, "query": query},
			Compare: &analysis.Compare{Histogram: true}})
	must(p.t, err)
	h, _ := got.Value.(analysis.Histogram)
	return h
}

// awaitRequests waits until Prometheus has scraped a number of requests.
func (p *prometheus) awaitRequests(query string, requests int) (h analysis.Histogram) {
	p.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(scrape / 5) {
		if h = p.histogram(query); h != nil && h[len(h)-1].Count == float64(requests) {
			return h
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s is %v, want %d requests", query, h, requests)
		}
	}
}

// kinds maps each kind of histogram to the query for a version's requests. The two %s are the start and the end of a function call, or
// empty.
var kinds = map[string]string{"classic": `sum by (le) (%shttp_request_duration_seconds_bucket{pod_template_hash=%q}%s)`,
	"native": `sum(%shttp_native_seconds{pod_template_hash=%q}%s)`}

var answers = flag.String("record", "", "`folder` for the answers of a real Prometheus, as ../../../analysis/provider/testdata")

// TestRecordHistograms writes a real Prometheus's responses for the provider's tests: a classic and a native histogram of four requests.
func TestRecordHistograms(t *testing.T) {
	if *answers == "" {
		t.Skip("only with -record")
	}
	p := startPrometheus(t, "--enable-feature=native-histograms")
	r := startReporter(t, "recorded", 1)
	r.serve(4)
	p.watch(r)
	for kind, query := range kinds {
		query = fmt.Sprintf(query, "", r.hash, "")
		p.awaitRequests(query, r.requests)
		answer, err := http.PostForm(p.URL+"/api/v1/query", url.Values{"query": {query}})
		must(t, err)
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		must(t, err)
		must(t, os.WriteFile(filepath.Join(*answers, "prometheus-"+kind+".json"), append(body, '\n'), 0o644))
	}
}

// TestHistogram checks that the provider returns the buckets of a real Prometheus, from classic and from native histograms. One canary is
// 20 % slower at the 99th percentile. The other canary has stable's latency and half of stable's requests.
func TestHistogram(t *testing.T) {
	p := startPrometheus(t, "--enable-feature=native-histograms")
	reporters := []*reporter{startReporter(t, "stable", 1), startReporter(t, "slow", 1.2), startReporter(t, "equal", 1)}
	p.watch(reporters...)
	for _, s := range reporters { // PromQL's `increase` ignores a counter's first value, so the first value must be 0
		for _, query := range kinds {
			p.awaitRequests(fmt.Sprintf(query, "", s.hash, ""), 0)
		}
	}
	for i, requests := range []int{4000, 1000, 2000} {
		reporters[i].serve(requests)
	}
	for _, s := range reporters {
		for kind, query := range kinds {
			h := p.awaitRequests(fmt.Sprintf(query, "", s.hash, ""), s.requests)
			if least := len(metrics.DefBuckets) + 1; len(h) < least {
				t.Errorf("%s of %s has %d buckets, want at least %d: %v", kind, s.hash, len(h), least, h)
			}
			grown := p.histogram(fmt.Sprintf(query, "increase(", s.hash, "[5m])"))
			if len(grown) != len(h) {
				t.Fatalf("%s of %s: the increase has other buckets: %v, want %v", kind, s.hash, grown, h)
			}
			// PromQL's `increase` extrapolates to both ends of the window, by at most 1.1 scrape intervals. All buckets have the same
			// factor.
			factor := grown[len(grown)-1].Count / float64(s.requests)
			if factor < 0.999 || factor > 3.5 {
				t.Errorf("%s of %s: the increase is %v, %.3f times the requests", kind, s.hash, grown, factor)
			}
			for i, b := range h {
				want := float64(s.within(b.Bound))
				if b.Count != want || grown[i].Bound != b.Bound || math.Abs(grown[i].Count-factor*want) > 1e-6*factor*want {
					t.Errorf("%s of %s: %v and the increase %v, want %v", kind, s.hash, b, grown[i], want)
				}
			}
		}
	}
}
