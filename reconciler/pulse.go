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

// pulse knows what the pumps are doing, and when each piece of work last showed a sign of life.
type pulse struct {
	mu    sync.Mutex
	signs map[string]time.Time
}

// inPulse is the key of a context's func() that gives a sign of life.
type inPulse struct{}

// during does a piece of work that has a name of its own.
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

// Beat is a sign of life of the work that a context is of: a request was sent, or answered. Of another context it is
// nothing.
func Beat(ctx context.Context) {
	if sign, is := ctx.Value(inPulse{}).(func()); is {
		sign()
	}
}

// leastPatience is how long no work is said to hang that gives no sign of life. Each request to Git or to the cluster
// ends within two minutes.
const leastPatience = 5 * time.Minute

// Hung says what Run, with the same interval, has been doing for so long that it will not end by itself, "" if there is
// nothing: a piece of work that has given no sign of life for ten intervals, and for 5 minutes.
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
