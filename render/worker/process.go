package worker

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// process is one worker as seen from the process that asks.
type process struct {
	memory rollout.Bytes // its bound
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	last   lastWords
}

// start begins a worker with that bound of memory.
func (p *Pool) start(memory rollout.Bytes) (*process, error) {
	w := &process{memory: memory, cmd: p.Command(int64(memory))}
	w.cmd.Env = []string{} // no credentials, and no PATH by which git or ssh would be found
	w.cmd.Stderr = &w.last
	w.cmd.WaitDelay = 10 * time.Second // for its last words to be read, on a machine that is busy
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		w.in, err = w.cmd.StdinPipe()
	}
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a worker to render: %w", err)
	}
	w.out = bufio.NewReaderSize(out, 64<<10)
	return w, nil
}

// end ends a worker that is at rest, which does so when nothing is left to read.
func (w *process) end() {
	_ = w.in.Close()
	_ = w.cmd.Wait()
}

var errLate = errors.New("the time is over")

// outOfTime is the last word of a worker that has used up its time of the CPU.
const outOfTime = "fatal error: out of time"

// mostStalled is how many times its time of the CPU a build may last, on a machine that is busy or stands still.
const mostStalled = 4

// build has an app built by a worker that ends when it has used up its time. After an error the worker is no more.
func (w *process) build(s *session, app rollout.App) (done *outcome, err error) {
	deadline := time.AfterFunc(mostStalled*app.Limits.OrDefault().RenderTime, func() { _ = w.cmd.Process.Kill() })
	done, err = w.converse(s, app)
	if !deadline.Stop() && err == nil {
		err = errLate // and perhaps it is killed just now
	}
	if err != nil {
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	}
	return done, err
}

// converse sends the order and answers questions until it is carried out.
func (w *process) converse(s *session, app rollout.App) (*outcome, error) {
	err := send(w.in, s.order(app))
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
			o = s.lookup(*said.Lookup)
		case said.List != nil:
			o = s.readDir(*said.List)
		case said.Locks != nil:
			o = s.unlocked(app, said.Locks)
		default:
			o = s.read(said.Read)
		}
		err = send(w.in, o)
	}
	return nil, err
}

// fatal are the lines in which Go says why a program ends: the last form is that of a signal in Go's runtime itself.
var fatal = regexp.MustCompile(`(?m)^(?:(?:fatal error|panic): |(?:SIG[A-Z]+): )(.*)$`)

// outOfMemory are the words for it, of Go and of the threads that it cannot start. The last one is of a nil pointer in
// Go's runtime: Go 1.26 does not look whether its collector got the memory it asked for (newSpanSPMC, whose ring is
// then nil). A nil pointer of the program is a panic, and has other words.
var outOfMemory = regexp.MustCompile(`out of memory|cannot allocate memory|cannot map pages|` +
	`failed to (reserve|create new OS thread)|newosproc|pthread_create failed|` +
	`(?m)^SIGSEGV: segmentation violation\nPC=.* addr=0x0$`)

// hasRunOut reports whether a worker that is no more has died of its bound of memory.
func (w *process) hasRunOut() bool { return outOfMemory.Match(w.last.bytes()) }

// isLate reports whether a worker that is no more has died of its bound of time.
func (w *process) isLate() bool { return bytes.Contains(w.last.bytes(), []byte(outOfTime)) }

// isKilled reports whether a worker that is no more was killed, and has not ended by itself.
func (w *process) isKilled() bool {
	return w.cmd.ProcessState.ExitCode() < 0 && !fatal.Match(w.last.bytes())
}

// cause is in a few words why a worker is no more.
func (w *process) cause() string {
	if found := fatal.FindSubmatch(w.last.bytes()); found != nil {
		return rollout.OneLine(string(found[1]))
	}
	return strings.TrimSpace(w.cmd.ProcessState.String())
}

// session is the tree of one build, for the worker's questions.
type session struct {
	tree   rollout.Tree
	ahead  []string        // what is answered before it is asked
	asked  []string        // paths
	failed error           // the tree could not be read
	shown  map[string]bool // paths that the worker knows of
	listed []string        // folders of which it knows all that they have
	unlock Unlock
}

// known is what the worker could know of, on which what became of it may depend.
func (s *session) known() render.Looked {
	return render.Looked{At: slices.Collect(maps.Keys(s.shown)), All: s.listed}
}

// worthwhile are the paths to answer ahead the next time: those of this time, and what was asked beyond them.
func (s *session) worthwhile() []string {
	all := append(slices.Clone(s.ahead), s.asked...)
	return all[:min(len(all), mostAhead)]
}

// The bounds of what goes along with an answer.
const (
	mostAhead   = 40        // paths
	mostEntries = 200       // of a folder
	mostFile    = 32 << 10  // bytes
	mostFiles   = 256 << 10 // bytes
)

// order is what a worker is told first.
func (s *session) order(app rollout.App) order {
	o := order{App: &app}
	for _, p := range s.ahead {
		if a, err := s.answer(p); err == nil { // or else it is asked for, or not
			o.Ahead = append(o.Ahead, *a)
		}
	}
	return o
}

// lookup answers what is at a path.
func (s *session) lookup(p string) order {
	s.asked = append(s.asked, p)
	a, err := s.answer(p)
	return s.orFailed(order{Answer: a}, err)
}

// orFailed is an answer, or that the tree could not be read.
func (s *session) orFailed(o order, err error) order {
	if err != nil {
		s.failed = err
		return order{Failed: true}
	}
	return o
}

// readDir answers what is in a folder.
func (s *session) readDir(dir string) order {
	s.listed = append(s.listed, dir)
	entries, err := s.tree.ReadDir(dir)
	return s.orFailed(order{Answer: &answer{Path: dir, Folder: entries}}, err)
}

// answer is what is at a path, and in its folder.
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

// list adds what is in a folder, if that is not much. What cannot be read will be asked for, or not.
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

// unlocked answers the data key of an encrypted file, or why there is none.
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

// read answers what is in a file.
func (s *session) read(id string) order {
	content, err := s.tree.ReadBlob(id)
	if errors.Is(err, rollout.ErrTooLarge) {
		return order{}
	}
	return s.orFailed(order{Content: &content}, err)
}

// lastWords are what a worker writes to its standard error: why it is no more. Go says that in its first lines, and may
// follow them up with the stacks of everything that ran.
type lastWords struct {
	mu  sync.Mutex
	all []byte
}

// mostWords bounds what is kept of a worker's errors, in bytes.
const mostWords = 64 << 10

// Write keeps what there is room for: the first half of it stays, and of the rest what is new.
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
