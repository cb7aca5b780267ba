package cluster

import (
	"net/http"
	"sync/atomic"
)

// Stats counts requests since New, and cached records.
type Stats struct {
	Writes     int // POST, PUT, PATCH and DELETE without dryRun, including events
	DryRuns    int // the same verbs with dryRun
	Reads      int // GET: objects, lists, watches and discovery
	LostEvents int // not written
	Known      int // objects that this process applied, or found applied
}

// Stats returns the current counts.
func (c *Client) Stats() Stats {
	c.applied.mu.Lock()
	defer c.applied.mu.Unlock()
	return Stats{
		Known:      len(c.applied.known),
		Writes:     int(c.counts.writes.Load()),
		DryRuns:    int(c.counts.dryRuns.Load()),
		Reads:      int(c.counts.reads.Load()),
		LostEvents: int(c.counts.lostEvents.Load()),
	}
}

type counters struct{ writes, dryRuns, reads, lostEvents atomic.Int64 }

type countingTransport struct {
	counts *counters
	next   http.RoundTripper
}

func (t countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method == http.MethodGet:
		t.counts.reads.Add(1)
	case r.URL.Query().Has("dryRun"):
		t.counts.dryRuns.Add(1)
	default:
		t.counts.writes.Add(1)
	}
	return t.next.RoundTrip(r)
}
