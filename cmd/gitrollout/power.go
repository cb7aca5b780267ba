package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// share is a part of all requests, such as 2% or 0.02.
type share float64

func (s *share) Set(text string) error {
	number, isPercent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if isPercent {
		f /= 100
	}
	if *s = share(f); err != nil || !(f >= 0 && f <= 1) {
		return errors.New("write a share of requests, such as 2% or 0.02")
	}
	return nil
}

func (s *share) String() string { return fmt.Sprintf("%.6g%%", 100*float64(*s)) }

func (s *share) Type() string { return "share" }

type powerCommand struct {
	streams
	output        outputOption
	weight        float64
	metrics, runs int
	metric        analysis.Metric
	setting       analysis.Setting
	seed          uint64
}

func newPower(s streams) *cobra.Command {
	c := &powerCommand{streams: s, setting: analysis.Setting{Stable: 0.01, Canary: 0.02}}
	c.metric = analysis.Metric{Compare: &analysis.Compare{}, Retention: 1, Config: map[string]any{"query": "{{elapsed}}"}}
	cmd := &cobra.Command{
		Use:   "power",
		Short: "Simulate how many bad releases a comparison rejects",
		Long: `Simulate releases and judge them with the tests of the comparisons in analyses
(compare: {to: stable}). The command prints how many releases are rejected, and
the median number of requests to the new version until then. With equal shares
of bad requests, the number of rejected releases is the number of false alarms.

The queries cover {{elapsed}}. All requests are independent of each other.
Equal flags print equal numbers. It needs neither a cluster nor a network.`,
		Example: `  gitrollout analysis power --stable 2% --canary 3% --canary-rate 20 --weight 20
  gitrollout analysis power --stable 2% --canary 2% --metrics 8 --runs 10000`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return c.run() },
	}
	c.output.register(cmd, "json", "yaml")
	flags := cmd.Flags()
	flags.Var((*share)(&c.setting.Stable), "stable", "stable's share of bad requests")
	flags.Var((*share)(&c.setting.Canary), "canary", "the new version's share of bad requests")
	flags.Float64Var(&c.setting.Rate, "canary-rate", 20, "`requests` per second to the new version")
	flags.Float64Var(&c.weight, "weight", 20, "the new version's `percent` of all requests")
	flags.DurationVar(&c.metric.Interval, "interval", 10*time.Second, "time between measurements")
	flags.IntVar(&c.metric.Count, "count", 60, "number of measurements")
	flags.IntVar(&c.metrics, "metrics", 1, "number of compared metrics, each with these shares")
	flags.Float64Var(&c.metric.Compare.Confidence, "confidence", 0.999, "the metric's compare.confidence")
	flags.Var((*share)(&c.metric.Compare.MaxIncrease), "max-increase", "the metric's compare.maxIncrease")
	flags.IntVar(&c.runs, "runs", 400, "number of simulated releases")
	flags.Uint64Var(&c.seed, "seed", 1, "seed of the random numbers")
	return cmd
}

func (c *powerCommand) run() error {
	requests := c.setting.Rate * c.metric.Interval.Seconds() * float64(c.metric.Count)
	looks := float64(c.metric.Count) * float64(c.runs) * float64(c.metrics) * float64(c.metrics)
	switch p := c.metric.Compare.Confidence; {
	case c.metric.Interval <= 0 || c.metric.Count < 1:
		return usagef("--interval %s must be above 0, and --count %d must be 1 or more", c.metric.Interval, c.metric.Count)
	case !(c.weight >= 1 && c.weight <= 99):
		return usagef("--weight %g is not within 1..99", c.weight)
	case !(requests >= 1 && requests <= 1e9):
		return usagef("--canary-rate %g sends %.3g requests in %d × %s; between 1 and 1e9 can be simulated",
			c.setting.Rate, requests, c.metric.Count, c.metric.Interval)
	case c.metrics < 1 || c.runs < 1:
		return usagef("--metrics %d and --runs %d must both be 1 or more", c.metrics, c.runs)
	case looks > 5e7:
		return usagef("--count %d, --runs %d and --metrics %d need the work of %.3g measurements; "+
			"at most 5e7 can be simulated", c.metric.Count, c.runs, c.metrics, looks)
	case !(p >= 0.5 && p < 1):
		return usagef("--confidence %g is not within 0.5..1", p)
	}
	c.setting.Weight = c.weight / 100
	for i := range c.metrics {
		c.metric.Name = strconv.Itoa(i)
		c.setting.Metrics = append(c.setting.Metrics, c.metric)
	}
	got, _ := slowly(c.streams, "simulating "+rollout.Count(c.runs, "release"), func() (analysis.Outcome, error) {
		return analysis.Simulate(c.setting, c.runs, c.seed), nil
	})
	return c.output.show(c.streams, got, func() string {
		text := fmt.Sprintf("%d of %s rejected (%.3g%%)", got.Rejected, rollout.Count(got.Runs, "release"),
			100*float64(got.Rejected)/float64(got.Runs))
		if got.Rejected > 0 {
			after := time.Duration(float64(got.MedianRequests) / c.setting.Rate * float64(time.Second))
			text += fmt.Sprintf(", after a median of %s to the new version (%s)",
				rollout.Count(got.MedianRequests, "request"), rollout.ShortSpan(after.Round(time.Second)))
		}
		return text + "\n"
	})
}
