package proxytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// startedWithin limits each wait for a condition. The limit is high, because test packages share few cores.
const startedWithin = 5 * time.Minute

// AwaitReady waits until Deployments have all their pods ready and available.
func (w *World) AwaitReady(tb testing.TB, namespace string, deployments ...string) {
	tb.Helper()
	for _, name := range deployments {
		eventually(tb, "Deployment "+name+" is ready", func() bool {
			d, err := w.Kube.AppsV1().Deployments(namespace).Get(tb.Context(), name, metav1.GetOptions{})
			if err != nil {
				tb.Fatalf("wait for Deployment %s: %v", name, err)
			}
			s := d.Status
			return s.ObservedGeneration == d.Generation && s.AvailableReplicas == *d.Spec.Replicas &&
				s.UpdatedReplicas == *d.Spec.Replicas && s.Replicas == *d.Spec.Replicas
		})
	}
}

// PodIP waits until a pod has an address and returns it.
func (w *World) PodIP(tb testing.TB, namespace, name string) string {
	tb.Helper()
	var ip string
	eventually(tb, "pod "+name+" has an address", func() bool {
		pod, err := w.Kube.CoreV1().Pods(namespace).Get(tb.Context(), name, metav1.GetOptions{})
		if err != nil {
			tb.Fatalf("wait for pod %s: %v", name, err)
		}
		ip = pod.Status.PodIP
		return ip != ""
	})
	return ip
}

// AwaitVersions sends requests until each version has served a request.
func AwaitVersions(tb testing.TB, within time.Duration, r Request, versions ...string) {
	tb.Helper()
	missing := sets.New(versions...)
	Await(tb, within, r, func(result Result) bool {
		if !result.Failed() {
			missing.Delete(result.Version)
		}
		return len(missing) == 0
	})
}

func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(startedWithin); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not so within %s: %s", startedWithin, what)
		}
	}
}

// AwaitWeight waits until Traefik's API shows, in the namespace, a route with the given weight. The route's weights
// must add up to 100.
func (w *World) AwaitWeight(tb testing.TB, namespace string, weight int) {
	tb.Helper()
	eventually(tb, fmt.Sprintf("Traefik has the weight %d in %s", weight, namespace), func() bool {
		res, err := http.Get(ownURL + "/api/http/services?per_page=1000&search=" + namespace)
		if err != nil {
			tb.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var services []struct {
			Weighted struct{ Services []struct{ Weight int } }
		}
		if err := json.NewDecoder(res.Body).Decode(&services); err != nil {
			tb.Fatal(err)
		}
		for _, s := range services {
			sum, has := 0, false
			for _, to := range s.Weighted.Services {
				sum, has = sum+to.Weight, has || to.Weight == weight
			}
			if has && sum == 100 {
				return true
			}
		}
		return false
	})
}
