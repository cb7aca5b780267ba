package adapters

import (
	"context"
	"sync"
	"time"
)

const lastWork = 5 * time.Second

// Worker publishes in the background. Flush waits for the pending work.
type Worker interface {
	Run(ctx context.Context)
	Flush(ctx context.Context)
}

// Start starts a worker, and returns a function that stops it.
func Start(w Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	return func() {
		last, done := context.WithTimeout(context.Background(), lastWork)
		w.Flush(last)
		done()
		cancel()
		running.Wait()
	}
}
