package reconciler

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

// fetcher collects missing commits and the render jobs for each commit, so that one fetch brings all commits.
type fetcher struct {
	*Options
	queue  *renderQueue
	touch  func(app string)
	wanted func()

	mu    sync.Mutex
	wants map[string][]job  // by missing commit
	ours  map[string]bool   // commits that are or were on the users' branch
	gone  map[string]string // why commits are unavailable, until the next fetch
}

const mostOurs = 20_000

// tree returns a commit of the users' branch, or requests the commit. It queues the jobs when the commit is there. The
// error wraps ErrNotReady, or says why the commit is unavailable.
func (f *fetcher) tree(commit string, jobs ...job) (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if commit == "" {
		return nil, errors.New("no commit is recorded")
	}
	if why := f.gone[commit]; why != "" {
		return nil, fmt.Errorf("commit %s is %s; to continue, commit the same files again", rollout.ShortID(commit), why)
	}
	tree, held := f.Repository.Held(commit)
	if held && f.ours[commit] {
		f.queue.add(jobs...)
		return tree, nil
	}
	f.wants[commit] = append(f.wants[commit], jobs...)
	f.wanted()
	return nil, fmt.Errorf("commit %s %w", rollout.ShortID(commit), source.ErrNotReady)
}

func (f *fetcher) missing() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sortedKeys(f.wants)
}

// brought handles a fetch. The server lacks the "gone" commits, and the users' branch lacks the "outside" commits.
// After an error, apps request all commits again.
func (f *fetcher) brought(commits, gone, outside []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, commit := range commits {
		jobs := f.wants[commit]
		delete(f.wants, commit)
		if err != nil {
			continue
		}
		switch {
		case slices.Contains(gone, commit):
			f.gone[commit] = "not in the repository any more (was the branch's history rewritten?)"
		case slices.Contains(outside, commit): // no proof that users pushed the commit
			f.gone[commit] = "not part of the users' branch (was its history rewritten, or the record edited?)"
		default:
			f.ours[commit] = true
			f.queue.add(jobs...)
			continue
		}
		for _, j := range jobs {
			f.touch(j.app.Name)
		}
	}
}

// follow adds commits to f.ours, and permits new requests for unavailable commits.
func (f *fetcher) follow(line []Snapshot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.gone)
	if len(f.ours) > mostOurs {
		clear(f.ours)
	}
	for _, s := range line {
		f.ours[s.Commit().ID] = true
	}
}
