package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// historyCommand shows what the state branch remembers of one app.
type historyCommand struct {
	streams
	source sourceOptions
	output outputOption
	color  colorOption
	limit  int
	depth  int
}

func newHistory(s streams) *cobra.Command {
	c := &historyCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "history APP",
		Short: "Show an app's releases: when, by whom, how long, and what became of them",
		Long: `Show the releases of an app, newest first: who released and who promoted them,
how long they took, what was measured, and what became of them.

  healthy     it became stable
  rejected    it was aborted, or an analysis failed; the reason says which
  reverted    Git was reverted while it was in flight
  superseded  a newer push took its place
  applied     an app without stages follows a commit
  recorded    it serves as far back as the record goes

It reads the commits of the state branch, as many as it takes. -o wide shows each
transition and each metric, too.`,
		Example: `  gitrollout history shop
  gitrollout history shop --limit 3 -o wide
  gitrollout history shop -o json | jq -r '.releases[] | select(.outcome == "rejected") | .reason'`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.source.register(cmd)
	c.output.register(cmd, "json", "yaml", "wide")
	c.color.register(cmd)
	cmd.Flags().IntVar(&c.limit, "limit", 10, "how many releases to show")
	cmd.Flags().IntVar(&c.depth, "depth", 20_000, "how many `commits` of the state branch to look through at most")
	return cmd
}

func (c *historyCommand) run(ctx context.Context, name string) error {
	if c.limit < 1 || c.depth < 1 {
		return usagef("--limit %d and --depth %d must both be 1 or more", c.limit, c.depth)
	}
	w, err := openWorld(ctx, c.source, c.streams)
	if err != nil {
		return err
	}
	if _, err := w.app(name); err != nil {
		return err
	}
	if w.state == nil {
		return fmt.Errorf("there is no branch %s: nothing has been recorded for cluster %s", w.config.StateBranch, w.source.cluster)
	}
	var h status.History
	err = slowly(c.streams, "reading the history of "+w.config.StateBranch, func() error {
		h, err = w.history(ctx, name, c.limit, c.depth)
		return err
	})
	if err != nil {
		return err
	}
	if done, err := c.output.write(c.streams, h); done {
		return err
	}
	k := c.color.lookOf(c.out)
	k.wide = c.output.format == "wide"
	_, err = fmt.Fprint(c.out, drawHistory(h, k))
	return err
}

// history reads the commits of the state branch that are about an app, until so
// many releases are known in full.
func (w *world) history(ctx context.Context, app string, limit, depth int) (status.History, error) {
	var newest []status.Event
	releases := map[string]bool{}
	whole, err := w.repo.Log(ctx, w.heads.State, depth, func(s *git.Snapshot) (bool, error) {
		e, about, err := eventOf(s, app)
		if err != nil || !about {
			return true, err
		}
		newest = append(newest, e)
		if r := e.State.Release; r != nil {
			releases[string(r.Hash)+r.Since.String()] = true
		} else if e.State.Stable == nil {
			releases[e.State.Source] = true
		}
		return len(releases) <= limit+1, nil
	})
	if err != nil {
		return status.History{}, err
	}
	oldest := make([]status.Event, 0, len(newest))
	for i := range newest {
		oldest = append(oldest, newest[len(newest)-1-i])
	}
	h := status.History{App: app, Cluster: w.source.cluster, Releases: status.Releases(oldest, whole)}
	switch {
	case len(h.Releases) > limit:
		h.Releases = h.Releases[:limit]
		h.Note = fmt.Sprintf("there are older ones: --limit %d", 2*limit)
	case !whole:
		h.Note = fmt.Sprintf("only the last %d commits of %s were looked through: --depth %d", depth, w.config.StateBranch, 10*depth)
	}
	return h, nil
}

// eventOf reads what a commit of the state branch says of an app. The trailers
// of the reconciler's commits tell which apps it is about; one without any was
// made by somebody else and may be about each.
func eventOf(s *git.Snapshot, app string) (e status.Event, about bool, err error) {
	c := s.Commit()
	const trailer = "\nGitrollout-App: "
	if strings.Contains(s.Message(), trailer) && !strings.Contains(s.Message(), trailer+app+" ") {
		return e, false, nil
	}
	path := rollout.StatePath(app)
	data, found, err := source.ReadFile(s, path)
	if err != nil || !found {
		return e, false, err
	}
	state, err := rollout.ParseEditedState(path, data)
	if err != nil {
		var invalid *rollout.InvalidError
		if errors.As(err, &invalid) {
			return e, false, nil // a record that nobody could read had no effect
		}
		return e, false, err
	}
	subject := c.Subject
	if _, rest, ok := strings.Cut(subject, ": "); ok {
		subject = rest
	}
	if !strings.HasPrefix(subject, app+" ") { // it is about several apps
		subject = ""
		for line := range strings.Lines(s.Message()) {
			if text, ok := strings.CutPrefix(line, "- "+app+" "); ok {
				subject = app + " " + strings.TrimSpace(text)
			}
		}
	}
	return status.Event{Commit: c.ID, At: c.When, Subject: subject, State: *state}, true, nil
}

// drawHistory draws a few lines for each release.
func drawHistory(h status.History, k look) string {
	var b strings.Builder
	b.WriteString(k.apart(span{h.Cluster, dim}, span{h.App, bold}, span{fmt.Sprintf("  %d %s", len(h.Releases), plural(len(h.Releases), "release")), dim}))
	for _, p := range h.Releases {
		b.WriteString("\n" + drawPast(p, k))
	}
	if h.Note != "" {
		b.WriteString("\n" + k.field("Note", clean(h.Note), dim, yellow))
	}
	return b.String()
}

func outcomeMark(o status.Outcome) (string, paint) {
	switch o {
	case status.Succeeded, status.Applied, status.Recorded:
		return "✔", green
	case status.Refused:
		return "✖", red
	case status.Reverted:
		return "▼", yellow
	case status.Superseded:
		return "»", dim
	}
	return "◐", cyan
}

func drawPast(p status.Past, k look) string {
	var b strings.Builder
	sign, color := outcomeMark(p.Outcome)
	what := string(p.Outcome)
	if p.Outcome == status.InFlight {
		what = "in flight"
	}
	name := string(p.Hash)
	if name == "" {
		name = rollout.ShortID(p.Commit)
	}
	when := age(k.now.Sub(p.Started)) + " ago"
	if took := p.Took(k.now); p.Ended == nil {
		when = "for " + countdown(took)
	} else if took > 0 {
		when += ", took " + countdown(took)
	}
	b.WriteString(k.line(span{sign + " ", color}, span{pad(name, 13), bold}, span{"  " + pad(what, 10), color}, span{"  " + pad(when, 22), plain},
		span{"  " + p.Started.UTC().Format("2006-01-02 15:04:05Z"), dim}))
	if p.Author != "" {
		b.WriteString(k.line(span{"  " + rollout.ShortID(p.Commit) + "  " + person(p.Author), plain}, span{"  " + clean(p.Subject), dim}))
	}
	notes := notesOf(p)
	if len(notes) > 0 {
		for _, line := range wrap(strings.Join(notes, "; "), k.columns()-2) {
			b.WriteString(k.line(span{"  " + line, plain}))
		}
	}
	if p.Reason != "" {
		for _, line := range wrap(clean(p.Reason), k.columns()-2) {
			b.WriteString(k.line(span{"  " + line, color}))
		}
	}
	if k.wide {
		for _, t := range p.Transitions {
			b.WriteString(k.line(span{"    " + t.At.Format("15:04:05") + "  ", dim}, span{clean(t.Text), plain}, span{"  " + rollout.ShortID(t.Commit), dim}))
		}
		b.WriteString(drawAnalyses(status.App{Analyses: p.Analyses}, k))
	}
	return b.String()
}

// notesOf is what else there is to say of a release.
func notesOf(p status.Past) []string {
	var notes []string
	if p.Of > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d steps", p.Step, p.Of))
	}
	if p.Fast {
		notes = append(notes, "verified before, so without steps")
	}
	if len(p.PromotedBy) > 0 {
		var people []string
		for _, by := range p.PromotedBy {
			people = append(people, person(by))
		}
		notes = append(notes, "promoted by "+strings.Join(people, ", "))
	}
	for _, r := range p.Analyses {
		notes = append(notes, "analysis "+r.Name+" "+string(r.Phase))
	}
	return notes
}
