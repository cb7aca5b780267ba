package strategies

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// An app without Rollout documents follows Git, all of it at once. If it has Jobs that run around releases it has
// releases, too: each content of its folder is one (rollout.Render.Release). It has no template on record and no steps,
// so it is promoting from its beginning on. It is stable when its workloads are what it says, and what runs after it
// has ended well: until then, the content before it is what a way back leads to.

// isContent reports whether a release is one of an app without Rollout documents.
func isContent(r *rollout.Release) bool { return r != nil && len(r.Templates) == 0 }

// isOf reports whether a render is a version, or was one before it had hooks.
func isOf(r *rollout.Render, h rollout.Hash) bool {
	return r != nil && (r.Release() == h || r.Content == h)
}

// served is the content that an app without Rollout documents has followed without a release, as one does before it
// gets its first hook: nil if nobody knows it.
func served(in Input) *rollout.Release {
	if in.Source.Content == "" {
		return nil
	}
	c := in.Source.Commit
	return &rollout.Release{Commit: in.State.Source, Hash: in.Source.Content, Author: c.Author, Subject: c.Subject,
		Since: rollout.Second(in.Now), Templates: map[rollout.Workload]rollout.Hash{}}
}

// takenOver are the workloads by which an app is known that runs and is not on record: those that are staged, or all
// of an app without Rollout documents.
func takenOver(r *rollout.Render) []rollout.Workload {
	if len(r.Specs) == 0 && r.Release() != "" {
		return slices.DeleteFunc(workloadsOf(r), func(w rollout.Workload) bool { return !isObserved(w) })
	}
	return rollout.Mapped(r.Specs, func(spec rollout.Spec) rollout.Workload { return spec.Workload })
}

func workloadsOf(r *rollout.Render) []rollout.Workload {
	return slices.SortedFunc(maps.Keys(r.Templates), rollout.Workload.Compare)
}

// isObserved reports whether a workload is looked at without a document: of one of another kind only its status tells.
func isObserved(w rollout.Workload) bool {
	_, is := rollout.WorkloadOf(w.Ref())
	return is
}

// unready says which workloads of an app without Rollout documents are not what its source says, as its status tells
// it, and since when nothing has come of that; "" if all are.
func unready(in Input, since time.Time) (why string, last time.Time) {
	if in.Source == nil {
		return "the commit that the app is at to be read", since
	}
	in.Health = Health{}
	ails := map[rollout.Ref]string{}
	for _, a := range ailments(in) {
		ails[a.ref] = a.text()
	}
	var texts []string
	for _, w := range workloadsOf(in.Source) {
		live, text := in.Observed.Workloads[w], ails[w.Ref()]
		since = lastReady(since, live.Current())
		switch isNew := live.Hash == in.Source.Templates[w] && live.Serial >= in.State.Mark(); {
		case isObserved(w) && !isNew, text == "" && isCounted(in, w) && !(live.Synced && live.Complete):
			text = w.Title() + ": not all pods are of this version yet"
		case text == "":
			continue
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; "), since
}

// promotionText is what a release that is through its steps waits for.
func promotionText(in Input) (text string) {
	if isContent(in.State.Release) {
		text, _ = unready(in, in.State.Release.Since)
	}
	return cmp.Or(text, "all pods to be of the new version and available")
}

// unreturned is what keeps such a way back from its end, while Git asks for what is left: what follows waits for
// workloads no longer than their deadline, and what is pushed does not wait.
func unreturned(in Input) (texts []string, late deadline) {
	why, since := unready(in, in.State.Retreat.Routed)
	late = deadline{at: since.Add(healthDeadline)}
	if why == "" || late.isOver(in.Now) || in.Head.Render == nil || in.Head.Render.Release() != in.State.Release.Hash {
		return nil, deadline{}
	}
	return []string{why}, late
}

// contentSeconds is how long the workloads of such a release may make no progress.
const contentSeconds = int(healthDeadline / time.Second)

// contentDeadlines is when they have made none for so long; nothing if they wait for nothing.
func contentDeadlines(in Input) []deadline {
	why, since := unready(in, in.State.Release.Since)
	if why == "" {
		return nil
	}
	return []deadline{deadlineOf(since, contentSeconds, "promote", why, "")}
}
