package reconciler

import (
	"slices"
	"sync"

	"gitrollout.dev/gitrollout/rollout"
)

type what struct {
	app    rollout.App
	commit string
	head   bool

	cluster string // for the app's inputs in another cluster; "" for a render
}

// job has a tree only if the commit is the head.
type job struct {
	what
	tree Snapshot
	line []Snapshot // commits since the former head, or setHistory's line
	was  *rollout.Render

	isHistory bool // if no later commit changed the app, a render gets line[0]
}

// renderQueue puts apps with a release in flight first.
type renderQueue struct {
	isInFlight func(app string) bool

	mu    sync.Mutex
	news  *sync.Cond
	first []job
	jobs  []job
	known map[what]bool
	busy  map[string]bool
	ended bool
}

func (q *renderQueue) add(jobs ...job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, j := range jobs {
		if q.known[j.what] {
			continue
		}
		q.known[j.what] = true
		if q.isInFlight(j.app.Name) {
			q.first = append(q.first, j)
		} else {
			q.jobs = append(q.jobs, j)
		}
		q.news.Signal()
	}
}

func (q *renderQueue) run(do func(job), waits bool) (any bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.ended {
		if j, exists := q.next(); exists {
			any = true
			q.mu.Unlock()
			do(j)
			q.mu.Lock()
			delete(q.busy, j.app.Name)
		} else if waits {
			q.news.Wait()
		} else {
			break
		}
	}
	return any
}

func (q *renderQueue) next() (j job, exists bool) {
	for _, from := range []*[]job{&q.first, &q.jobs} {
		i := slices.IndexFunc(*from, func(j job) bool { return !q.busy[j.app.Name] })
		if i < 0 {
			continue
		}
		j = (*from)[i]
		copy((*from)[1:i+1], (*from)[:i])
		if *from = (*from)[1:]; len(*from) == 0 {
			*from = nil
		}
		delete(q.known, j.what)
		q.busy[j.app.Name] = true
		return j, true
	}
	return job{}, false
}

// hasten moves the apps' jobs to the front, because many apps in flight may wait after a restart.
func (q *renderQueue) hasten(apps map[string]bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.first = putFirst(q.first, func(j job) bool { return apps[j.app.Name] })
}

func (q *renderQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.news.Broadcast()
}

func putFirst[T any](all []T, is func(T) bool) (first []T) {
	var rest []T
	for _, x := range all {
		if is(x) {
			first = append(first, x)
		} else {
			rest = append(rest, x)
		}
	}
	return append(first, rest...)
}
