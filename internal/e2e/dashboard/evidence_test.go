package dashboard

import (
	"math"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestEvidence checks an app's page during comparisons with the stable version. The page draws the evidence on a scale that ends at the
// limit, with a text for screen readers. It shows the measured differences with intervals, and the differences that a comparison can find.
// The page fits a phone. A watch after the release compares the new version with the previous version.
func TestEvidence(t *testing.T) {
	compared := func(metric string, weight float64, tests ...rollout.Test) rollout.MetricProgress {
		for i := range tests {
			for r := range tests[i].Logs {
				tests[i].Logs[r] = math.Log(weight)
			}
		}
		return rollout.MetricProgress{Metric: metric, Phase: rollout.AnalysisRunning, Measurements: []rollout.Measurement{{At: time.Now(),
			Value: "8 of 1240 (0.645%), stable 17 of 4960 (0.343%)", Phase: rollout.AnalysisPending, Message: "fewer than 5000 requests"}},
			Evidence: &rollout.Sequential{Canary: 1240, Stable: 4960, Tests: tests, Limit: 2000, Metrics: 2}}
	}
	a := shop(time.Now(), 4)
	a.Analyses = status.Analyses([]rollout.AnalysisRun{{Name: "background", Started: time.Now(), Phase: rollout.AnalysisRunning,
		Metrics: []rollout.MetricProgress{compared("errors", 81, rollout.Test{Canary: 8, Stable: 17}),
			compared("latency", 1, rollout.Test{Bound: 0.1, Canary: 620, Stable: 2480}, rollout.Test{Bound: 0.25, Canary: 124, Stable: 496})}}}, nil)
	const sees = "errors of shop at step 2 (20% of requests, 10 looks in 5m): sees 1% → 2% in 9 of 10 releases after 2m30s at 20 req/s; " +
		"nothing below +0.5 points"
	a.Analyses[0].Metrics[0].Sees = []string{sees}
	f := newFleet(t, a)
	p := newTab(t, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch), chromedp.Navigate(f.url+"/apps/shop"))
	p.await(live + ` && document.querySelectorAll('.evidence svg').length === 2`)
	compare.CheckNamed(t, "the evidence of errors", "Evidence that the new version is worse: 81, release 41 of 2,000\n"+
		"Bad requests: +0.30 points, 95 % interval −0.08 to +0.94\n1,240 requests to the new version, 4,960 to stable\n"+
		"not enough data: fewer than 5000 requests",
		js[string](p, `[...document.querySelectorAll('.evidence')[0].querySelectorAll('p')].map((e) => e.innerText).join('\n')`))
	compare.CheckNamed(t, "the differences in the figure of errors", sees, js[string](p, `[...document.querySelectorAll('.sees')]
		.map((e) => e.closest('figure').querySelector('strong').innerText === 'errors' && e.checkVisibility() && e.innerText).join('\n')`))
	compare.Contains(t, js[string](p, `document.querySelectorAll('.evidence')[1].innerText`), "1, release 41 of 2,000",
		"Slower than 0.1: +0.0 points, 95 % interval −3.1 to +3.1", "Slower than 0.25: +0.0 points, 95 % interval −1.8 to +2.0")
	compare.CheckNamed(t, "text for screen readers", "Evidence 81, release 41 of 2,000, on a log scale.",
		js[string](p, `document.querySelector('.evidence svg').getAttribute('aria-label')`))
	compare.CheckNamed(t, "the texts of the scale", "1 10 100 limit 2,000",
		js[string](p, `[...document.querySelectorAll('.evidence svg')[0].querySelectorAll('text')].map((e) => e.textContent).join(' ')`))
	share := js[float64](p, `document.querySelector('.evidence .weight').getBoundingClientRect().width /
		document.querySelector('.evidence .track').getBoundingClientRect().width`)
	if want := math.Log(41) / math.Log(2000); math.Abs(share-want) > 0.01 {
		t.Errorf("the bar fills %.3f of its scale instead of %.3f", share, want)
	}
	if w := js[int](p, `document.documentElement.scrollWidth`); w > 360 {
		t.Errorf("the page is %d pixels wide on a phone of 360", w)
	}
	p.axe("evidence, light")
	p.do(scheme("dark"))
	p.axe("evidence, dark")
	a.Analyses[0].Name = "shop/watch"
	f.show(a)
	p.await(`[...document.querySelectorAll('.evidence')].every((e) => e.innerText.includes('4,960 to the version before'))`)
}
