package measure_test

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
	"gitrollout.dev/gitrollout/reconciler/measure"
	"gitrollout.dev/gitrollout/rollout"
)

// TestQueryTimes checks the times of queries. Both queries of a comparison have the measurement's time. A query for the version before the
// release has the release's start time instead. For a range query, this time is the end of the range. Without a comparison, only a past
// measurement's query has a time.
func TestQueryTimes(t *testing.T) {
	began := noon.Add(-3 * time.Hour)
	at := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	for name, c := range map[string]struct {
		ranged any
		before time.Time
		change func(*rollout.Metric, *measure.Options)
		want   []string
	}{
		"stable": {nil, time.Time{}, nil, []string{
			"/api/v1/query errors{fresh} time=" + at(noon) + " end=", "/api/v1/query errors{stable} time=" + at(noon) + " end="}},
		"no comparison": {nil, time.Time{}, func(m *rollout.Metric, _ *measure.Options) { m.Compare = nil },
			[]string{"/api/v1/query errors{fresh} time= end="}},
		"the past": {nil, time.Time{}, func(m *rollout.Metric, o *measure.Options) { m.Compare, o.Past = nil, true },
			[]string{"/api/v1/query errors{fresh} time=" + at(noon) + " end="}},
		"instant": {nil, began, nil, []string{
			"/api/v1/query errors{fresh} time=" + at(noon) + " end=", "/api/v1/query errors{stable} time=" + at(began) + " end="}},
		"range": {map[string]any{"start": `now() - duration("5m")`, "end": "now()", "step": "1m"}, began, nil, []string{
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
			m := rollout.Metric{Name: "errors", Provider: "prometheus", Compare: &rollout.Compare{Before: !c.before.IsZero()},
				Config: map[string]any{"address": s.URL, "query": "errors{{{args.hash}}}"}, Pods: map[string]string{"hash": "Latest"}}
			if c.ranged != nil {
				m.Config["rangeQuery"] = c.ranged
			}
			b := newBench(t, func(o *measure.Options) {
				if o.Deps.Getenv = func(string) string { return "" }; c.change != nil {
					c.change(&m, o)
				}
			})
			all := due(m)
			all[0].Latest, all[0].Stable, all[0].Before = "fresh", "stable", c.before
			b.begin(shop, all)
			compare.CheckNamed(t, "phase", rollout.AnalysisSuccessful, b.one(t).Phase)
			slices.Sort(got)
			compare.Check(t, c.want, got)
		})
	}
}
