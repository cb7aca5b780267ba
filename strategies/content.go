package strategies

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// An app without Rollout documents follows each commit immediately. If the app has hooks, each change of its folder is
// a release (rollout.Render.Release). Such a release records no templates and has no steps, so it starts as Promoting.
// The release becomes stable after all workloads run its content and all "after" hooks have succeeded.

// isContent reports whether a release belongs to an app without Rollout documents.
func isContent(r *rollout.Release) bool { return r != nil && len(r.Templates) == 0 }

// isOf reports whether h is the hash of a render. The content hash matches too, because apps without hooks record it.
func isOf(r *rollout.Render, h rollout.Hash) bool {
	return r != nil && (r.Release() == h || r.Content == h)
}

// served describes the content of an app without Rollout documents as a release. It returns nil for unknown content.
func served(in Input) *rollout.Release {
	if in.Source.Content == "" {
		return nil
	}
	return &rollout.Release{Commit: in.State.Source, Hash: in.Source.Content, Author: in.Source.Commit.Author,
		Subject: in.Source.Commit.Subject, Since: rollout.Second(in.Now), Templates: map[rollout.Workload]rollout.Hash{},
		Images: in.Source.Images()}
}

// takenOver returns the workloads that an adoption checks: the staged workloads, or all workloads if none is staged.
func takenOver(r *rollout.Render) []rollout.Workload {
	if len(r.Specs) == 0 && r.Release() != "" {
		return slices.DeleteFunc(workloadsOf(r), func(w rollout.Workload) bool { return !isObserved(w) })
	}
	return rollout.Mapped(r.Specs, func(spec rollout.Spec) rollout.Workload { return spec.Workload })
}

func workloadsOf(r *rollout.Render) []rollout.Workload {
	return slices.SortedFunc(maps.Keys(r.Templates), rollout.Workload.Compare)
}

// isObserved reports whether gitrollout observes the pods of a workload of this kind without a Rollout document.
func isObserved(w rollout.Workload) bool {
	_, is := rollout.WorkloadOf(w.Ref())
	return is
}

// unready describes the workloads that do not run the app's source yet, and returns the time of their last progress.
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

// promotionText describes the wait of a release that has passed its steps.
func promotionText(in Input) (text string) {
	if isContent(in.State.Release) {
		text, _ = unready(in, in.State.Release.Since)
	}
	return cmp.Or(text, "all pods to have the new version and to be available")
}

// unreturned describes the workloads that are not rolled back yet, for an app without Rollout documents. The result is
// empty after the deadline, or if the head has another version.
func unreturned(in Input) (texts []string, late deadline) {
	why, since := unready(in, in.State.Rollback.Routed)
	late = deadline{at: since.Add(healthDeadline)}
	if why == "" || late.isOver(in.Now) || in.Head.Render == nil || in.Head.Render.Release() != in.State.Release.Hash {
		return nil, deadline{}
	}
	return []string{why}, late
}

// contentSeconds is the progress deadline of a release without documents.
const contentSeconds = int(healthDeadline / time.Second)

// contentDeadlines returns the deadline of a release without documents. It returns none if all workloads are ready.
func contentDeadlines(in Input) []deadline {
	why, since := unready(in, in.State.Release.Since)
	if why == "" {
		return nil
	}
	return []deadline{deadlineOf(since, contentSeconds, "promote", why, "")}
}
