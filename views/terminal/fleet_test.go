package terminal

import (
	"github.com/google/go-cmp/cmp"

	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/views/status"
)

func fleet() status.Listing {
	named := func(a status.App, name string) status.App { a.App = name; return a }
	calm := heldByInput()
	calm.Held = nil
	l := status.Listing{Cluster: "prod-eu"}
	for i := range 40 {
		l.Apps = append(l.Apps, named(calm, fmt.Sprintf("api-%02d", i)))
	}
	l.Apps = append(l.Apps, named(timedPauseView(), "cart"), named(blueGreenPreview(), "checkout"), named(heldByInput(), "search"), named(degradedRejected(), "shop"), named(stalledCrashLoop(), "web"))
	return l
}

func TestFleetFilter(t *testing.T) {
	cases := map[string]struct {
		filter Filter
		want   string
	}{
		"phase":           {Filter{Phases: []string{"degraded", "Stalled"}}, "shop web"},
		"held":            {Filter{Held: true}, "search"},
		"waiting":         {Filter{Waiting: true}, "checkout search shop"},
		"patterns":        {Filter{Names: []string{"c*", "we?"}}, "cart checkout web"},
		"text":            {Filter{Text: "crashloop"}, "web"},
		"a hash":          {Filter{Text: "h1-7b4e2", Names: []string{"c*"}}, "cart checkout"},
		"all of them":     {Filter{Waiting: true, Phases: []string{"Paused"}}, "checkout"},
		"nothing matches": {Filter{Text: "no such thing"}, ""},
		"by urgency":      {Filter{Sort: "urgency", Names: []string{"api-00", "[c-w]*"}}, "shop web search cart checkout api-00"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := c.filter.Check(); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, a := range c.filter.Apply(fleet()).Apps {
				names = append(names, a.App)
			}
			if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, bad := range []Filter{{Phases: []string{"fine"}}, {Names: []string{"["}}, {Sort: "size"}} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// The window shows what needs a look, and counts the rest.
func TestListInAWindow(t *testing.T) {
	f := Filter{Sort: "urgency"}
	l := f.Apply(fleet())
	for _, rows := range []int{12, 30, 100} {
		text := List(l, Look{Width: 100, Rows: rows, Now: at()})
		if lines := strings.Count(text, "\n"); lines > rows {
			t.Errorf("%d lines in a window of %d", lines, rows)
		}
		if rows == 12 {
			golden(t, "list-window", text)
		}
	}
	l.SetNote("shown from Git alone, without pods: no answer in 15s")
	if text := List(l, Look{Width: 100, Rows: 10, Now: at()}); strings.Count(text, "\n") > 10 || !strings.Contains(text, "and 4") {
		t.Errorf("in 10 lines:\n%s", text)
	}
}
