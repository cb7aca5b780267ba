package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gitrollout.dev/gitrollout/internal/compare"
)

// requests returns the number of the page's requests whose URL contains a path.
func (p *tab) requests(path string) int {
	p.t.Helper()
	return js[int](p, fmt.Sprintf(`performance.getEntriesByType('resource').filter((e) => e.name.includes(%q)).length`, path))
}

// TestPods checks the pods of an app's page. Events and logs are requested only when a user opens a pod, and only for signed-in users.
func TestPods(t *testing.T) {
	now := time.Now()
	a := shop(now, 2)
	a.Workloads[0].Revisions[1] = revision("stable", "7bc5f88467", 2, now)
	bad := &a.Workloads[0].Revisions[0].Pods[0]
	bad.Name, bad.Ready, bad.Status, bad.Restarts = "checkout-and-payment-of-the-whole-shop-75f574758c-x7x7x", false, "CrashLoopBackOff", 3
	f := newFleet(t, a)
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/apps/shop"))
	p.await(live + ` && document.querySelectorAll('.pod').length === 4 && document.getElementById('signin-open')`)
	compare.Contains(t, p.text(), "4 pods of shop/shop", "CrashLoopBackOff", "3 restarts", "0 restarts", "5m")
	const first = ".pod:nth-of-type(1) summary"
	p.click(first)
	p.await(`document.querySelector('.pod .error')`)
	compare.Contains(t, js[string](p, `document.querySelector('.pod').innerText`), "only for signed-in people: sign in first")
	p.expect("401")

	p.signIn(f.token)
	p.await(live + ` && document.querySelectorAll('#next [data-verb]').length === 3`)
	compare.CheckNamed(t, "requests of a page that is not used", 0, p.requests("/pods/"))
	p.click(first)
	p.await(`document.querySelector('.pod pre')`)
	compare.Contains(t, js[string](p, `document.querySelector('.pod').innerText`), "Scheduled Successfully assigned shop/checkout-and",
		"BackOff × 7 Back-off restarting failed container <script>", "The last lines of container shop", "listening on port 8080\npanic: ",
		"proxy has no log yet: PodInitializing")
	compare.CheckNamed(t, "markup in a log", 0, p.count("main script, main img"))
	p.axe("an open pod")

	t.Log("an open pod stays open")
	a.Workloads[0].Revisions[0].Pods[1].Status = "Terminating"
	f.show(a)
	p.await(`document.querySelector('#pods').innerText.includes('Terminating')`)
	compare.CheckNamed(t, "the log is shown", true, js[bool](p, `!!document.querySelector('.pod pre').offsetParent`))
	compare.CheckNamed(t, "requests of an open pod", 1, p.requests("/pods/"))
	p.click(first, first)
	p.await(`performance.getEntriesByType('resource').filter((e) => e.name.includes('/pods/')).length === 2`)
	p.await(`document.querySelector('.pod pre')`)
	for _, width := range widths {
		p.do(chromedp.EmulateViewport(width, 900))
		p.fits("an open pod", width)
		p.axe(fmt.Sprint("an open pod at ", width))
		border := js[string](p, `getComputedStyle(document.querySelector('.pod')).borderLeftStyle`)
		compare.CheckNamed(t, fmt.Sprint("a card at ", width), width == 360, border == "solid")
	}
	a.Workloads[0].Revisions = nil
	f.show(a)
	p.await(`document.querySelectorAll('.pod').length === 0`)
}
