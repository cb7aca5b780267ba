package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/status"
)

type backtestCommand struct {
	streams
	templateOptions
	output   outputOption
	from, to string
	depth    int
}

type backtest struct {
	Template string    `json:"template"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Releases []replay  `json:"releases"` // oldest first
}

type replay struct {
	App      string                `json:"app"`
	Workload rollout.Workload      `json:"workload"`
	Hash     rollout.Hash          `json:"hash"`
	Commit   string                `json:"commit"`
	Subject  string                `json:"subject,omitempty"`
	Started  time.Time             `json:"started"`
	Outcome  status.Outcome        `json:"outcome"`
	Verdict  rollout.AnalysisPhase `json:"verdict,omitempty"` // of the analysis; absent if not replayed
	At       *time.Time            `json:"at,omitempty"`
	Message  string                `json:"message,omitempty"`

	past status.Past
}

func newBacktest(s streams) *cobra.Command {
	c := &backtestCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "backtest TEMPLATE [APP...]",
		Short: "Replay past releases: which of them a template would have rejected, and when",
		Long: `Run an analysis for past releases of all apps, or of APP, with the metrics that
Prometheus still has. So a template can be tried before a release depends on it.

The state branch says when each release was at which step, and which hashes its pods
had. The analysis begins at the end of the release's first step, as in the background
of a release, and ends at the promotion or the rollback.

TEMPLATE and its arguments work as in "gitrollout analysis run". With --arg
NAME=Latest, an argument is the hash of each release's own pods. A release without
hashes on record is not replayed. Only metrics of prometheus can be replayed.`,
		Example: `  gitrollout analysis backtest errors --arg hash=Latest --address http://localhost:9090
  gitrollout analysis backtest errors shop -f analysis.yaml --from 2026-11-01 --to 2026-12-01
  gitrollout analysis backtest errors --arg hash=Latest -o json | jq '.releases[] | select(.verdict == "Failed")'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactlyOne("template")(cmd, args[:min(1, len(args))])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0], args[1:]) },
	}
	register(cmd, &c.templateOptions)
	c.output.register(cmd, "json", "yaml")
	cmd.Flags().StringVar(&c.from, "from", "720h", "replay releases since this `time`, day or duration ago")
	cmd.Flags().StringVar(&c.to, "to", "0s", "replay releases that began before this `time`")
	cmd.Flags().IntVar(&c.depth, "depth", 20_000, "search at most this many `commits` of the state branch")
	return cmd
}

func (c *backtestCommand) run(ctx context.Context, name string, apps []string) error {
	now := time.Now()
	from, errFrom := momentOf("--from", c.from, now)
	to, errTo := momentOf("--to", c.to, now)
	metrics, err := c.metrics(c.streams, name)
	if err := cmp.Or(errFrom, errTo, err); err != nil {
		return err
	}
	for _, m := range metrics {
		if m.Provider != "prometheus" {
			return usagef("metric %s is measured by %s, but only prometheus can be replayed", m.Name, m.Provider)
		}
	}
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	all, err := slowly(c.streams, "replaying the history of "+w.Config().StateBranch, func() ([]replay, error) {
		all, err := c.releases(ctx, w, apps, from, to)
		source.Each(len(all), 4, func(i int) { c.replay(ctx, &all[i], metrics) })
		return all, cmp.Or(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	out := backtest{name, from, to, all}
	return c.output.show(c.streams, out, out.String)
}

func momentOf(flag, text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	ago, err := time.ParseDuration(text)
	if err != nil {
		return now, usagef("%s %q must be a time (2026-11-20T12:00:00Z), a day (2026-11-20) or a duration (720h)", flag, text)
	}
	return now.Add(-ago).UTC().Truncate(time.Second), nil
}

func (c *backtestCommand) releases(
	ctx context.Context, w *console.Session, apps []string, from, to time.Time,
) (all []replay, err error) {
	if len(apps) == 0 {
		apps = rollout.Mapped(w.Tip.Apps, func(a rollout.App) string { return a.Name })
	}
	for _, app := range apps {
		if _, err := w.App(app); err != nil {
			return nil, err
		}
		h, err := w.History(ctx, app, c.depth, c.depth)
		if err != nil {
			return nil, err
		}
		for _, p := range h.Releases {
			if p.Started.Before(from) || !p.Started.Before(to) || p.Ended == nil {
				continue
			}
			first := len(all)
			for _, t := range p.Transitions {
				for _, pr := range t.Progress {
					if !slices.ContainsFunc(all[first:], func(r replay) bool { return r.Workload == pr.Workload }) {
						all = append(all, replay{App: app, Workload: pr.Workload, Hash: p.Hash, Commit: p.Commit, Subject: p.Subject,
							Started: p.Started, Outcome: p.Outcome, past: p})
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b replay) int { return a.Started.Compare(b.Started) })
	return all, nil
}

func (r *replay) steps() (steps []rollout.Progress, ended time.Time) {
	for _, t := range r.past.Transitions {
		p, has := rollout.Find(t.Progress, func(p rollout.Progress) bool { return p.Workload == r.Workload })
		switch {
		case !has:
		case t.Phase == rollout.Aborting:
			return steps, t.At
		case p.Step >= p.Of:
			return steps, p.Entered
		default:
			steps = append(steps, p)
		}
	}
	return steps, *r.past.Ended
}

func (c *backtestCommand) replay(ctx context.Context, r *replay, metrics []rollout.Metric) {
	longest := slices.Max(rollout.Mapped(metrics, func(m rollout.Metric) time.Duration { return m.Interval }))
	steps, ended := r.steps()
	first := slices.IndexFunc(steps, func(p rollout.Progress) bool { return p.Step > 0 })
	if first < 0 {
		r.Message = "the release ended at its first step"
		return
	}
	last := steps[len(steps)-1]
	clock := rollout.Second(steps[first].Entered)
	t := strategies.NewTrial(r.Workload.Name, metrics, strategies.Measure{
		Release: r.Hash, Workload: rollout.Workload{Namespace: c.secretsIn(c.target)},
		Latest: last.PodHash, Stable: last.StablePodHash, ReleaseSince: r.Started}, clock)
	if t.LacksPods() {
		r.Message = "the record lacks the versions' pod hashes, which the metrics need"
		return
	}
	worker := newWorker(ctx, c.streams, func() time.Time { return clock }, true)
	at, before := first, 0 // the previous step's weight
	for _, p := range steps[:first] {
		before = p.Weight
	}
	for !t.Run.Phase.Done() && ctx.Err() == nil {
		for ; at+1 < len(steps) && !steps[at+1].Entered.After(clock); at++ {
			if steps[at+1].Step > steps[at].Step {
				before = steps[at].Weight
			}
		}
		t.Of.Since, t.Of.IsSteady = steps[at].Entered, steps[at].Weight == before
		due, next := t.Due(clock)
		for _, m := range due {
			t.Take(worker.Take(ctx, rollout.App{}, m))
		}
		if len(due) > 0 {
			r.At, next = new(clock), clock.Add(time.Second)
		}
		if next.IsZero() || !next.Before(ended.Add(longest)) { // each metric is also measured after the recorded end
			break
		}
		clock = next
	}
	isMeasured := slices.ContainsFunc(t.Run.Metrics, func(p rollout.MetricProgress) bool { return p.Count > 0 })
	switch t.Stop(); {
	case t.Run.Phase != analysis.Stopped:
		r.Message = t.Run.Message
	case !isMeasured && r.At != nil:
		p, _ := t.Run.Metrics[0].Last()
		r.Message = "no measurement: " + cmp.Or(p.Message, "no data")
	}
	r.Verdict = t.Run.Phase
}

func (b backtest) String() string {
	var text strings.Builder
	n := map[[2]bool]int{} // number of releases by [rejected in the replay, rejected in the past]
	for _, r := range b.Releases {
		says := cmp.Or(string(r.Verdict), "not replayed")
		isBad := r.Verdict == analysis.Failed || r.Verdict == analysis.Errored
		if r.Verdict != "" {
			n[[2]bool{isBad, r.Outcome == status.Refused}]++
		}
		if isBad {
			says += " after " + r.At.Sub(r.Started).String()
		}
		if r.Message != "" {
			says += ": " + r.Message
		}
		fmt.Fprintf(&text, "%s  %-16s  %s  %-10s  %s\n", r.Started.UTC().Format("2006-01-02 15:04Z"), r.Workload.Name,
			rollout.ShortID(r.Commit), r.Outcome, says)
	}
	found, wrong := n[[2]bool{true, true}], n[[2]bool{true, false}]
	wasBad, others := found+n[[2]bool{false, true}], wrong+n[[2]bool{}]
	fmt.Fprintf(&text, "%s replayed, %d would have been rejected: %d of %d that were rejected, and %d of %d others\n",
		rollout.Count(wasBad+others, "release"), found+wrong, found, wasBad, wrong, others)
	return text.String()
}
