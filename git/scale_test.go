package git_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// scale is the size of the repository in BenchmarkLargeRepository.
type scale struct {
	apps, refs, history int
	states              []int // number of commits on each state branch
}

func scaleOf() scale {
	if testing.Short() {
		return scale{apps: 500, refs: 1000, history: 5000, states: []int{10, 100, 1000}}
	}
	return scale{apps: 5000, refs: 20_000, history: 100_000, states: []int{10, 1000, 20_000}}
}

func (s scale) longest() int { return s.states[len(s.states)-1] }

func (s scale) String() string {
	return fmt.Sprintf("%d apps, %d refs, %d commits on main, %v commits on the state branches", s.apps, s.refs, s.history, s.states)
}

func appFile(i int) string { return fmt.Sprintf("apps/%02d/app-%04d/kustomization.yaml", i/100, i) }

// recordFile returns the path of an app's record. The records are in 256 folders, as in rollout.StatePath.
func recordFile(i int) string {
	name := fmt.Sprintf("app-%04d", i)
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("apps/%x/%s.yaml", sum[:1], name)
}

// record returns an app's record of a typical length, 1.3 kB. It contains hashes, which do not compress.
func record(app, version int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: gitrollout.dev/v1alpha1\nkind: AppState\napp: app-%04d\nserial: %d\n", app, version)
	for i := range 14 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d", app, i))
		if i < 4 { // these hashes change with each version
			sum = sha256.Sum256(fmt.Appendf(nil, "%d %d %d", app, i, version))
		}
		fmt.Fprintf(&text, "  - field: %02d\n    what: some name of a thing\n    hash: %x\n", i, sum[:20])
	}
	return text.String()
}

func stateOf(commits int) string { return fmt.Sprintf("gitrollout/state/after-%d", commits) }

// byCLI returns the branch to which the git command commits. The branch starts at the same commit as the branch stateOf(commits).
func byCLI(commits int) string { return fmt.Sprintf("cli/state/after-%d", commits) }

// importer builds the input of git fast-import.
type importer struct {
	strings.Builder
	clock int
}

func (s *importer) commit(branch string, mark int) {
	s.clock++
	fmt.Fprintf(s, "commit refs/heads/%s\n", branch)
	if mark > 0 {
		fmt.Fprintf(s, "mark :%d\n", mark)
	}
	fmt.Fprintf(s, "committer D <d@e> %d +0000\ndata 1\nx\n", 1_700_000_000+s.clock)
}

func (s *importer) file(path, content string) {
	fmt.Fprintf(s, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
}

// topics adds n branches at the head of main.
func (s *importer) topics(n int) {
	for i := range n {
		fmt.Fprintf(s, "reset refs/heads/topic/%d\nfrom refs/heads/main\n\n", i)
	}
}

// largeRepo creates the repository. Its refs point to commits all over main's history. All state branches have the same file names, but
// each branch has its own commits. The refs are packed and a commit-graph exists, as after maintenance by a server.
func largeRepo(b *testing.B, size scale) *gittest.Repo {
	b.Helper()
	repo := gittest.New(b)
	var s importer
	every := max(size.history/size.refs, 1)
	for i := range size.history {
		mark := 0
		if i%every == 0 {
			mark = i/every + 1
		}
		s.commit("main", mark)
		if i == 0 {
			for app := range size.apps {
				s.file(appFile(app), fmt.Sprintf("resources: [app.yaml]\nimages: [{name: app, newTag: v0}]\n# %d\n", app))
				s.file(filepath.Dir(appFile(app))+"/app.yaml", record(app, -1))
			}
			continue
		}
		s.file(appFile(i*7919%size.apps), fmt.Sprintf("resources: [app.yaml]\nimages: [{name: app, newTag: v%d}]\n", i))
	}
	for i := range size.refs {
		fmt.Fprintf(&s, "reset refs/heads/topic/%d\nfrom :%d\n\n", i, i%(size.history/every)+1)
	}
	repo.FastImport(s.String())
	for _, n := range size.states {
		s := importer{clock: size.history}
		for i := range n {
			if s.commit(stateOf(n), 0); i > 0 {
				s.file(recordFile(i*7919%size.apps), record(i*7919%size.apps, i))
				continue
			}
			for app := range size.apps {
				s.file(recordFile(app), record(app, 0))
			}
		}
		fmt.Fprintf(&s, "reset refs/heads/%s\nfrom refs/heads/%s\n\n", byCLI(n), stateOf(n))
		repo.FastImport(s.String())
	}
	repo.InBare("pack-refs", "--all")
	repo.InBare("commit-graph", "write", "--reachable")
	return repo
}

// usersPush commits a change of one app to main, directly on the server.
func usersPush(repo *gittest.Repo, version int) {
	s := importer{clock: 200_000 + version}
	s.commit("main", 0)
	s.WriteString("from refs/heads/main^0\n")
	s.file(appFile(version%500), fmt.Sprintf("resources: [app.yaml]\nimages: [{name: app, newTag: w%d}]\n", version))
	repo.FastImport(s.String())
}

// For a new process, the benchmark starts this test program again. If freshURL is set, TestMain calls fresh and runs no tests.
const (
	freshURL   = "GITROLLOUT_BENCH_FRESH_URL"
	freshState = "GITROLLOUT_BENCH_FRESH_STATE"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(freshURL); url != "" {
		if err := fresh(url, os.Getenv(freshState)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// fresh opens a repository and fetches, as a new process does. It prints received bytes, the heap after a collection, and the RSS peak.
func fresh(url, state string) error {
	ctx := context.Background()
	r, err := git.Open(ctx, git.Options{URL: url, Branch: "main", StateBranch: state})
	if err != nil {
		return err
	}
	if _, err := r.Fetch(ctx); err != nil {
		return err
	}
	peak := residentPeak(os.Getpid())
	_, err = fmt.Println(r.Stats().Received, liveHeap(), peak)
	runtime.KeepAlive(r)
	return err
}

// liveHeap returns the size of the heap after a garbage collection.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the second collection frees objects whose finalizers ran after the first collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// allocated returns the number of bytes allocated since the start of the process.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// residentPeak returns a process's peak RSS since its exec, or 0 without /proc. Linux's rusage would include the memory before the exec,
// when the process was a copy of the test program.
func residentPeak(pid int) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kB, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kB << 10
}

// children returns the ids of a process and of all its descendants.
func children(pid int) []int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	all := []int{pid}
	for _, field := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(all, children(child)...)
		}
	}
	return all
}

// cli runs shell scripts with git commands in one folder.
type cli struct {
	b   *testing.B
	dir string
}

func (c cli) command(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = c.dir, append(gittest.Env(), "HOME="+c.dir)
	return cmd
}

func (c cli) run(script string) time.Duration {
	c.b.Helper()
	start := time.Now()
	if out, err := c.command(script).CombinedOutput(); err != nil {
		c.b.Fatalf("%s: %v\n%s", script, err, out)
	}
	return time.Since(start)
}

// resident runs a script, and returns the peak RSS of its largest process. It reads the RSS every millisecond.
func (c cli) resident(script string) int64 {
	c.b.Helper()
	cmd := c.command(script)
	must(c.b, cmd.Start())
	var ended atomic.Bool
	go func() {
		_ = cmd.Wait()
		ended.Store(true)
	}()
	peak := int64(0)
	for !ended.Load() {
		for _, pid := range children(cmd.Process.Pid) {
			peak = max(peak, residentPeak(pid))
		}
		time.Sleep(time.Millisecond)
	}
	return peak
}
