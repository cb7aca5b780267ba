package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Family describes a metric of the reference page.
type Family = family

var ReadFamilies = readFamilies // returns the metrics of the reference page

func (m *Metrics) Registry() *prometheus.Registry { return m.registry } // returns the registry, whose metrics must be on the reference page
func (m *Metrics) SetClock(now func() time.Time)  { m.now = now }       // replaces the clock after New
