package edge

import (
	"context"
	"time"
)

// lastWork is how long a stopping program goes on publishing. The rest is published after the next start.
const lastWork = 5 * time.Second

// Worker does the work after a pass in the background. Flush finishes the pending work, within its context.
type Worker interface {
	Run(ctx context.Context)
	Flush(ctx context.Context)
}

// Start starts a worker and returns a function that stops it.
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
