package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

type known struct {
	phase   rollout.Phase // as shown
	held    *rollout.Held
	release *rollout.Release
	wait    Wait
	weights map[string]float64 // of the release in flight, from 0 to 1, by workload
	failing bool
}

// appCollector creates the metrics at each scrape, so that no series of a removed app remains.
type appCollector struct {
	mu    sync.Mutex
	apps  map[string]known
	descs map[string]*prometheus.Desc // by name
}

func newAppCollector(m *Metrics) *appCollector {
	c := &appCollector{apps: map[string]known{}, descs: map[string]*prometheus.Desc{}}
	for _, name := range []string{"gitrollout_apps", "gitrollout_app_phase", "gitrollout_app_held",
		"gitrollout_app_failing", "gitrollout_app_release_started_timestamp_seconds",
		"gitrollout_app_release_weight_ratio", "gitrollout_app_waiting_since_timestamp_seconds"} {
		c.descs[name] = prometheus.NewDesc(name, m.families[name].Help, m.families[name].Labels, nil)
	}
	return c
}

func (c *appCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

func (c *appCollector) Collect(out chan<- prometheus.Metric) {
	send := func(name string, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(c.descs[name], prometheus.GaugeValue, v, labels...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	count := map[rollout.Phase]int{}
	for name, a := range c.apps {
		if a.phase != "" {
			count[a.phase]++
			send("gitrollout_app_phase", 1, name, string(a.phase))
		}
		if a.held != nil {
			send("gitrollout_app_held", 1, name, string(a.held.Reason))
		}
		if a.failing {
			send("gitrollout_app_failing", 1, name)
		}
		if a.release != nil {
			send("gitrollout_app_release_started_timestamp_seconds", seconds(a.release.Since), name)
			for workload, weight := range a.weights {
				send("gitrollout_app_release_weight_ratio", weight, name, workload)
			}
		}
		if a.wait.On != "" {
			send("gitrollout_app_waiting_since_timestamp_seconds", seconds(a.wait.Since), name, string(a.wait.On))
		}
	}
	for _, p := range rollout.Phases() {
		send("gitrollout_apps", float64(count[p]), string(p))
	}
}

// Tell counts the changes in a report. A process counts only the changes of its own passes.
func (m *Metrics) Tell(r report.Report) {
	for _, a := range r.Apps {
		m.look(a)
	}
	m.apps.mu.Lock()
	defer m.apps.mu.Unlock()
	for _, name := range r.Gone {
		delete(m.apps.apps, name)
		m.releases.DeletePartialMatch(prometheus.Labels{"app": name})
		m.glass.DeleteLabelValues(name)
	}
}

func (m *Metrics) look(l report.App) {
	name, now := l.Input.App.Name, l.Input.Now
	m.apps.mu.Lock()
	was, isKnown := m.apps.apps[name]
	if !isKnown {
		before := l.Input
		before.State = l.Before
		was.wait = WaitOf(before)
	}
	s := l.Input.State
	is := known{s.Shown(), s.Held, s.Release, WaitOf(l.Input), weightsOf(l.Input), l.Err != nil}
	m.apps.apps[name] = is
	m.apps.mu.Unlock()

	asked := rollout.Hash("")
	if l.Input.Head.Render != nil {
		asked = l.Input.Head.Render.Release()
	}
	if s.Release != nil || l.Before.Release != nil {
		for _, o := range Outcomes() {
			m.releases.WithLabelValues(name, string(o)) // Prometheus sees no increase if a series begins at 1
		}
		m.glass.WithLabelValues(name)
	}
	begins := l.Happened && l.Decision.Rollback && l.Before.Phase != rollout.Aborting
	if begins && strings.HasPrefix(l.Decision.State.Reason, rollout.BreakGlass{}.Text()) {
		m.glass.WithLabelValues(name).Inc()
	}
	c := Between(l.Before, s, asked, now)
	if c.Phase != "" {
		m.transitions.WithLabelValues(string(c.Phase)).Inc()
	}
	if c.Started {
		m.started.WithLabelValues().Inc()
	}
	if c.Outcome != "" {
		m.releases.WithLabelValues(name, string(c.Outcome)).Inc()
	}
	for h, d := range map[*prometheus.HistogramVec]*time.Duration{m.lead: c.Lead, m.until: c.Until, m.retreat: c.Retreat} {
		if d != nil {
			h.WithLabelValues().Observe(d.Seconds())
		}
	}
	for _, v := range c.Verdicts {
		m.verdicts.WithLabelValues(string(v)).Inc()
	}
	if was.wait.On != "" && was.wait != is.wait {
		m.waited.WithLabelValues(string(was.wait.On)).Observe(max(now.Sub(was.wait.Since), 0).Seconds())
	}
}

func weightsOf(in strategies.Input) map[string]float64 {
	if in.State.Release == nil {
		return nil
	}
	weights := map[string]float64{}
	for _, e := range strategies.Explain(in) {
		weights[e.Workload.String()] = min(float64(e.Weight)/float64(e.Full), 1)
	}
	return weights
}
