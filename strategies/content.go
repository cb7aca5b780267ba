package strategies

import (
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// gitrollout applies each commit of an app without Rollout documents immediately. If such an app has hooks, each change
// of its folder is a release (rollout.Render.Release) without templates and steps. The release starts as Promoting, and
// becomes stable once all workloads have its content and all "after" hooks have succeeded.

func isContent(r *rollout.Release) bool { return r != nil && len(r.Templates) == 0 }

// isOf reports whether h is a render's release hash or, as in some state files, its content hash.
func isOf(r *rollout.Render, h rollout.Hash) bool {
	return r != nil && (r.Release() == h || r.Content == h)
}

func takenOver(r *rollout.Render) []rollout.Workload {
	if len(r.Specs) == 0 && r.Release() != "" {
		return slices.DeleteFunc(workloadsOf(r), func(w rollout.Workload) bool { return !isObserved(w) })
	}
	return rollout.Mapped(r.Specs, func(spec rollout.Spec) rollout.Workload { return spec.Workload })
}

func workloadsOf(r *rollout.Render) []rollout.Workload {
	return slices.SortedFunc(maps.Keys(r.Templates), rollout.Workload.Compare)
}

func isObserved(w rollout.Workload) bool {
	_, is := rollout.WorkloadOf(w.Ref())
	return is
}

func unready(in Input, since time.Time) (why string, last time.Time) {
	if in.Source == nil {
		return "the app's recorded commit to be read", since
	}
	in.Health = Health{}
	ails := map[rollout.Ref]string{}
	for _, a := range unhealthy(in) {
		ails[a.ref] = a.text()
	}
	var texts []string
	for _, w := range workloadsOf(in.Source) {
		live, text := in.Observed.Workloads[w], ails[w.Ref()]
		since = lastReady(since, live.Current())
		switch isNew := live.Hash == in.Source.Templates[w] && live.Serial >= in.State.Mark(); {
		case isObserved(w) && !isNew, text == "" && isCounted(in, w) && !(live.Synced && live.Complete):
			text = w.Title() + ": not all pods have this version yet"
		case text == "":
			continue
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; "), since
}

// unreturned describes the workloads that the rollback of an app without Rollout documents has not restored.
func unreturned(in Input) (texts []string, late deadline) {
	why, since := unready(in, in.State.Rollback.Routed)
	late = deadline{at: since.Add(healthDeadline)}
	if why == "" || late.isOver(in.Now) || in.Head.Render == nil || in.Head.Render.Release() != in.State.Release.Hash {
		return nil, deadline{}
	}
	return []string{why}, late
}

const contentSeconds = int(healthDeadline / time.Second)
