package metrics

import (
	"context"
	_ "embed"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
)

// Options has the clock and the values of constant labels.
type Options struct {
	Cluster, Branch            string // for gitrollout_cluster_info
	Version, Revision, GoBuild string // for gitrollout_build_info
	Now                        func() time.Time
}

// Metrics is safe for concurrent use.
type Metrics struct {
	now      func() time.Time
	registry *prometheus.Registry
	families map[string]family

	started, releases, glass, transitions, verdicts *prometheus.CounterVec
	lead, until, retreat, waited                    *prometheus.HistogramVec
	parts                                           map[report.Part]*prometheus.HistogramVec
	git                                             *prometheus.HistogramVec
	lastPass, lastFetch, leading                    prometheus.Gauge

	apps *appCollector

	stats atomic.Pointer[func() report.Stats]
}

// New returns metrics that are zero.
func New(o Options) *Metrics {
	m := &Metrics{now: o.Now, registry: prometheus.NewRegistry(), families: map[string]family{}}
	none := func() report.Stats { return report.Stats{} }
	m.stats.Store(&none)
	for _, f := range readFamilies() {
		m.families[f.Name] = f
	}
	m.releaseFamilies()
	m.apps = newAppCollector(m)
	m.registry.MustRegister(m.apps)
	m.loopFamilies()
	m.gauge("gitrollout_build_info").WithLabelValues(o.Version, o.Revision, o.GoBuild).Set(1)
	m.gauge("gitrollout_cluster_info").WithLabelValues(o.Cluster, o.Branch).Set(1)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) releaseFamilies() {
	m.started = m.counter("gitrollout_releases_started_total")
	m.started.WithLabelValues()
	m.releases = m.counter("gitrollout_releases_total")
	m.glass = m.counter("gitrollout_break_glass_total")
	m.transitions = m.counter("gitrollout_transitions_total")
	for _, p := range rollout.Phases() {
		m.transitions.WithLabelValues(string(p))
	}
	m.verdicts = m.counter("gitrollout_analysis_runs_total")
	for _, v := range []rollout.AnalysisPhase{rollout.AnalysisSuccessful, rollout.AnalysisFailed, rollout.AnalysisErrored,
		rollout.AnalysisInconclusive} {
		m.verdicts.WithLabelValues(string(v))
	}
	m.lead = m.histogram("gitrollout_release_lead_time_seconds")
	m.until = m.histogram("gitrollout_release_time_to_reject_seconds")
	m.retreat = m.histogram("gitrollout_retreat_duration_seconds")
	m.waited = m.histogram("gitrollout_waiting_for_people_seconds")
	m.lead.WithLabelValues()
	m.until.WithLabelValues()
	m.retreat.WithLabelValues()
	m.waited.WithLabelValues(string(OnPromotion))
	m.waited.WithLabelValues(string(OnRevert))
}

func (m *Metrics) loopFamilies() {
	m.parts = map[report.Part]*prometheus.HistogramVec{}
	for _, part := range []report.Part{report.PartPass, report.PartDecide, report.PartRender, report.PartApply} {
		h := m.histogram("gitrollout_" + string(part) + "_duration_seconds")
		h.WithLabelValues(ok)
		h.WithLabelValues(failed)
		m.parts[part] = h
	}
	m.git = m.histogram("gitrollout_git_request_duration_seconds")
	for _, operation := range []string{string(report.PartFetch), string(report.PartPush)} {
		m.git.WithLabelValues(operation, ok)
		m.git.WithLabelValues(operation, failed)
	}
	m.git.WithLabelValues(string(report.PartPush), conflict)
	stats := func() report.Stats { return (*m.stats.Load())() }
	m.Count("gitrollout_decisions_total", "", func() float64 { return float64(stats().Decided) })
	m.Count("gitrollout_state_commits_total", "", func() float64 { return float64(stats().Commits) })
	m.Count("gitrollout_lost_races_total", "", func() float64 { return float64(stats().Lost) })
	m.lastPass = m.gauge("gitrollout_last_pass_timestamp_seconds").WithLabelValues()
	m.lastFetch = m.gauge("gitrollout_git_last_fetch_timestamp_seconds").WithLabelValues()
	m.leading = m.gauge("gitrollout_leading").WithLabelValues()
}

const (
	ok       = "ok"
	failed   = "error"
	conflict = "conflict"
)

func result(err error) string {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, rollout.ErrConflict):
		return conflict
	}
	return failed
}

// Handler serves the metrics in the formats of Prometheus and OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Leading records whether this process is the leader and makes passes.
func (m *Metrics) Leading(is bool) {
	m.leading.Set(map[bool]float64{true: 1}[is])
}

// Trace returns a report.Tracer. Each scrape of the metrics calls stats.
func (m *Metrics) Trace(stats func() report.Stats) report.Tracer {
	m.stats.Store(&stats)
	return func(ctx context.Context, part report.Part, _ string) (context.Context, func(error)) {
		began := m.now()
		return ctx, func(err error) {
			now := m.now()
			took := now.Sub(began).Seconds()
			if durations := m.parts[part]; durations != nil {
				label := map[bool]string{true: ok, false: failed}[err == nil]
				durations.WithLabelValues(label).Observe(took)
			} else { // a fetch or a push
				m.git.WithLabelValues(string(part), result(err)).Observe(took)
			}
			switch part {
			case report.PartPass, report.PartFetch, report.PartPush:
				m.lastPass.Set(seconds(now)) // also after a fetch or push, because unchanged apps have no passes
			}
			if part == report.PartFetch && err == nil {
				m.lastFetch.Set(seconds(now))
			}
		}
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// familiesText describes all metrics. The documentation has the same texts.
//
//go:embed families.yaml
var familiesText []byte

type family struct {
	Name, Help string
	Labels     []string
	Buckets    string // for a histogram: key in the map bounds
}

var bounds = map[string][]float64{
	"quick": {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	"slow":  {15, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200, 14400, 28800, 86400, 172800, 604800},
}

func readFamilies() (all []family) {
	_ = yaml.UnmarshalStrict(familiesText, &all)
	return all
}

func (m *Metrics) counter(name string) *prometheus.CounterVec {
	f := m.families[name]
	return promauto.With(m.registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: f.Help}, f.Labels)
}

func (m *Metrics) gauge(name string) *prometheus.GaugeVec {
	f := m.families[name]
	return promauto.With(m.registry).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: f.Help}, f.Labels)
}

func (m *Metrics) histogram(name string) *prometheus.HistogramVec {
	f := m.families[name]
	opts := prometheus.HistogramOpts{Name: name, Help: f.Help, Buckets: bounds[f.Buckets]}
	return promauto.With(m.registry).NewHistogramVec(opts, f.Labels)
}

// Count registers another package's counter, which each scrape reads. "value" is the label's value, or "" if the
// counter has no label. Call Count only once for each name and value.
func (m *Metrics) Count(name, value string, read func() float64) {
	f := m.families[name]
	opts := prometheus.CounterOpts{Name: name, Help: f.Help}
	for _, label := range f.Labels {
		opts.ConstLabels = prometheus.Labels{label: value}
	}
	promauto.With(m.registry).NewCounterFunc(opts, read)
}
