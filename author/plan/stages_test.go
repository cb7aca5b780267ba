package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestOrder checks the order, approvals and earliest times of the stages that a change reaches. A stage waits for the release and the soak
// in the slowest cluster of the previous stage. Rollbacks, former stable versions and apps without a change in the previous stage do not
// wait.
func TestOrder(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	in := func(cluster string, apps ...plan.App) plan.Plan {
		return plan.Plan{Cluster: cluster, At: noon, Apps: apps}
	}
	shop := plan.App{App: "shop", Change: plan.Release, AtLeast: plan.Span(10 * time.Minute)}
	slow, fast := plan.App{App: "shop", Change: plan.Release, AtLeast: plan.Span(25 * time.Minute)}, plan.App{App: "till", Change: plan.Fast}
	f := &rollout.Fleet{Stages: []rollout.Stage{
		{Name: "dev", Clusters: []string{"dev"}, Soak: 5 * time.Minute},
		{Name: "staging", Clusters: []string{"eu", "us"}, Soak: time.Hour, MaxUpdate: rollout.Amount{Value: 100, Percent: true}},
		{Name: "prod", Clusters: []string{"a-prod"}, Approve: rollout.ApproveMerge},
	}}
	all := []plan.Plan{
		in("a-prod", plan.App{App: "bad", Change: plan.First}, plan.App{App: "gone", Change: plan.Gone}, plan.App{App: "pay", Change: plan.Apply},
			shop, fast),
		in("dev", shop, plan.App{App: "bad", Change: plan.Invalid}), in("eu", plan.App{App: "bad", Change: plan.Release}, shop), in("lab", shop),
		in("us", slow),
	}
	plan.Order(all, f)
	seen := ""
	for _, p := range all {
		seen += p.Cluster + "\n"
		for _, a := range p.Apps {
			seen += a.App + ": " + strings.TrimSuffix(strings.TrimPrefix(a.Summary, "enters stage "), "; ") + "\n"
		}
	}
	compare.Check(t, `lab
shop: 
dev
shop: 1 of 3 (dev), earliest: immediately
bad: 
eu
bad: 2 of 3 (staging), earliest: unknown
shop: 2 of 3 (staging), earliest: 12:15:00 UTC
us
shop: 2 of 3 (staging), earliest: 12:15:00 UTC
a-prod
bad: 3 of 3 (prod), earliest: unknown, after an approval
gone: 
pay: 3 of 3 (prod), earliest: immediately, after an approval
shop: 3 of 3 (prod), earliest: 13:40:00 UTC, after an approval
till: 3 of 3 (prod), earliest: immediately
`, seen)
}

// TestOrderByMaxUpdate checks that clusters enter by rank, and that at most MaxUpdate of them release or soak at once. Clusters without the
// change do not count. A cluster that cannot take the change always counts.
func TestOrderByMaxUpdate(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := rollout.Stage{Name: "prod", Clusters: []string{"a", "b", "c", "d"}, Soak: 5 * time.Minute}
	ranked := s.Ranked("shop")
	takes := []time.Duration{10, 20, 40, 80} // minutes, by rank
	for name, c := range map[string]struct {
		most    rollout.Amount
		without int // rank of a cluster without the change, or -1
		invalid int // rank of a cluster with an invalid app, or -2-rank of a cluster with an invalid configuration, or -1
		want    string
	}{
		"all":                   {rollout.Amount{Value: 100, Percent: true}, -1, -1, "0 0 0 0"},
		"one":                   {rollout.Amount{Value: 1}, -1, -1, "0 15 40 85"},
		"two":                   {rollout.Amount{Value: 50, Percent: true}, -1, -1, "0 0 15 25"},
		"one, a cluster lacks":  {rollout.Amount{Value: 25, Percent: true}, 1, -1, "0 - 15 60"},
		"two, a cluster lacks":  {rollout.Amount{Value: 2}, 0, -1, "- 0 0 25"},
		"two, one is invalid":   {rollout.Amount{Value: 2}, -1, 0, "? 0 25 70"},
		"three, one is invalid": {rollout.Amount{Value: 3}, -1, 1, "0 ? 0 15"},
		"two, one is unread":    {rollout.Amount{Value: 2}, -1, -2, "- 0 25 70"},
	} {
		s.MaxUpdate = c.most
		var all []plan.Plan
		for rank, cluster := range ranked {
			a := plan.App{App: "shop", Change: plan.Release, AtLeast: plan.Span(takes[rank] * time.Minute)}
			if rank == c.invalid {
				a.Change = plan.Invalid
			}
			p := plan.Plan{Cluster: cluster, At: noon, Apps: []plan.App{a}}
			if rank == c.without || rank == -2-c.invalid {
				p.Apps = nil
			}
			if rank == -2-c.invalid {
				p.Error = &rollout.InvalidError{Msg: "is not valid YAML"}
			}
			all = append(all, p)
		}
		plan.Order(all, &rollout.Fleet{Stages: []rollout.Stage{s}})
		var seen []string
		for _, cluster := range ranked {
			for _, p := range all {
				switch {
				case p.Cluster != cluster:
				case len(p.Apps) == 0:
					seen = append(seen, "-")
				case p.Apps[0].Enters.IsZero():
					seen = append(seen, "?")
				default:
					seen = append(seen, fmt.Sprint(p.Apps[0].Enters.Sub(noon).Minutes()))
				}
			}
		}
		compare.CheckNamed(t, name, c.want, strings.Join(seen, " "))
	}
}

// TestOrderDelaysSteps checks that an app's steps begin no earlier than the app's entry into the stage. Later step times stay. The times
// are unknown if a cluster of the previous stage cannot take the change.
func TestOrderDelaysSteps(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	in := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	shop := func() plan.App {
		return plan.App{App: "shop", Change: plan.Release, AtLeast: plan.Span(10 * time.Minute), Begins: noon, Ends: in(45),
			Workloads: []plan.Workload{{
				Stages: []plan.Stage{{AtLeast: plan.Span(10 * time.Minute), Enters: noon}, {Enters: in(10)}, {Enters: in(45)}, {}}}}}
	}
	f := &rollout.Fleet{Stages: []rollout.Stage{{Name: "dev", Clusters: []string{"dev"}, Soak: 20 * time.Minute},
		{Name: "prod", Clusters: []string{"prod"}}}}
	for name, c := range map[string]struct {
		dev  plan.App
		want []time.Time
	}{
		"after dev":         {shop(), []time.Time{in(30), in(45), in(30), in(40), in(45), {}}},
		"dev cannot be":     {plan.App{App: "shop", Change: plan.Invalid}, make([]time.Time, 6)},
		"dev is unread":     {plan.App{}, make([]time.Time, 6)},
		"dev takes nothing": {plan.App{App: "other", Change: plan.Release}, []time.Time{noon, in(45), noon, in(10), in(45), {}}},
	} {
		t.Run(name, func(t *testing.T) {
			all := []plan.Plan{{Cluster: "dev", At: noon, Apps: []plan.App{c.dev}}, {Cluster: "prod", At: noon, Apps: []plan.App{shop()}}}
			if c.dev.App == "" {
				all[0].Apps, all[0].Error = nil, &rollout.InvalidError{Msg: "is not valid YAML"}
			}
			plan.Order(all, f)
			is := all[1].Apps[0]
			compare.Check(t, c.want, append([]time.Time{is.Begins, is.Ends},
				rollout.Mapped(is.Workloads[0].Stages, func(s plan.Stage) time.Time { return s.Enters })...))
		})
	}
}
