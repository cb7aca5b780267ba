package proxytest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// proxyReadyWithin limits the time until Traefik responds. The limit is high, because test packages share few cores.
const proxyReadyWithin = 5 * time.Minute

// The addresses are fixed, because the namespace has no other listeners. Traefik finds the entry point for a
// Gateway's listener by the listener's port.
const (
	gatewayURL = "http://127.0.0.1:8000"
	crdURL     = "http://127.0.0.1:8001"
	nginxURL   = "http://127.0.0.1:8002"
	ownURL     = "http://127.0.0.1:9000" // Traefik's ping and API
)

// configuration is Traefik's configuration besides the kubeconfig. Providers read the cluster at most every 100ms
// (default 0), and Traefik applies their changes at most every 100ms (default 2s). So a test of twenty changes takes
// seconds. Endpoints come from EndpointSlices, because Services' addresses are not routed. With allowEmptyServices, as
// in Traefik's Helm chart, a Service without ready pods fails only its share of the route's requests.
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

// startTraefik starts Traefik, and returns when its ping endpoint responds.
func startTraefik(kubeconfig string) (*testbin.Process, error) {
	binary, err := testbin.Ensure("traefik", "more than five minutes")
	if err != nil {
		return nil, err
	}
	// A high priority, if allowed, lets Traefik apply changes within the tests' settle time even on a busy machine.
	command := exec.Command("nice", append([]string{"-n", "-10", binary}, configuration...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Dir = filepath.Dir(kubeconfig)
	proxy, err := testbin.Start(command)
	if err != nil {
		return nil, err
	}
	if err := proxy.Await(ownURL+"/ping", proxyReadyWithin); err != nil {
		proxy.Stop()
		return nil, fmt.Errorf("traefik: %w; its log:\n%s", err, proxy)
	}
	return proxy, nil
}
