package git

import (
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"gitrollout.dev/gitrollout/rollout"
)

// Change is a path that differs between two snapshots. A missing path has the zero Entry. If only one snapshot has a
// directory, each of the directory's files is a Change.
type Change struct {
	Path     string
	Old, New rollout.Entry
}

// Changes lists the files, links and submodules below dir ("" for the root) that differ, sorted by path element. It
// skips equal directories, so 5,000 apps take 2 ms (with go-git's DiffTree, 800 ms).
func Changes(old, new *Snapshot, dir string) ([]Change, error) {
	from, _, err := old.lookup(dir)
	if err != nil {
		return nil, err
	}
	to, _, err := new.lookup(dir)
	if err != nil {
		return nil, err
	}
	if dir == "." {
		dir = ""
	}
	d := differ{old: old.store, new: new.store}
	err = d.pair(dir, from, to)
	return d.changes, err
}

type differ struct {
	old, new *store
	changes  []Change
}

func (d *differ) pair(path string, from, to object.TreeEntry) error {
	if from.Hash == to.Hash && from.Mode == to.Mode {
		return nil
	}
	leaf := Change{Path: path}
	olds, err := side(d.old, from, &leaf.Old)
	if err != nil {
		return err
	}
	news, err := side(d.new, to, &leaf.New)
	if err != nil {
		return err
	}
	if leaf.Old.Kind != "" || leaf.New.Kind != "" {
		d.changes = append(d.changes, leaf)
	}
	return d.merge(path, olds, news)
}

func side(s *store, e object.TreeEntry, leaf *rollout.Entry) ([]object.TreeEntry, error) {
	if e.Mode == filemode.Dir {
		return s.tree(e.Hash)
	}
	*leaf = entryOf(e)
	return nil, nil
}

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
		if err := d.pair(join(dir, max(from.Name, to.Name)), from, to); err != nil {
			return err
		}
	}
	return nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
