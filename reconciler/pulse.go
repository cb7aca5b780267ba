package reconciler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// pulse holds the pumps' current work and last heartbeat.
type pulse struct {
	mu    sync.Mutex
	signs map[string]time.Time
}

// inPulse is the context key of the func() that records a heartbeat.
type inPulse struct{}

// during runs a piece of work under a name.
func (p *pulse) during(ctx context.Context, what string, do func(context.Context)) {
	sign := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.signs == nil {
			p.signs = map[string]time.Time{}
		}
		p.signs[what] = time.Now()
	}
	sign()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.signs, what)
	}()
	do(context.WithValue(ctx, inPulse{}, sign))
}

// Beat records a heartbeat for the work of a context, if any: a request was sent or answered.
func Beat(ctx context.Context) {
	if sign, is := ctx.Value(inPulse{}).(func()); is {
		sign()
	}
}

// leastPatience is the least time without heartbeat of stuck work. Git and cluster requests end within two minutes.
const leastPatience = 5 * time.Minute

// Hung names Run's stuck work, or "": ten of the same intervals, and at least 5 minutes, without a heartbeat.
func (r *Reconciler) Hung(interval time.Duration) string {
	patience := max(leastPatience, 10*r.in.interval(interval))
	r.pulse.mu.Lock()
	defer r.pulse.mu.Unlock()
	var hung []string
	for _, what := range slices.Sorted(maps.Keys(r.pulse.signs)) {
		if until(r.pulse.signs[what].Add(patience)) < 0 {
			hung = append(hung, what)
		}
	}
	if hung == nil {
		return ""
	}
	return fmt.Sprintf("no sign of life for %s from: %s", patience, strings.Join(hung, ", "))
}
