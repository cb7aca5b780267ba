package worker

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// Builder returns a render.Builder that calls unlock.
type Builder func(unlock Unlock) render.Builder

// Unlock returns data keys, as in render.InProcess.
type Unlock = func(app rollout.App, locks []sops.Lock) ([]byte, error)

// Serve runs a worker. When the input ends, Serve calls orphaned(), which should end the process even during a build.
func Serve(in io.Reader, out io.Writer, builder Builder, orphaned func()) error {
	orders, ended := make(chan order), make(chan error, 1)
	go func() {
		for {
			var o order
			if err := receive(in, &o); err != nil {
				ended <- err
				orphaned()
				return
			}
			orders <- o
		}
	}()
	for {
		select {
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		case o := <-orders:
			if o.App == nil {
				return errGarbled
			}
			tree := &remoteTree{orders: orders, out: out, paths: map[string]answer{},
				folders: map[string]map[string]rollout.Entry{}, files: map[string][]byte{}}
			for _, a := range o.Ahead {
				tree.keep(a)
			}
			if err := tell(out, build(builder(tree.unlock), tree, *o.App)); err != nil {
				return err
			}
		}
	}
}

func tell(out io.Writer, o *outcome) error {
	err := send(out, word{Done: o})
	if errors.Is(err, errTooLarge) {
		invalid := &rollout.InvalidError{Msg: err.Error(), Fix: "split the app"}
		return send(out, word{Done: &outcome{Invalid: invalid, Looked: o.Looked}})
	}
	return err
}

func build(builder render.Builder, tree rollout.Tree, app rollout.App) (o *outcome) {
	o = &outcome{}
	defer func() {
		if problem := recover(); problem != nil {
			o.Panic, o.Stack = fmt.Sprint(problem), debug.Stack()
		}
	}()
	defer limitTime(app.Limits.OrDefault().RenderTime)()
	built, looked, err := builder.Build(tree, app)
	o.Render, o.Looked = built, looked
	if err != nil && !errors.As(err, &o.Invalid) {
		o.Err = err.Error()
	}
	return o
}

// limitTime ends this process after the given CPU time, unless stop is called first. A suspended process uses no CPU
// time.
func limitTime(most time.Duration) (stop func()) {
	ended, end := make(chan struct{}), cpu()+most
	go func() {
		for left := most; left > 0; left = end - cpu() {
			select {
			case <-ended:
				return
			case <-time.After(left):
			}
		}
		fmt.Fprintln(os.Stderr, outOfTime)
		os.Exit(2)
	}()
	return func() { close(ended) }
}

type remoteTree struct {
	orders  <-chan order
	out     io.Writer
	paths   map[string]answer
	folders map[string]map[string]rollout.Entry // by path: all entries
	files   map[string][]byte                   // by id: small files
}

func (t *remoteTree) ask(question word) (order, error) {
	if err := send(t.out, question); err != nil {
		return order{}, err
	}
	o := <-t.orders
	switch {
	case o.Failed:
		return o, errors.New("the tree cannot be read")
	case o.Answer == nil && (question.Lookup != nil || question.List != nil):
		return o, errGarbled
	}
	return o, nil
}

func (t *remoteTree) Lookup(p string) (rollout.Entry, bool, error) {
	if a, known := t.paths[p]; known {
		return a.Entry, a.Found, nil
	}
	dir, name := folderOf(p)
	if folder := t.folders[dir]; folder != nil && p != "" {
		entry, found := folder[name]
		return entry, found, nil
	}
	o, err := t.ask(word{Lookup: &p})
	if err != nil {
		return rollout.Entry{}, false, err
	}
	t.keep(*o.Answer)
	return o.Answer.Entry, o.Answer.Found, nil
}

func (t *remoteTree) keep(a answer) {
	t.paths[a.Path] = a
	if a.Listed {
		dir, _ := folderOf(a.Path)
		t.folders[dir] = map[string]rollout.Entry{}
		for _, entry := range a.Folder {
			t.folders[dir][entry.Name] = entry
		}
	}
	maps.Copy(t.files, a.Files)
}

func (t *remoteTree) ReadDir(dir string) ([]rollout.Entry, error) {
	o, err := t.ask(word{List: &dir})
	if err != nil {
		return nil, err
	}
	return o.Answer.Folder, nil
}

func (t *remoteTree) ReadBlob(id string) ([]byte, error) {
	if content, here := t.files[id]; here {
		return content, nil
	}
	o, err := t.ask(word{Read: id})
	if err != nil {
		return nil, err
	}
	if o.TooLarge {
		return nil, rollout.ErrTooLarge
	}
	return o.Content, nil
}

func (t *remoteTree) unlock(_ rollout.App, locks []sops.Lock) ([]byte, error) {
	o, err := t.ask(word{Locks: locks})
	switch {
	case err != nil:
		return nil, err
	case o.Locked == sops.ErrLocked.Error():
		return nil, sops.ErrLocked
	case o.Locked != "":
		return nil, errors.New(o.Locked)
	}
	return o.Key, nil
}

func folderOf(p string) (dir, name string) {
	dir, name = path.Split(p)
	return strings.TrimSuffix(dir, "/"), name
}
