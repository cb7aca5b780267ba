package dashboard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// stagedRecords stands for a fleet's records in Git.
type stagedRecords struct {
	mu    sync.Mutex
	fleet status.Fleet
	n     int // of changes
}

func (s *stagedRecords) Fleet(context.Context) (status.Fleet, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet, fmt.Sprintf("\"%d\"", s.n), nil
}

func (s *stagedRecords) set(f status.Fleet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fleet, s.n = f, s.n+1
}

// newStaged returns prod-eu's dashboard of a fleet with stages. The board has only the app shop.
func newStaged(t *testing.T, all status.Fleet) (*fleet, *stagedRecords) {
	t.Helper()
	s := &stagedRecords{fleet: all}
	f := &fleet{t: t, board: dashboard.NewBoard("prod-eu", "")}
	f.board.Staged.Store(true)
	f.serve(dashboard.Options{Fleet: s.Fleet})
	f.show(shop(time.Now(), 4))
	return f, s
}

// inCluster returns a healthy app's record in a cluster. The first two words of subject are the image's name and tag.
func inCluster(cluster, digit, subject string, since time.Time) status.App {
	return status.App{App: strings.Fields(subject)[0], Cluster: cluster, Phase: rollout.Healthy,
		Stable: released(digit, "Ann Lee <ann@example.com>", subject, since)}
}

// stagedFleet returns four apps: pay is Degraded in prod-us for the given reason, and shop progresses in staging-us and waits in prod-eu.
// mail is not in prod-eu, and wiki is Healthy in six clusters.
func stagedFleet(now time.Time, reason string) status.Fleet {
	old, today := now.Add(-75*time.Hour), now.Add(-750*time.Second)
	soaks, flies := inCluster("staging-eu", "3", "shop 1.42 Faster checkout", today), inCluster("staging-us", "2", "shop 1.41", old)
	soaks.Waiting = "soaks until 14:05 UTC"
	flies.Phase, flies.Release = rollout.Progressing, released("3", "Ann Lee <ann@example.com>", "shop 1.42 Faster checkout", today)
	flies.Reason = "3 of 10 pods of the new version are ready, and the step waits for 5"
	held := inCluster("prod-eu", "2", "shop 1.41", old)
	held.Held = &rollout.Held{Reason: rollout.HeldStage, Message: "release h1-7b4e2a91d0 of 3333333 by Ann waits for stage staging"}
	other, bad := held, inCluster("prod-us", "5", "pay 5 "+reason, today)
	other.Cluster, bad.Phase, bad.Reason = "prod-ap", rollout.Degraded, reason
	blind := status.App{App: "shop", Cluster: "prod-us", Phase: status.Unknown, Reason: "no readable record: see the note"}
	lab := inCluster("lab", "6", "mail 6", old)
	lab.Stable.Images = nil // the subject is the version
	wiki := status.FleetApp{App: "wiki", Stages: map[string][]status.App{"dev": {inCluster("dev", "7", "wiki 7", old)}}}
	for _, zone := range strings.Fields("ap eu sa us za") {
		wiki.Stages["prod"] = append(wiki.Stages["prod"], inCluster("prod-"+zone, "7", "wiki 7", old))
	}
	return status.Fleet{Stages: []string{"dev", "staging", "prod", ""},
		Notes: []string{"cluster prod-us: state branch gitrollout/state/prod-us: commit 1234567 is not signed by cluster prod-us"},
		Apps: []status.FleetApp{
			{App: "mail", Stages: map[string][]status.App{"dev": {inCluster("dev", "6", "mail 6", old)}, "": {lab}}},
			{App: "pay", Stages: map[string][]status.App{"prod": {inCluster("prod-eu", "4", "pay 4", old), bad}}},
			{App: "shop", Stages: map[string][]status.App{"dev": {inCluster("dev", "3", "shop 1.42 Faster checkout", today)},
				"staging": {soaks, flies}, "prod": {other, held, blind}}},
			wiki,
		}}
}

// tableRows returns a JavaScript condition: the page of all stages shows n apps.
func tableRows(n int) string {
	return fmt.Sprintf(`%s && document.querySelectorAll('#cells tr').length === %d`, live, n)
}

// again triggers requests for updates on the page of all stages.
func (p *tab) again() {
	p.t.Helper()
	js[bool](p, `document.dispatchEvent(new Event('visibilitychange'))`)
}

// TestStages checks the page of all stages: its order, links, search, keys and changes, and the version, phase and reason in each cell. It
// also checks the link to this cluster's apps. The page fits phone, tablet and desktop.
func TestStages(t *testing.T) {
	now := time.Now()
	f, s := newStaged(t, stagedFleet(now, evil))
	p := newTab(t, scheme("light"), chromedp.Navigate(f.url+"/"))
	p.await(tableRows(4))
	list := func(selector string) string {
		t.Helper()
		return js[string](p, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.textContent).join(', ')`, selector))
	}
	compare.CheckNamed(t, "apps, the most urgent app first", "pay, shop, mail, wiki", list("#cells th"))
	compare.CheckNamed(t, "columns", "App, dev, staging, prod, no stage", list("#stages th"))
	compare.CheckNamed(t, "links to apps of this cluster", "pay, shop, wiki", list("#cells th a"))
	cell := func(app, stage int) string {
		t.Helper()
		text := js[string](p, fmt.Sprintf(`document.querySelector('#cells tr:nth-child(%d) td:nth-child(%d)').innerText`, app, stage+1))
		return strings.Join(strings.Fields(text), " ")
	}
	for at, want := range map[[2]int]string{
		{2, 1}: "✔ Healthy shop:1.42 3333333 · 12m ago",
		{2, 2}: "staging-eu ✔ Healthy shop:1.42 3333333 · 12m ago soaks until 14:05 UTC staging-us ◐ Progressing shop:1.42 " +
			"3333333 · 12m ago 3 of 10 pods of the new version are ready, and the step waits for 5",
		{2, 3}: "prod-ap, prod-eu ✔ Healthy waiting shop:1.41 2222222 · 3d ago waits for stage staging " +
			"prod-us ? Unknown state branch gitrollout/state/prod-us: commit 1234567 is not signed by cluster prod-us",
		{2, 4}: "–",
		{3, 4}: "lab ✔ Healthy mail 6 6666666 · 3d ago",
		{4, 3}: "5 clusters ✔ Healthy wiki:7 7777777 · 3d ago",
	} {
		compare.CheckNamed(t, fmt.Sprint(at), want, cell(at[0], at[1]))
	}
	compare.CheckNamed(t, "the note", s.fleet.Notes[0], list("#note"))
	if js[string](p, "document.title") == "taken" || p.count("main script, main img") != 0 {
		t.Error("a commit's text became markup")
	}
	p.axe("stages, light")
	p.do(scheme("dark"))
	p.axe("stages, dark")
	s.set(stagedFleet(now, "error-rate is Failed: 3 of 5 measurements failed"))
	p.do(scheme("light"), chromedp.Navigate(f.url+"/"))
	p.await(tableRows(4))
	p.picture("dashboard-stages")
	for _, width := range widths {
		p.do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(f.url+"/"))
		p.await(tableRows(4))
		p.fits("the stages", width)
		p.axe(fmt.Sprint("the stages at ", width))
		label := js[string](p, `getComputedStyle(document.querySelector('#cells td'), '::before').content`)
		compare.CheckNamed(t, fmt.Sprint("a cell names its stage at ", width), width < 400, label == `"dev"`)
	}

	t.Log("the keyboard")
	p.do(chromedp.KeyEvent("jj"))
	p.await(`document.activeElement.textContent === 'shop'`)
	js[bool](p, `(window.kept = [...document.querySelectorAll('#cells tr')], true)`)
	p.again()
	p.await(`performance.getEntriesByType('resource').at(-1).responseStatus === 304`)
	changed := stagedFleet(now, "error-rate is Failed: 3 of 5 measurements failed")
	changed.Apps[0].Stages["dev"][0] = inCluster("dev", "8", "mail 8", now)
	s.set(changed)
	p.again()
	p.await(`document.getElementById('cells').innerText.includes('mail:8')`)
	compare.CheckNamed(t, "the rows that stay", "true true false true", js[string](p,
		`[...document.querySelectorAll('#cells tr')].map((e, i) => e === window.kept[i]).join(' ')`))
	compare.CheckNamed(t, "the focus", "shop", js[string](p, `document.activeElement.textContent`))
	p.do(slash())
	p.await(`document.activeElement.id === 'q'`)
	p.do(chromedp.KeyEvent("staging-us progressing"))
	p.await(tableRows(1) + ` && location.search === '?q=staging-us+progressing'`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.await(live + ` && location.pathname === '/apps/shop' && document.querySelector('.steps')`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(tableRows(1) + ` && location.pathname === '/' && document.activeElement.textContent === 'shop'`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(tableRows(4) + ` && location.search === ''`)

	t.Log("the apps of this cluster")
	p.click(`nav a`)
	p.await(rows(1) + ` && location.pathname === '/apps'`)
	p.axe("the apps of a cluster in a stage")
	p.do(chromedp.SendKeys(chromedp.CSS("#q"), "shop"))
	p.await(`location.pathname + location.search === '/apps?q=shop'`)
	p.click("#rows a")
	p.await(live + ` && location.pathname === '/apps/shop'`)
	p.click("#back")
	p.await(rows(1) + ` && location.pathname + location.search === '/apps?q=shop'`)
	p.click(`nav a`)
	p.await(tableRows(4))

	f.board.Staged.Store(false) // fleet.yaml left Git
	p.again()
	p.await(rows(1))
	p.expect("404")
	compare.CheckNamed(t, "links to stages", 0, p.count(`nav a`))
}

// TestManyStages measures the page of 500 apps in four stages.
func TestManyStages(t *testing.T) {
	now := time.Now()
	all := status.Fleet{Stages: []string{"dev", "staging", "prod", "edge"}}
	for i := range 500 {
		name := fmt.Sprintf("team-%02d-service-%04d", i%40, i)
		app := status.FleetApp{App: name, Stages: map[string][]status.App{}}
		for j, stage := range all.Stages {
			subject := fmt.Sprintf("%s %d.%d Fix the timeouts of request %d", name, j, i, i*j)
			a := inCluster(stage, "1", subject, now.Add(-time.Duration(i*j)*time.Minute))
			a.Stable.Commit = fmt.Sprintf("%040x", (i+1)*(j+7)*982451653)
			app.Stages[stage] = []status.App{a}
		}
		all.Apps = append(all.Apps, app)
	}
	f, _ := newStaged(t, all)
	p := newTab(t)
	began := time.Now()
	p.do(chromedp.Navigate(f.url + "/"))
	p.await(tableRows(500))
	size := js[int](p, `performance.getEntriesByType('resource').find((e) => e.name.includes('/api/v1/fleet')).encodedBodySize`)
	t.Logf("500 apps in four stages are shown %s after the click, from %d bytes", time.Since(began).Round(time.Millisecond), size)
	if size > 300_000 {
		t.Errorf("the page's answer has %d bytes", size)
	}
	p.do(chromedp.SendKeys(chromedp.CSS("#q"), "team-07-service"))
	p.await(tableRows(13))
}
