package adapters

import (
	"context"
	"time"
)

// lastWork is how long a program may publish after a stop. The next start publishes the rest.
const lastWork = 5 * time.Second

// Worker publishes in the background after a pass. Flush finishes the pending work, but ends with its context.
type Worker interface {
	Run(ctx context.Context)
	Flush(ctx context.Context)
}

// Start starts a worker, and returns a function to stop it.
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
