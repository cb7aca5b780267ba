package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
)

// refusing is a Git server for several goroutines. If lookErr is set, each fetch returns it. If pushErr is set, each push returns it.
type refusing struct {
	*mirror
	mu      sync.Mutex
	fetches []time.Time
	pushes  []time.Time
	pushErr error
	lookErr error
}

func (g *refusing) Fetch(ctx context.Context) (rollout.Heads, error) {
	defer g.locked()()
	if g.fetches = append(g.fetches, time.Now()); g.lookErr != nil {
		return rollout.Heads{}, g.lookErr
	}
	return g.mirror.Fetch(ctx)
}

func (g *refusing) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	defer g.locked()()
	if g.pushes = append(g.pushes, time.Now()); g.pushErr != nil {
		return nil, g.pushErr
	}
	return g.mirror.Push(ctx, updates)
}

func (g *refusing) locked() (unlock func()) { g.mu.Lock(); return g.mu.Unlock }

func (g *refusing) Bring(ctx context.Context, commits []string) ([]string, error) {
	defer g.locked()()
	return g.mirror.Bring(ctx, commits)
}

func (g *refusing) Held(commit string) (reconciler.Snapshot, bool) {
	defer g.locked()()
	return g.mirror.Held(commit)
}

func (g *refusing) Between(ctx context.Context, from, to string) ([]reconciler.Snapshot, error) {
	defer g.locked()()
	return g.mirror.Between(ctx, from, to)
}

func (g *refusing) Outside(ctx context.Context, commit string, of []string) ([]string, error) {
	defer g.locked()()
	return g.mirror.Outside(ctx, commit, of)
}

func (g *refusing) Merge(ctx context.Context, commit, onto string) (rollout.Merge, error) {
	defer g.locked()()
	return g.mirror.Merge(ctx, commit, onto)
}

// TestRecordBacksOff checks that pushes back off while Git refuses the record of an advance or a rollback. At most 30 pushes are sent in
// ten minutes, and none before the time in a Retry-After header. When Git accepts pushes again, the record is pushed.
func TestRecordBacksOff(t *testing.T) {
	unreachable := fmt.Errorf("%w: 503 Service Unavailable", rollout.ErrUnreachable)
	for name, c := range map[string]struct {
		err   error
		looks bool // fetches fail, too
		pause time.Duration
	}{
		"not authorised":    {errors.New("not authorised: 401 Unauthorized"), false, 0},
		"rejected":          {errors.New("rejected by the server: quota"), false, 0},
		"unreachable":       {unreachable, true, 0},
		"too many requests": {rollout.NewRetryError(unreachable, 90*time.Second), true, 90 * time.Second},
	} {
		for _, what := range []string{"an advance", "a rollback"} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, nil)
					w.commit("v2", shopAt("v2"))
					if what == "a rollback" {
						w.settle()
						w.commit("v1", shopAt("v1"))
					}
					time.Sleep(time.Until(w.now))
					g := &refusing{mirror: w.git, pushErr: c.err}
					o := w.r.Options
					o.Repository, o.Past = g, g
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan struct{})
					r := reconciler.New(o)
					go func() { _ = r.Run(ctx, 30*time.Second); close(ended) }()
					time.Sleep(10 * time.Second)
					g.mu.Lock()
					if c.looks {
						g.lookErr = c.err
					}
					compare.CheckNamed(t, "it pushes", true, len(g.pushes) > 0)
					fetches, pushes := len(g.fetches), len(g.pushes)
					g.mu.Unlock()
					time.Sleep(10 * time.Minute)
					g.mu.Lock()
					fetches, pushes = len(g.fetches)-fetches, len(g.pushes)-pushes
					if pushes == 0 || pushes > 30 || fetches+pushes > 40 || c.looks && fetches+pushes > 30 {
						t.Errorf("%d looks and %d pushes in ten minutes", fetches, pushes)
					}
					for i := 1; i < len(g.pushes); i++ {
						if apart := g.pushes[i].Sub(g.pushes[i-1]); apart < c.pause {
							t.Errorf("a push %s after the last one, which asked for %s", apart, c.pause)
						}
					}
					recorded := len(w.git.messages)
					g.pushErr, g.lookErr = nil, nil
					g.mu.Unlock()
					time.Sleep(max(time.Minute, c.pause) + time.Second)
					if g.mu.Lock(); len(w.git.messages) == recorded {
						t.Error("nothing is recorded after Git's return")
					}
					g.mu.Unlock()
					stop()
					<-ended
				})
			})
		}
	}
}

// forgetful is a Git server whose history cannot be read.
type forgetful struct {
	*refusing
	reads int
}

func (g *forgetful) Between(context.Context, string, string) ([]reconciler.Snapshot, error) {
	defer g.locked()()
	g.reads++
	return nil, errors.New("the token is refused")
}

// TestHistoryBacksOff checks that reads of the history back off while they fail and fetches succeed. At most 40 reads are tried in ten
// minutes.
func TestHistoryBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.commit("v2", shopAt("v2"))
		time.Sleep(time.Until(w.now))
		g := &forgetful{refusing: &refusing{mirror: w.git}}
		o := w.r.Options
		o.Repository, o.Past = g, g
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		must(t, reconciler.New(o).Run(ctx, 30*time.Second))
		if g.reads < 5 || g.reads > 40 || len(g.fetches) > 60 {
			t.Errorf("%d reads of the history and %d fetches in ten minutes", g.reads, len(g.fetches))
		}
	})
}

// TestOneAppSlowsNothing calls Run while a folder in Git has an invalid name and Tell panics for each report of an app. Run must still
// fetch at its interval and record the transitions of other apps.
func TestOneAppSlowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.commit("v2", map[string]string{"apps/shop/app.yaml": version("v2"), "apps/No_Name/app.yaml": version("v1")})
		time.Sleep(time.Until(w.now))
		g := &refusing{mirror: w.git}
		o := w.r.Options
		o.Repository, o.Past = g, g
		o.Tell = func(r report.Report) {
			if len(r.Apps) > 0 {
				panic("a report")
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { _ = reconciler.New(o).Run(ctx, 5*time.Second); close(ended) }()
		time.Sleep(10 * time.Minute)
		g.mu.Lock()
		if len(g.fetches) < 100 || len(w.git.messages) == 0 {
			t.Errorf("%d fetches in ten minutes, %d records", len(g.fetches), len(w.git.messages))
		}
		g.mu.Unlock()
		stop()
		<-ended
	})
}

// TestOneRefusedRecord refuses each push of an app's record, while another app changes. From the third change on, the other app's record
// must be pushed within 30 seconds. The refused record is retried with backoff, and its error is reported.
func TestOneRefusedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		till := func(n int) map[string]string {
			return map[string]string{
				"apps/till/kustomization.yaml": "resources: [map.yaml]\n",
				"apps/till/map.yaml":           fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\ndata: {n: \"%d\"}\n", n),
			}
		}
		w := newWorld(t, nil)
		w.follow("a till", till(0))
		w.commit("v2", shopAt("v2"))
		time.Sleep(time.Until(w.now))
		g, refused := &refusing{mirror: w.git}, 0
		w.git.refuse = func(u rollout.Update) error {
			if _, has := u.Edits[rollout.StatePath("shop")]; has {
				refused++
				return errors.New("rejected by the server: a credential")
			}
			return nil
		}
		o := w.r.Options
		o.Repository, o.Past = g, g
		told := map[string]bool{}
		o.Tell = func(r report.Report) {
			for _, a := range r.Apps {
				if a.Err != nil {
					told[a.Input.App.Name] = true
				}
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { _ = reconciler.New(o).Run(ctx, 5*time.Second); close(ended) }()
		time.Sleep(time.Minute)
		for i := range 20 {
			g.mu.Lock()
			w.commit("another till", till(i+1))
			recorded := len(w.git.messages)
			g.mu.Unlock()
			time.Sleep(30 * time.Second)
			g.mu.Lock()
			if i > 1 && len(w.git.messages) == recorded {
				t.Errorf("change %d is not recorded after 30 seconds", i)
			}
			g.mu.Unlock()
		}
		g.mu.Lock()
		compare.CheckNamed(t, "apps with an error", map[string]bool{"shop": true}, told)
		if refused < 5 || refused > 33 {
			t.Errorf("%d pushes of the refused record in eleven minutes", refused)
		}
		g.mu.Unlock()
		stop()
		<-ended
	})
}

// TestRefusedRemoval checks that transitions are recorded while the server refuses to delete a merged proposal's
// branch. The deletion is tried at most 30 times in ten minutes.
func TestRefusedRemoval(t *testing.T) {
	w := newWorld(t, func(o *reconciler.Options) { o.ShowsForge = true })
	forge := "forge: {type: gitea, url: https://git.example.com, repository: acme/deploy}\n"
	w.follow("a forge", map[string]string{configFile: plainConfig + forge})
	w.follow("v2", shopAt("v2"))
	removals := 0
	w.git.refuse = func(u rollout.Update) error {
		if u.Delete {
			removals++
			return errors.New("rejected by the server: a protected branch")
		}
		return nil
	}
	w.commit("promoted", promotion(w, "full"))
	w.passes(600)
	if w.want(rollout.Healthy, 4); removals < 5 || removals > 30 {
		t.Errorf("%d removals in ten minutes", removals)
	}
}

// TestPanicWhileRecording checks that a panic during a push ends only that pass. The next pass records the decisions of the failed push.
func TestPanicWhileRecording(t *testing.T) {
	w := newWorld(t, nil)
	w.commit("v2", shopAt("v2"))
	w.git.refuse = func(rollout.Update) error { panic("once") }
	compare.CheckNamed(t, "a panic is an error", true, w.once() != nil)
	w.git.refuse = nil
	w.settle()
	compare.CheckNamed(t, "in flight, and apps being recorded", []any{true, 0}, []any{w.state().Release != nil, w.r.Pushing()})
}
