package adapters

import (
	"context"
	"sync"
	"time"
)

// lastWork limits how long a Worker may publish after the process is told to stop. The next process publishes the rest.
const lastWork = 5 * time.Second

// Worker publishes in the background after a pass. Flush returns when the pending work is done or its context ends.
type Worker interface {
	Run(ctx context.Context)
	Flush(ctx context.Context)
}

// Start starts a worker, and returns a function that stops the worker.
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
