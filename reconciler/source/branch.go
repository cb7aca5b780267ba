package source

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// Snapshot is one commit, readable without a worktree.
type Snapshot interface {
	rollout.Tree
	Commit() rollout.Commit
}

// Branch has the content of one commit for one cluster. It is immutable.
type Branch struct {
	Cluster      string
	Tree         Snapshot
	Config       *rollout.Config // from this commit or, if Behind is set, an earlier commit
	Freeze       *rollout.Freeze
	Fleet        *rollout.Fleet
	Unstaged     error                // why fleet.yaml is unusable; if set, no app follows a change
	Apps         []rollout.App        // sorted by name
	InvalidNames []render.InvalidName // of folders that cannot be apps
	Policy       *rollout.Policy      // in force, or nil
	Behind       error                // why this commit's configuration is invalid; if set, no app advances
}

// Open reads a commit. If the commit's configuration is invalid, "last" stays in force. An error means that the commit
// is unreadable.
func (r *Reader) Open(tree Snapshot, last *rollout.Config) (*Branch, error) {
	b := &Branch{Cluster: r.cluster, Tree: tree, Policy: r.Policy.Load()}
	var err error
	if b.Config, b.Behind = r.ConfigAt(tree); b.Behind != nil {
		if !rollout.IsInvalid(b.Behind) {
			return nil, b.Behind
		}
		b.Config = last
	}
	if b.Config != nil {
		was, left := r.opened.Load(), 100_000 // a limit, because a few nested Git trees can expand to millions
		if tree.Commit().ID != "" && was != nil && was.Config == b.Config && was.Policy == b.Policy &&
			render.HasSameNames(was.Tree, tree, "", &left) { // only commits have Git's ids
			b.Apps, b.InvalidNames = was.Apps, was.InvalidNames
		} else if b.Apps, b.InvalidNames, err = render.FindAll(tree, b.Config); err != nil {
			return nil, err
		} else {
			for i, app := range b.Apps {
				b.Apps[i] = b.WithProject(app)
			}
		}
		r.opened.Store(b)
		if f, remembers := r.renderer.(interface{ KeepOnly(apps []rollout.App) }); remembers {
			f.KeepOnly(b.Apps)
		}
	}
	if b.Freeze, err = ReadFreeze(tree, r.cluster); rollout.IsInvalid(err) {
		b.Freeze = rollout.Unreadable(err) // the file was meant to freeze some apps, so freeze all
	} else if err != nil {
		return nil, err
	}
	if b.Fleet, b.Unstaged = ReadFleet(tree); b.Unstaged != nil && !rollout.IsInvalid(b.Unstaged) {
		return nil, b.Unstaged
	}
	return b, nil
}

// Find returns an app by name.
func (b *Branch) Find(name string) (app rollout.App, listed bool) {
	return rollout.Find(b.Apps, func(a rollout.App) bool { return a.Name == name })
}

// WithProject sets an app's service account from its project.
func (b *Branch) WithProject(app rollout.App) rollout.App {
	if project, _ := b.Policy.ProjectOf(app.Name); project != nil && project.ServiceAccount != "" {
		return app.As(project.ServiceAccount)
	}
	return app
}

// AnyAuthor, in place of a promoters' file, lets every author promote.
const AnyAuthor = "*"

// Promoters returns the path of the promoters' file of an app's project, or "". If the project bars some authors and
// names no file, Promoters returns AnyAuthor.
func (b *Branch) Promoters(app string) string {
	project, _ := b.Policy.ProjectOf(app)
	if _, some := project.Bars(""); some && project.Promoters == "" {
		return AnyAuthor
	}
	return cmp.Or(project, &rollout.Project{}).Promoters
}

// Calendar returns when an app's releases may advance.
func (b *Branch) Calendar(app string) rollout.Calendar {
	c := cmp.Or(b.Config, &rollout.Config{}).CalendarOf(app, b.Freeze)
	if b.Fleet != nil {
		c.Freeze = c.Freeze.Longer(b.Fleet.Freeze)
	}
	return c
}

// Stage returns the cluster's stage, or nil.
func (b *Branch) Stage() *rollout.Stage {
	if i := b.Fleet.StageOf(b.Cluster); i >= 0 {
		return &b.Fleet.Stages[i]
	}
	return nil
}

// Removed returns the error of an app that is no longer listed. The app's objects stay, because a typo in a glob must
// not stop a service. "empty" lists apps without objects, such as the renamed app.
func (b *Branch) Removed(a rollout.App, empty ...string) *rollout.InvalidError {
	if e, found, err := b.Tree.Lookup(a.Path); err == nil && found && e.Kind == rollout.Symlink {
		return render.LinkedApp(a.Path)
	}
	fix := fmt.Sprintf("list it again, or remove it for good: gitrollout remove %s --cluster %s", a.Name, b.Cluster)
	if len(empty) > 0 {
		fix += fmt.Sprintf("; do not remove it if its new name is %s: "+
			"the app continues under its new name as soon as objects can be read there", strings.Join(empty, " or "))
	}
	return &rollout.InvalidError{
		File: rollout.ConfigPath(b.Cluster), Field: "apps",
		Msg: fmt.Sprintf("no longer lists %s (%s); its objects are left as they are", a.Name, a.Path), Fix: fix,
	}
}

// Prunes reports whether gitrollout deletes a removed app's objects: the app's folder is gone, and its path matches a
// glob with "prune".
func (b *Branch) Prunes(a rollout.App) bool {
	_, found, err := b.Tree.Lookup(a.Path)
	return !found && err == nil && slices.ContainsFunc(b.Config.Apps, func(glob rollout.AppGlob) bool {
		return glob.Prune && matches(glob, a.Path)
	})
}

// Promotion is an app's promotion file.
type Promotion struct {
	Path string             // "" without a file
	ID   string             // blob id, or ""
	File *rollout.Promotion // nil if unusable
	Err  error              // of the file
	By   rollout.Commit     // commit that wrote the file; zero if unknown
}

// Promotion reads an app's promotion file or, if missing, a former name's file, so that decisions survive a rename.
func (b *Branch) Promotion(app rollout.App) Promotion {
	for _, name := range append([]string{app.Name}, strings.Fields(app.Formerly)...) {
		if name != app.Name && slices.ContainsFunc(b.Apps, func(a rollout.App) bool { return a.Name == name }) {
			continue // the file belongs to another app
		}
		p := b.promotionAt(rollout.PromotionPath(b.Cluster, name))
		if p == (Promotion{}) {
			continue
		}
		if project, _ := b.Policy.ProjectOf(app.Name); p.File != nil && project.Forbids(rollout.ForbidPromoteFull) {
			p.File.Forbidden = fmt.Sprintf("project %s, rule rollouts.forbid: %s does not count; promote step by step: set "+
				"through to a step before the next timed pause, analysis or experiment", project.Name, rollout.ForbidPromoteFull)
		}
		return p
	}
	return Promotion{}
}

func (b *Branch) promotionAt(name string) Promotion {
	entry, found, err := b.Tree.Lookup(name)
	if err != nil || !found {
		return Promotion{Err: err}
	}
	p := Promotion{Path: name, ID: entry.ID}
	data, err := b.Tree.ReadBlob(entry.ID)
	if err == nil {
		p.File, err = rollout.ParsePromotion(name, data)
	}
	if p.Err = err; p.File != nil {
		p.File.Author = b.Tree.Commit().Author
	}
	return p
}

// ReadFreeze returns nil without a freeze file.
func ReadFreeze(tree rollout.Tree, cluster string) (*rollout.Freeze, error) {
	file := rollout.FreezePath(cluster)
	data, found, err := ReadFile(tree, file)
	if err != nil || !found {
		return nil, err
	}
	return rollout.ParseFreeze(file, data)
}

// ReadFleet returns nil without fleet.yaml.
func ReadFleet(tree rollout.Tree) (*rollout.Fleet, error) {
	data, found, err := ReadFile(tree, rollout.FleetPath)
	if err != nil || !found {
		return nil, err
	}
	clusters, err := Clusters(tree)
	if err != nil {
		return nil, err
	}
	return rollout.ParseFleet(data, clusters)
}

// ReadFile reads a file of a commit.
func ReadFile(tree rollout.Tree, name string) (data []byte, found bool, err error) {
	entry, found, err := tree.Lookup(name)
	if err != nil {
		return nil, false, fmt.Errorf("look up %s: %w", name, err)
	}
	if !found {
		return nil, false, nil
	}
	if entry.Kind != rollout.File {
		return nil, false, rollout.Invalidf(name, "", "is a %s", entry.Kind).WithFix("replace it by a file")
	}
	if data, err = tree.ReadBlob(entry.ID); err != nil {
		return nil, false, fmt.Errorf("read %s: %w", name, err)
	}
	return data, true, nil
}

// ReadDir returns nil without the folder.
func ReadDir(tree rollout.Tree, name string) ([]rollout.Entry, error) {
	entry, found, err := tree.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", name, err)
	}
	if !found || entry.Kind != rollout.Dir {
		return nil, nil
	}
	entries, err := tree.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	return entries, nil
}

// Clusters lists the folders of .gitrollout with a configuration.
func Clusters(tree rollout.Tree) ([]string, error) {
	entries, err := ReadDir(tree, ".gitrollout")
	if err != nil {
		return nil, err
	}
	var clusters []string
	for _, e := range entries {
		_, found, err := tree.Lookup(rollout.ConfigPath(e.Name))
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", rollout.ConfigPath(e.Name), err)
		}
		if found {
			clusters = append(clusters, e.Name)
		}
	}
	return clusters, nil
}

func missing(tree rollout.Tree, cluster string) error {
	err := &rollout.InvalidError{
		File: rollout.ConfigPath(cluster), Msg: "does not exist",
		Fix: "commit a Config there, or name another cluster with --cluster",
	}
	if clusters, listErr := Clusters(tree); listErr == nil && len(clusters) > 0 {
		err.Fix = "name a cluster with --cluster: " + strings.Join(clusters, ", ")
	}
	return err
}

func matches(glob rollout.AppGlob, dir string) bool {
	is, err := path.Match(glob.Path, dir)
	return err == nil && is
}
