package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

const (
	firstRetry = time.Second
	maxRetry   = 5 * time.Second
	// Git is read after a change in the cluster, with the delay changeDelay, and at least every gitEvery.
	changeDelay = 2 * time.Second
	gitEvery    = 30 * time.Second
	// If a known pod joins the followed version (a promoted canary), the pod's log lines older than `joined` are
	// omitted.
	joined    = 10 * time.Second
	tellAgain = time.Minute
)

type tailer struct {
	*logsCommand
	logs  cluster.PodLogs
	look  terminal.Look
	fail  context.CancelCauseFunc
	pods  sync.WaitGroup
	known map[string]*knownPod // by uid

	mu   sync.Mutex           // guards told and the output
	told map[string]time.Time // by problem: the last print
}

type knownPod struct {
	podHash string                // the last followed version
	end     func()                // stops the readers and waits for their end; may be nil
	left    time.Time             // last call of end
	last    map[string]*time.Time // by container: the time of the last printed line
}

func sourceName(s cluster.LogSource, containers int) string {
	if containers == 1 {
		return s.Pod
	}
	return s.Pod + " " + s.Container
}

type printError struct{ error }

func (t *tailer) printer(p status.VersionPod, source string) func(string) error {
	return func(text string) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, err := io.WriteString(t.out, terminal.LogLine(source, p.Role, text, t.look)); err != nil {
			return printError{err}
		}
		return nil
	}
}

func (t *tailer) trouble(err error) {
	text := err.Error()
	if e := new(cluster.Error); errors.As(err, &e) {
		text = e.Msg
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.told[text]) > tellAgain {
		t.told[text] = now
		t.note("trying again: " + text)
	}
}

func (t *tailer) readPods(ctx context.Context, pods []status.VersionPod) (errs error) {
	for _, p := range pods {
		sources, err := t.logs.Sources(ctx, p.Namespace, p.Name, p.UID, p.PodHash)
		for _, s := range sources {
			name := sourceName(s, len(sources))
			if s.Run == "" {
				t.note(name + " has no log yet: " + s.Waits)
				continue
			}
			r := cluster.LogRange{Since: t.since, Tail: t.tail}
			_, failed := t.logs.Read(ctx, s, r, t.printer(p, name))
			err = errors.Join(err, failed)
		}
		if isFinal(err) || ctx.Err() != nil {
			return err
		}
		errs = errors.Join(errs, err)
	}
	return errs
}

// isFinal reports whether an error makes more requests useless: a missing right or a closed output.
func isFinal(err error) bool { return cluster.IsForbidden(err) || errors.As(err, new(printError)) }

func (t *tailer) followPods(
	ctx context.Context, view viewer, version status.Version, app status.App, changed <-chan struct{},
) error {
	following, fail := context.WithCancelCause(ctx)
	defer t.pods.Wait()
	defer fail(nil)
	t.fail = fail
	t.update(following, version, app, cluster.LogRange{Since: t.since, Tail: t.tail, Follow: true})
	for pause(following, changed) {
		_, err := view.Refresh(following)
		l, failed := view.Listing(following, []string{app.App}, time.Now())
		if failed == nil {
			t.update(following, version, l.Apps[0], cluster.LogRange{Tail: -1, Follow: true})
		}
		if err = errors.Join(err, failed); err != nil && following.Err() == nil {
			t.trouble(err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return context.Cause(following)
}

// update follows new pods, and stops following pods that changed to another version. It still follows pods that are no
// longer listed, because their last lines may be unread.
func (t *tailer) update(ctx context.Context, version status.Version, app status.App, first cluster.LogRange) {
	has := map[string]bool{}
	for _, p := range version.Of(app) {
		has[p.UID] = true
	}
	for _, p := range status.Version("").Of(app) {
		k, r := t.known[p.UID], first
		if k != nil {
			r.Since = joined
		}
		k = cmp.Or(k, &knownPod{})
		t.known[p.UID] = k
		if k.end != nil && (!has[p.UID] || k.podHash != p.PodHash) { // a pod that is updated in place keeps its uid
			k.end()
		}
		if has[p.UID] && k.end == nil {
			t.follow(ctx, p, k, r)
		}
	}
}

// follow continues after the last printed lines if it followed the pod less than `joined` ago. Otherwise, the range
// `first` selects the lines of current runs. Later runs are printed completely.
func (t *tailer) follow(ctx context.Context, p status.VersionPod, k *knownPod, first cluster.LogRange) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	if time.Since(k.left) > joined {
		k.last = map[string]*time.Time{}
	}
	k.podHash, k.end = p.PodHash, func() { cancel(); running.Wait(); k.end, k.left = nil, time.Now() }
	running.Go(func() {
		sources := t.sources(ctx, p)
		for _, s := range sources {
			last := cmp.Or(k.last[s.Container], new(time.Time))
			k.last[s.Container] = last
			running.Go(func() { t.followContainer(ctx, p, s, sourceName(s, len(sources)), first, last) })
		}
	})
	t.pods.Go(running.Wait)
}

func pause(ctx context.Context, changed <-chan struct{}) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(gitEvery):
		return true
	case <-changed: // more changes usually follow
		return sleep(ctx, changeDelay)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (t *tailer) sources(ctx context.Context, p status.VersionPod) []cluster.LogSource {
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		all, err := t.logs.Sources(ctx, p.Namespace, p.Name, p.UID, p.PodHash)
		if err == nil {
			return all
		}
		t.failed(ctx, err)
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

func (t *tailer) failed(ctx context.Context, err error) {
	switch {
	case isFinal(err):
		t.fail(err)
	case ctx.Err() == nil:
		t.trouble(err)
	}
}

// followContainer prints the logs of all runs until the pod or ctx ends. If a log ends before its run, perhaps because
// the connection broke, it requests the log again. It skips lines up to the time `last`.
func (t *tailer) followContainer(
	ctx context.Context, p status.VersionPod, s cluster.LogSource, name string, r cluster.LogRange, last *time.Time,
) {
	further := func() cluster.LogRange { return cluster.LogRange{After: *last, Tail: -1, Follow: true} }
	if s.Run == "" || !last.IsZero() {
		r = further()
	}
	wait, run, complete, exists := firstRetry, s.Run, false, true
	for exists {
		if s.Run != run {
			wait, run, complete, r = firstRetry, s.Run, false, further()
		}
		if run != "" && !complete {
			end, err := t.logs.Read(ctx, s, r, t.printer(p, name))
			if err != nil && (isFinal(err) || wait > firstRetry) {
				t.failed(ctx, err)
			}
			complete = err == nil && s.Over
			if !end.IsZero() {
				*last = end
				r = further()
			}
		}
		if s.Last && (complete || run == "") || !sleep(ctx, wait) {
			return
		}
		wait = min(2*wait, maxRetry)
		s, exists = rollout.Find(t.sources(ctx, p), func(o cluster.LogSource) bool { return o.Container == s.Container })
	}
}
