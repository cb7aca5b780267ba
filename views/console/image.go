package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/author/images"
	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
)

type edited struct {
	rollout.Tree
	commit rollout.Commit
}

func (e edited) Commit() rollout.Commit { return e.commit }

// SetImages returns a change that sets an app's images.
func SetImages(w *Session, name string, orders []images.Order, branch string) (propose.Change, error) {
	o := propose.Change{App: name, Branch: cmp.Or(branch, w.Branch), Edits: map[string][]byte{}, When: w.Now()}
	app, err := w.App(name)
	if err != nil {
		return o, err
	}
	if _, listed := w.Tip.Find(name); !listed {
		return o, fmt.Errorf("%s: %w", name, w.Tip.Removed(app))
	}
	a := images.App{Tree: w.Tip.Tree, Config: rollout.ConfigPath(w.Cluster)}
	a.Render = func(tree rollout.Tree) (*rollout.Render, error) {
		head := edited{tree, w.Tip.Tree.Commit()}
		return w.reader.RenderHead(head, w.reader.AppAt(head, app))
	}
	var all []string
	for _, order := range orders {
		e, err := a.Set(order)
		if err != nil {
			return o, fmt.Errorf("%s: %w", name, err)
		}
		if all = append(all, rollout.ShortImage(e.To)); e.Path != "" {
			o.Edits[e.Path] = []byte(e.Content)
			o.Message += fmt.Sprintf("%s becomes %s in %s\n", e.From, e.To, e.Path)
		}
	}
	others, unread, err := reached(w, a.Tree, name)
	switch also := strings.Join(others, ", "); {
	case err != nil:
		return o, err
	case also != "" && branch == "":
		return o, fmt.Errorf("%s: the change of %s also changes %s; set the image in a file that only %s uses, or release "+
			"all of them by a pull request: --propose BRANCH",
			name, strings.Join(slices.Sorted(maps.Keys(o.Edits)), ", "), also, name)
	case also != "":
		o.Message += "This also changes " + also + "\n"
	}
	to := strings.Join(all, " and ")
	o.Subject = fmt.Sprintf("Set the image of %s to %s", name, to)
	o.Message = o.Subject + "\n\n" + o.Message
	switch o.Effect = fmt.Sprintf("%s goes to %s", name, to); {
	case len(o.Edits) == 0:
		o.Effect = fmt.Sprintf("nothing to push: %s already has %s at %s", w.Branch, name, to)
	case branch != "":
		o.Effect += " when the branch is merged"
	default:
		o.Effect += "; watch: " + w.Command("gitrollout get "+name+" -w")
	}
	o.Effect += unread
	o.Again = func() (propose.Change, error) { return SetImages(w, name, orders, branch) }
	return o, nil
}

// reached returns the other apps that an edited tree changes, in all clusters. It also returns a warning about each
// cluster whose configuration is invalid.
func reached(w *Session, tree rollout.Tree, app string) (all []string, unread string, err error) {
	if tree == rollout.Tree(w.Tip.Tree) {
		return nil, "", nil
	}
	clusters, err := source.Clusters(tree)
	for _, cluster := range clusters {
		var p plan.Plan
		s := &plan.Sides{Cluster: cluster, Own: w.Own, Now: w.Now(), Renderer: w.Renderer}
		err := s.Read(w.Tip.Tree, tree)
		if err == nil {
			err = p.Add(s, func() error { return nil })
		}
		switch {
		case err != nil:
			return nil, "", fmt.Errorf("cluster %s: %w", cluster, err)
		case p.Error != nil:
			unread += fmt.Sprintf("\nwarning: apps of cluster %s were not compared: %v", cluster, p.Error)
		}
		for _, a := range p.Apps {
			switch wasInvalid := a.Change == plan.Invalid && len(a.Files) == 0; {
			case wasInvalid:
			case cluster != w.Cluster:
				all = append(all, fmt.Sprintf("%s (cluster %s)", a.App, cluster))
			case a.App != app:
				all = append(all, a.App)
			}
		}
	}
	return all, unread, err
}
