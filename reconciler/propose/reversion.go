package propose

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Tree is a commit of the users' branch, of which single files are read.
type Tree interface {
	Lookup(path string) (entry rollout.Entry, found bool, err error)
	ReadBlob(id string) ([]byte, error)
}

// Reversion is what takes an app back in Git: the files that it is built from, as
// of an older commit. It is the same for what was rejected and for what somebody
// wants undone.
type Reversion struct {
	Edits   map[string][]byte // of the head; nil content deletes
	Sharers []string          // the other apps that are built from any of the edited files
	Outside []string          // the edited files that are not below the app's own folder
	Others  []rollout.Commit  // whose changes it takes back besides the release's, the oldest first; see Trace
	Late    bool              // one of them is newer than the release, or nobody knows

	path string
}

// Snapshot is one commit of the users' branch.
type Snapshot interface {
	Tree
	Commit() rollout.Commit
}

// Trace finds the commits whose changes it takes back, but for numbers of pods, and but for a release's own. The line
// leads from the older commit, which is its first, to the head. Without one, nobody knows.
func Trace[S Snapshot](v Reversion, line []S, release string) (Reversion, error) {
	v.Late = len(line) == 0
	isNewer := !slices.ContainsFunc(line, func(s S) bool { return s.Commit().ID == release })
	for i := 1; i < len(line); i++ {
		c := line[i].Commit()
		if c.ID == release {
			isNewer = true
			continue
		}
		changes, err := differing(line[i-1], line[i], slices.Sorted(maps.Keys(v.Edits)))
		if err != nil {
			return v, err
		}
		if len(changes) > 0 {
			v.Others, v.Late = append(v.Others, c), v.Late || isNewer
		}
	}
	return v, nil
}

// NewReversion makes an app in the head what it was in an older commit, with as many pods as it has now. From and to
// are the app in both, all is every app in the head. An error means that a commit could not be read.
func NewReversion(head, old Tree, from, to *rollout.Render, all []*rollout.Render) (Reversion, error) {
	v := Reversion{path: from.App.Path}
	var err error
	if v.Edits, err = differing(head, old, slices.Concat(from.Files, to.Files)); err != nil {
		return v, err
	}
	for _, other := range all {
		if other.App.Name == from.App.Name {
			continue
		}
		shares := false
		for _, file := range other.Files {
			switch content, touched := v.Edits[file]; {
			case touched && content == nil:
				delete(v.Edits, file) // the older version does without it, and the other app does not
			case touched:
				shares = true
			}
		}
		if shares {
			v.Sharers = append(v.Sharers, other.App.Name)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(v.Edits)) {
		if !strings.HasPrefix(file, v.path+"/") {
			v.Outside = append(v.Outside, file)
		}
	}
	return v, nil
}

// Shared reports whether it concerns more than this app, or may do so.
func (v Reversion) Shared() bool { return len(v.Sharers)+len(v.Outside) > 0 }

// Caution says in a commit's message whom else it concerns and what else it takes back, "" if nobody and nothing.
func (v Reversion) Caution() string {
	text := ""
	if len(v.Sharers) > 0 {
		text += "\nIt also changes files of: " + strings.Join(v.Sharers, ", ") + "\n"
	}
	if len(v.Outside) > 0 {
		text += "\nFiles outside of " + v.path + ", which other clusters may use, too: " + strings.Join(v.Outside, ", ") +
			"\n"
	}
	for i, c := range v.Others {
		if i == 0 {
			text += "\nIt also takes back what these commits changed in the same files:\n"
		}
		text += fmt.Sprintf("- %s by %s: %s\n", c.Short(), c.Author, c.Subject)
	}
	return text
}

// differing returns the edits that make the paths in from what they are in to, but for the numbers of pods.
func differing(from, to Tree, paths []string) (map[string][]byte, error) {
	edits := map[string][]byte{}
	for _, path := range paths {
		a, inA, err := from.Lookup(path)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", path, err)
		}
		b, inB, err := to.Lookup(path)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", path, err)
		}
		switch {
		case inA == inB && a.ID == b.ID:
		case !inB:
			edits[path] = nil
		default:
			then, err := to.ReadBlob(b.ID)
			var now []byte
			if err == nil && inA {
				now, err = from.ReadBlob(a.ID)
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			if then = scaled(path, then, now); !inA || !bytes.Equal(then, now) {
				edits[path] = then
			}
		}
	}
	return edits, nil
}

// The numbers that say how many pods there are: of a manifest, and of a kustomization.
var (
	replicas = regexp.MustCompile(`\b(?:replicas|minReplicas|maxReplicas): *[0-9]+\b`)
	counts   = regexp.MustCompile(`\bcount: *[0-9]+\b`)
)

// scaled is an older version of a file with the numbers of pods that it has now: whoever scaled an app since has not
// rejected that. One that has other such fields by now is as it was.
func scaled(path string, then, now []byte) []byte {
	number := replicas
	if strings.HasPrefix(path[strings.LastIndex(path, "/")+1:], "kustomization.") {
		number = counts
	}
	all := number.FindAll(now, -1)
	if len(all) == 0 || len(all) != len(number.FindAll(then, -1)) {
		return then
	}
	return number.ReplaceAllFunc(then, func([]byte) []byte {
		next := all[0]
		all = all[1:]
		return next
	})
}
