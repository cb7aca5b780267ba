package terminal_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

func fleet() status.Listing {
	named := func(a status.App, name string) status.App { a.App = name; return a }
	calm := heldByInput()
	calm.Held = nil
	l := status.Listing{Cluster: "prod-eu"}
	for i := range 40 {
		l.Apps = append(l.Apps, named(calm, fmt.Sprintf("api-%02d", i)))
	}
	l.Apps = append(l.Apps, named(timedPauseView(), "cart"), named(blueGreenPreview(), "checkout"), named(heldByInput(), "search"),
		named(degradedRejected(), "shop"), named(stalledCrashLoop(), "web"), plainApp())
	l.Apps[41].Labels = map[string]string{"team": "pay"}
	return l
}

func names(l status.Listing) string {
	return strings.Join(rollout.Mapped(l.Apps, func(a status.App) string { return a.App }), " ")
}

func TestFleetFilter(t *testing.T) {
	for name, c := range map[string]struct {
		filter terminal.Filter
		want   string
	}{
		"phase":           {terminal.Filter{Phases: []string{"degraded", "Stalled"}}, "shop web"},
		"held":            {terminal.Filter{Held: true}, "search"},
		"waiting":         {terminal.Filter{Waiting: true}, "checkout search shop"},
		"patterns":        {terminal.Filter{Names: []string{"c*", "we?"}}, "cart checkout web"},
		"text":            {terminal.Filter{Text: "crashloop"}, "web"},
		"a held app":      {terminal.Filter{Text: "is not within"}, "search"},
		"why it is held":  {terminal.Filter{Text: "invalidinput"}, "search"},
		"a workload":      {terminal.Filter{Text: "shop/checkout", Names: []string{"w*"}}, "web"},
		"a hash":          {terminal.Filter{Text: "h1-7b4e2", Names: []string{"c*"}}, "cart checkout"},
		"all of them":     {terminal.Filter{Waiting: true, Phases: []string{"Paused"}}, "checkout"},
		"nothing matches": {terminal.Filter{Text: "no such thing"}, ""},
		"namespace":       {terminal.Filter{Namespace: "edge"}, "ingress"},
		"labels":          {terminal.Filter{Labels: func(l map[string]string) bool { return l["team"] == "pay" }}, "checkout"},
		"an image":        {terminal.Filter{Text: "traefik:v3"}, "ingress"},
		"by age":          {terminal.Filter{Sort: "age", Names: []string{"api-00", "ingress", "shop", "web"}}, "web api-00 shop ingress"},
		"by namespace":    {terminal.Filter{Sort: "namespace", Names: []string{"cart", "ingress"}}, "ingress cart"},
		"by urgency": {terminal.Filter{Sort: "urgency", Names: []string{"api-00", "[c-w]*"}},
			"shop web search cart checkout api-00 ingress"},
	} {
		t.Run(name, func(t *testing.T) {
			compare.CheckNamed(t, "the filter's error", nil, c.filter.Check())
			compare.Check(t, c.want, names(c.filter.Apply(fleet())))
		})
	}
	for _, bad := range []terminal.Filter{{Phases: []string{"fine"}}, {Names: []string{"["}}, {Sort: "size"}} {
		compare.CheckNamed(t, fmt.Sprintf("%+v is accepted", bad), false, bad.Check() == nil)
	}
}

// TestListOfSharedChanges checks the lines that count the apps of shared changes, the cohorts' column of a wide list, and the order by
// change.
func TestListOfSharedChanges(t *testing.T) {
	l := fleet()
	place := func(id string, cohort int, state string) *status.Shared {
		return &status.Shared{Place: rollout.Place{File: "base/web.yaml", ID: id, Cohort: cohort, Of: 3}, State: state}
	}
	l.Apps[44].Shared, l.Apps[2].Shared = place("5832d1e", 1, "entered"), place("5832d1e", 2, "waiting")
	l.Apps[1].Shared = place("1111111", 3, "waiting")
	l.SetChanges()
	l = (&terminal.Filter{Sort: "change", Names: []string{"api-0*", "web"}}).Apply(l)
	compare.Check(t, "api-01 web api-02 api-00 api-03 api-04 api-05 api-06 api-07 api-08 api-09", names(l))
	text := terminal.List(l, terminal.Look{Wide: true, Now: at()})
	compare.Contains(t, text, "shared change of base/web.yaml (1111111), cohort 3 of 3: 0 of 1 apps done, 1 waiting\n"+
		"shared change of base/web.yaml (5832d1e), cohort 2 of 3: 0 of 2 apps done, 1 entered, 1 waiting\nNAME",
		"  base/web.yaml (5832d1e), cohort 1 of 3, entered\n")
	compare.CheckNamed(t, "by the id", "web api-02", names((&terminal.Filter{Text: "5832d1e", Sort: "change"}).Apply(l)))
	compare.Contains(t, terminal.App(l.Apps[1], terminal.Look{Now: at()}), "Shared      base/web.yaml (5832d1e), cohort 1 of 3, entered")
	window := terminal.List(l, terminal.Look{Width: 100, Rows: 8, Now: at()})
	compare.CheckNamed(t, "lines in a window of 8", true, strings.Count(window, "\n") <= 8)
}

func TestMissed(t *testing.T) {
	f := terminal.Filter{Names: []string{"shop", "api-*", "shp", "x?"}, Phases: []string{"Degraded"}}
	compare.Check(t, []string{"shp", "x?"}, f.Missed(fleet()))
}

// TestListInAWindow checks that a list in a small window shows as many apps as fit, most urgent first, and the number of all others.
func TestListInAWindow(t *testing.T) {
	f := terminal.Filter{Sort: "urgency"}
	l := f.Apply(fleet())
	for _, rows := range []int{12, 30, 100} {
		text := terminal.List(l, terminal.Look{Width: 100, Rows: rows, Now: at()})
		if lines := strings.Count(text, "\n"); lines > rows {
			t.Errorf("%d lines in a window of %d", lines, rows)
		}
		if rows == 12 {
			golden(t, "list-window", text)
		}
	}
	l.SetNote("shown from Git alone; pods are not observed: no answer in 15s")
	if text := terminal.List(l, terminal.Look{Width: 100, Rows: 10, Now: at()}); strings.Count(text, "\n") > 10 ||
		!strings.Contains(text, "and 4") {
		t.Errorf("in 10 lines:\n%s", text)
	}
}

// TestUrgency checks that an app in an unknown phase comes directly before the healthy apps.
func TestUrgency(t *testing.T) {
	held := rollout.Held{Reason: "InvalidInput"}
	l := status.Listing{Apps: []status.App{{App: "well", Phase: "Healthy"}, {App: "odd", Phase: "Odd"}, {App: "pending", Phase: "Pending"},
		{App: "paused", Phase: "Paused"}, {App: "held", Phase: "Healthy", Held: &held}, {App: "down", Phase: "Degraded"}}}
	compare.Check(t, "down held paused pending odd well", names((&terminal.Filter{Sort: "urgency"}).Apply(l)))
}
