package measure

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBefore checks the queries of a comparison with the version before the release: the new version's query is for now, and the former
// version's query is for the time at which the release began. A range query ends at this time.
func TestBefore(t *testing.T) {
	began := noon.Add(-3 * time.Hour)
	at := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	for name, c := range map[string]struct {
		ranged any
		want   []string
	}{
		"instant": {nil, []string{"/api/v1/query errors{fresh} time= end=", "/api/v1/query errors{stable} time=" + at(began) + " end="}},
		"range": {map[string]any{"start": `now() - duration("5m")`, "end": "now()", "step": "1m"}, []string{
			"/api/v1/query_range errors{fresh} time= end=" + at(noon), "/api/v1/query_range errors{stable} time= end=" + at(began)}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprintf("%s %s time=%s end=%s", r.URL.Path, r.PostFormValue("query"), r.PostFormValue("time"),
					r.PostFormValue("end")))
				fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"n":"of"},"value":[1,"9"]}]}}`)
			}))
			t.Cleanup(s.Close)
			m := rollout.Metric{Name: "errors", Provider: "prometheus", Compare: &rollout.Compare{Before: true},
				Config: map[string]any{"address": s.URL, "query": "errors{{{args.hash}}}"}, Pods: map[string]string{"hash": "Latest"}}
			if c.ranged != nil {
				m.Config["rangeQuery"] = c.ranged
			}
			b := newBench(t, func(o *Options) { o.Deps.Getenv = func(string) string { return "" } })
			all := due(m)
			all[0].Latest, all[0].Stable, all[0].Before = "fresh", "stable", began
			b.begin(shop, all)
			compare.CheckNamed(t, "phase", rollout.AnalysisSuccessful, b.one(t).Phase)
			slices.Sort(got)
			compare.Check(t, c.want, got)
		})
	}
}
