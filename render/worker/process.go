package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

type process struct {
	memory rollout.Bytes
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	last   lastWords
}

func (p *Pool) start(memory rollout.Bytes) (*process, error) {
	w := &process{memory: memory, cmd: p.Command(int64(memory))}
	w.cmd.Env = []string{} // no credentials, no PATH to git or ssh
	w.cmd.Stderr = &w.last
	w.cmd.WaitDelay = 10 * time.Second // on a busy machine, reading the last output takes long
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		w.in, err = w.cmd.StdinPipe()
	}
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a render worker: %w", err)
	}
	w.out = bufio.NewReaderSize(out, 64<<10)
	return w, nil
}

func (w *process) end() {
	_ = w.in.Close()
	_ = w.cmd.Wait()
}

const outOfTime = "fatal error: out of time"

// build runs one build. After an error, the worker has ended.
func (w *process) build(s *session, app rollout.App, stall int) (done *outcome, err error) {
	deadline := time.AfterFunc(time.Duration(stall)*app.Limits.OrDefault().RenderTime, func() { _ = w.cmd.Process.Kill() })
	done, err = w.converse(s, app)
	if !deadline.Stop() && err == nil {
		err = errors.New("the time is over") // the timer has killed the worker, or is about to
	}
	if err != nil {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	}
	return done, err
}

func (w *process) converse(s *session, app rollout.App) (*outcome, error) {
	first := order{App: &app}
	for p := path.Join(app.Path, "kustomization.yaml"); p != "."; p = path.Dir(p) { // each build needs these paths
		if a, err := s.answer(p); err == nil { // otherwise the worker requests the path
			first.Ahead = append(first.Ahead, *a)
		}
	}
	err := send(w.in, first)
	for err == nil {
		var said word
		if err = receive(w.out, &said); err != nil {
			break
		}
		var o order
		switch {
		case said.Done != nil:
			return said.Done, nil
		case said.Lookup != nil:
			a, err := s.answer(*said.Lookup)
			o = s.orFailed(order{Answer: a}, err)
		case said.List != nil:
			s.listed = append(s.listed, *said.List)
			entries, err := s.tree.ReadDir(*said.List)
			o = s.orFailed(order{Answer: &answer{Path: *said.List, Folder: entries}}, err)
		case said.Locks != nil:
			o = s.unlocked(app, said.Locks)
		default:
			o = s.read(said.Read)
		}
		err = send(w.in, o)
	}
	return nil, err
}

// fatal matches the reason of a crash.
var fatal = regexp.MustCompile(`(?m)^(?:(?:fatal error|panic): |(?:SIG[A-Z]+): )(.*)$`)

// outOfMemory matches Go's messages about memory and threads. The last alternative matches a nil pointer in Go's
// garbage collector, which does not check its allocations (Go 1.26, newSpanSPMC). A nil pointer in other code causes a
// panic instead.
var outOfMemory = regexp.MustCompile(`out of memory|cannot allocate memory|cannot map pages|` +
	`failed to (reserve|create new OS thread)|newosproc|pthread_create failed|` +
	`(?m)^SIGSEGV: segmentation violation\nPC=.* addr=0x0$`)

func (w *process) hasRunOut() bool { return outOfMemory.Match(w.last.bytes()) }

func (w *process) cause() string {
	if found := fatal.FindSubmatch(w.last.bytes()); found != nil {
		return rollout.OneLine(string(found[1]))
	}
	return strings.TrimSpace(w.cmd.ProcessState.String())
}

type session struct {
	tree   rollout.Tree
	failed error           // reading the tree failed
	shown  map[string]bool // sent to the worker
	listed []string        // folders sent completely
	unlock Unlock
}

const (
	mostEntries = 200       // entries in a folder
	mostFile    = 32 << 10  // bytes in a file
	mostFiles   = 256 << 10 // bytes in all files
)

func (s *session) orFailed(o order, err error) order {
	if err != nil {
		s.failed = err
		return order{Failed: true}
	}
	return o
}

func (s *session) answer(p string) (*answer, error) {
	entry, found, err := s.tree.Lookup(p)
	if err != nil {
		return nil, err
	}
	s.shown[p] = true
	a := &answer{Path: p, Entry: entry, Found: found}
	if p != "" {
		dir, _ := folderOf(p)
		s.list(dir, a)
	}
	return a, nil
}

func (s *session) list(dir string, a *answer) {
	folder, found, err := s.tree.Lookup(dir)
	if err != nil {
		return
	}
	if found && folder.Kind == rollout.Dir {
		if a.Folder, err = s.tree.ReadDir(dir); err != nil || len(a.Folder) > mostEntries {
			a.Folder = nil
			return
		}
	}
	a.Listed, a.Files = true, map[string][]byte{}
	size := 0
	for _, entry := range a.Folder {
		s.shown[strings.TrimPrefix(dir+"/"+entry.Name, "/")] = true
		if entry.Kind != rollout.File || !isManifest.MatchString(entry.Name) {
			continue
		}
		content, err := s.tree.ReadBlob(entry.ID)
		if err == nil && len(content) <= mostFile && size+len(content) <= mostFiles {
			size += len(content)
			a.Files[entry.ID] = content
		}
	}
}

var isManifest = regexp.MustCompile(`(?i)^kustomization$|\.(ya?ml|json|env|properties)$`)

func (s *session) unlocked(app rollout.App, locks []sops.Lock) order {
	if s.unlock == nil {
		return order{Locked: sops.ErrLocked.Error()}
	}
	key, err := s.unlock(app, locks)
	if err != nil {
		return order{Locked: err.Error()}
	}
	return order{Key: key}
}

func (s *session) read(id string) order {
	content, err := s.tree.ReadBlob(id)
	if errors.Is(err, rollout.ErrTooLarge) {
		return order{TooLarge: true}
	}
	return s.orFailed(order{Content: content}, err)
}

// lastWords keeps the start and the end of a worker's standard error. A crash's reason is at the start, before many
// stacks.
type lastWords struct {
	mu  sync.Mutex
	all []byte
}

const mostWords = 64 << 10

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, p...)
	if over := len(l.all) - mostWords; over > 0 {
		l.all = slices.Delete(l.all, mostWords/2, mostWords/2+over)
	}
	return len(p), nil
}

func (l *lastWords) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}
