package git

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Change is one path that differs between two snapshots. Old or New is the zero Entry where the path does
// not exist. A directory that exists on one side only is reported as its files.
type Change struct {
	Path     string
	Old, New Entry
}

// Changes lists the files, symbolic links and submodules that differ below a directory ("" for all), in
// order of path. It descends only into directories whose ids differ, so it costs what changed and not the
// size of the repository: go-git's DiffTree takes 800 ms for one change among 5,000 apps, this 2 ms.
func Changes(old, new *Snapshot, dir string) ([]Change, error) {
	from, _, err := old.Lookup(dir)
	if err != nil {
		return nil, err
	}
	to, _, err := new.Lookup(dir)
	if err != nil {
		return nil, err
	}
	if dir == "." {
		dir = ""
	}
	d := differ{old: old, new: new}
	err = d.pair(dir, from, to)
	return d.changes, err
}

type differ struct {
	old, new *Snapshot
	changes  []Change
}

// pair compares what the two sides have at one path.
func (d *differ) pair(path string, from, to Entry) error {
	if from.ID == to.ID && from.Kind == to.Kind && from.Executable == to.Executable {
		return nil
	}
	var leaf Change
	if from.Kind != KindDir {
		leaf.Old, from = from, Entry{}
	}
	if to.Kind != KindDir {
		leaf.New, to = to, Entry{}
	}
	if leaf.Old.Kind != "" || leaf.New.Kind != "" {
		leaf.Path = path
		d.changes = append(d.changes, leaf)
	}
	if from.Kind == "" && to.Kind == "" {
		return nil
	}
	olds, err := d.entries(d.old, from)
	if err != nil {
		return err
	}
	news, err := d.entries(d.new, to)
	if err != nil {
		return err
	}
	return d.merge(path, olds, news)
}

// merge walks two sorted directories side by side.
func (d *differ) merge(dir string, olds, news []object.TreeEntry) error {
	for len(olds) > 0 || len(news) > 0 {
		var from, to object.TreeEntry
		switch {
		case len(news) == 0 || len(olds) > 0 && olds[0].Name < news[0].Name:
			from, olds = olds[0], olds[1:]
		case len(olds) == 0 || news[0].Name < olds[0].Name:
			to, news = news[0], news[1:]
		default:
			from, olds, to, news = olds[0], olds[1:], news[0], news[1:]
		}
		if from == to {
			continue
		}
		was, err := d.old.entryOrNone(from)
		if err != nil {
			return err
		}
		is, err := d.new.entryOrNone(to)
		if err != nil {
			return err
		}
		if err := d.pair(join(dir, max(from.Name, to.Name)), was, is); err != nil {
			return err
		}
	}
	return nil
}

// entryOrNone is the zero Entry for a name that one side does not have.
func (s *Snapshot) entryOrNone(e object.TreeEntry) (Entry, error) {
	if e.Mode == 0 {
		return Entry{}, nil
	}
	return s.entry(e)
}

func (d *differ) entries(s *Snapshot, dir Entry) ([]object.TreeEntry, error) {
	if dir.Kind != KindDir {
		return nil, nil
	}
	return s.store.tree(plumbing.NewHash(dir.ID))
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// mode is the Git mode of an entry that is to be written.
func (e Entry) mode() filemode.FileMode {
	switch {
	case e.Kind == KindDir:
		return filemode.Dir
	case e.Kind == KindSymlink:
		return filemode.Symlink
	case e.Kind == KindSubmodule:
		return filemode.Submodule
	case e.Executable:
		return filemode.Executable
	}
	return filemode.Regular
}
