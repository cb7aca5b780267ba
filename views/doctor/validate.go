package doctor

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/policy"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Report holds a tree's problems, for "validate".
type Report struct {
	Clusters []ClusterReport `json:"clusters"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	known    strategies.Known
}

// ClusterReport holds a cluster's problems in a tree.
type ClusterReport struct {
	Cluster  string                  `json:"cluster"`
	Errors   []*rollout.InvalidError `json:"errors,omitempty"` // in configuration and promotion files
	Warnings []string                `json:"warnings,omitempty"`
	Apps     []AppReport             `json:"apps,omitempty"`
	Allow    []string                `json:"allow,omitempty"` // YAML that would allow the forbidden objects
}

// AppReport summarizes an app's render, or has the error.
type AppReport struct {
	App       string                 `json:"app"`
	Path      string                 `json:"path"`
	Release   rollout.Hash           `json:"release,omitempty"`
	Objects   int                    `json:"objects"`
	Staged    int                    `json:"staged"` // workloads with a Rollout
	Error     *rollout.InvalidError  `json:"error,omitempty"`
	Warnings  []string               `json:"warnings,omitempty"`
	Detection []strategies.Detection `json:"detection,omitempty"` // differences that comparisons detect
}

// Add adds a cluster's report, and fills the apps' Detection.
func (r *Report) Add(c ClusterReport) {
	if r.known == nil {
		r.known = strategies.Known{}
	}
	r.Clusters = append(r.Clusters, c)
	r.Errors += len(c.Errors)
	r.Warnings += len(c.Warnings)
	for _, a := range c.Apps {
		if a.Error != nil {
			r.Errors++
		}
		r.Warnings += len(a.Warnings)
		r.known.Fill(a.Detection)
	}
}

// Check checks one cluster's files in a tree. Its parameters are own (gitrollout's namespace), rules (nil without a
// policy) and traffic (see plan.Sides.Traffic). An error means that the tree cannot be read.
func Check(
	tree rollout.Tree, cluster, own string, rules *rollout.Policy, renderer *render.Renderer,
	traffic func(rollout.Spec) rollout.AnalysisRun,
) (ClusterReport, error) {
	r := ClusterReport{Cluster: cluster}
	config, err := source.NewReader(cluster, nil).ConfigAt(tree)
	if rollout.IsInvalid(err) {
		r.Errors = append(r.Errors, rollout.ProblemOf(err))
		return r, nil
	}
	if err != nil {
		return r, err
	}
	apps, unnamed, err := render.FindAll(tree, config)
	if err != nil {
		return r, err
	}
	folders := rollout.Mapped(apps, func(a rollout.App) string { return a.Path })
	for _, folder := range unnamed {
		r.Errors, folders = append(r.Errors, rollout.ProblemOf(folder.Err)), append(folders, folder.Path)
	}
	r.Warnings = unmatched(config, folders)
	known := map[string]*rollout.Render{} // by app; nil after an error
	beyond, owners := map[*rollout.AppGlob]render.Violations{}, map[rollout.Ref]*rollout.Render{}
	for _, app := range apps {
		checked, built, err := checkApp(renderer, tree, app)
		if err != nil {
			return r, err
		}
		if built != nil {
			err := policy.Allow(tree, built, config.File, own, rules)
			if err == nil {
				err = claim(owners, built)
			}
			checked.refuse(err)
			checked.Detection = plan.Detections(built, traffic)
			entry := config.EntryOf(app)
			all := beyond[entry]
			all.Add(render.BeyondOf(built, own))
			beyond[entry] = all
		}
		known[app.Name] = built
		r.Apps = append(r.Apps, checked)
	}
	if err := r.checkStrictly(tree, known); err != nil {
		return r, err
	}
	r.Allow = allowing(config, beyond)
	_, unfrozen := source.ReadFreeze(tree, cluster)
	_, unstaged := source.ReadFleet(tree)
	for _, err := range []error{unfrozen, unstaged} {
		if rollout.IsInvalid(err) {
			r.Errors = append(r.Errors, rollout.ProblemOf(err))
		} else if err != nil {
			return r, err
		}
	}
	return r, r.checkPromotions(tree, known)
}

func (r *ClusterReport) checkStrictly(tree rollout.Tree, known map[string]*rollout.Render) error {
	strict := render.Strict(slices.Collect(maps.Values(known)))
	for i := range r.Apps {
		if a := &r.Apps[i]; a.Error == nil {
			err := strict(tree, known[a.App])
			if err != nil && !rollout.IsInvalid(err) {
				return err
			}
			a.refuse(err)
		}
	}
	return nil
}

func unmatched(config *rollout.Config, folders []string) (warnings []string) {
	const folder = "folder with a kustomization; write helm: {} in a chart's entry, or directory: {} for plain manifests"
	if len(folders) == 0 {
		return []string{config.File + ": apps: no path matches a " + folder}
	}
	for i, entry := range config.Apps {
		if !rollout.IsGlob(entry.Path) && !slices.Contains(folders, entry.Path) {
			warnings = append(warnings, fmt.Sprintf("%s: apps[%d].path: %s matches no %s", config.File, i, entry.Path, folder))
		}
	}
	return warnings
}

func checkApp(renderer *render.Renderer, tree rollout.Tree, app rollout.App) (AppReport, *rollout.Render, error) {
	a := AppReport{App: app.Name, Path: app.Path}
	built, err := renderer.Render(tree, app, rollout.Commit{})
	if rollout.IsInvalid(err) {
		a.refuse(err)
		return a, nil, nil
	}
	if err != nil {
		return a, nil, fmt.Errorf("app %s: %w", app.Name, err)
	}
	a.Release, a.Objects, a.Staged, a.Warnings = built.Release(), len(built.Objects), len(built.Specs), built.Warnings
	if len(built.Unopened) > 0 {
		a.Warnings = append(slices.Clip(a.Warnings), "the encrypted content of "+strings.Join(built.Unopened, ", ")+
			" is not checked: gitrollout validate has no key")
	}
	return a, built, nil
}

// claim returns an error if another app has an object, unless the object holds users' data and is equal in both apps.
func claim(owners map[rollout.Ref]*rollout.Render, built *rollout.Render) error {
	for _, o := range built.Objects {
		ref := o.Ref()
		other := owners[ref]
		if other == nil {
			owners[ref] = built
			continue
		}
		same := func(theirs rollout.Object) bool { return reflect.DeepEqual(theirs, o) }
		if !ref.HoldsData() || !slices.ContainsFunc(other.Objects, same) {
			return &rollout.InvalidError{
				Msg: fmt.Sprintf("%s %s/%s is in app %s and in app %s", ref.Kind, ref.Namespace, ref.Name, built.App.Name,
					other.App.Name),
				Fix: "keep the object in one app; until then, the app that owns the object continues, and the other app is held",
			}
		}
	}
	return nil
}

func (a *AppReport) refuse(err error) {
	if err != nil {
		a.Error = rollout.ProblemOf(err)
	}
}

func allowing(config *rollout.Config, beyond map[*rollout.AppGlob]render.Violations) (lines []string) {
	for i := range config.Apps {
		entry := &config.Apps[i]
		if more := beyond[entry].Lines(entry.Namespaces, entry.ClusterResources); len(more) > 0 {
			lines = append(lines, "- path: "+render.Quoted(entry.Path))
			lines = append(lines, rollout.Mapped(more, func(line string) string { return "  " + line })...)
		}
	}
	return lines
}

func (r *ClusterReport) checkPromotions(tree rollout.Tree, known map[string]*rollout.Render) error {
	dir := strings.TrimSuffix(rollout.PromotionPath(r.Cluster, "x"), "/x.yaml")
	entries, err := source.ReadDir(tree, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := dir + "/" + e.Name
		app, isYAML := strings.CutSuffix(e.Name, ".yaml")
		if e.Kind != rollout.File || !isYAML {
			r.Warnings = append(r.Warnings, file+": is not read: promotion files are called <app>.yaml")
			continue
		}
		data, err := tree.ReadBlob(e.ID)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		p, err := rollout.ParsePromotion(file, data)
		if err != nil {
			r.Errors = append(r.Errors, rollout.ProblemOf(err))
		}
		built, is := known[app]
		if !is {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: cluster %s has no app %q", file, r.Cluster, app))
		}
		if p != nil && built != nil {
			if why := strategies.NamesNoStep(built, p); why != "" {
				r.Warnings = append(r.Warnings, file+": "+why+"; if that release is over, ignore this warning")
			}
		}
	}
	return nil
}
