package dashboard

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// widths are the window widths of a phone, a tablet and a desktop, in pixels.
var widths = []int64{360, 768, 1440}

// names returns the names of the apps that the fleet page shows, in order.
func (p *tab) names() string {
	p.t.Helper()
	return js[string](p, `[...document.querySelectorAll('#rows li:not([hidden]) .name')].map((e) => e.textContent).join(' ')`)
}

// broken is a JavaScript expression. It returns the visible words of the page that are split over two lines.
const broken = `(() => {
	const found = [], walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const node = walk.currentNode, part = document.createRange();
		if (!node.parentElement.checkVisibility() || node.parentElement.closest('pre, .hidden-title')) continue;
		for (const word of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
			part.setStart(node, word.index);
			part.setEnd(node, word.index + word[0].length);
			if (new Set([...part.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push(word[0]);
		}
	}
	return found.join(' ');
})()`

// fits checks that the page is not wider than its window, and that no word is on two lines.
func (p *tab) fits(what string, width int64) {
	p.t.Helper()
	if w := js[int64](p, `document.documentElement.scrollWidth`); w > width {
		p.t.Errorf("%s is %d pixels wide in a window of %d", what, w, width)
	}
	compare.CheckNamed(p.t, fmt.Sprint(what, " at ", width, ": words on two lines"), "", js[string](p, broken))
}

// TestChips checks the fleet page's filters, counts and sort orders. It uses the keyboard, the URL, and the select lists.
func TestChips(t *testing.T) {
	now := time.Now()
	apps := some(now)
	for i := range apps {
		apps[i].Namespace = map[bool]string{true: "shop", false: "back"}[i%2 == 0]
	}
	apps[4].Stable.Since = now.Add(-time.Second)
	apps[4].Stable.Images = []string{"registry.example.com/a/very/long/path/image-of-the-recommendations-service-with-a-long-name:" +
		"2026.11.29-1a2b3c4d5e6f-release-candidate-7-of-the-second-week"}
	apps[3].Release.Images = []string{"checkout-and-payment-of-the-whole-shop:v2.10.0-rc.1", "proxy:2"}
	apps[3].Stable.Images = []string{"checkout-and-payment-of-the-whole-shop:v2.9.0-rc.17", "proxy:1"}
	f := newFleet(t, apps...)
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/"))
	p.await(rows(7))
	chips := func() string {
		t.Helper()
		return js[string](p, `[...document.querySelectorAll('#chips button:not([hidden])')].map((b) => b.textContent).join(', ')`)
	}
	compare.CheckNamed(t, "chips", "Needs me 3, ✖ Failing 1, ■ Held 1, ‖ Paused 1, ◐ Progressing 1, ✔ Healthy 4", chips())
	compare.Contains(t, p.text(), "checkout-and-payment-of-the-whole-shop:v2.9.0-rc.17 → v2.10.0-rc.1, proxy:1 → 2", "mail:5.5")

	t.Log("by the keyboard")
	js[bool](p, `(document.querySelector('#chips [data-chip=needs]').focus(), true)`)
	p.do(chromedp.KeyEvent(" "))
	p.await(rows(3))
	compare.CheckNamed(t, "apps that need a person", "search billing shop", p.names())
	compare.CheckNamed(t, "pressed", "true", js[string](p, `document.activeElement.getAttribute('aria-pressed')`))
	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(rows(7))

	t.Log("by a link")
	for query, want := range map[string]string{
		"show=held": "billing", "show=failing": "search", "show=Paused": "shop", "show=held,failing": "search billing",
		"show=Degraded": "search", "ns=back": "search checkout mail", "ns=back&show=needs": "search", "ns=none": "",
		"sort=name":      "billing checkout images mail payments search shop",
		"sort=age":       "images checkout shop billing mail payments search",
		"sort=namespace": "checkout mail search billing images payments shop", "q=v2.10.0-rc.1": "checkout",
		"sort=nonsense&show=nonsense": "search billing shop checkout images mail payments",
	} {
		p.do(chromedp.Navigate(f.url + "/?" + query))
		p.await(rows(len(strings.Fields(want))))
		compare.CheckNamed(t, query, want, p.names())
	}
	compare.CheckNamed(t, "an address without unknown words", "", func() string {
		p.do(chromedp.Navigate(f.url + "/?sort=nonsense&show=nonsense"))
		p.await(rows(7))
		return js[string](p, "location.search")
	}())

	t.Log("by the lists, which the address keeps")
	choose := func(id, value string) {
		t.Helper()
		js[bool](p, fmt.Sprintf(`(document.getElementById(%q).value = %q, document.getElementById(%[1]q).dispatchEvent(new Event('change')))`,
			id, value))
	}
	choose("ns", "shop")
	choose("sort", "name")
	compare.CheckNamed(t, "chosen", "billing images payments shop", p.names())
	compare.CheckNamed(t, "the address", "?ns=shop&sort=name", js[string](p, "location.search"))
	f.show(func() status.App { a := apps[0]; a.App = "another"; return a }())
	p.await(rows(5))
	compare.CheckNamed(t, "with a new app", "another billing images payments shop", p.names())
	p.click("#rows a")
	p.await(`location.pathname === '/apps/another' && document.querySelector('.steps')`)
	p.click("#back")
	p.await(rows(5) + ` && location.search === '?ns=shop&sort=name'`)

	for _, width := range widths {
		p.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(f.url+"/"))
		p.await(rows(8))
		p.fits("the fleet", width)
		p.axe(fmt.Sprint("the fleet at ", width))
	}
	only := newFleet(t, healthy("mail", "mail 5.5", now))
	p.do(chromedp.Navigate(only.url + "/"))
	p.await(rows(1))
	compare.CheckNamed(t, "a list of one namespace", false, js[bool](p, `!!document.getElementById('ns').offsetParent`))
}

// TestSharedChanges checks the fleet page with a change of a file that several apps share. If the page is sorted by change, these apps come
// first. The page counts them by state, and the counts follow updates. A click on the change shows only its apps.
func TestSharedChanges(t *testing.T) {
	now := time.Now()
	apps := some(now)
	place := func(i, cohort int, state string) status.App {
		apps[i].Shared = &status.Shared{Place: rollout.Place{File: "base/sidecar.yaml", ID: "9c1f0ab", Cohort: cohort, Of: 3}, State: state}
		return apps[i]
	}
	place(0, 2, "waiting")
	place(1, 2, "waiting")
	place(2, 1, "entered")
	f := newFleet(t, apps...)
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/?sort=change"))
	p.await(rows(7))
	changes := func() string { return js[string](p, `document.getElementById('changes').textContent`) }
	compare.CheckNamed(t, "changes",
		"Shared change of base/sidecar.yaml (9c1f0ab), cohort 2 of 3: 0 of 3 apps done, 1 entered, 2 waiting", changes())
	compare.CheckNamed(t, "the first app", apps[2].App, strings.Fields(p.names())[0])
	compare.Contains(t, p.text(), "entered cohort 1 of 3 (base/sidecar.yaml)")
	for _, width := range widths {
		p.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(f.url+"/?sort=change"))
		p.await(rows(7))
		p.fits("the fleet with a shared change", width)
		p.axe(fmt.Sprint("the fleet with a shared change at ", width))
	}
	p.click("#changes button")
	p.await(rows(3))
	f.show(place(2, 1, "done"))
	p.await(`document.getElementById('changes').textContent.endsWith('cohort 2 of 3: 1 of 3 apps done, 2 waiting')`)
	f.show(place(0, 2, "done"), place(1, 2, "done"))
	p.await(`document.getElementById('changes').textContent === ''`)
}

// TestFavourites checks that favourites come first in each sort order, have a filter, and are kept after a reload.
func TestFavourites(t *testing.T) {
	now := time.Now()
	f := newFleet(t, some(now)...)
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/"))
	p.await(rows(7))
	const star, chip = `#rows [aria-label="Favourite: payments"]`, `#chips [data-chip=favourites]`
	pressed := func() string {
		t.Helper()
		return js[string](p, "document.querySelector('"+star+"').getAttribute('aria-pressed')")
	}
	compare.CheckNamed(t, "a chip without favourites", true, js[bool](p, `document.querySelector('`+chip+`').hidden`))
	js[bool](p, "(document.querySelector('"+star+"').focus(), true)")
	p.do(chromedp.KeyEvent(" "))
	p.await(`document.querySelector('#rows .name').textContent === 'payments'`)
	compare.CheckNamed(t, "the focus", "Favourite: payments", js[string](p, `document.activeElement.getAttribute('aria-label')`))
	compare.CheckNamed(t, "the address", "/", js[string](p, `location.pathname`))
	compare.CheckNamed(t, "the chip", "★ Favourites 1", js[string](p, `document.querySelector('`+chip+`').textContent`))
	p.do(chromedp.Navigate(f.url + "/?sort=name"))
	p.await(rows(7))
	compare.CheckNamed(t, "by name", "payments billing checkout images mail search shop", p.names())
	compare.CheckNamed(t, "after a reload", "true", pressed())
	p.axe("favourites")
	changed := healthy("payments", "payments 78", now)
	f.show(changed)
	p.await(`document.querySelector('#rows li').textContent.includes('payments:78')`)
	p.click(chip)
	p.await(rows(1) + ` && location.search === '?show=favourites&sort=name'`)
	p.click(star)
	p.await(rows(0))
	p.click(chip)
	p.await(rows(7))
	compare.CheckNamed(t, "without favourites", "billing checkout images mail payments search shop", p.names())
	compare.CheckNamed(t, "the star", "false", pressed())
}

// TestVersions checks that an app's page shows, for each version, images first, and commit and hash last. It also checks the steps.
func TestVersions(t *testing.T) {
	now := time.Now()
	rejected := some(now)[1]
	rejected.Rejected.Author, rejected.Rejected.Subject = "Kim <kim@example.com>", "Faster search"
	rejected.Next = []status.Next{{To: "go back in Git too", Command: "git merge --no-ff origin/x", Back: true},
		{To: "try it again", Command: "gitrollout retry search"}}
	first := shop(now, 4)
	first.App, first.Stable, first.Waiting = "first", nil, ""
	first.Workloads[0].Moving, first.Workloads[0].Step = false, 0
	for i := range first.Workloads[0].Steps {
		first.Workloads[0].Steps[i].Status = ""
	}
	plain := status.App{App: "plain", Cluster: "prod-eu", Path: "apps/plain", Phase: rollout.Healthy, Images: []string{"traefik:v3.1"},
		Source: &rollout.Commit{ID: strings.Repeat("5", 40), Author: "Kim <kim@example.com>", Subject: "Two replicas",
			When: now.Add(-time.Hour)},
		Workloads: []status.Workload{{Workload: "edge/plain", Strategy: "plain", Replicas: 2, Ready: 2}}}
	colours := shop(now, 4)
	colours.App, colours.Workloads[0].Strategy, colours.Workloads[0].Weight, colours.Workloads[0].RealWeight = "colours", "blueGreen", 0, 0
	colours.Workloads[0].Steps = []status.Step{{Text: "preview", Status: "done"}, {Text: "wait for promotion", Status: "done"},
		{Text: "scale up", Status: "current"}, {Text: "switch", Weight: 100, Status: "pending"}}
	f := newFleet(t, rejected, first, plain, colours, shop(now, 4))
	p := newTab(t, scheme("light"))
	facts := func(app string) string {
		t.Helper()
		p.do(chromedp.Navigate(f.url + "/apps/" + app))
		p.await(live + ` && document.querySelector('#title .facts') && document.querySelector('#history section')`)
		return strings.Join(strings.Fields(js[string](p, `document.getElementById('title').innerText`)), " ")
	}
	for app, want := range map[string]string{
		"shop": "Release shop:1.41 → 1.42 shop 1.42: faster checkout · Ann Lee · 5m ago 2222222 h1-2222222222 Stable shop:1.41 shop 1.41 · " +
			"Bob Ray · 1d ago 1111111 h1-1111111111 ",
		"search": "search:8.1 → 8.2 Faster search · Kim · 20m ago 9999999 h1-9999999999",
		"plain":  "Applied traefik:v3.1 Two replicas · Kim · 1h ago 5555555",
	} {
		text := regexp.MustCompile(`(\dm)\d\ds`).ReplaceAllString(facts(app), "$1")
		compare.CheckNamed(t, app, want, text[max(0, strings.Index(text, want[:8])):][:min(len(want), len(text))])
	}
	for app, want := range map[string]string{"first": "no steps", "plain": "no steps"} {
		facts(app)
		compare.Contains(t, p.text(), want)
		compare.CheckNamed(t, app+": steps", 0, p.count(".steps li"))
	}
	for weight, want := range map[int]string{0: "switched 0%", 100: "switched 100%"} {
		colours.Workloads[0].Weight, colours.Workloads[0].RealWeight = weight, weight
		f.show(colours)
		facts("colours")
		p.await(fmt.Sprintf(`document.querySelector('.weights').innerText.replace(/\s+/g, ' ') === %q`, want))
		compare.CheckNamed(t, "meters", 1, p.count(".weights .meter"))
		compare.CheckNamed(t, "weights of steps", false, strings.Contains(js[string](p, `document.querySelector('.steps').innerText`), "%"))
	}
	for _, width := range widths {
		p.do(chromedp.EmulateViewport(width, 900))
		for _, app := range []string{"search", "shop", "plain"} {
			facts(app)
			p.fits(app, width)
			p.axe(fmt.Sprint(app, " at ", width))
		}
	}
}

// TestWays checks that an app's page has a group "To go on" and a group "To go back". In each group, buttons come before commands.
func TestWays(t *testing.T) {
	f := newFleet(t, some(time.Now())...)
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/apps/shop"))
	groups := func() string {
		t.Helper()
		return js[string](p, `[...document.querySelectorAll('#next section')].map((s) => s.querySelector('h2').textContent + ': ' + `+
			`[...s.querySelectorAll('[data-verb], .command code')].map((e) => e.dataset.verb || e.textContent).join(', ')).join('; ')`)
	}
	p.await(live + ` && document.getElementById('signin-open') && document.querySelector('#next section')`)
	merge := "git fetch && git merge --no-ff origin/gitrollout/promote/prod-eu/shop && git push"
	compare.CheckNamed(t, "a visitor", "To go on: "+merge+", gitrollout promote shop; To go back: gitrollout abort shop", groups())
	p.signIn(f.token)
	p.await(`document.querySelectorAll('#next [data-verb]').length === 3`)
	compare.CheckNamed(t, "Ann", "To go on: promote, hold, "+merge+", gitrollout promote shop; To go back: abort, gitrollout abort shop",
		groups())
	p.axe("signed in")
}

// TestUnknownApp checks the page of an app that does not exist. After the app is added, the page shows the app.
func TestUnknownApp(t *testing.T) {
	now := time.Now()
	f := newFleet(t, shop(now, 4))
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/apps/shpo"))
	p.await(live)
	p.expect("404")
	compare.Contains(t, p.text(), "Cluster prod-eu has no app shpo. Did you mean shop?")
	compare.CheckNamed(t, "the note, which would repeat it", false, js[bool](p, `!!document.getElementById('note').offsetParent`))
	p.axe("unknown app")
	later := healthy("shpo", "shpo 1", now)
	f.show(later)
	p.await(`!document.getElementById('missing') && document.querySelector('#title .phase')`)
	p.do(chromedp.Navigate(f.url + "/apps/shp"))
	p.await(live)
	p.expect("404")
	p.click("#missing a")
	p.await(live + ` && location.pathname === '/apps/shop' && document.querySelector('.steps')`)
}
