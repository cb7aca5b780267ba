package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
)

const quickStartApp = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 5
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:v1", ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop-canary}
spec: {selector: {app: shop}, ports: [{port: 80, targetPort: 8080}]}
`

const quickStartRoute = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec: {rules: [{backendRefs: [{name: shop, port: 80}]}]}
`

// newcomer is a user who follows docs/start/first-canary.md in a clone.
type newcomer struct {
	*clone
	typed map[string]bool // command lines of the page that the test has run
}

// do runs a command of the page with additional arguments for the test, and returns its output and exit code.
func (n *newcomer) do(line string, more ...string) (string, int) {
	n.Helper()
	out, err := n.command(line, more...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	must(n, err)
	return string(out), 0
}

// succeeds runs a command of the page, and ends the test unless the exit code is 0.
func (n *newcomer) succeeds(line string, more ...string) string {
	n.Helper()
	out, code := n.do(line, more...)
	if code != 0 {
		n.Fatalf("%s: exit code %d\n%s", line, code, out)
	}
	return out
}

func (n *newcomer) command(line string, more ...string) *exec.Cmd {
	n.Helper()
	n.typed[line] = true
	path, err := binary()
	must(n, err)
	cmd := exec.Command(path, append(strings.Fields(line)[1:], more...)...)
	cmd.Dir, cmd.Env = n.dir, n.env
	return cmd
}

// TestQuickStart follows docs/start/first-canary.md with its files and commands, and nothing else.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	page := readText(t, "../../docs/start/first-canary.md")
	var yamls []string
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		yamls = append(yamls, m[1])
	}
	if len(yamls) != 2 {
		t.Fatalf("the first canary has %d files, and the test knows of 2", len(yamls))
	}
	cluster, repo := testcluster.Shared(t), gittest.New(t)
	ns, server := cluster.Namespace(t), repo.HTTP(gittest.HTTPOptions{})
	n := &newcomer{clone: newClone(t, server.URL), typed: map[string]bool{}}
	n.env = append(n.env, "HOME="+t.TempDir(), "PATH="+os.Getenv("PATH"), "KUBECONFIG="+cluster.Kubeconfig)

	// 1. Prepare the repository, as on the page.
	const folder = "apps/shop/overlays/prod/"
	n.write(map[string]string{
		".gitrollout/prod/config.yaml":   strings.Replace(yamls[0], "namespace: shop", "namespace: "+ns, 1),
		folder + "rollout.yaml":          yamls[1],
		folder + "shop.yaml":             quickStartApp,
		folder + "route.yaml":            quickStartRoute,
		folder + "kustomization.yaml":    "namespace: " + ns + "\nresources: [shop.yaml, route.yaml, rollout.yaml]\n",
		"apps/unrelated/kustomize.notes": "not an app\n",
	})
	// 2. Check the repository before the first deployment.
	n.succeeds("gitrollout validate")
	// "Without a router, leave these four lines out."
	plain := regexp.MustCompile(`(?m)^ +(stableService|canaryService|trafficRouting|gatewayAPI):.*\n`).ReplaceAllString(yamls[1], "")
	if got := strings.Count(yamls[1], "\n") - strings.Count(plain, "\n"); got != 4 {
		t.Fatalf("%d lines left out, and the page says four", got)
	}
	n.write(map[string]string{folder + "rollout.yaml": plain,
		folder + "kustomization.yaml": "namespace: " + ns + "\nresources: [shop.yaml, rollout.yaml]\n"})
	n.succeeds("gitrollout validate")
	n.push("shop")
	if out, code := n.do("gitrollout diff"); code != 1 || !strings.Contains(out, "shop") {
		t.Fatalf("diff: exit code %d, want 1 for differences\n%s", code, out)
	}
	// 3. Run gitrollout.
	const doctor = "gitrollout doctor --repo https://git.example.com/shop.git --cluster prod"
	n.succeeds(doctor, "--repo", server.URL)
	const run = "gitrollout run --repo https://git.example.com/shop.git --cluster prod"
	log := &lockedBuffer{}
	loop := n.command(run, "--repo", server.URL, "--interval", "200ms", "--metrics-address=")
	loop.Stdout, loop.Stderr = log, log
	must(t, loop.Start())
	t.Cleanup(func() {
		_ = loop.Process.Signal(syscall.SIGTERM)
		if err := loop.Wait(); err != nil || t.Failed() {
			t.Errorf("run ended with %v:\n%s", err, log)
		}
	})
	n.watch("Healthy")
	// 4. Release a new version.
	n.write(map[string]string{folder + "shop.yaml": strings.ReplaceAll(quickStartApp, "shop:v1", "shop:v2")})
	compare.Contains(t, n.succeeds("gitrollout plan"), "setWeight 20")
	n.git("checkout", "-q", ".")
	n.succeeds("gitrollout set image shop shop=v2")
	n.watch("Paused")
	n.git("pull", "-q", "--no-rebase", "origin", "gitrollout/promote/prod/shop")
	n.git("push", "-q", "origin", "HEAD:main")
	var out string
	eventually(t, "paused at 60 %", func() bool {
		out, _ = n.do("gitrollout get shop -o json")
		return strings.Contains(out, `"weight": 60`) && strings.Contains(out, `"Paused"`)
	}, func() any { return out })
	n.succeeds("gitrollout once", "--cluster", "prod")

	for _, m := range regexp.MustCompile("(?m)^    (gitrollout [^#\n]*)|"+
		"`(gitrollout (?:once|get|list|diff|doctor|plan|validate|render)[^`]*)`").FindAllStringSubmatch(page, -1) {
		if line := strings.TrimSpace(m[1] + m[2]); !n.typed[line] {
			t.Errorf("the page says %q, which the test does not do", line)
		}
	}
}

// watch runs the page's `gitrollout get shop -w` until the output contains the given text.
func (n *newcomer) watch(says string) {
	n.Helper()
	out := &lockedBuffer{}
	cmd := n.command("gitrollout get shop -w")
	cmd.Stdout, cmd.Stderr = out, out
	must(n, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	}()
	eventually(n, fmt.Sprintf("get -w says %q", says), func() bool { return strings.Contains(out.String(), says) },
		func() any { return out.String() })
}
