package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// History returns at most limit releases, newest first. It reads at most depth state commits.
func (w *Session) History(ctx context.Context, app string, limit, depth int) (status.History, error) {
	if w.State == nil {
		return status.History{}, fmt.Errorf("there is no branch %s: nothing has been recorded for cluster %s",
			w.Config().StateBranch, w.Cluster)
	}
	r := status.NewRecord(app)
	whole, err := w.Repo.Log(ctx, w.Heads.State, depth, func(s *git.Snapshot) (bool, error) {
		releases, err := r.Visit(s)
		return releases <= limit+1, err
	})
	h := status.History{App: app, Cluster: w.Cluster}
	if err == nil {
		h.Releases, err = r.Releases(whole)
	}
	if err != nil {
		return status.History{}, err
	}
	w.nameAuthors(ctx, h.Releases[:min(limit, len(h.Releases))])
	switch {
	case len(h.Releases) > limit:
		h.Releases = h.Releases[:limit]
		h.Note = fmt.Sprintf("there are older releases; to show them, use --limit %d", 2*limit)
	case !whole:
		h.Note = fmt.Sprintf("only the last %d commits of %s were searched; to search more, use --depth %d", depth,
			w.Config().StateBranch, 10*depth)
	}
	return h, nil
}

// nameAuthors sets missing authors and subjects. The record has none for a version that was rejected before its
// release.
func (w *Session) nameAuthors(ctx context.Context, releases []status.Past) {
	var commits []string
	for _, p := range releases {
		if p.Author == "" {
			commits = append(commits, p.Commit)
		}
	}
	_, _ = w.Repo.Bring(ctx, commits)
	for i, p := range releases {
		if s, held := w.Repo.Held(p.Commit); held && p.Author == "" {
			releases[i].Author, releases[i].Subject = s.Commit().Author, s.Commit().Subject
		}
	}
}

// Events returns an app's newest release, with the cluster's events among its transitions.
func Events(ctx context.Context, w *Session, app string) (status.History, error) {
	h, err := w.History(ctx, app, 1, 10*historyDepth)
	s, invalid := w.States.Of(app)
	if err = cmp.Or(err, invalid); err != nil || len(h.Releases) == 0 {
		return h, err
	}
	if h.Note = w.Note; w.Client == nil {
		return h, nil
	}
	p := &h.Releases[0]
	since := p.Started
	if len(p.Transitions) > 0 { // hooks may run before the release
		since = rollout.Soonest(since, p.Transitions[0].At)
	}
	own := titlesOf(s, w.Client.Observe(app, s.Workloads(), nil))
	for _, namespace := range Namespaces(map[string]rollout.App{app: w.Apps[app]}, w.States) {
		if w.Within != nil && !slices.Contains(w.Within, namespace) {
			continue
		}
		events, err := cluster.EventsOf(ctx, w.Client, namespace, since)
		if err != nil {
			h.Note = strings.TrimPrefix(h.Note+"; "+err.Error(), "; ")
		}
		p.Transitions = withEvents(p.Transitions, events, func(title string) bool { return isIn(own, title) })
	}
	return h, nil
}

func withEvents(
	all []status.Transition, events []cluster.Event, selects func(title string) bool,
) []status.Transition {
	for _, e := range events {
		if selects(e.Object) {
			all = append(all, status.Transition{At: e.At, Text: e.Text, Object: e.Object, Type: e.Type, Reason: e.Reason,
				Count: e.Count})
		}
	}
	slices.SortStableFunc(all, func(a, b status.Transition) int { return a.At.Compare(b.At) })
	return all
}

func isIn(own map[string]bool, title string) bool {
	return own[title] || own[title[:strings.LastIndex(title, "-")+1]]
}

// titlesOf returns the titles of an app's objects, ReplicaSets and hook Jobs. An event's pod may be deleted already, so
// "Pod shop/web-" selects pods by prefix.
func titlesOf(s rollout.State, seen rollout.Observed) map[string]bool {
	own := map[string]bool{}
	add := func(kind, namespace, name string) {
		own[kind+" "+namespace+"/"+name], own["Pod "+namespace+"/"+name+"-"] = true, true
	}
	for _, ref := range s.Inventory {
		own[ref.Kind+" "+ref.Namespace+"/"+ref.Name] = true
		if _, is := rollout.WorkloadOf(ref); is { // another app's pod may have a Service's name as prefix
			add(ref.Kind, ref.Namespace, ref.Name)
		}
	}
	for w, o := range seen.Workloads {
		add(w.Kind, w.Namespace, w.Name)
		for _, r := range o.Revisions {
			add("ReplicaSet", w.Namespace, r.Name)
		}
	}
	for _, h := range s.Hooks {
		namespace, _, _ := strings.Cut(h.Name, "/")
		add("Job", namespace, h.Job)
	}
	return own
}
