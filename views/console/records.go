package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// Records reads Git for the dashboard. It pushes over its own connection (Repo.Beside), so that the reconciler does not
// wait.
type Records struct {
	Options          // Repo is the reconciler's mirror
	Only    string   // the app that Fleet reads; "" for all
	Session *Session // for all methods but Fleet; if nil, each call reads Git's newest commits
	// Believe and BelievePeer check state branches for Fleet, as in reconciler.Options.
	Believe     func(head source.Snapshot) error
	BelievePeer func(cluster string, head source.Snapshot) error

	fleet fleetView

	mu     sync.Mutex
	world  *Session        // nil before the first open
	client *cluster.Client // if nil, "why" has the reason
	within []string        // sets Session.Within
	why    string
}

// Watch sets the cluster's client, the namespaces that are read (nil: all), and the text that tells why data is
// missing.
func (r *Records) Watch(client *cluster.Client, within []string, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client, r.within, r.why = client, within, why
}

func (r *Records) watched() (client *cluster.Client, within []string, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client, r.within, r.why
}

const (
	historyReleases = 20
	historyDepth    = 2000
)

// open returns a Session for each caller, so that callers do not wait for each other's renders and pushes.
func (r *Records) open(ctx context.Context) (*Session, error) {
	if r.Session != nil {
		return r.Session, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.world
	if w == nil {
		o := r.Options
		o.Repo, o.Detail = r.Repo.Beside(), true
		w = New(o)
	}
	if _, err := w.Refresh(ctx); err != nil {
		return nil, err
	}
	r.world = w
	return &Session{Options: w.Options, Heads: w.Heads, Tip: w.Tip, State: w.State, States: w.States, UID: w.UID,
		Apps: w.Apps, reader: w.reader}, nil
}

// Diff implements dashboard.Records. It compares the stable version with the release in flight or the rejected version.
func (r *Records) Diff(ctx context.Context, name string) (dashboard.Diff, error) {
	w, err := r.open(ctx)
	if err != nil {
		return dashboard.Diff{}, err
	}
	app, err := w.App(name)
	if err != nil {
		return dashboard.Diff{}, err
	}
	state, err := w.States.Of(name)
	if err != nil || state.Stable == nil {
		return dashboard.Diff{}, err
	}
	release := state.Release
	if head := w.Head(app); release == nil && state.Phase == rollout.Degraded && head.Render != nil {
		// Later commits may have changed only other apps, so the diff shows the rejected commit.
		if r, is := state.IsRejected(head.Render.Release()); is {
			release = &rollout.Release{Commit: r.Commit}
		}
	}
	if release == nil {
		return dashboard.Diff{}, nil
	}
	from, err := w.RenderAt(ctx, app, state.Stable.Commit)
	if err != nil {
		return dashboard.Diff{}, err
	}
	to, err := w.RenderAt(ctx, app, release.Commit)
	if err != nil {
		return dashboard.Diff{}, err
	}
	return diffOf(from, to)
}

func diffOf(from, to *rollout.Render) (dashboard.Diff, error) {
	d := dashboard.Diff{From: from.Commit.ID, To: to.Commit.ID}
	before, after := from.ByRef(), to.ByRef()
	for _, c := range rollout.Changes(from, to) {
		text, err := plan.Compare("stable", before[c.Ref], "release", after[c.Ref])
		if err != nil {
			return d, err
		}
		_, text, _ = strings.Cut(text, "+++ release\n")
		d.Objects = append(d.Objects, dashboard.Object{Name: c.Ref.String(), Verb: c.Verb, Text: text})
	}
	return d, nil
}

// Objects implements dashboard.Records.
func (r *Records) Objects(ctx context.Context, name string) (d dashboard.Diff, err error) {
	w, err := r.open(ctx)
	if err != nil {
		return d, err
	}
	app, err := w.App(name)
	if err != nil {
		return d, err
	}
	w.Client, w.Within, w.Note = r.watched()
	objects, note, err := WithState(ctx, w, app, w.Now())
	d.Note = note
	for _, o := range objects {
		text, failed := plan.Masked(o.Told())
		err = errors.Join(err, failed)
		d.Objects = append(d.Objects, dashboard.Object{Name: o.Ref().String(), Text: text})
	}
	return d, err
}

// History implements dashboard.Records.
func (r *Records) History(ctx context.Context, name string) (dashboard.History, error) {
	w, err := r.open(ctx)
	if err != nil {
		return dashboard.History{}, err
	}
	pages := forge.PagesOf(w.Config().Forge, w.Repo.Remote().String())
	h := dashboard.History{Links: dashboard.Links{
		Commit: pages.Commit("{}"),
		// Pull escapes the placeholder {}.
		Branch: strings.ReplaceAll(pages.Pull(w.Branch, "{}"), url.QueryEscape("{}"), "{}"),
	}}
	if w.Heads.State == "" {
		return h, nil
	}
	if h.History, err = w.History(ctx, name, historyReleases, historyDepth); err != nil {
		return h, fmt.Errorf("the state branch's history: %w", err)
	}
	if h.Note != "" {
		h.Note = "older ones: " + w.Command("gitrollout history "+name)
	}
	return h, nil
}

const (
	logLines = 20
	logTime  = 15 * time.Second
)

// Pod implements dashboard.Records. It uses this process's rights in the cluster.
func (r *Records) Pod(ctx context.Context, p status.VersionPod) (d dashboard.Pod) {
	client, _, why := r.watched()
	unseen := func(err error) {
		if err != nil {
			d.Notes = append(d.Notes, "not observed: "+err.Error())
		}
	}
	if client == nil {
		unseen(errors.New(cmp.Or(why, "the cluster has not been read yet")))
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	events, err := cluster.EventsOf(ctx, client, p.Namespace, p.Created)
	unseen(err)
	ref := rollout.Ref{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
	d.Events = withEvents(nil, events, func(title string) bool { return title == ref.Title() })
	if p.Ready {
		return d
	}
	logs := cluster.LogsOf(client)
	sources, err := logs.Sources(ctx, p.Namespace, p.Name, p.UID, p.PodHash)
	unseen(err)
	for _, s := range sources {
		if s.Run == "" {
			d.Notes = append(d.Notes, s.Container+" has no log yet: "+s.Waits)
			continue
		}
		var text strings.Builder
		_, err := logs.Read(ctx, s, cluster.LogRange{Tail: logLines}, func(line string) error {
			_, err := text.WriteString(terminal.CleanLines(line + "\n"))
			return err
		})
		if unseen(err); err == nil || text.Len() > 0 {
			d.Logs = append(d.Logs, dashboard.Object{Name: s.Container, Text: text.String()})
		}
	}
	return d
}

// Act implements dashboard.Actor. It refuses an action if the user's page showed another release.
func (r *Records) Act(ctx context.Context, who dashboard.Person, app string, a propose.Action) (string, error) {
	w, err := r.open(ctx)
	if err != nil {
		return "", err
	}
	o, err := changeFor(ctx, w, app, a)
	if err != nil {
		return "", err
	}
	return w.Push(ctx, rollout.Identity{Name: who.Name, Email: who.Email}, o)
}

func changeFor(ctx context.Context, w *Session, app string, a propose.Action) (o propose.Change, err error) {
	if a.Verb != propose.Undo {
		return w.Change(ctx, app, a, a.StillAbout)
	}
	state, err := w.States.Of(app)
	if err != nil {
		return o, err
	}
	if err := a.StillAbout(strategies.Input{State: state}); err != nil {
		return o, err
	}
	return w.UndoOrder(ctx, app, Undo{Reason: a.Reason, Depth: historyDepth})
}
