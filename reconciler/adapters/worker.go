package adapters

import (
	"context"
	"time"
)

// lastWork is how long a program may still publish after a stop. The next start publishes the rest.
const lastWork = 5 * time.Second

// Worker publishes in the background after a pass. Flush waits for the pending work or for the end of its context.
type Worker interface {
	Run(ctx context.Context)
	Flush(ctx context.Context)
}

// Start starts a worker. It returns a function that stops the worker.
func Start(w Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	return func() {
		last, done := context.WithTimeout(context.Background(), lastWork)
		w.Flush(last)
		done()
		cancel()
		<-ended
	}
}
