package dashboard

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// binary is the program under test, built once for all tests.
var binary = sync.OnceValues(testbin.Gitrollout)

var address = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// gitrollout returns a command that runs the program under test with args.
func gitrollout(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	must(t, err)
	cmd := exec.Command(path, args...)
	cmd.Env = append(gittest.Env(), "HOME="+t.TempDir())
	return cmd
}

// start runs gitrollout until the test ends, and returns the address of its dashboard.
func start(t *testing.T, args ...string) string {
	t.Helper()
	out := &testbin.Output{}
	cmd := gitrollout(t, append(args, "--dashboard-address", "127.0.0.1:0")...)
	cmd.Stdout, cmd.Stderr = out, out
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("gitrollout %s ended with %v", args[0], err)
			}
		case <-time.After(timeout):
			t.Errorf("gitrollout %s did not end", args[0])
			_ = cmd.Process.Kill()
		}
		if t.Failed() {
			t.Logf("gitrollout %s said:\n%s", args[0], out)
		}
	})
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		for line := range strings.Lines(out.String()) {
			if found := address.FindString(line); found != "" && (strings.Contains(line, "dashboard") || strings.Contains(line, "shows cluster")) {
				return found
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no dashboard after a minute:\n%s", out)
		}
	}
}

func manifests(version string) map[string]string {
	return map[string]string{
		"kustomization.yaml": "resources: [shop.yaml, rollout.yaml]\n",
		"shop.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  replicas: 4
  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
      containers:
      - {name: shop, image: "shop:` + version + `"}
---
apiVersion: v1
kind: Secret
metadata:
  name: shop-keys
stringData: {password: "of-` + version + `"}
`,
		"rollout.yaml": `apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata:
  name: shop
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  strategy:
    canary:
      steps:
      - setWeight: 25
      - pause: {}
      - setWeight: 50
      - pause: {duration: 2s}
`,
	}
}

// TestCanaryToItsEnd follows a whole release of a real cluster in the browser, and promotes the release by a click.
func TestCanaryToItsEnd(t *testing.T) {
	cluster := testcluster.Shared(t)
	ns := cluster.Namespace(t)
	repo := gittest.New(t)
	push := func(message, version string) {
		t.Helper()
		files := map[string]string{".gitrollout/test/config.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" +
			"- path: apps/shop\n  namespace: " + ns + "\n- path: more/*\n"}
		for name, content := range manifests(version) {
			files["apps/shop/"+name] = content
		}
		repo.CommitFiles(message, files)
	}
	push("shop v1", "v1")
	server := repo.HTTP(gittest.HTTPOptions{})
	token, digest := dashboard.NewToken()
	rules := accessFile(t,
		`people: [{name: Ann Lee, email: ann@example.com, token: "`+digest+`", apps: [shop], verbs: [promote, abort, undo]}]`)
	source := []string{"--repo", server.URL, "--cluster", "test", "--kubeconfig", cluster.Kubeconfig}
	url := start(t, append([]string{"run", "--interval", "200ms", "--dashboard-actions", "--dashboard-tokens", rules}, source...)...)

	p := newTab(t, scheme("light"), chromedp.Navigate(url+"/"))
	p.await(`document.querySelector('#rows li[data-phase=Healthy]')`)
	p.click(`#rows a`)
	p.await(live)
	p.signIn(token)
	p.await(live + ` && document.querySelector('#who').textContent.includes('Ann Lee') && document.querySelector('#title h1')`)
	js[bool](p, `(window.same = true)`)

	pushed := time.Now()
	push("shop v2: <b>bold</b>", "v2")
	p.await(`document.querySelector('.steps [aria-current=step]')`)
	t.Logf("the release is seen %s after the push", time.Since(pushed).Round(10*time.Millisecond))
	p.await(`document.querySelector('#title .phase').dataset.phase === 'Paused' && document.querySelector('.steps ` +
		`[aria-current=step]').innerText.includes('pause')`)
	p.await(`document.querySelector('#workloads').innerText.includes('25% of the ready pods')`)
	p.await(`document.querySelectorAll('pre.diff').length === 2 && document.querySelectorAll('#history details').length >= 2`)
	page := p.text()
	compare.Contains(t, page, "shop v2: <b>bold</b>", "+      - image: shop:v2", "-      - image: shop:v1", "*** (after)",
		"git merge --no-ff origin/gitrollout/promote/test/shop", "weight reached")
	if strings.Contains(page, "of-v1") || strings.Contains(page, "b2Yt") {
		t.Error("the page shows a Secret's value")
	}
	if n := p.count("svg.chart path.real"); n != 1 {
		t.Errorf("the weight over time is drawn %d times", n)
	}
	p.axe("a canary")

	p.click("[data-verb=promote]", "#act-go")
	p.await(`document.getElementById('said').textContent.includes('Promote shop past step 2')`)
	p.await(`document.querySelector('#workloads').innerText.includes('50% of the ready pods')`)
	p.await(`document.querySelector('#title .phase').dataset.phase === 'Healthy' && document.querySelectorAll('.steps .done').length === 0`)
	p.await(`document.querySelector('#history summary').textContent.includes('healthy shop v2') && ` +
		`document.querySelector('#title').innerText.includes('shop v2')`)
	if !js[bool](p, `window.same === true`) {
		t.Error("the page was loaded again, and is to be live")
	}
	newest := repo.InBare("log", "-1", "--format=%an <%ae> %s", "main")
	compare.CheckNamed(t, "the newest commit", "Ann Lee <ann@example.com> Promote shop past step 2 in test", newest)
	if n := js[int](p, `fetch('/api/v1/apps/shop').then((r) => r.json()).then((a) => Object.values(a.samples)[0].length)`); n < 4 || n > 240 {
		t.Errorf("%d samples are kept of the release", n)
	}

	p.click("[data-verb=undo]", "#act-go")
	p.await(`document.getElementById('said').textContent.includes('pushed gitrollout/revert/test/shop')`)
	compare.CheckNamed(t, "the proposal's author", "Ann Lee", repo.InBare("log", "-1", "--format=%an", "gitrollout/revert/test/shop"))

	said, err := gitrollout(t, "get", "shop", "--server", url).CombinedOutput()
	must(t, err)
	compare.Contains(t, string(said), "Healthy", "4/4 ready")

	t.Log("a folder that cannot be an app, and a Git server that does not answer")
	repo.Pull()
	repo.CommitFiles("a bad name", map[string]string{"more/No_Name/kustomization.yaml": "resources: []\n"})
	noted := func(text string) string {
		return "document.getElementById('note').textContent.includes('" + text + "')"
	}
	p = newTab(t, chromedp.Navigate(url+"/"))
	p.await(noted("more/No_Name"))
	server.Fault(gittest.Faults{Status: 503})
	p.await(noted("reading Git has failed since 20") + " && " + noted("503") + " && " + noted("more/No_Name"))
	p.axe("Git is away")
	server.Fault(gittest.Faults{})
	p.await("!" + noted("reading Git") + " && " + noted("more/No_Name"))

	t.Log("the same by gitrollout dashboard, and from Git alone")
	url = start(t, append([]string{"dashboard"}, source...)...)
	p = newTab(t, chromedp.Navigate(url+"/apps/shop"))
	p.await(live + ` && document.querySelector('#title .phase').dataset.phase === 'Healthy' && document.querySelectorAll('.pod').length ` +
		`=== 4 && ` + noted("more/No_Name"))
	push("shop v3", "v3")
	p.await(`document.querySelector('#title .phase').dataset.phase === 'Paused' && ` +
		`document.querySelector('#workloads').innerText.includes('25% of the ready pods')`)
	url = start(t, "dashboard", "--repo", server.URL, "--cluster", "test", "--kubeconfig", filepath.Join(t.TempDir(), "none"))
	p = newTab(t, chromedp.Navigate(url+"/apps/shop"))
	p.await(live + ` && document.querySelector('#title .phase').dataset.phase === 'Paused' && ` +
		`document.getElementById('note').textContent.includes('from Git alone')`)
}
