package measure

import (
	"context"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Remembered returns the number of apps with measurements.
func (w *Worker) Remembered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.stations)
}

// Under returns an app's running and uncollected measurements.
func (w *Worker) Under(app string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stations[app]; s != nil {
		return slices.Collect(maps.Keys(s.tasks))
	}
	return nil
}

// Within runs a function with a time limit.
func Within[T any](limit time.Duration, do func() (T, error)) (got T, err error) {
	return within(limit, do)
}

// Request returns the request that a measurement sends to its provider.
func (w *Worker) Request(ctx context.Context, m strategies.Measure, app rollout.App, latest, suffix string) (provider.Request, error) {
	return w.request(ctx, &task{Measure: m, app: app}, latest, suffix)
}

func (w *Worker) EndWith(ctx context.Context) { w.ctx = ctx } // ends measurements with a context
