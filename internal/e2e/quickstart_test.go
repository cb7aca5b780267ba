package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

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

// newcomer is a user with a repository, a cluster, and the quick start.
type newcomer struct {
	*testing.T
	clone string
	env   []string
	typed map[string]bool // command lines of the page that were run
}

// do runs a command of the page with additional arguments for the test, and returns its output and exit code.
func (n *newcomer) do(line string, more ...string) (string, int) {
	n.Helper()
	out, err := n.command(context.Background(), line, more...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		n.Fatal(err)
	}
	return string(out), 0
}

func (n *newcomer) command(ctx context.Context, line string, more ...string) *exec.Cmd {
	n.Helper()
	n.typed[line] = true
	path, err := binary()
	if err != nil {
		n.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, append(strings.Fields(line)[1:], more...)...)
	cmd.Dir, cmd.Env = n.clone, n.env
	return cmd
}

func (n *newcomer) git(args ...string) {
	n.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = n.clone, n.env
	if out, err := cmd.CombinedOutput(); err != nil {
		n.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (n *newcomer) write(files map[string]string) {
	n.Helper()
	for name, content := range files {
		path := filepath.Join(n.clone, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			n.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			n.Fatal(err)
		}
	}
}

func (n *newcomer) push(message string) {
	n.Helper()
	n.git("add", ".")
	n.git("commit", "-q", "-m", message)
	n.git("push", "-q", "origin", "HEAD:main")
}

// TestQuickStart follows docs/start/first-canary.md with its files and commands, and nothing else.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/start/first-canary.md")
	must(t, err)
	var yamls []string
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		yamls = append(yamls, m[1])
	}
	if len(yamls) != 2 {
		t.Fatalf("the quick start has %d files, and the test knows of 2", len(yamls))
	}
	cluster, repo := testcluster.Shared(t), gittest.New(t)
	ns, home := cluster.Namespace(t), t.TempDir()
	n := &newcomer{T: t, clone: filepath.Join(home, "shop"), typed: map[string]bool{}}
	n.env = append(gittest.Env(), "HOME="+home, "PATH="+os.Getenv("PATH"), "KUBECONFIG="+cluster.Kubeconfig)
	server := repo.HTTP(gittest.HTTPOptions{})
	must(t, os.MkdirAll(n.clone, 0o755))
	n.git("init", "-q", "-b", "main")
	n.git("remote", "add", "origin", server.URL)

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
	// 2. Check before anything is deployed.
	if out, code := n.do("gitrollout validate"); code != 0 {
		t.Fatalf("validate: exit code %d\n%s", code, out)
	}
	// "Without a router, leave these four lines out."
	plain := regexp.MustCompile(`(?m)^ +(stableService|canaryService|trafficRouting|gatewayAPI):.*\n`).ReplaceAllString(yamls[1], "")
	if got := strings.Count(yamls[1], "\n") - strings.Count(plain, "\n"); got != 4 {
		t.Fatalf("%d lines left out, and the page says four", got)
	}
	n.write(map[string]string{folder + "rollout.yaml": plain,
		folder + "kustomization.yaml": "namespace: " + ns + "\nresources: [shop.yaml, rollout.yaml]\n"})
	if out, code := n.do("gitrollout validate"); code != 0 {
		t.Fatalf("validate: exit code %d\n%s", code, out)
	}
	n.push("shop")
	if out, code := n.do("gitrollout diff"); code != 1 || !strings.Contains(out, "shop") {
		t.Fatalf("diff: exit code %d, want 1 for differences\n%s", code, out)
	}
	// 3. Run it.
	const doctor = "gitrollout doctor --repo https://git.example.com/shop.git --cluster prod"
	if out, code := n.do(doctor, "--repo", server.URL); code != 0 {
		t.Fatalf("doctor: exit code %d\n%s", code, out)
	}
	const run = "gitrollout run --repo https://git.example.com/shop.git --cluster prod"
	log := &lockedBuffer{}
	loop := n.command(context.Background(), run, "--repo", server.URL, "--interval", "200ms", "--metrics-address=")
	loop.Stdout, loop.Stderr = log, log
	must(t, loop.Start())
	t.Cleanup(func() {
		_ = loop.Process.Signal(syscall.SIGTERM)
		if err := loop.Wait(); err != nil || t.Failed() {
			t.Errorf("run ended with %v:\n%s", err, log)
		}
	})
	n.watch("Healthy")
	// 4. Release something.
	n.write(map[string]string{folder + "shop.yaml": strings.ReplaceAll(quickStartApp, "shop:v1", "shop:v2")})
	if out, code := n.do("gitrollout plan"); code != 0 || !strings.Contains(out, "setWeight 20") {
		t.Fatalf("plan: exit code %d\n%s", code, out)
	}
	n.push("shop: v2")
	n.watch("Paused")
	n.git("pull", "-q", "--no-rebase", "origin", "gitrollout/promote/prod/shop")
	n.git("push", "-q", "origin", "HEAD:main")
	for deadline := time.Now().Add(timeout); ; time.Sleep(glance) {
		if out, _ := n.do("gitrollout get shop -o json"); strings.Contains(out, `"weight": 60`) && strings.Contains(out, `"Paused"`) {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("not at 60 %% within %s:\n%s", timeout, out)
		}
	}
	if out, code := n.do("gitrollout once", "--cluster", "prod"); code != 0 {
		t.Errorf("once: exit code %d\n%s", code, out)
	}

	for _, m := range regexp.MustCompile("(?m)^    (gitrollout [^#\n]*)|"+
		"`(gitrollout (?:once|get|list|diff|doctor|plan|validate|render)[^`]*)`").FindAllStringSubmatch(string(page), -1) {
		if line := strings.TrimSpace(m[1] + m[2]); !n.typed[line] {
			t.Errorf("the page says %q, which the test does not do", line)
		}
	}
}

// watch follows the app until the output contains a text.
func (n *newcomer) watch(says string) {
	n.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	out := &lockedBuffer{}
	cmd := n.command(ctx, "gitrollout get shop -w")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		n.Fatal(err)
	}
	for ctx.Err() == nil && !strings.Contains(out.String(), says) {
		time.Sleep(glance)
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	_ = cmd.Wait()
	if !strings.Contains(out.String(), says) {
		n.Fatalf("get -w does not say %q within %s:\n%s", says, timeout, out)
	}
}
