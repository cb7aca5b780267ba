package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies"
)

// Note is a message to a change's author.
type Note struct {
	Level   Level  `json:"level"`
	Code    string `json:"code"`             // CamelCase, for machines
	Object  string `json:"object,omitempty"` // group/Kind/namespace/name
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Level is a note's severity.
type Level string

const (
	Refused Level = "refused" // the API server rejects the change
	AtOnce  Level = "atOnce"  // the change reaches all users at once, without stages
	Hint    Level = "hint"    // the author should know this
)

func notes(in Input, a App) (all []Note) {
	c := comparison{in: in, before: in.Base.Render.ByRef(), after: in.Head.Render.ByRef()}
	for _, o := range a.Objects {
		was := c.before[o.Object]
		if now := c.after[o.Object]; now != nil && was != nil {
			all = slices.Concat(all, c.immutable(o.Object, was, now), renumbered(o.Object, was, now))
		}
	}
	for _, o := range a.Objects {
		all = append(all, c.atOnce(o)...)
	}
	all = append(all, withoutPods(a)...)
	for _, w := range a.Workloads {
		if w.Watch > 0 {
			all = append(all, Note{Level: Hint, Code: "Watch", Object: w.Workload.Ref().String(), Message: fmt.Sprintf(
				"for %s after the release, a failed analysis rolls %s back; this rollback takes at most %s, unless pods "+
					"miss progressDeadlineSeconds", Short(w.Watch), w.Workload.Title(), Short(w.WayBack))})
		}
	}
	all = slices.Concat(all, c.changedSteps(a), c.hints(a))
	slices.SortStableFunc(all, func(x, y Note) int {
		return slices.Index(levels, x.Level) - slices.Index(levels, y.Level)
	})
	return all
}

var levels = []Level{Refused, AtOnce, Hint}

type comparison struct {
	in            Input
	before, after map[rollout.Ref]rollout.Object
}

func withoutPods(a App) (all []Note) {
	for _, w := range a.Workloads {
		for i, s := range w.Stages {
			if !w.Routed || s.Weight+s.Canary > 0 || s.Text == "setWeight 0" || !strings.HasPrefix(s.Text, "setWeight ") {
				continue
			}
			all = append(all, Note{
				Level: Hint, Code: "NoPods", Object: w.Workload.Ref().String(),
				Message: fmt.Sprintf("step %d, %s, sends no requests to the new version, which has no pods then", i+1, s.Text),
				Fix:     "give the new version pods: setCanaryScale with more replicas, or matchTrafficWeight: true",
			})
			break
		}
	}
	return all
}

// changedSteps returns notes about workloads whose steps change during a release. Its level is AtOnce if the change
// removes all remaining manual promotions.
func (c comparison) changedSteps(a App) (all []Note) {
	s, source, head := c.in.State, c.in.Base.Render, c.in.Head.Render
	if s == nil || s.Release == nil || s.Stable == nil || s.Release.Hash != a.To || source == nil {
		return nil
	}
	at, back := strategies.GoesOn(*s, source, head, c.in.Now)
	for i, was := range s.Progress {
		spec, staged := head.Spec(was.Workload)
		if !staged {
			continue // lostRollouts notes these
		}
		n := Note{Level: Hint, Code: "StepsChange", Object: was.Workload.Ref().String()}
		where := fmt.Sprintf("release %s is at step %d of %d, %s", s.Release.Hash, was.Step+1, was.Of, was.Name)
		if back {
			n.Message = where + ": this change rolls it back to stable, and then it begins again at its first step"
			return append(all, n)
		}
		now := at[i]
		if now.Plan == was.Plan || now.Workload != was.Workload {
			continue
		}
		n.Message = fmt.Sprintf("%s: the changed steps continue at step %d of %d, %s", where, now.Step+1, now.Of, now.Name)
		if now.Step == now.Of {
			n.Message = where + ": after this change, only its promotion remains"
		}
		old, _ := source.Spec(was.Workload)
		if gates(old, was.Step) > 0 && gates(spec, now.Step) == 0 {
			n.Level = AtOnce
			n.Message += "; no gate is left, so all users get it without a manual promotion"
			n.Fix = "to require a manual promotion, keep a pause without duration in the steps until the release has ended"
		}
		all = append(all, n)
	}
	return all
}

func gates(spec rollout.Spec, from int) int {
	return strategies.Predict(strategies.Planned{Spec: spec, From: from}).Gates
}

func (c comparison) atOnce(o Object) []Note {
	ref := o.Object
	was, now := c.before[ref], c.after[ref]
	w, isWorkload := rollout.WorkloadOf(ref)
	switch {
	case isData(ref) && was != nil && now != nil:
		return c.sharedData(ref)
	case isWorkload && w.Kind == "" && was != nil && now != nil && templateChanged(was, now):
		return c.unstagedDeployment(ref, now)
	case was != nil && now != nil && (isWorkload || c.isPartitioned(now)) && templateChanged(was, now):
		return c.inPlace(ref, now)
	}
	return nil
}

func (c comparison) isPartitioned(o rollout.Object) bool {
	p, _ := rollout.FindPartitioned(rollout.PartitionedOf(c.in.Head.Render.App), o.APIVersion(), o.Kind())
	return p != nil
}

func (c comparison) inPlace(ref rollout.Ref, now rollout.Object) []Note {
	w, _ := rollout.WorkloadOf(ref)
	spec, staged := c.in.Head.Render.Spec(w)
	n, _ := size(c.in.Head.Render, spec)
	by, page := "Kubernetes'", strings.ToLower(ref.Kind)+"s"
	if c.isPartitioned(now) {
		by, page = "its controller's", "kruise-workloads"
	}
	surge := now.Map("spec", "updateStrategy", "rollingUpdate")["maxSurge"]
	note := Note{Level: AtOnce, Object: ref.String(), Message: ref.Kind + " " + ref.Name}
	switch {
	case !staged:
		note.Code = ref.Kind
		note.Message += fmt.Sprintf(" gets its new pods by %s own rolling update: no Rollout document names it", by)
		note.Fix = "write a Rollout for it (docs/" + page + ".md), or set spec.updateStrategy to suit the pods"
	case spec.Partition == nil && surge != nil && surge != int64(0) && surge != "0%": // only for a DaemonSet
		note.Level, note.Code = Hint, "NoSurge"
		note.Message += " has a maxSurge, which only the promotion uses: a step deletes a node's pod before the new pod " +
			"starts, so the node has no serving pod meanwhile"
		note.Fix = "remove the steps if every node always needs a serving pod"
	case n == 1:
		note.Code = "NoCanaryPod"
		note.Message += " has one pod, which the promotion replaces: no step tests the new version first"
		note.Fix = "use more pods, so that a step can replace one pod first"
	default:
		return nil
	}
	return []Note{note}
}

// sharedData returns notes about a changed ConfigMap or Secret that the pods of both versions use under one name.
func (c comparison) sharedData(ref rollout.Ref) (all []Note) {
	users := map[bool][]string{} // by whether they mount the object as a volume
	for _, o := range c.in.Head.Render.Objects {
		if o.Namespace() != ref.Namespace || hook.Is(o) { // hooks notes these
			continue
		}
		uses := map[bool]bool{}
		hook.EachReference(o.Map("spec", "template"), func(field, kind, name string) {
			if kind == ref.Kind && name == ref.Name && field != "imagePullSecrets" {
				uses[field == "configMap" || field == "secret"] = true
			}
		})
		for mounts := range uses {
			users[mounts] = append(users[mounts], o.Kind()+" "+o.Name())
		}
	}
	generator := "configMapGenerator"
	if ref.Kind == "Secret" {
		generator = "secretGenerator"
	}
	fix := "use a " + generator + ", which names content by its hash: then each change is a release"
	for _, use := range []struct {
		by         []string
		code, text string
	}{
		{users[true], "MountedWithoutHash", "is mounted by %s under the same name before and after: " +
			"all running pods see the new content within about a minute, whatever the stage"},
		{users[false], "ReadWithoutHash", "is read by %s at their start under the same name: " +
			"any restarted pod has the new content, also pods of the old version"},
	} {
		if len(use.by) > 0 {
			text := fmt.Sprintf(use.text, strings.Join(use.by, ", "))
			all = append(all, Note{Level: AtOnce, Code: use.code, Object: ref.String(), Fix: fix,
				Message: fmt.Sprintf("%s %s %s", ref.Kind, ref.Name, text)})
		}
	}
	return all
}

func templateChanged(was, now rollout.Object) bool {
	return !reflect.DeepEqual(was.Map("spec", "template"), now.Map("spec", "template"))
}

func (c comparison) unstagedDeployment(ref rollout.Ref, now rollout.Object) []Note {
	spec, staged := c.in.Head.Render.Spec(rollout.Workload{Namespace: ref.Namespace, Name: ref.Name})
	n := Note{Level: AtOnce, Object: ref.String()}
	switch {
	case now.Map("spec", "strategy")["type"] == "Recreate":
		n.Code = "Recreate"
		n.Message = fmt.Sprintf("Deployment %s has strategy Recreate: all old pods stop before the first new one starts",
			ref.Name)
		n.Fix = "use RollingUpdate if two versions can run side by side"
	case !staged:
		n.Code = "NoRollout"
		n.Message = fmt.Sprintf(
			"Deployment %s gets its new pods by Kubernetes' own rolling update: no Rollout document names it",
			ref.Name)
		n.Fix = "gitrollout init --app " + c.in.App.Path + " writes one"
	case spec.Canary != nil && len(spec.Canary.Steps) == 0:
		n.Code = "NoSteps"
		n.Message = fmt.Sprintf("Rollout %s has no steps: Kubernetes' own rolling update replaces all pods", spec.Name)
		n.Fix = "add steps: - setWeight: 20"
	default:
		return nil
	}
	return []Note{n}
}

func unstaged(in Input) (all []Workload) {
	before := in.Base.Render.ByRef()
	for _, now := range in.Head.Render.Objects {
		ref := now.Ref()
		was := before[ref]
		if ref.Group != "apps" || ref.Kind == "ReplicaSet" || now.Map("spec", "template") == nil || was == nil ||
			!templateChanged(was, now) {
			continue
		}
		staged, _ := rollout.WorkloadOf(ref)
		if _, is := in.Head.Render.Spec(staged); is {
			continue
		}
		name := rollout.Workload{Namespace: ref.Namespace, Name: ref.Name}
		w := Workload{Workload: name, Kind: ref.Kind, Strategy: "RollingUpdate"}
		for _, field := range []string{"strategy", "updateStrategy"} {
			if t, ok := now.Map("spec", field)["type"].(string); ok {
				w.Strategy = t
			}
		}
		spec := rollout.Spec{Workload: staged}
		if n, ok := now.Map("spec")["replicas"].(int64); ok {
			spec.Replicas = new(int(n))
		}
		w.Replicas, w.Sized = size(in.Head.Render, spec)
		all = append(all, w)
	}
	return all
}

func (c comparison) hints(a App) (all []Note) {
	for _, w := range c.in.Head.Render.Warnings {
		code := "Warning"
		if strings.Contains(w, "replicas are ignored") {
			code = "ScaledReplicas"
		}
		all = append(all, Note{Level: Hint, Code: code, Message: w})
	}
	if base := c.in.Base.Render; base != nil {
		all = append(all, madeOnce(base, c.in.Head.Render)...)
	}
	all = slices.Concat(all, c.hooks(a), c.lostRollouts(a.Change == Invalid))
	for _, o := range a.Objects {
		if o.Change != "removed" {
			continue
		}
		why := ""
		switch was := c.before[o.Object]; {
		case was.Keeps() != "":
			why = "it is annotated " + was.Keeps()
		case o.Object.HoldsData():
			why = "gitrollout never deletes this kind, because its contents would be deleted too"
		default:
			continue
		}
		all = append(all, Note{Level: Hint, Code: "Kept", Object: o.Object.String(),
			Message: fmt.Sprintf("%s %s is left in the cluster: %s", o.Object.Kind, o.Object.Name, why)})
	}
	if a.Begins.IsZero() && slices.ContainsFunc(a.Workloads, func(w Workload) bool { return w.Staged }) {
		all = append(all, Note{Level: Hint, Code: "NeverOpens",
			Message: "it is unknown when the release may advance: " +
				"a freeze has no end, or the windows never open"})
	}
	return all
}

func (c comparison) lostRollouts(isHeld bool) (all []Note) {
	if c.in.Base.Render == nil {
		return nil
	}
	for _, spec := range c.in.Base.Render.Specs {
		w := spec.Workload
		if _, still := c.in.Head.Render.Spec(w); still || c.after[w.Ref()] == nil {
			continue
		}
		n := Note{Level: AtOnce, Code: "RolloutRemoved", Object: w.Ref().String(),
			Message: w.Title() + " is no longer staged: its Rollout document is gone",
			Fix:     "restore the document, or all pods get the next version at the same time"}
		if isHeld {
			n.Fix = "restore the document, or merge this when no release is in flight"
		}
		all = append(all, n)
	}
	return all
}
