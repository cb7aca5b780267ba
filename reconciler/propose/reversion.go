package propose

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Tree reads files of one commit.
type Tree interface {
	Lookup(path string) (entry rollout.Entry, found bool, err error)
	ReadBlob(id string) ([]byte, error)
}

// Reversion restores an app's files from an older commit.
type Reversion struct {
	Edits   map[string][]byte // by path; nil deletes the file
	Sharers []string          // other apps that use an edited file
	Outside []string          // edited files outside the app's folder
	Others  []rollout.Commit  // also reverted, oldest first; see Trace
	Late    bool              // one of Others is newer than the release, or the history is unknown
	Resized []string          // changes of replicas that the edits may undo

	path   string
	uses   []string // of the older render
	scaled bool     // replicas have changed since the older commit
}

// Snapshot is one commit of the users' branch.
type Snapshot interface {
	Tree
	Commit() rollout.Commit
}

// Trace finds the commits that v reverts besides the release, except commits that change only replicas. "line" has the
// commits from the older commit to the head, both included, or none if they are unknown.
func Trace[S Snapshot](v Reversion, line []S, release string) (Reversion, error) {
	v.Late = len(line) == 0
	isNewer := !slices.ContainsFunc(line, func(s S) bool { return s.Commit().ID == release })
	for i := 1; i < len(line); i++ {
		c := line[i].Commit()
		if c.ID == release {
			isNewer = true
			continue
		}
		all := &comparison{any: v.scaled, kept: map[[2]int64]int{}}
		changes, err := all.differing(line[i-1], line[i], slices.Sorted(maps.Keys(v.Edits)))
		if err != nil {
			return v, err
		}
		if len(changes) > 0 {
			v.Others, v.Late = append(v.Others, c), v.Late || isNewer
		}
	}
	return v, nil
}

// NewReversion restores an app's files from an older commit, but keeps the head's replicas. "from" and "to" are the
// app's renders at the head and at the older commit. "all" has all renders at the head. It fails if isConfigured
// returns true.
func NewReversion(head, old Tree, from, to *rollout.Render, all []*rollout.Render) (Reversion, error) {
	v := Reversion{path: from.App.Path, uses: to.Files}
	isOther, err := isConfigured(head, from, to)
	if err != nil {
		return v, err
	}
	if isOther {
		return v, fmt.Errorf("its entry in config.yaml (substitute, or how it is rendered) differs from the entry in %s, "+
			"and its files alone do not restore that version: restore the old entry as well, or revert the commits by hand",
			to.Commit.Short())
	}
	c := comparing(from, to)
	if v.Edits, err = c.differing(head, old, slices.Concat(from.Files, to.Files)); err != nil {
		return v, err
	}
	v.scaled = len(c.scaled) > 0
	for pair, texts := range c.scaled {
		if c.kept[pair] < len(texts) {
			v.Resized = append(v.Resized, texts...)
		}
	}
	slices.Sort(v.Resized)
	for _, other := range all {
		if other.App.Name == from.App.Name {
			continue
		}
		for _, file := range other.Files {
			switch content, touched := v.Edits[file]; {
			case touched && content == nil:
				delete(v.Edits, file) // another app needs the file
			case touched && !slices.Contains(v.Sharers, other.App.Name):
				v.Sharers = append(v.Sharers, other.App.Name)
			}
		}
	}
	isOwn := func(file string) bool { return strings.HasPrefix(file, v.path+"/") }
	v.Outside = slices.DeleteFunc(slices.Sorted(maps.Keys(v.Edits)), isOwn)
	return v, nil
}

// isConfigured reports whether the app's entry in config.yaml has another renderer now, or another value of a used
// variable.
func isConfigured(head Tree, from, to *rollout.Render) (bool, error) {
	now, then := from.App, to.App
	if now.Helm != then.Helm || now.Plain != then.Plain || now.Directory != then.Directory ||
		now.Variables.On != then.Variables.On || now.Variables.Files != then.Variables.Files {
		return true, nil
	}
	values, was := now.Variables.Map(), then.Variables.Map()
	maps.DeleteFunc(values, func(name, value string) bool { return was[name] == value })
	for _, path := range from.Files {
		entry, found, err := head.Lookup(path)
		if err != nil {
			return false, fmt.Errorf("look up %s: %w", path, err)
		}
		if !found || len(values) == 0 {
			continue
		}
		content, err := head.ReadBlob(entry.ID)
		if err != nil {
			return false, fmt.Errorf("read %s: %w", path, err)
		}
		for name := range values {
			if bytes.Contains(content, []byte("${"+name)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Shared reports whether v can change other apps.
func (v Reversion) Shared() bool { return len(v.Sharers)+len(v.Outside) > 0 }

// IsDoubtful reports whether users must review v, because it may revert more than the release.
func (v Reversion) IsDoubtful() bool { return v.Shared() || v.Late || len(v.Resized) > 0 }

// Caution returns the warnings for the commit message.
func (v Reversion) Caution() string {
	text := ""
	if len(v.Sharers) > 0 {
		text += "\nIt also changes files of: " + strings.Join(v.Sharers, ", ") + "\n"
	}
	if len(v.Outside) > 0 {
		text += "\nOther clusters may also use these files outside of " + v.path + ": " + strings.Join(v.Outside, ", ") + "\n"
	}
	if len(v.Resized) > 0 {
		text += "\nIt may scale the app; correct these numbers before you merge: " + strings.Join(v.Resized, "; ") + "\n"
	}
	for i, c := range v.Others {
		if i == 0 {
			text += "\nIt also takes back the changes of these commits in the same files:\n"
		}
		text += fmt.Sprintf("- %s by %s: %s\n", c.Short(), c.Author, c.Subject)
	}
	return text
}

// comparison restores files but keeps the replicas at head, because releases do not include scaling.
type comparison struct {
	from, to string
	scaled   map[[2]int64][]string // objects, by replicas at the older commit and at head
	kept     map[[2]int64]int
	any      bool // the renders are unknown, so each match counts as replicas
}

func comparing(from, to *rollout.Render) *comparison {
	c := &comparison{from: from.App.Path, to: to.App.Path, scaled: map[[2]int64][]string{}, kept: map[[2]int64]int{}}
	for _, o := range from.Objects {
		then, found := rollout.Find(to.Objects, func(was rollout.Object) bool { return was.Ref() == o.Ref() })
		if !found {
			continue
		}
		for _, field := range []string{"replicas", "minReplicas", "maxReplicas", "minReplicaCount", "maxReplicaCount"} {
			now, isNow := o.Map("spec")[field].(int64)
			was, wasThen := then.Map("spec")[field].(int64)
			if isNow && wasThen && now != was {
				pair := [2]int64{was, now}
				c.scaled[pair] = append(c.scaled[pair],
					fmt.Sprintf("%s of %s %s: %d now, %d then", field, o.Kind(), o.Name(), now, was))
			}
		}
	}
	return c
}

// differing returns the edits that turn from's files into to's files. After a rename of the folder, the replicas come
// from the file in the new folder.
func (c *comparison) differing(from, to Tree, paths []string) (map[string][]byte, error) {
	edits := map[string][]byte{}
	for _, path := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		a, inA, err := from.Lookup(path)
		b, inB, failed := to.Lookup(path)
		if err := cmp.Or(err, failed); err != nil {
			return nil, fmt.Errorf("look up %s: %w", path, err)
		}
		switch {
		case inA == inB && a.ID == b.ID:
			continue
		case !inB:
			edits[path] = nil
			continue
		}
		sized, isSized := a, inA
		if below, is := strings.CutPrefix(path, c.to+"/"); is && !inA {
			sized, isSized, err = from.Lookup(c.from + "/" + below)
		}
		var then, now []byte
		if err == nil {
			then, err = to.ReadBlob(b.ID)
		}
		if err == nil && isSized {
			now, err = from.ReadBlob(sized.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if then = c.keep(path, then, now); !inA || !bytes.Equal(then, now) {
			edits[path] = then
		}
	}
	return edits, nil
}

// These patterns find replicas in manifests, patches, chart values, JSON patches (RFC 6902) and kustomizations.
const (
	sizes     = `\b(?:replicas|replicaCount|(?:min|max)Replicas|(?:min|max|idle)ReplicaCount)`
	ofAField  = sizes + `"? *: *[0-9]+\b`
	ofAnEntry = `\bpath"? *: *["']?/spec/` + sizes + `["']?(?:[\s,]+"?op"? *: *"?\w+"?)?[\s,]+"?value"? *: *[0-9]+\b` +
		`|\bvalue"? *: *[0-9]+(?:[\s,]+"?op"? *: *"?\w+"?)?[\s,]+"?path"? *: *["']?/spec/` + sizes + `\b`
)

var (
	numbers = regexp.MustCompile(ofAField + "|" + ofAnEntry)
	digits  = regexp.MustCompile(`[0-9]+`)
	counts  = regexp.MustCompile(ofAField + "|" + ofAnEntry + `|\bcount"? *: *[0-9]+\b`)
)

// keep returns a file's old content with the present replicas. It finds a number by its surroundings (see place),
// because lines may move.
func (c *comparison) keep(path string, then, now []byte) []byte {
	number := numbers
	if strings.HasPrefix(path[strings.LastIndex(path, "/")+1:], "kustomization.") {
		number = counts
	}
	has := map[string][][]byte{}
	for _, at := range number.FindAllIndex(now, -1) {
		where := place(now, at)
		has[where] = append(has[where], now[at[0]:at[1]])
	}
	out, end := []byte{}, 0 // nil would delete the file
	for _, at := range number.FindAllIndex(then, -1) {
		where, was := place(then, at), then[at[0]:at[1]]
		out = append(out, then[end:at[0]]...)
		if all := has[where]; len(all) > 0 {
			has[where] = all[1:]
			if pair := [2]int64{numberIn(was), numberIn(all[0])}; c.any || len(c.scaled[pair]) > 0 {
				c.kept[pair]++
				was = all[0]
			}
		}
		out, end = append(out, was...), at[1]
	}
	return append(out, then[end:]...)
}

// place describes where a number is: the start of its line, the parent line, the document's kind, and the name after
// the number or, if there is none, the last name before. Digits become "#".
func place(content []byte, at []int) string {
	doc := content[max(0, bytes.LastIndex(content[:at[0]], []byte("\n---"))):at[0]]
	lines := strings.Split(string(doc), "\n")
	last := len(lines) - 1
	before, above, name := lines[last], "", lastOf(names, doc)
	if i := strings.LastIndex(before, "{"); i >= 0 {
		before = before[strings.LastIndexAny(before[:i], ",[{")+1:]
	}
	if found := nameAfter.FindSubmatch(content[at[1]:]); found != nil {
		name = string(found[1])
	}
	for i := last - 1; i >= 0 && above == ""; i-- {
		if text := strings.TrimLeft(lines[i], " "); text != "" && indent(lines[i]) < indent(lines[last]) {
			above = text
		}
	}
	return digits.ReplaceAllString(before+"\n"+above, "#") + "\n" + lastOf(kinds, doc) + "\n" + name
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

var (
	kinds     = regexp.MustCompile(`(?m)^kind: *(\S+)`)
	names     = regexp.MustCompile(`\bname"?: *["']?([\w.-]+)`)
	nameAfter = regexp.MustCompile(`\A\s*,?\s*"?name"?: *["']?([\w.-]+)`)
)

func lastOf(what *regexp.Regexp, text []byte) string {
	if all := what.FindAllSubmatch(text, -1); len(all) > 0 {
		return string(all[len(all)-1][1])
	}
	return ""
}

func numberIn(text []byte) int64 {
	n, _ := strconv.ParseInt(string(digits.Find(text)), 10, 64)
	return n
}
