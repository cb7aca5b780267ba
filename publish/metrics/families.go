package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Family describes one metric for the reference in the documentation.
type Family struct {
	Name   string
	Type   string // counter, gauge or histogram
	Labels []string
	Help   string
}

// These are the bounds of the histograms, in seconds.
var (
	quick = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	slow  = []float64{15, 30, 60, 120, 300, 600, 1200, 2400, 3600, 7200, 14400, 28800, 86400, 172800, 604800}
)

func (m *Metrics) note(name, kind, help string, labels []string) {
	m.families = append(m.families, Family{Name: name, Type: kind, Labels: labels, Help: help})
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	m.note(name, "counter", help, labels)
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	m.note(name, "gauge", help, labels)
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	m.note(name, "histogram", help, labels)
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// counterFunc registers a counter of another package. If label is an empty string, the counter has no label.
func (m *Metrics) counterFunc(name, help, label, value string, read func() float64) {
	opts := prometheus.CounterOpts{Name: name, Help: help}
	var labels []string
	if label != "" {
		opts.ConstLabels, labels = prometheus.Labels{label: value}, []string{label}
	}
	if n := len(m.families); n == 0 || m.families[n-1].Name != name {
		m.note(name, "counter", help, labels)
	}
	m.registry.MustRegister(prometheus.NewCounterFunc(opts, read))
}

// desc describes a metric of appCollector and adds it to the families.
func (m *Metrics) desc(name, help string, labels ...string) *prometheus.Desc {
	m.note(name, "gauge", help, labels)
	return prometheus.NewDesc(name, help, labels, nil)
}
