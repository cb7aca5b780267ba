package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// scrape is Prometheus's scrape interval.
const scrape = 500 * time.Millisecond

// prometheus is a real Prometheus that scrapes the pods of a world's apps.
type prometheus struct {
	t       *testing.T
	URL     string
	dir     string
	flags   []string
	log     testbin.Output
	command *exec.Cmd

	mu      sync.Mutex
	clients *clients // reporters that are scraped as if they were pods of an app's version
}

// serve adds reporters to the list of pods.
func (p *prometheus) serve(c *clients) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = c
}

// reporter returns the reporter of a version of an app, or nil.
func (p *prometheus) reporter(app, version string) *reporter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients == nil {
		return nil
	}
	return p.clients.reporters[[2]string{app, version}]
}

// startPrometheus runs Debian's program, which `make test` installs, until the test ends. The program lacks Kubernetes service discovery,
// so the test writes Prometheus's list of pods.
func startPrometheus(t *testing.T, flags ...string) *prometheus {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &prometheus{t: t, URL: "http://" + listener.Addr().String(), dir: t.TempDir(), flags: flags}
	listener.Close()
	content := fmt.Sprintf(`global: {scrape_interval: %[1]s, scrape_timeout: %[1]s}
scrape_configs:
- job_name: pods
  file_sd_configs: [{files: [%[2]q]}]
`, scrape, p.targets())
	must(t, os.WriteFile(filepath.Join(p.dir, "prometheus.yml"), []byte(content), 0o600))
	p.start()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("Prometheus' log:\n%s", p.log.String())
		}
	})
	return p
}

func (p *prometheus) targets() string { return filepath.Join(p.dir, "pods.json") }

func (p *prometheus) start() {
	p.t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		p.t.Fatal("prometheus is not installed: apt-get install prometheus")
	}
	p.command = exec.Command(path, append([]string{"--config.file=" + filepath.Join(p.dir, "prometheus.yml"),
		"--storage.tsdb.path=" + filepath.Join(p.dir, "data"), "--web.listen-address=" + p.URL[len("http://"):], "--log.level=warn"},
		p.flags...)...)
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	must(p.t, p.command.Start())
	for deadline := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get(p.URL + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("Prometheus is not ready:\n%s", p.log.String())
		}
	}
}

func (p *prometheus) stop() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// follow updates Prometheus's list of the pods that serve a world's apps, until the context ends.
func (p *prometheus) follow(ctx context.Context, w *world) {
	known := ""
	for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		var groups []map[string]any
		for _, a := range w.apps {
			pods, err := w.Kube.CoreV1().Pods(a.name).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for _, pod := range pods.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					groups = append(groups, map[string]any{"targets": []string{pod.Status.PodIP + ":8080"}, "labels": map[string]string{
						"namespace": a.name, "pod": pod.Name, "pod_template_hash": pod.Labels["pod-template-hash"],
					}})
					_, version, _ := strings.Cut(pod.Spec.Containers[0].Image, ":")
					if r := p.reporter(a.name, version); r != nil { // equal targets are one target
						groups = append(groups, map[string]any{"targets": []string{r.address}, "labels": map[string]string{
							"app": a.name, "pod_template_hash": pod.Labels["pod-template-hash"]}})
					}
				}
			}
		}
		data, err := json.Marshal(groups)
		if err != nil || string(data) == known {
			continue
		}
		known = string(data)
		if err := os.WriteFile(p.targets()+".new", data, 0o600); err == nil {
			_ = os.Rename(p.targets()+".new", p.targets())
		}
	}
}
