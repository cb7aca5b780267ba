package worker_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/render/worker"
	"gitrollout.dev/gitrollout/rollout"
)

// TestMain runs a worker if the test program was started with the argument "serve".
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		memory, err := strconv.ParseInt(os.Args[2], 10, 64)
		if err == nil {
			err = worker.Limit(memory)
		}
		if err == nil {
			err = worker.Serve(os.Stdin, os.Stdout, func(unlock worker.Unlock) render.Builder {
				return deeds{render.InProcess{CheckProvider: provider.Check, Unlock: unlock}}
			}, func() { os.Exit(0) })
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// deeds is a Builder that does something special for some app names, such as a panic for "panics". It builds all other apps as usual.
type deeds struct{ render.Builder }

func (d deeds) Build(tree rollout.Tree, app rollout.App) (*rollout.Render, render.Looked, error) {
	switch app.Name {
	case "panics":
		panic("this is the deed")
	case "exits":
		os.Exit(7)
	case "hangs":
		select {}
	case "is killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "spins":
		for {
		}
	case "recurses":
		return nil, render.Looked{}, fmt.Errorf("depth %d", recurse(1))
	case "hoards":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			for i := range all[len(all)-1] {
				all[len(all)-1][i] = 1
			}
		}
	case "environ":
		return &rollout.Render{App: app, Warnings: os.Environ()}, render.Looked{}, nil
	case "who":
		return &rollout.Render{App: app, Warnings: []string{strconv.Itoa(os.Getpid())}}, render.Looked{}, nil
	}
	return d.Builder.Build(tree, app)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func recurse(n int) int { return 1 + recurse(n+1) }

func serve(memory int64) *exec.Cmd {
	return exec.Command("/proc/self/exe", "serve", strconv.FormatInt(memory, 10))
}

func pool(t testing.TB, most int) *worker.Pool {
	t.Helper()
	// a large Stall, because other tests slow the machine down
	p := worker.NewPool(worker.Options{Command: serve, Most: most, Idle: time.Hour, Stall: 100})
	t.Cleanup(p.Close)
	return p
}

// files is a rollout.Tree of contents by path. The content "-> target" makes a symlink, and "(submodule)" a submodule.
type files map[string]string

func (f files) Lookup(p string) (rollout.Entry, bool, error) {
	content, found := f[p]
	switch target, isLink := strings.CutPrefix(content, "-> "); {
	case isLink:
		return rollout.Entry{Name: path.Base(p), ID: "link:" + target, Kind: rollout.Symlink}, true, nil
	case content == "(submodule)":
		return rollout.Entry{Name: path.Base(p), ID: "sub", Kind: rollout.Submodule}, true, nil
	case found:
		return rollout.Entry{Name: path.Base(p), ID: "file:" + p + ":" + strconv.Itoa(len(content)), Kind: rollout.File}, true, nil
	}
	for name := range f {
		if p == "" || strings.HasPrefix(name, p+"/") {
			return rollout.Entry{Name: path.Base(p), Kind: rollout.Dir}, true, nil
		}
	}
	return rollout.Entry{}, false, nil
}

func (f files) ReadDir(dir string) ([]rollout.Entry, error) {
	names := map[string]bool{}
	for name := range f {
		if rest, below := strings.CutPrefix(name, dir+"/"); below || dir == "" {
			if dir == "" {
				rest = name
			}
			first, _, _ := strings.Cut(rest, "/")
			names[first] = true
		}
	}
	var all []rollout.Entry
	for _, name := range slices.Sorted(maps.Keys(names)) {
		e, _, err := f.Lookup(path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func (f files) ReadBlob(id string) ([]byte, error) {
	if target, isLink := strings.CutPrefix(id, "link:"); isLink {
		return []byte(target), nil
	}
	name := strings.TrimPrefix(id, "file:")
	return []byte(f[name[:strings.LastIndex(name, ":")]]), nil
}

func archive(t testing.TB, file string) files {
	t.Helper()
	a, err := txtar.ParseFile(file)
	must(t, err)
	f := files{}
	for _, one := range a.Files {
		content := string(one.Data)
		if strings.HasPrefix(content, "-> ") || strings.HasPrefix(content, "(submodule)") {
			content = strings.TrimSpace(content)
		}
		f[one.Name] = content
	}
	return f
}

func folder(t testing.TB, dir string) files {
	t.Helper()
	f := files{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(filepath.Join(dir, name))
			f[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		f[name] = string(data)
		return err
	}))
	return f
}

// TestSameAsInProcess builds the test inputs of package render in a worker and in this process. The results must be
// equal in values and types, also for inputs that are refused.
func TestSameAsInProcess(t *testing.T) {
	workers, here := pool(t, 1), render.InProcess{CheckProvider: provider.Check}
	good, refused := 0, 0
	built := func(name string, tree files, app rollout.App) {
		t.Helper()
		want, wantLooked, wantErr := here.Build(tree, app)
		got, looked, err := workers.Build(tree, app)
		for _, list := range [][]string{wantLooked.At, wantLooked.All, looked.At, looked.All} {
			slices.Sort(list)
		}
		if !sameError(wantErr, err) {
			t.Errorf("%s: the error is %v here, and %v of the worker", name, wantErr, err)
		}
		compare.CheckNamed(t, name+": dependencies, want those of this process", wantLooked, looked)
		compare.CheckNamed(t, name+", want the build of this process", want, got)
		if err == nil {
			good++
		} else {
			refused++
		}
	}
	both := func(name string, tree files, dir string) {
		t.Helper()
		built(name, tree, rollout.App{Name: "demo", Path: dir, Namespace: "shop"})
	}
	const inJSON = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}}`
	plain := rollout.App{Name: "demo", Path: "app", Namespace: "shop", Plain: true}
	plain.Directory = rollout.Directory{Recurse: true, Exclude: "ci"}
	built("a plain folder", files{"app/a.yaml": configMap, "app/b/c.json": inJSON, "app/ci/x.yaml": "a: b\n"}, plain)
	built("a plain folder with something else", files{"app/a.yaml": configMap, "app/values.yaml": "a: b\n"}, plain)
	charted := files(attacks.Chart(`{{ range list "a" "b" }}---{{ print "\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " . "}\n" }}`+
		"{{ end }}", "x: 1\n"))
	charted["app/kustomization.yaml"] = charted["kustomization.yaml"]
	delete(charted, "kustomization.yaml")
	both("a kustomization with a chart", charted, "app")
	built("a chart", charted, rollout.App{Name: "c", Path: "charts/c", Namespace: "shop", Kubernetes: "1.30.0",
		Helm: rollout.Helm{Values: `{"x": 2}`}})
	features, _ := filepath.Glob("../testdata/corpus/*")
	for _, dir := range append(features, "../testdata/getting-started", "../../examples") {
		tree := folder(t, dir)
		for name := range tree {
			if strings.HasPrefix(path.Base(name), "kustomization.y") {
				both(dir+"/"+name, tree, strings.TrimPrefix(path.Dir(name), "."))
			}
		}
	}
	invalid, _ := filepath.Glob("../testdata/invalid/*/*.txtar")
	for i, file := range invalid {
		if testing.Short() && i%5 > 0 {
			continue // with -short, every fifth input suffices, because all inputs use the same codec
		}
		tree := files{}
		if base := filepath.Join(filepath.Dir(file), "base.txtar"); slices.Contains(invalid, base) {
			tree = archive(t, base)
		}
		maps.Copy(tree, archive(t, file))
		both(file, tree, "")
	}
	least := 380
	if testing.Short() {
		least /= 5
	}
	if good < 60 || refused < least {
		t.Errorf("%d good and %d refused apps were compared, want 60 and %d: the corpus has shrunk", good, refused, least)
	}
}

func sameError(a, b error) bool {
	var x, y *rollout.InvalidError
	if errors.As(a, &x) != errors.As(b, &y) || (a == nil) != (b == nil) {
		return false
	}
	return a == nil || (x != nil && *x == *y) || (x == nil && a.Error() == b.Error())
}

// TestFailuresOfTheTree makes each request to a tree fail in turn. The build must return the tree's error, and the worker must stay usable.
func TestFailuresOfTheTree(t *testing.T) {
	p := pool(t, 1)
	app := rollout.App{Name: "demo", Path: "a", Namespace: "shop"}
	tree := files{"a/kustomization.yaml": "resources: [cm.data]\n", "a/cm.data": configMap}
	before := who(t, p)
	for n := 1; ; n++ {
		failing := &faulty{files: tree, after: n}
		_, _, err := p.Build(failing, app)
		if failing.after > 0 {
			if err != nil {
				t.Errorf("nothing failed in %d questions, and the error is %v", n, err)
			}
			if n < 4 {
				t.Errorf("only %d questions were asked", n)
			}
			break
		}
		if err != io.ErrNoProgress && err != nil { // nil if the build did not need the failed request, or repeated it
			t.Errorf("after %d questions: error %v, want the tree's error", n, err)
		}
	}
	compare.CheckNamed(t, "the worker", before, who(t, p))
}

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"

// faulty is a tree. Request number `after` fails, and all others succeed.
type faulty struct {
	files
	after int
}

func (f *faulty) fails() error {
	if f.after--; f.after == 0 {
		return io.ErrNoProgress
	}
	return nil
}

func (f *faulty) Lookup(p string) (rollout.Entry, bool, error) {
	if err := f.fails(); err != nil {
		return rollout.Entry{}, false, err
	}
	return f.files.Lookup(p)
}

func (f *faulty) ReadDir(p string) ([]rollout.Entry, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.files.ReadDir(p)
}

func (f *faulty) ReadBlob(id string) ([]byte, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.files.ReadBlob(id)
}

// who builds an app, and returns the PID of the worker.
func who(t *testing.T, p *worker.Pool) string {
	t.Helper()
	built, _, err := p.Build(files{}, rollout.App{Name: "who"})
	must(t, err)
	return built.Warnings[0]
}

var good = files{"good/kustomization.yaml": "resources: [cm.yaml]\n", "good/cm.yaml": configMap}

func builds(t *testing.T, p *worker.Pool) {
	t.Helper()
	built, _, err := p.Build(good, rollout.App{Name: "good", Path: "good", Namespace: "shop"})
	if err != nil || len(built.Objects) != 1 {
		t.Errorf("the next app: %v, error %v", built, err)
	}
}

// TestWhatBreaksAWorker checks that an app that ends its worker is refused with a reason. The next app must be built.
func TestWhatBreaksAWorker(t *testing.T) {
	const ended, report = "apps/x: crashed the render process: ", "; report the crash, and change the app"
	const smaller, widen = " to render; make the app smaller, or widen limits.", " in the cluster's config.yaml"
	for deed, want := range map[string]string{
		"panics":   "apps/x: rendering it panicked: this is the deed; report the panic, and revert to the previous commit",
		"exits":    ended + "exit status 7" + report,
		"recurses": ended + "stack overflow" + report,
		"spins":    "apps/x: takes more than 1s" + smaller + "renderTime" + widen,
		"hoards":   "apps/x: takes more than 256Mi of memory" + smaller + "memory" + widen,
	} {
		t.Run(deed, func(t *testing.T) {
			t.Parallel()
			p := pool(t, 1)
			var told []string
			var words string
			p.Trouble = func(app, cause string, stack []byte) { told, words = append(told, app+": "+cause), string(stack) }
			limits := rollout.Limits{Memory: 256 << 20, RenderTime: time.Hour}
			switch deed {
			case "spins":
				limits.RenderTime = time.Second
			case "recurses": // a stack of 64 MiB needs much more memory, and a busy machine frees memory late
				limits.Memory = 1 << 30
			}
			var err error
			for try := 0; try < 20 && !rollout.IsInvalid(err); try++ { // on a busy machine, the process may not get a second of CPU time
				told = nil
				_, _, err = p.Build(good, rollout.App{Name: deed, Path: "apps/x", Limits: limits})
			}
			if !rollout.IsInvalid(err) || err.Error() != want {
				t.Errorf("error %v\nwant  %s", err, want)
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], deed+": ") {
				t.Errorf("told %q, want it once", told)
			}
			if deed == "recurses" && (!strings.Contains(words, "fatal error: stack overflow") || len(words) > 4<<10) {
				t.Errorf("told of it in %d bytes: %.200s", len(words), words)
			}
			builds(t, p)
		})
	}
}

// TestWhatTheMachineBreaks checks the error for a worker that was killed or got no CPU time. The app is not the reason, so the error is no
// InvalidError and is not cached.
func TestWhatTheMachineBreaks(t *testing.T) {
	for _, deed := range []string{"hangs", "is killed"} {
		t.Run(deed, func(t *testing.T) {
			t.Parallel()
			p := pool(t, 1)
			limits := rollout.Limits{Memory: 256 << 20, RenderTime: 500 * time.Millisecond}
			_, looked, err := p.Build(good, rollout.App{Name: deed, Path: "apps/x", Limits: limits})
			want := "apps/x: the process that renders the app was killed: " +
				"the machine is busy, suspended or out of memory; a retry may succeed"
			if fmt.Sprint(err) != want || rollout.IsInvalid(err) || len(looked.At) > 0 {
				t.Errorf("error %v\nwant  %s", err, want)
			}
			builds(t, p)
		})
	}
}

// TestTimeIsOfTheCPU suspends a worker for longer than renderTime, which limits only CPU time. The worker must then build the app.
func TestTimeIsOfTheCPU(t *testing.T) {
	p := pool(t, 1)
	builds(t, p)
	worker := p.Resting()[0]
	must(t, worker.Signal(syscall.SIGSTOP))
	time.AfterFunc(time.Second, func() { _ = worker.Signal(syscall.SIGCONT) })
	app := rollout.App{Name: "good", Path: "good", Namespace: "shop", Limits: rollout.Limits{RenderTime: 500 * time.Millisecond}}
	if _, _, err := p.Build(good, app); err != nil {
		t.Error(err)
	}
	if now := p.Resting()[0]; now.Pid != worker.Pid {
		t.Error("the worker was replaced")
	}
}

// withLarge is a tree that refuses to read large.bin, because the content is too large.
type withLarge struct{ files }

func (w withLarge) ReadBlob(id string) ([]byte, error) {
	if strings.Contains(id, "large.bin") {
		return nil, fmt.Errorf("file %s: %w", id, rollout.ErrTooLarge)
	}
	return w.files.ReadBlob(id)
}

// TestAFileThatIsNotKept checks that an app with too large a file is refused. The error names the file, with and without a worker.
func TestAFileThatIsNotKept(t *testing.T) {
	tree := withLarge{files{"a/kustomization.yaml": "configMapGenerator: [{name: c, files: [large.bin]}]\n", "a/large.bin": "x"}}
	app := rollout.App{Name: "demo", Path: "a", Namespace: "shop"}
	_, _, want := render.InProcess{}.Build(tree, app)
	_, _, err := pool(t, 1).Build(tree, app)
	if !sameError(want, err) || !strings.Contains(fmt.Sprint(err), "a/large.bin is too large") {
		t.Errorf("error %v, here %v", err, want)
	}
}

// TestKeysStayOutside checks that the parent decrypts data keys for its worker, which has no private keys. If the parent fails, the worker
// reports the parent's error. If the parent has no private keys, the values stay sealed.
func TestKeysStayOutside(t *testing.T) {
	key := sopstest.Age(t)
	keys, err := sops.ReadKeys(map[string]string{key.Name: key.Secret})
	must(t, err)
	tree := files{"a/kustomization.yaml": "resources: [secret.yaml]\n",
		"a/secret.yaml": sopstest.Manifest(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2}\n", key)}
	app := rollout.App{Name: "a", Path: "a", Namespace: "shop", Decryption: "keys"}
	for name, c := range map[string]struct {
		unlock    worker.Unlock
		want, err string
	}{
		"with keys": {func(of rollout.App, locks []sops.Lock) ([]byte, error) {
			if of != app || len(locks) != 1 || locks[0].Kind != sops.KindAge {
				t.Errorf("asked for %+v by %+v", locks, of)
			}
			return keys.Unlock(locks)
		}, "hunter2", ""},
		"with another key": {func(rollout.App, []sops.Lock) ([]byte, error) { return nil, sops.ErrLocked }, "",
			"no key in Secret shop/keys opens it"},
		"with no Secret": {func(rollout.App, []sops.Lock) ([]byte, error) { return nil, errors.New("the Secret is gone") }, "",
			"a/secret.yaml: the Secret is gone"},
		"without keys": {nil, rollout.AnnotationSealed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool(t, 1)
			p.Unlock = c.unlock
			built, _, err := p.Build(tree, app)
			if c.err != "" {
				compare.Contains(t, fmt.Sprint(err), c.err)
				compare.CheckNamed(t, "reason", rollout.HeldUndecryptable, rollout.ReasonOf(err))
				return
			}
			must(t, err)
			compare.Contains(t, fmt.Sprint(built.Objects), c.want)
		})
	}
}
