package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/policy"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Sides has the inputs for a cluster's plan.
type Sides struct {
	Cluster       string
	Own           string // gitrollout's namespace, where no app may write
	Now           time.Time
	Before, After *source.Branch
	Record        source.Snapshot // the state branch, or nil
	Policy        *rollout.Policy
	Author        string // of After's newest commit, for the policy; "" for the working tree
	Renderer      *render.Renderer
	// Runs reports whether the cluster has a workload, and whether an apply would keep its pod template. Without access
	// to a cluster, Runs and Traffic are nil.
	Runs func(workload rollout.Object) (runs, same bool, err error)
	// Traffic measures a workload's recent requests with the metrics that compare versions.
	Traffic func(rollout.Spec) rollout.AnalysisRun

	strict func(rollout.Tree, *rollout.Render) error // finds objects that the API server refuses
}

type uncommitted struct{ rollout.Tree }

func (uncommitted) Commit() rollout.Commit { return rollout.Commit{} }

// Read reads both configurations. A base without a configuration (a new cluster) has no apps. If base's configuration
// is invalid, base uses head's.
func (s *Sides) Read(base, head rollout.Tree) (err error) {
	reader := source.NewReader(s.Cluster, nil)
	if s.After, err = reader.Open(uncommitted{head}, nil); err != nil || s.After.Behind != nil {
		return err
	}
	s.Before = &source.Branch{Cluster: s.Cluster, Tree: uncommitted{base}}
	if _, found, err := base.Lookup(rollout.ConfigPath(s.Cluster)); err != nil || !found {
		return err
	}
	s.Before, err = reader.Open(uncommitted{base}, s.After.Config)
	return err
}

const planners = 4

// Add plans all apps. It stops if the function ended returns an error.
func (p *Plan) Add(s *Sides, ended func() error) error {
	if s.After.Behind != nil {
		p.Error, p.Errors = rollout.ProblemOf(s.After.Behind), 1
		return nil
	}
	if s.Before.Behind != nil {
		p.Base += ", whose configuration cannot be read: its apps are taken from head"
	}
	names := rollout.Mapped(slices.Concat(s.Before.Apps, s.After.Apps), func(a rollout.App) string { return a.Name })
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	apps, changed, errs := make([]App, len(names)), make([]bool, len(names)), make([]error, len(names))
	heads := make([]*rollout.Render, len(names))
	source.Each(len(names), planners, func(i int) {
		if ended() == nil {
			head, _ := s.side(s.After, names[i]) // Plan returns the error
			heads[i] = head.Render
		}
	})
	s.strict = render.Strict(heads)
	source.Each(len(names), planners, func(i int) {
		if errs[i] = ended(); errs[i] == nil {
			if apps[i], changed[i], errs[i] = s.Plan(names[i]); errs[i] != nil {
				errs[i] = fmt.Errorf("app %s: %w", names[i], errs[i])
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	known := strategies.Known{}
	for i := range apps {
		known.Fill(apps[i].Detection)
		p.add(apps[i], changed[i])
	}
	for _, u := range s.After.InvalidNames {
		p.add(App{App: u.Path, Path: u.Path, Change: Invalid, Error: rollout.ProblemOf(u.Err),
			Summary: "is not a valid app: none of its objects are applied"}, true)
	}
	p.finish()
	p.withCohorts(s, heads)
	return nil
}

// WithoutDiffs removes all diffs.
func (p *Plan) WithoutDiffs() {
	for _, a := range p.Apps {
		for k := range a.Objects {
			a.Objects[k].Diff = ""
		}
	}
}

// Plan plans an app. It returns false if nothing changes.
func (s *Sides) Plan(name string) (app App, changed bool, err error) {
	in := Input{Now: s.Now, Calendar: s.After.Calendar(name), Traffic: s.Traffic}
	if in.App, _ = s.After.Find(name); in.App.Name == "" {
		in.App, _ = s.Before.Find(name)
	}
	if in.Base, err = s.side(s.Before, name); err != nil {
		return App{}, false, err
	}
	if in.Head, err = s.side(s.After, name); err != nil {
		return App{}, false, err
	}
	if s.allow(s.After, &in.Head); in.Head.Err != nil {
		s.allow(s.Before, &in.Base)
	}
	if in.State, err = s.state(name); err != nil && !rollout.IsInvalid(err) {
		return App{}, false, err
	}
	if in.Files, err = s.differing(in); err != nil {
		return App{}, false, err
	}
	app, changed = Of(in)
	if !changed || in.Head.Render == nil || s.strict == nil {
		return app, changed, nil
	}
	if err = s.strict(s.After.Tree, in.Head.Render); rollout.IsInvalid(err) { // a note, because the app is not held
		app.Notes = slices.Insert(app.Notes, 0, Note{Level: Refused, Code: "Schema", Message: err.Error()})
		err = nil
	}
	return app, true, errors.Join(err, s.adopted(&app, in.Head.Render))
}

func (s *Sides) adopted(a *App, head *rollout.Render) error {
	if a.Change != First || s.Runs == nil {
		return nil
	}
	text := "first deployment of %s, without steps: the cluster runs none of its workloads"
	for _, spec := range head.Specs {
		workload, _ := rollout.Find(head.Objects, func(o rollout.Object) bool { return o.Ref() == spec.Workload.Ref() })
		runs, same, err := s.Runs(workload)
		switch {
		case err != nil:
			return fmt.Errorf("compare %s with the cluster: %w", spec.Workload.Title(), err)
		case runs && !same:
			a.Summary = "held: " + spec.Workload.Title() + " runs another template in the cluster; commit that template first"
			return nil
		case runs:
			text = "adopted at %s without a restart: the cluster runs this template"
		}
	}
	a.Summary = fmt.Sprintf(text, a.To)
	return nil
}

func (s *Sides) side(b *source.Branch, name string) (Side, error) {
	app, listed := b.Find(name)
	if !listed {
		return Side{}, nil
	}
	built, err := s.Renderer.Render(b.Tree, app, rollout.Commit{})
	if rollout.IsInvalid(err) {
		return Side{Err: err}, nil
	}
	return Side{Render: built}, err
}

func (s *Sides) allow(b *source.Branch, side *Side) {
	if side.Render == nil {
		return
	}
	err := policy.Allow(b.Tree, side.Render, rollout.ConfigPath(s.Cluster), s.Own, s.Policy)
	if err == nil && b == s.After {
		err = policy.CheckAuthor(b.Tree, side.Render, s.Author, s.Policy)
	}
	if err != nil {
		*side = Side{Err: err}
	}
}

func (s *Sides) differing(in Input) (differ []string, err error) {
	base, head := cmp.Or(in.Base.Render, &rollout.Render{}), cmp.Or(in.Head.Render, &rollout.Render{})
	all := slices.Sorted(slices.Values(slices.Concat(base.Files, head.Files)))
	for _, file := range slices.Compact(all) {
		is, err := source.Differ(s.Before.Tree, s.After.Tree, file)
		if err != nil {
			return nil, err
		}
		if is {
			differ = append(differ, file)
		}
	}
	return differ, nil
}

func (s *Sides) state(app string) (*rollout.State, error) {
	if s.Record == nil {
		return nil, nil
	}
	path := rollout.StatePath(app)
	data, found, err := source.ReadFile(s.Record, path)
	if err != nil || !found {
		return nil, err
	}
	return rollout.ParseState(path, data)
}
