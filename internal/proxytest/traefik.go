package proxytest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// proxyReadyWithin limits the time until Traefik answers. It is long because test packages share few cores.
const proxyReadyWithin = 5 * time.Minute

// The addresses are fixed, since the namespace has no other listeners. Traefik finds the entry point of a Gateway's
// listener by its port.
const (
	gatewayPort = 8000
	gatewayURL  = "http://127.0.0.1:8000"
	crdURL      = "http://127.0.0.1:8001"
	nginxURL    = "http://127.0.0.1:8002"
	ownURL      = "http://127.0.0.1:9000" // Traefik's ping and API
)

// configuration is Traefik's configuration besides its kubeconfig. Two throttles are 100ms, so that a test of twenty changes
// takes seconds: the interval at which a provider reads the cluster (default 0), and the interval at which the routing follows
// a provider (default 2s). Endpoints come from EndpointSlices, because Services' addresses are not routed. allowEmptyServices
// is set as in Traefik's Helm chart: if a Service has no ready pods, only its share of the requests fails, not the whole route.
var configuration = []string{
	"--global.checkNewVersion=false",
	"--global.sendAnonymousUsage=false",
	"--log.level=INFO",
	"--log.noColor=true",
	"--entryPoints.gateway.address=127.0.0.1:8000",
	"--entryPoints.crd.address=127.0.0.1:8001",
	"--entryPoints.nginx.address=127.0.0.1:8002",
	"--entryPoints.traefik.address=127.0.0.1:9000",
	"--ping=true",
	"--api.insecure=true",
	"--api.dashboard=false",
	"--providers.providersThrottleDuration=100ms",
	"--providers.kubernetesGateway.throttleDuration=100ms",
	"--providers.kubernetesGateway.experimentalChannel=true",
	"--providers.kubernetesGateway.statusAddress.hostname=localhost",
	"--providers.kubernetesCRD.throttleDuration=100ms",
	"--providers.kubernetesCRD.allowEmptyServices=true",
	"--providers.kubernetesIngressNGINX.throttleDuration=100ms",
	"--providers.kubernetesIngressNGINX.httpEntryPoint=nginx",
}

// proxy is a running Traefik.
type proxy struct {
	command *exec.Cmd
	log     *logBuffer
	ended   chan struct{} // closed when Traefik has ended
	err     error         // Traefik's error, once ended is closed
}

// startTraefik returns when Traefik answers its ping. The kernel kills Traefik when the thread that
// started Traefik ends. Therefore a thread is locked until Traefik has ended.
func startTraefik(kubeconfig string) (*proxy, error) {
	root, err := testbin.Root()
	if err != nil {
		return nil, err
	}
	binary, err := testbin.Ensure(root, "traefik", "more than five minutes")
	if err != nil {
		return nil, err
	}
	// With a high priority, if allowed, Traefik applies changes within the tests' settle time even on a busy machine.
	p := &proxy{command: exec.Command("nice", append([]string{"-n", "-10", binary}, configuration...)...), log: &logBuffer{}, ended: make(chan struct{})}
	p.command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	p.command.Dir = filepath.Dir(kubeconfig)
	p.command.Stdout, p.command.Stderr = p.log, p.log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.command.Start()
		started <- err
		if err == nil {
			p.err = p.command.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	if err := p.awaitPing(); err != nil {
		p.stop()
		return nil, fmt.Errorf("%w; its log:\n%s", err, p.log)
	}
	return p, nil
}

func (p *proxy) awaitPing() error {
	for deadline := time.Now().Add(proxyReadyWithin); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.ended:
			return fmt.Errorf("traefik ended before it was ready: %w", p.err)
		default:
		}
		if res, err := http.Get(ownURL + "/ping"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.New("traefik did not answer its ping within " + proxyReadyWithin.String())
}

// stop terminates Traefik. It kills Traefik after 20 seconds.
func (p *proxy) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// logBuffer keeps Traefik's output.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string { return b.since(0) }

// since returns the output after the first n bytes.
func (b *logBuffer) since(offset int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.text.String()[offset:])
}

func (b *logBuffer) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Len()
}
