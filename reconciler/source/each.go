package source

import "sync"

// Each does something n times, most of them at once at the most, and returns when all are done.
func Each(n, most int, do func(i int)) {
	slots := make(chan struct{}, most)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	all.Wait()
}
