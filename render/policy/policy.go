// Package policy checks an app's objects against the cluster team's policy (rollout.Policy). The package is pure.
package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// Allow returns an error if an app's entry (render.Allow) or the policy forbids an object of the app.
func Allow(tree rollout.Tree, r *rollout.Render, config, own string, p *rollout.Policy) error {
	if err := render.Allow(tree, r, config, own); err != nil {
		return err
	}
	return Check(tree, r, p, own)
}

// Check returns an InvalidError (HeldPolicy) if the policy forbids an app's objects. A nil policy allows all. own is
// gitrollout's namespace. Callers must check only the newest commit, because a new rule must not forbid a rollback.
func Check(tree rollout.Tree, r *rollout.Render, p *rollout.Policy, own string) error {
	project, err := p.ProjectOf(r.App.Name)
	if err != nil || project == nil {
		return err
	}
	j := judge{project, r, own}
	for _, rule := range []func() *breach{j.sources, j.kinds, j.beyond, j.rollouts, j.quota} {
		if b := rule(); b != nil {
			return j.refuse(tree, b, p.File)
		}
	}
	return nil
}

// CheckAuthor checks only the rules about a commit's author ("Name <address>"). For rollout.UnknownAuthor, it checks
// all authors' rules.
func CheckAuthor(tree rollout.Tree, r *rollout.Render, author string, p *rollout.Policy) error {
	project, _ := p.ProjectOf(r.App.Name)
	for i := 0; project != nil && i < len(project.Rollouts.ByAuthor); i++ {
		rule, only := project.Rollouts.ByAuthor[i], *project
		if !rule.Has(author) && author != rollout.UnknownAuthor {
			continue
		}
		only.Rollouts = rollout.RolloutRules{EvidenceRules: rule.EvidenceRules}
		j := judge{Project: &only, render: r}
		if b := j.rollouts(); b != nil {
			b.rule = fmt.Sprintf("%s[%d]%s", rollout.ByAuthor, i, strings.TrimPrefix(b.rule, "rollouts"))
			b.msg, b.fix = b.msg+", and the author is "+author, b.fix+", let a person commit the change"
			return j.refuse(tree, b, p.File)
		}
	}
	return nil
}

func (j judge) refuse(tree rollout.Tree, b *breach, policy string) error {
	invalid := &rollout.InvalidError{Reason: rollout.HeldPolicy, File: b.file, Field: b.field,
		Msg: fmt.Sprintf("project %s, rule %s: %s", j.Name, b.rule, b.msg),
		Fix: b.fix + ", or ask for a change of the rule in " + policy}
	if b.about == nil {
		return invalid
	}
	return render.Blame(tree, j.render, invalid, *b.about)
}

type breach struct {
	rule, field, msg, fix string
	about                 *rollout.Ref // nil if a file or the whole app breaks the rule
	file                  string
}

type judge struct {
	*rollout.Project
	render *rollout.Render
	own    string
}

func (j judge) sources() *breach {
	for _, file := range j.render.Files {
		if !j.HasSource(file) {
			return &breach{rule: "sources", file: file, fix: "remove the file from the app", msg: fmt.Sprintf(
				"app %s is built from this file, which matches none of %s", j.render.App.Name, strings.Join(j.Sources, ", "))}
		}
	}
	return nil
}

func (j judge) kinds() *breach {
	for _, o := range j.render.Objects {
		ref := o.Ref()
		if b := j.kind(ref); b != nil {
			b.field, b.about, b.fix = "kind", &ref, "take it out"
			return b
		}
	}
	for _, m := range j.made() {
		if b := j.kind(m.ref); b != nil {
			b.msg, b.file, b.fix = b.msg+", and "+m.by, j.render.App.Path, m.fix
			return b
		}
	}
	return nil
}

type made struct {
	ref     rollout.Ref
	by, fix string
}

func (j judge) made() (all []made) {
	for _, ref := range j.render.Generated {
		all = append(all, made{ref, "a router makes " + ref.Name + " for a release", "use another router"})
	}
	for _, spec := range j.render.Specs {
		for _, m := range spec.Metrics() {
			if m.Provider == "job" {
				all = append(all, made{rollout.Ref{Group: "batch", Kind: "Job"},
					fmt.Sprintf("metric %s of %s creates one", m.Name, spec.Workload), "use another provider"})
			}
		}
		for _, t := range slices.Concat(templates(spec)...) {
			by := fmt.Sprintf("experiment template %s of %s ", t.Name, spec.Workload)
			all = append(all, made{rollout.WorkloadKinds[0], by + "creates one", "leave it out"})
			if t.Service != nil {
				all = append(all, made{rollout.Ref{Kind: "Service"}, by + "has one", "leave its service out"})
			}
		}
	}
	return all
}

func templates(s rollout.Spec) (all [][]rollout.ExperimentTemplate) {
	for i := 0; s.Canary != nil && i < len(s.Canary.Steps); i++ {
		if e := s.Canary.Steps[i].Experiment; e != nil {
			all = append(all, e.Templates)
		}
	}
	return all
}

func (j judge) kind(ref rollout.Ref) *breach {
	switch {
	case ref.IsKind(j.Resources.Deny):
		return &breach{rule: "resources.deny", msg: fmt.Sprintf("may not have any %s", ref.GroupKind())}
	case j.Resources.Allow != nil && !ref.IsKind(j.Resources.Allow):
		return &breach{rule: "resources.allow", msg: fmt.Sprintf("does not list %s", ref.GroupKind())}
	}
	return nil
}

func (j judge) beyond() *breach {
	as := *j.render
	as.App = j.Bounded(as.App)
	beyond := render.BeyondOf(&as, j.own)
	for _, o := range j.render.Objects {
		if ref := o.Ref(); slices.Contains(beyond.ClusterResources, ref.GroupKind()) {
			return &breach{rule: "clusterResources", field: "kind", about: &ref, fix: "take it out",
				msg: fmt.Sprintf("belongs to no namespace, and the project may have no %s", ref.GroupKind())}
		}
	}
	if beyond.First == nil {
		return nil
	}
	return &breach{rule: "namespaces", field: "metadata.namespace", about: beyond.First, fix: "move it",
		msg: "the namespace matches none of " + strings.Join(j.Namespaces, ", ")}
}

func (j judge) rollouts() *breach {
	rules := j.Rollouts
	for _, o := range j.render.Objects {
		about := o.Ref()
		w, is := j.render.Workload(about)
		spec, staged := j.render.Spec(w)
		runsPods := about.Group != "batch" && // not the short-lived pods of Jobs and CronJobs
			(len(o.Map("spec", "template", "spec")) > 0 || about.Group == "" && about.Kind == "Pod")
		b := &breach{about: &about}
		switch {
		case !staged && rules.Required && runsPods:
			b.rule, b.msg, b.fix = "rollouts.required", "has no Rollout", "add a Rollout for it"
			if !is {
				b.fix = "change it to a Deployment with a Rollout"
			}
		case !staged:
			continue
		case rules.MaxFirstWeight != nil && FirstWeight(spec) > *rules.MaxFirstWeight:
			b.rule, b.fix = "rollouts.maxFirstWeight", "start with a lower weight"
			b.msg = fmt.Sprintf("a release first gives the new version to %d%% of users, more than %d%%", FirstWeight(spec),
				*rules.MaxFirstWeight)
		case rules.RequireAnalysis && !isAnalysed(spec):
			b.rule, b.msg = "rollouts.requireAnalysis", "no metric could stop a release before all users have the new version"
			b.fix = "add an analysis that can fail before all users have the new version, and is not a dry run"
		case Duration(spec) < rules.MinDuration:
			b.rule, b.fix = "rollouts.minDuration", "lengthen the pauses that have a duration (other pauses do not count)"
			b.msg = fmt.Sprintf("before all users have the new version, a release pauses for only %s, less than %s",
				Duration(spec), rules.MinDuration)
		case j.Forbids(rollout.ForbidFastRollbackOff) && spec.RollbackWindow != nil && *spec.RollbackWindow == 0:
			b.rule, b.msg, b.fix = "rollouts.forbid", "a rollback to an earlier version takes all steps",
				"leave rollbackWindow out"
		default:
			continue
		}
		return b
	}
	return nil
}

func (j judge) quota() *breach {
	objects, deployments := len(j.render.Objects)+len(j.render.Generated), 0
	for w := range j.render.Templates {
		if w.Kind == "" {
			deployments++
		}
	}
	for _, spec := range j.render.Specs { // only one experiment runs at a time, so the largest counts
		most, pods := 0, 0
		for _, of := range templates(spec) {
			made := len(of)
			for _, t := range of {
				if t.Service != nil {
					made++
				}
			}
			most, pods = max(most, made), max(pods, len(of))
		}
		objects, deployments = objects+most, deployments+pods
	}
	app := j.render.App
	for _, q := range []struct {
		of   string
		n    int
		most *int
	}{{"objects", objects, j.Quota.Objects}, {"Deployments", deployments, j.Quota.Deployments}} {
		if q.most != nil && q.n > *q.most {
			return &breach{rule: "quota." + strings.ToLower(q.of), file: app.Path, fix: "split it",
				msg: fmt.Sprintf("app %s has %d %s, more than %d", app.Name, q.n, q.of, *q.most)}
		}
	}
	return nil
}

// share returns a step's weight and the full weight. Without a router, weights are shares of pods.
func share(s rollout.Spec, step rollout.Step) (weight, full int) {
	full = 100
	if t := s.Canary.Traffic; t != nil {
		full = t.MaxWeight
	}
	switch scale := step.SetCanaryScale; {
	case step.SetWeight != nil:
		return *step.SetWeight, full
	case step.Route != nil && step.Route.Mirror == nil && slices.ContainsFunc(step.Route.Matches, isAnyUser):
		return full, full
	case scale == nil || scale.MatchTrafficWeight || s.Canary.Traffic != nil && s.Scaling != rollout.InPlace:
		return 0, full
	case scale.Weight != nil:
		return *scale.Weight, 100
	case s.Replicas != nil:
		return *scale.Replicas, max(1, *s.Replicas)
	default: // the workload's replicas are unknown, so scale.Replicas may be all replicas
		return *scale.Replicas, 1
	}
}

// isAnyUser ignores paths, methods and networks, because these select no users.
func isAnyUser(m rollout.Match) bool { return len(m.Headers)+len(m.Cookies)+len(m.QueryParams) == 0 }

func before(s rollout.Spec) []rollout.Step {
	beside := 0 // the weight during an experiment
	for i, step := range s.Canary.Steps {
		weight, full := share(s, step)
		if step.SetWeight != nil {
			beside = weight
		}
		if max(weight, beside+step.Experiment.Weight(rollout.SpecCanary)) >= full {
			return s.Canary.Steps[:i]
		}
	}
	return s.Canary.Steps
}

// FirstWeight returns the first percentage of users (without a router, of pods) that get the new version. For
// blue-green, without steps, or with a fixed number of pods, it returns 100. Routes for selected users do not count.
func FirstWeight(s rollout.Spec) (first int) {
	if s.Canary == nil || s.Canary.Traffic == nil && s.Canary.StableService != "" { // one switch moves all users
		return 100
	}
	for _, step := range s.Canary.Steps {
		weight, full := share(s, step)
		switch scale := step.SetCanaryScale; {
		case step.Experiment.Weight(rollout.SpecCanary) > 0: // added to the canary's requests
			return first + (step.Experiment.Weight(rollout.SpecCanary)*100+full-1)/full
		case first == 0 && scale != nil && s.Canary.Traffic != nil: // stable pods get all unmatched requests
		case weight > 0 && scale != nil && scale.Replicas != nil: // the share changes with the replicas
			return 100
		case first == 0 || scale != nil || weight > 0 && step.Route != nil: // no step has waited for the weight yet
			first = max(first, (weight*100+full-1)/full)
		case step.Route == nil:
			return first
		}
	}
	return cmp.Or(first, 100)
}

// Duration returns a release's minimum duration: the sum of timed pauses and experiments.
func Duration(s rollout.Spec) time.Duration {
	if s.BlueGreen != nil {
		return time.Duration(s.BlueGreen.AutoPromotionSeconds) * time.Second
	}
	return lasting(before(s), 0)
}

// lasting returns the sum of the steps' durations. For a step without a fixed duration, it adds the shorter of "open"
// and the step's timeout, if any.
func lasting(steps []rollout.Step, open time.Duration) (sum time.Duration) {
	for _, step := range steps {
		switch p, e := step.Pause, step.Experiment; {
		case p != nil && p.Duration != nil:
			sum += *p.Duration
		case p != nil && p.Timeout != nil:
			sum += min(open, *p.Timeout)
		case e != nil && e.Duration != nil:
			sum += *e.Duration
		case p != nil || e != nil:
			sum += open
		}
	}
	return sum
}

// week is the assumed duration of a step without an end, and long enough for any metric to fail.
const week = 7 * 24 * time.Hour

func isAnalysed(s rollout.Spec) bool {
	if s.Canary == nil {
		return ends(s.BlueGreen.PrePromotion, math.MaxInt64)
	}
	steps := before(s)
	if a := s.Canary.Analysis; a != nil && a.StartingStep < len(steps) && ends(a, lasting(steps[a.StartingStep:], week)) {
		return true
	}
	return slices.ContainsFunc(steps, func(step rollout.Step) bool {
		return ends(step.Analysis, math.MaxInt64) || step.Experiment != nil &&
			slices.ContainsFunc(step.Experiment.Analyses, func(a rollout.ExperimentAnalysis) bool {
				within := lasting([]rollout.Step{step}, week)
				return ends(a.Analysis, within) || a.Required && ends(a.Analysis, math.MaxInt64)
			})
	})
}

// judging lists the providers whose metrics need no condition to fail.
var judging = []string{"job", "kayenta", "webhook"}

func ends(a *rollout.Analysis, within time.Duration) bool {
	return a != nil && slices.ContainsFunc(a.Metrics, func(m rollout.Metric) bool {
		left := within - m.InitialDelay
		judges := m.SuccessCondition+m.FailureCondition != "" || m.Compare != nil || slices.Contains(judging, m.Provider)
		return judges && !m.DryRun && m.FailureLimit >= 0 && (m.Count == 0 || m.Count > m.FailureLimit) &&
			left >= 0 && int(left/max(1, m.Interval)) >= m.FailureLimit
	})
}
