package dashboard

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

// TestExport exports the dashboard while a release is paused, and opens the files without a server. The pages have the stages, a search,
// the apps, and an app with its steps, pods and history. They have no buttons for actions, and request no other file.
func TestExport(t *testing.T) {
	cluster := testcluster.Shared(t)
	repo := gittest.New(t)
	files := map[string]string{".gitrollout/test/config.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" +
		"- path: apps/shop\n  namespace: " + cluster.Namespace(t) + "\n",
		".gitrollout/fleet.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n- {name: prod, clusters: [test]}\n"}
	push := func(message, version string) {
		t.Helper()
		for name, content := range manifests(version) {
			files["apps/shop/"+name] = content
		}
		repo.CommitFiles(message, files)
	}
	push("shop v1", "v1")
	source := []string{"--repo", repo.HTTP(gittest.HTTPOptions{}).URL, "--cluster", "test", "--kubeconfig", cluster.Kubeconfig}
	url := start(t, append([]string{"run", "--interval", "200ms"}, source...)...)
	p := newTab(t, chromedp.Navigate(url+"/apps/shop"))
	p.await(live + ` && document.querySelector('#title .phase')?.dataset.phase === 'Healthy'`)
	push("shop v2 </script><!--", "v2")
	p.await(`document.querySelector('#title .phase').dataset.phase === 'Paused' && ` +
		`document.querySelector('#workloads').innerText.includes('25% of the ready pods')`)

	dir := filepath.Join(t.TempDir(), "site")
	said, err := gitrollout(t, append([]string{"dashboard", "export", dir}, source...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	compare.Contains(t, string(said), dir+"/index.html shows 1 app")
	p = newTab(t, scheme("light"), chromedp.Navigate("file://"+dir+"/index.html"))
	found := func(selector string, n int) {
		t.Helper()
		p.await(fmt.Sprintf("document.querySelectorAll(%q).length === %d", selector, n))
	}
	check := func(page string) {
		t.Helper()
		compare.Contains(t, js[string](p, `document.querySelector('.link').innerText`), "export of main at ", ", as of 20", " UTC")
		compare.CheckNamed(t, page+": files that the page requests", "", js[string](p,
			`performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !name.startsWith('data:')).join(' ')`))
		compare.CheckNamed(t, page+": buttons to act", 0, p.count("[data-verb], #act, #signin, #signin-open, #diff *, #objects *"))
		p.axe(page)
		p.do(chromedp.EmulateViewport(360, 740))
		p.fits(page, 360)
		p.do(chromedp.EmulateViewport(1280, 860))
	}
	found("#cells tr", 1)
	compare.Contains(t, p.text(), "prod", "shop", "Paused", "shop:v2")
	check("the stages of an export")
	p.do(chromedp.SendKeys(chromedp.CSS("#q"), "shop elsewhere"))
	found("#cells tr", 0)
	p.do(chromedp.KeyEvent(kb.Escape))
	found("#cells tr", 1)

	p.click("#cells th a")
	p.await(`location.pathname.endsWith('/site/app-shop.html') && document.querySelectorAll('#history details').length >= 2 && ` +
		`document.querySelector('.pod')`)
	compare.Contains(t, p.text(), "shop v2 </script><!--", "25% of the ready pods", "gitrollout/promote/test/shop", "shop v1")
	check("an app of an export")

	p.do(chromedp.KeyEvent(kb.Escape))
	p.await(`location.pathname.endsWith('/site/index.html')`)
	p.click("nav a")
	found("#rows li[data-phase=Paused]", 1)
	check("the apps of an export")
	p.click("#rows a")
	p.await(`document.querySelector('.steps [aria-current=step]')`)
	p.click("#back")
	found("#rows li[data-phase=Paused]", 1)
}
