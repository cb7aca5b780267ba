package worker_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worker"
	"gitrollout.dev/gitrollout/rollout"
)

// TestOthersGoOn checks that other apps are built while two builds of one app hang.
func TestOthersGoOn(t *testing.T) {
	p := pool(t, 2)
	builds(t, p)
	var waiting sync.WaitGroup
	var over atomic.Int32
	for range 2 {
		waiting.Go(func() {
			_, _, err := p.Build(good, rollout.App{Name: "hangs", Path: "apps/x", Limits: rollout.Limits{RenderTime: time.Hour}})
			if !errors.Is(err, worker.ErrClosed) {
				t.Errorf("the app that hangs: error %v, want the error of a closed pool", err)
			}
			over.Add(1)
		})
	}
	for range 50 {
		builds(t, p)
	}
	if over.Load() > 0 {
		t.Error("the app that hangs was over before")
	}
	p.Close()
	waiting.Wait()
}

// TestWorkersStayWarm checks that successive builds use the same worker, and that the number of workers is limited.
func TestWorkersStayWarm(t *testing.T) {
	p := pool(t, 2)
	first := who(t, p)
	for range 5 {
		compare.CheckNamed(t, "the worker", first, who(t, p))
	}
	seen := sync.Map{}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			built, _, err := p.Build(files{}, rollout.App{Name: "who", Path: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
				return
			}
			seen.Store(built.Warnings[0], true)
		})
	}
	all.Wait()
	n := 0
	seen.Range(func(any, any) bool { n++; return true })
	if n > 2 {
		t.Errorf("%d workers have built, want 2 at most", n)
	}
}

// TestAKilledWorkerIsReplaced checks that a build succeeds in a new worker after an idle worker was killed.
func TestAKilledWorkerIsReplaced(t *testing.T) {
	p := pool(t, 1)
	builds(t, p)
	first := p.Resting()[0]
	must(t, first.Kill())
	builds(t, p)
	if p.Resting()[0].Pid == first.Pid {
		t.Error("it is the same worker")
	}
}

// TestAnotherBoundIsAnotherWorker checks that an app with another memory limit gets a new worker.
func TestAnotherBoundIsAnotherWorker(t *testing.T) {
	p := pool(t, 1)
	small := rollout.App{Name: "who", Limits: rollout.Limits{Memory: 128 << 20}}
	first := who(t, p)
	built, _, err := p.Build(files{}, small)
	if err != nil || built.Warnings[0] == first {
		t.Errorf("worker %v for another bound, error %v", built, err)
	}
	if len(p.Resting()) != 1 {
		t.Errorf("%d workers at rest, want 1", len(p.Resting()))
	}
}

// TestIdleWorkersEnd checks that an idle worker ends after Options.Idle, and that the next build starts a new worker.
func TestIdleWorkersEnd(t *testing.T) {
	p := pool(t, 1)
	p.Idle = 10 * time.Millisecond
	builds(t, p)
	var process *os.Process
	if resting := p.Resting(); len(resting) > 0 {
		process = resting[0]
	}
	for tries := 0; process != nil && process.Signal(syscall.Signal(0)) == nil; tries++ {
		if tries > 1000 {
			t.Fatal("the worker is still there")
		}
		time.Sleep(20 * time.Millisecond)
	}
	builds(t, p)
}

// TestAnOrphanEnds checks that a worker ends immediately when its parent closes the worker's input, even during an endless build.
func TestAnOrphanEnds(t *testing.T) {
	p := pool(t, 1)
	must(t, p.Orphan())
}

// TestCannotStart checks that, if a worker cannot start, Build returns an error, but no InvalidError.
func TestCannotStart(t *testing.T) {
	p := worker.NewPool(worker.Options{Command: func(int64) *exec.Cmd { return exec.Command("/nowhere/gitrollout") }, Most: 1})
	_, _, err := p.Build(good, rollout.App{Name: "a"})
	if err == nil || rollout.IsInvalid(err) || !strings.Contains(err.Error(), "start a render worker") {
		t.Errorf("error %v", err)
	}
}

// TestNothingOfTheEnvironment checks that a worker's environment is empty. It has no credentials, and no path to git or ssh.
func TestNothingOfTheEnvironment(t *testing.T) {
	t.Setenv("GITROLLOUT_TOKEN", "secret")
	built, _, err := pool(t, 1).Build(files{}, rollout.App{Name: "environ"})
	if err != nil || len(built.Warnings) > 0 {
		t.Errorf("environment %q, error %v", built.Warnings, err)
	}
}

// TestBrokenIsRemembered checks that, after an app has ended a worker, only new files or limits of the app cause another build.
func TestBrokenIsRemembered(t *testing.T) {
	p := pool(t, 1)
	r := render.New(p)
	tree := files(attacks.Bombs()["a list of 990,000 numbers"].Tree())
	app := rollout.App{Name: "bomb", Path: "app", Namespace: "shop", Limits: rollout.Limits{Memory: 128 << 20}}
	held := func(tree files, want int) {
		t.Helper()
		_, err := r.Render(tree, app, rollout.Commit{})
		compare.Contains(t, fmt.Sprint(err), "takes more than")
		compare.CheckNamed(t, "builds", want, r.Builds())
	}
	held(tree, 1)
	held(tree, 1)
	held(with(tree, "elsewhere/x", "y"), 1)
	held(with(tree, "app/list.yaml", tree["app/list.yaml"]+"# another\n"), 2)
	app.Limits.Memory = 130 << 20
	held(tree, 3)
	if _, err := r.Render(with(tree, "app/list.yaml", configMap), app, rollout.Commit{}); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
}

func with(f files, name, content string) files {
	out := maps.Clone(f)
	out[name] = content
	return out
}
