package e2e

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// prometheus is a real one that scrapes the pods of a test's namespace each
// second.
type prometheus struct {
	URL string
	cmd *exec.Cmd
}

// startPrometheus runs Debian's program, which .ci/run installs, until the test
// ends.
func startPrometheus(t *testing.T, w *world) *prometheus {
	t.Helper()
	pods, err := url.Parse(w.cluster.PodsURL)
	if err != nil || pods.Host == "" {
		t.Fatalf("pods are served at %q: %v", w.cluster.PodsURL, err)
	}
	return runPrometheus(t, fmt.Sprintf(`global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
scrape_configs:
- job_name: pods
  kubernetes_sd_configs:
  - {role: pod, kubeconfig_file: %q, namespaces: {names: [%s]}}
  relabel_configs:
  - {target_label: __address__, replacement: %q}
  - source_labels: [__meta_kubernetes_pod_name]
    target_label: __metrics_path__
    replacement: /namespaces/%s/pods/$1/metrics
  - {source_labels: [__meta_kubernetes_pod_name], target_label: instance}
  - {source_labels: [__meta_kubernetes_pod_label_pod_template_hash], target_label: pod_template_hash}
  - {source_labels: [__meta_kubernetes_pod_phase], regex: Running, action: keep}
`, w.cluster.Kubeconfig, w.ns, pods.Host, w.ns))
}

// runPrometheus runs it with a configuration.
func runPrometheus(t *testing.T, content string) *prometheus {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("prometheus is not installed: apt-get install prometheus")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	p := &prometheus{URL: "http://" + address}
	p.cmd = exec.Command(path, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	log := &lockedBuffer{}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("Prometheus' log:\n%s", log)
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(glance) {
		if answer, err := http.Get(p.URL + "/-/ready"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return p
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("Prometheus is not ready:\n%s", log)
		}
	}
}

func (p *prometheus) stop() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// users send requests at a fixed rate to the ready pods of a namespace, each to
// the next one.
type users struct {
	sent, bad atomic.Int64
	firstBad  atomic.Int64 // when, in nanoseconds
	cancel    context.CancelFunc
	done      sync.WaitGroup
}

func startUsers(t *testing.T, w *world, perSecond int) *users {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	u := &users{cancel: cancel}
	var ready atomic.Pointer[[]string]
	ready.Store(&[]string{})
	u.done.Add(2)
	go func() {
		defer u.done.Done()
		for ctx.Err() == nil {
			list, err := w.cluster.Kube.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{})
			if err == nil {
				names := []string{}
				for _, p := range list.Items {
					for _, c := range p.Status.Conditions {
						if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil {
							names = append(names, p.Name)
						}
					}
				}
				ready.Store(&names)
			}
			pause(ctx, 200*time.Millisecond)
		}
	}()
	go func() {
		defer u.done.Done()
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-ticker.C
			names := *ready.Load()
			if len(names) == 0 {
				continue
			}
			go u.send(w.cluster.PodsURL + "/namespaces/" + w.ns + "/pods/" + names[i%len(names)] + "/")
		}
	}()
	t.Cleanup(u.stop)
	return u
}

func (u *users) send(url string) {
	answer, err := http.Get(url)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		u.sent.Add(1)
	case http.StatusInternalServerError:
		u.sent.Add(1)
		u.bad.Add(1)
		u.firstBad.CompareAndSwap(0, time.Now().UnixNano())
	default: // the pod is gone: a Service would not have sent it there
	}
}

func (u *users) stop() { u.cancel(); u.done.Wait() }

func (u *users) share() float64 {
	return math.Round(1e5*float64(u.bad.Load())/math.Max(1, float64(u.sent.Load()))) / 1e3
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// errorRate is a template whose metric is the share of failed requests of the
// new version's pods since the last seconds.
func errorRate(prometheus, more string) string {
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: AnalysisTemplate
metadata: {name: errors}
spec:
  args:
  - name: hash
  - {name: prometheus, value: %q}
  metrics:
  - name: error-rate
%s
    provider:
      prometheus:
        address: "{{args.prometheus}}"
        query: |
          sum(increase(http_requests_total{code="500",pod_template_hash="{{args.hash}}"}[10s]))
          / sum(increase(http_requests_total{pod_template_hash="{{args.hash}}"}[10s]))
`, prometheus, strings.TrimRight(more, "\n"))
}
