package reconciler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

type watchdog struct{ signs sync.Map }

type inWatchdog struct{}

// during turns a task's panic into an error, so that one app cannot end the process.
func (p *watchdog) during(ctx context.Context, what string, do func(context.Context) error) (err error) {
	sign := func() { p.signs.Store(what, time.Now()) }
	sign()
	defer func() {
		if problem := recover(); problem != nil {
			err = panicked(what, problem)
		}
		p.signs.Delete(what)
	}()
	return do(context.WithValue(ctx, inWatchdog{}, sign))
}

// Heartbeat records that a context's task sent a request or got an answer.
func Heartbeat(ctx context.Context) {
	if sign, is := ctx.Value(inWatchdog{}).(func()); is {
		sign()
	}
}

// leastTimeout is longer than any request (at most 2 minutes).
const leastTimeout = 5 * time.Minute

// Stuck names the tasks of Run that had no heartbeat for ten intervals and at least 5 minutes, or returns "".
func (r *Reconciler) Stuck(interval time.Duration) string {
	timeout := max(leastTimeout, 10*r.in.interval(interval))
	var hung []string
	for what, at := range r.watchdog.signs.Range {
		if until(at.(time.Time).Add(timeout)) < 0 {
			hung = append(hung, what.(string))
		}
	}
	if hung == nil {
		return ""
	}
	slices.Sort(hung)
	return fmt.Sprintf("no sign of life for %s from: %s", timeout, strings.Join(hung, ", "))
}
