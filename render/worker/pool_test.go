package worker

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
			if !errors.Is(err, errClosed) {
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

// TestWorkersStayWarm checks that builds one after the other use the same worker, and that the number of workers is limited.
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
	first := p.idle[0].cmd.Process
	must(t, first.Kill())
	builds(t, p)
	if p.idle[0].cmd.Process.Pid == first.Pid {
		t.Error("it is the same worker")
	}
}

// TestAnotherBoundIsAnotherWorker checks that a new worker builds an app with another memory limit.
func TestAnotherBoundIsAnotherWorker(t *testing.T) {
	p := pool(t, 1)
	small := rollout.App{Name: "who", Limits: rollout.Limits{Memory: 128 << 20}}
	first := who(t, p)
	built, _, err := p.Build(files{}, small)
	if err != nil || built.Warnings[0] == first {
		t.Errorf("worker %v for another bound, error %v", built, err)
	}
	if len(p.idle) != 1 {
		t.Errorf("%d workers at rest, want 1", len(p.idle))
	}
}

// TestIdleWorkersEnd checks that an idle worker ends after the time Options.Idle, and that the next build starts a new worker.
func TestIdleWorkersEnd(t *testing.T) {
	p := pool(t, 1)
	p.Idle = 10 * time.Millisecond
	builds(t, p)
	p.mu.Lock()
	var process *os.Process
	if len(p.idle) > 0 {
		process = p.idle[0].cmd.Process
	}
	p.mu.Unlock()
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
	w, err := p.start(256 << 20)
	must(t, err)
	must(t, send(w.in, order{App: &rollout.App{Name: "spins"}}))
	w.end() // closes the worker's input and waits for its end
}

// TestCannotStart checks that Build returns an error that is no InvalidError if a worker cannot start.
func TestCannotStart(t *testing.T) {
	p := NewPool(Options{Command: func(int64) *exec.Cmd { return exec.Command("/nowhere/gitrollout") }, Most: 1})
	_, _, err := p.Build(good, rollout.App{Name: "a"})
	if err == nil || rollout.IsInvalid(err) || !strings.Contains(err.Error(), "start a worker") {
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

// TestBrokenIsRemembered checks that an app that has ended its worker is built again only when its files or limits change.
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

// TestLastWords checks that cause finds the reason of a crash in a worker's output. The output may end with a stack of
// any length, or begin with any other text.
func TestLastWords(t *testing.T) {
	reason := "runtime: cannot allocate memory\nfatal error: out of memory\n"
	inRuntime := "SIGSEGV: segmentation violation\nPC=0xce47dd m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x8b m=3 [idle]:\n" +
		"runtime.(*spanQueue).tryDrain(0x8b100002000?, 0x200000001?, 0xcdb938?)\n"
	inProgram := "panic: runtime error: invalid memory address or nil pointer dereference\n" +
		"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0xd3dd28]\n"
	much := strings.Repeat("main.recurse(0x1)\n\t/recurse.go:12 +0x1d\n", 20_000)
	for name, c := range map[string]struct {
		said   []string
		ranOut bool
		cause  string
	}{
		"stacks after it":          {[]string{reason, much}, true, "out of memory"},
		"warnings before it":       {[]string{much, reason}, true, "out of memory"},
		"both in pieces":           {[]string{much[:10_000], reason, much[:30_000], much}, true, "out of memory"},
		"Go's collector has none":  {[]string{inRuntime, much}, true, "segmentation violation"},
		"another fault of Go's":    {[]string{strings.Replace(inRuntime, "0x0\n", "0x18\n", 1)}, false, "segmentation violation"},
		"a fault of the program's": {[]string{inProgram}, false, "runtime error: invalid memory address or nil pointer dereference"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &process{}
			for _, s := range c.said {
				if n, err := w.last.Write([]byte(s)); n != len(s) || err != nil {
					t.Fatalf("wrote %d of %d bytes: %v", n, len(s), err)
				}
			}
			if w.hasRunOut() != c.ranOut || w.cause() != c.cause || len(w.last.bytes()) > mostWords {
				t.Errorf("ran out: %v, of %q, %d bytes", w.hasRunOut(), w.cause(), len(w.last.bytes()))
			}
		})
	}
}
