package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Filter selects and sorts a list's apps.
type Filter struct {
	Names     []string                     // patterns, of which one must match; nil matches all
	Namespace string                       // "" for all
	Labels    func(map[string]string) bool // must match the labels of an app's workloads; nil matches all
	Phases    []string
	Held      bool   // a problem holds the app
	Waiting   bool   // a user must act
	Text      string // part of name, image, commit, author, subject or reason
	Sort      string // a key of orders, or ""
}

// Apply returns the matching apps in the Filter's order.
func (f *Filter) Apply(l status.Listing) status.Listing {
	if f == nil {
		return l
	}
	l.Apps = slices.DeleteFunc(append([]status.App{}, l.Apps...), func(a status.App) bool { return !f.matches(a) })
	if order := orders[f.Sort]; order != nil {
		slices.SortStableFunc(l.Apps, order)
	}
	return l
}

var orders = map[string]func(a, b status.App) int{
	"name":      nil,
	"urgency":   func(a, b status.App) int { return cmp.Compare(urgency(a), urgency(b)) },
	"age":       func(a, b status.App) int { return sinceOf(b).Compare(sinceOf(a)) },
	"namespace": func(a, b status.App) int { return strings.Compare(a.Namespace, b.Namespace) },
	"change":    byChange,
}

func byChange(a, b status.App) int {
	if a.Shared == nil || b.Shared == nil {
		return -strings.Compare(sharedText(a), sharedText(b)) // "-" precedes files' names
	}
	return cmp.Or(strings.Compare(a.Shared.File+" "+a.Shared.ID, b.Shared.File+" "+b.Shared.ID),
		cmp.Compare(a.Shared.Cohort, b.Shared.Cohort))
}

// Missed returns the patterns in Names that match no app.
func (f *Filter) Missed(l status.Listing) []string {
	return slices.DeleteFunc(slices.Clone(f.Names), func(pattern string) bool {
		one := Filter{Names: []string{pattern}}
		return slices.ContainsFunc(l.Apps, one.matches)
	})
}

// OrderNames lists a Filter's orders.
func OrderNames() []string { return slices.Sorted(maps.Keys(orders)) }

func (f *Filter) matches(a status.App) bool {
	named := len(f.Names) == 0 || slices.ContainsFunc(f.Names, func(pattern string) bool {
		is, err := path.Match(pattern, a.App)
		return err == nil && is
	})
	return named &&
		(f.Namespace == "" || f.Namespace == a.Namespace) &&
		(f.Labels == nil || f.Labels(a.Labels)) &&
		(len(f.Phases) == 0 || slices.Contains(f.Phases, string(a.Phase))) &&
		(!f.Held || (a.Held != nil && !a.Waits())) &&
		(!f.Waiting || a.NeedsPerson()) &&
		(f.Text == "" || strings.Contains(strings.ToLower(searchText(a)), strings.ToLower(f.Text)))
}

func searchText(a status.App) string {
	parts := []string{a.App, a.Path, a.Reason, a.Waiting, sharedText(a)}
	parts = append(parts, a.Images...)
	for _, r := range []*status.Release{a.Release, a.Stable} {
		if r != nil {
			parts = append(parts, r.Images...)
			parts = append(parts, string(r.Hash), r.Commit, r.Author, r.Subject)
		}
	}
	if a.Held != nil {
		parts = append(parts, string(a.Held.Reason), a.Held.Message)
	}
	parts = append(parts, rollout.Mapped(a.Workloads, func(w status.Workload) string { return w.Workload })...)
	return strings.Join(parts, "\n")
}

// byUrgency lists phases, the most urgent first. "held" means that a problem holds the app.
var byUrgency = []rollout.Phase{rollout.Degraded, rollout.Stalled, rollout.Aborting, "held", rollout.Paused,
	rollout.Progressing, rollout.Promoting, rollout.Pending, status.Unknown, rollout.Healthy}

func urgency(a status.App) int {
	phase := a.Phase
	if a.Held != nil && !a.Waits() {
		phase = "held"
	}
	if i := slices.Index(byUrgency, phase); i >= 0 {
		return i
	}
	return len(byUrgency) - 2
}

func fleetLine(l status.Listing, k Look) string {
	counts, held := map[rollout.Phase]int{}, 0
	for _, a := range l.Apps {
		counts[a.Phase]++
		if a.Held != nil && !a.Waits() {
			held++
		}
	}
	spans := []span{{l.Cluster, bold}, {"  " + rollout.Count(len(l.Apps), "app"), plain}}
	sep := ":  "
	for _, name := range byUrgency {
		if n := counts[name]; n > 0 {
			mark := mark(status.App{Phase: name})
			spans = append(spans, span{sep, plain}, span{fmt.Sprintf("%s %d %s", mark.text, n, name), mark.color})
			sep = "  "
		}
	}
	if held > 0 {
		spans = append(spans, span{fmt.Sprintf("  ■ %d held", held), yellow})
	}
	return k.line(spans...)
}

// PhaseNames lists a Filter's phases.
func PhaseNames() []string {
	return rollout.Mapped(append(rollout.Phases(), status.Unknown), func(p rollout.Phase) string { return string(p) })
}

// Check refuses unknown phases, unknown orders and invalid patterns. It corrects the case of phases.
func (f *Filter) Check() error {
	for i, p := range f.Phases {
		known := slices.IndexFunc(PhaseNames(), func(name string) bool { return strings.EqualFold(name, p) })
		if known < 0 {
			return fmt.Errorf("--phase %q is not supported; supported values: %s", p, strings.Join(PhaseNames(), ", "))
		}
		f.Phases[i] = PhaseNames()[known]
	}
	for _, name := range f.Names {
		if _, err := path.Match(name, ""); err != nil {
			return fmt.Errorf("%q is not a pattern: %w", name, err)
		}
	}
	if _, known := orders[f.Sort]; f.Sort != "" && !known {
		return fmt.Errorf("--sort %q is not supported; supported values: %s", f.Sort, strings.Join(OrderNames(), ", "))
	}
	return nil
}
