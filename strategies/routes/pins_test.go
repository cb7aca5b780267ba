package routes

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestPinRows checks which pods the main and the side Service select in each phase, written as "main/side". The columns say how many stable
// pods are ready: none, some, enough. The lines say how many new pods are ready; equal lines are merged.
func TestPinRows(t *testing.T) {
	places := map[trafficPhase]string{atSteps: "steps", shared: "shared", switched: "switched", promoting: "promoting", leaving: "leaving",
		left: "left"}
	names := map[selector]string{allPods: "all", stablePin: "stable", freshPin: "fresh", newestPin: "newest"}
	cases := map[string]struct {
		reason string
		rows   []pinRow
		want   string
		shares bool
	}{
		"Canary": {reason: "requests follow whatever is ready", rows: canaryRows, want: `
steps     none, some, enough all/fresh     all/fresh     stable/newest
switched  none               all/fresh     all/fresh     all/fresh
switched  some, enough       fresh/fresh   fresh/fresh   fresh/fresh
promoting none, some, enough all/fresh     all/fresh     all/fresh
leaving   none, some, enough all/stable    all/stable    stable/stable
left      none, some, enough all/stable    all/stable    stable/stable
`},
		"BlueGreen": {reason: "the preview stays the preview until its pods go", rows: blueGreenRows, want: `
steps     none, some, enough stable/newest stable/newest stable/newest
switched  none               all/fresh     all/fresh     all/fresh
switched  some, enough       fresh/fresh   fresh/fresh   fresh/fresh
promoting none, some, enough all/fresh     all/fresh     all/fresh
leaving   none, some, enough all/fresh     all/fresh     stable/fresh
left      none, some, enough all/stable    all/stable    stable/stable
`},
		"Routed": {reason: "no Service that routers may send to is without endpoints", rows: routedRows, want: `
steps     none, some         all/all       stable/stable stable/stable
steps     enough             all/fresh     all/fresh     stable/newest
switched  none               all/all       all/all       all/all
switched  some, enough       fresh/fresh   fresh/fresh   fresh/fresh
promoting none               all/all       all/all       all/all
promoting some, enough       all/fresh     all/fresh     all/fresh
leaving   none, some, enough all/all       all/stable    stable/stable
left      none, some, enough all/all       all/stable    stable/stable
`},
		"Shared": {reason: "unmatched users reach all pods at a weight", rows: sharedRows, shares: true, want: `
steps     none, some         all/all       stable/stable stable/stable
steps     enough             all/fresh     all/fresh     stable/newest
shared    none, some         all/all       all/all       all/stable
shared    enough             all/fresh     all/fresh     all/fresh
switched  none               all/all       all/all       all/all
switched  some, enough       fresh/fresh   fresh/fresh   fresh/fresh
promoting none               all/all       all/all       all/all
promoting some, enough       all/fresh     all/fresh     all/fresh
leaving   none, some, enough all/all       all/stable    stable/stable
left      none, some, enough all/all       all/stable    stable/stable
`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			used := map[int]bool{}
			var b strings.Builder
			for at := atSteps; at <= left; at++ {
				if at == shared && !tc.shares {
					continue
				}
				var lines [][2]string // for each readiness of the new version: its name, and the selectors in its columns
				for fresh := none; fresh <= enough; fresh++ {
					pods, selectors := []string{"none", "some", "enough"}[fresh], ""
					for stable := none; stable <= enough; stable++ {
						i := firstFit(tc.rows, at, fresh, stable)
						if i < 0 {
							t.Fatalf("no row for %s, %s, %d", places[at], pods, stable)
						}
						used[i] = true
						selectors += fmt.Sprintf(" %-13s", names[tc.rows[i].main]+"/"+names[tc.rows[i].side])
					}
					if n := len(lines) - 1; n >= 0 && lines[n][1] == selectors {
						lines[n][0] += ", " + pods
					} else {
						lines = append(lines, [2]string{pods, selectors})
					}
				}
				for _, line := range lines {
					b.WriteString("\n" + strings.TrimRight(fmt.Sprintf("%-9s %-18s%s", places[at], line[0], line[1]), " "))
				}
			}
			compare.CheckNamed(t, tc.reason, tc.want, b.String()+"\n")
			if len(used) < len(tc.rows)-3 { // a strategy need not use all of the rows in canaryRows
				t.Errorf("%d of %d rows are ever used", len(used), len(tc.rows))
			}
		})
	}
}
