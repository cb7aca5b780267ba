package metrics

import (
	_ "embed"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/yaml"
)

// familiesText describes all metrics, also for the documentation.
//
//go:embed families.yaml
var familiesText []byte

type family struct {
	Name, Help string
	Labels     []string
	Buckets    string // a key of bounds, for histograms
}

// bounds is in seconds.
var bounds = map[string][]float64{
	"quick": {.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	"slow":  {15, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200, 14400, 28800, 86400, 172800, 604800},
}

// readFamilies cannot fail: the file is embedded.
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

// Count registers another package's counter, which each scrape reads. value is for the counter's label, if any. Call
// Count only once for each name and value.
func (m *Metrics) Count(name, value string, read func() float64) {
	f := m.families[name]
	opts := prometheus.CounterOpts{Name: name, Help: f.Help}
	for _, label := range f.Labels {
		opts.ConstLabels = prometheus.Labels{label: value}
	}
	promauto.With(m.registry).NewCounterFunc(opts, read)
}
