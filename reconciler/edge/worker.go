package edge

import (
	"context"
	"time"
)

// lastWork is how long a program that ends goes on telling others what has happened. What it does not manage is made up
// for at the next start.
const lastWork = 5 * time.Second

// Worker does what follows a pass without making it wait. Flush ends what is under way, as far as its context allows.
type Worker interface {
	Run(ctx context.Context)
	Flush(ctx context.Context)
}

// Start begins a worker's work and returns what ends it.
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
