package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// fleetFilter says which apps list shows, and in which order.
type fleetFilter struct {
	names   []string // patterns
	phases  []string
	held    bool
	waiting bool
	text    string
	sort    string
}

func (f *fleetFilter) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.phases, "phase", nil, "only apps in this `phase`, or one of several: Paused,Degraded")
	flags.BoolVar(&f.held, "held", false, "only apps that are left as they are because something is wrong")
	flags.BoolVar(&f.waiting, "waiting", false, "only apps that wait for a person: at a gate, on hold, rejected, or held")
	flags.StringVar(&f.text, "text", "", "only apps with this text in a name, commit, author, subject or reason")
	flags.StringVar(&f.sort, "sort", "", "name, or urgency: what needs a look first (default: name; in place on a terminal urgency)")
	complete(cmd, "phase", func(*world, []string) []string { return phaseNames() })
}

func phaseNames() []string {
	var names []string
	for _, p := range append(rollout.Phases(), status.Unknown) {
		names = append(names, string(p))
	}
	return names
}

// check refuses what selects nothing by mistake.
func (f *fleetFilter) check() error {
	for i, p := range f.phases {
		known := slices.IndexFunc(phaseNames(), func(name string) bool { return strings.EqualFold(name, p) })
		if known < 0 {
			return usagef("--phase %q is not one of %s", p, strings.Join(phaseNames(), ", "))
		}
		f.phases[i] = phaseNames()[known]
	}
	for _, name := range f.names {
		if _, err := path.Match(name, ""); err != nil {
			return usagef("%q is not a pattern: %v", name, err)
		}
	}
	if !slices.Contains([]string{"", "name", "urgency"}, f.sort) {
		return usagef("--sort %q is not one of name, urgency", f.sort)
	}
	return nil
}

// apply leaves out what does not match.
func (f *fleetFilter) apply(l status.Listing) status.Listing {
	apps := make([]status.App, 0, len(l.Apps))
	for _, a := range l.Apps {
		if f.matches(a) {
			apps = append(apps, a)
		}
	}
	if f.sort == "urgency" {
		slices.SortStableFunc(apps, func(a, b status.App) int { return cmp.Compare(urgency(a), urgency(b)) })
	}
	l.Apps = apps
	return l
}

func (f *fleetFilter) matches(a status.App) bool {
	named := len(f.names) == 0 || slices.ContainsFunc(f.names, func(pattern string) bool {
		is, err := path.Match(pattern, a.App)
		return err == nil && is
	})
	return named &&
		(len(f.phases) == 0 || slices.Contains(f.phases, string(a.Phase))) &&
		(!f.held || (a.Held != nil && !a.Waits())) &&
		(!f.waiting || waitsForPeople(a)) &&
		(f.text == "" || strings.Contains(strings.ToLower(searchText(a)), strings.ToLower(f.text)))
}

// waitsForPeople reports whether nothing goes on before somebody does something.
func waitsForPeople(a status.App) bool {
	if a.Held != nil {
		return !a.Waits()
	}
	return a.Phase == rollout.Degraded || (a.Phase == rollout.Paused && a.Due == nil)
}

func searchText(a status.App) string {
	parts := []string{a.App, a.Path, a.Reason, a.Waiting}
	for _, r := range []*status.Release{a.Release, a.Stable} {
		if r != nil {
			parts = append(parts, string(r.Hash), r.Commit, r.Author, r.Subject)
		}
	}
	if a.Held != nil {
		parts = append(parts, a.Held.Reason, a.Held.Message)
	}
	for _, w := range a.Workloads {
		parts = append(parts, w.Workload)
	}
	return strings.Join(parts, "\n")
}

// urgency is how soon an app needs a look, 0 first: what is broken, what waits for
// people, what moves, what is well.
func urgency(a status.App) int {
	if a.Held != nil && !a.Waits() {
		return 3
	}
	order := []rollout.Phase{rollout.Degraded, rollout.Stalled, rollout.Aborting, "held", rollout.Paused, rollout.Progressing, rollout.Promoting, rollout.Pending, status.Unknown, rollout.Healthy}
	if i := slices.Index(order, a.Phase); i >= 0 {
		return i
	}
	return len(order) - 2
}

// fleetLine counts the apps by phase: prod-eu  1000 apps: 2 Degraded, 998 Healthy.
func fleetLine(l status.Listing, k look) string {
	counts, held := map[rollout.Phase]int{}, 0
	for _, a := range l.Apps {
		counts[a.Phase]++
		if a.Held != nil && !a.Waits() {
			held++
		}
	}
	spans := []span{{l.Cluster, bold}, {fmt.Sprintf("  %d %s", len(l.Apps), plural(len(l.Apps), "app")), plain}}
	sep := ":  "
	for _, name := range []rollout.Phase{rollout.Degraded, rollout.Stalled, rollout.Aborting, rollout.Paused, rollout.Progressing, rollout.Promoting, rollout.Pending, status.Unknown, rollout.Healthy} {
		if n := counts[name]; n > 0 {
			sign, color := mark(status.App{Phase: name})
			spans = append(spans, span{sep, plain}, span{fmt.Sprintf("%s %d %s", sign, n, name), color})
			sep = "  "
		}
	}
	if held > 0 {
		spans = append(spans, span{fmt.Sprintf("  ■ %d held", held), yellow})
	}
	return k.line(spans...)
}
