package simulate

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/rollout"
)

// Script has the timeline and the files of a Story.
type Script struct {
	Timeline string
	Files    map[string]string
	archive  *txtar.Archive // nil without files
}

const timelineFile = "timeline"

// ParseScript reads a timeline, or a txtar archive with the file "timeline".
func ParseScript(data []byte) (Script, error) {
	archive := txtar.Parse(data)
	if len(archive.Files) == 0 {
		return Script{Timeline: string(data)}, nil
	}
	s := Script{archive: archive, Files: map[string]string{}}
	for _, f := range archive.Files {
		if f.Name == timelineFile {
			s.Timeline = string(f.Data)
			continue
		}
		s.Files[f.Name] = string(f.Data)
	}
	if s.Timeline == "" {
		return s, errors.New("has files and no timeline: write the commands below a line -- timeline --")
	}
	return s, nil
}

// With returns the script with another timeline.
func (s Script) With(timeline string) []byte {
	if s.archive == nil {
		return []byte(timeline)
	}
	for i, f := range s.archive.Files {
		if f.Name == timelineFile {
			s.archive.Files[i].Data = []byte(timeline)
		}
	}
	return txtar.Format(s.archive)
}

// Options returns NewStory's options. Files are from the tree or, if tree is nil, from the script. If cluster is "",
// the files must configure exactly one cluster.
func (s Script) Options(tree rollout.Tree, cluster string) (StoryOptions, error) {
	o := StoryOptions{Cluster: cluster, Files: s.Files, Extra: s.Files}
	if tree != nil {
		o.Files, o.Links = map[string]string{}, map[string]string{}
		if err := o.load(tree, "", new(int)); err != nil {
			return o, err
		}
	}
	if cluster != "" {
		return o, nil
	}
	var found []string
	for name := range o.Files {
		if folder := path.Dir(name); name == rollout.ConfigPath(path.Base(folder)) {
			found = append(found, path.Base(folder))
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		o.Cluster = found[0]
		return o, nil
	case 0:
		return o, &rollout.InvalidError{File: rollout.ConfigPath("<cluster>"),
			Msg: "does not exist: there is no cluster to simulate",
			Fix: "name the repository with --dir, or put its files into the script"}
	}
	return o, fmt.Errorf("there are several clusters; name one with --cluster: %s", strings.Join(found, ", "))
}

const maxLoaded = 256 << 20

func (o *StoryOptions) load(tree rollout.Tree, dir string, size *int) error {
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list %q: %w", dir, err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch e.Kind {
		case rollout.Dir:
			if err := o.load(tree, name, size); err != nil {
				return err
			}
		case rollout.File, rollout.Symlink:
			data, err := tree.ReadBlob(e.ID)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if *size += len(data); *size > maxLoaded {
				return fmt.Errorf("with folder %q, the files exceed %d MB in total, the limit of a simulation: "+
					"name a smaller --dir", dir, maxLoaded>>20)
			}
			if e.Kind == rollout.Symlink {
				o.Links[name] = string(data)
			} else {
				o.Files[name] = string(data)
			}
		}
	}
	return nil
}
