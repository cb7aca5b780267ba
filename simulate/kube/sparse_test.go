package kube

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestSparse changes Deployments, pods and the time at random. When Micro has no step left with Sparse, it must have none left without
// Sparse.
func TestSparse(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		k := New(rng, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
		k.Sparse = true
		k.Fate = func(version string) Lifetime {
			return Lifetime{Never: strings.HasPrefix(version, "bad"), Ready: time.Duration(rng.IntN(3)) * time.Second}
		}
		for i := range 60 {
			name := fmt.Sprintf("a%d", rng.IntN(3))
			d := k.Deployments[rollout.Workload{Namespace: "shop", Name: name}]
			switch {
			case rng.IntN(3) == 0:
				version := []string{"v", "bad"}[rng.IntN(2)] + fmt.Sprint(rng.IntN(3))
				minReady := []int64{0, 0, 5, forever}[rng.IntN(4)]
				if err := k.Apply(rollout.Object{"apiVersion": "apps/v1", "kind": "Deployment",
					"metadata": map[string]any{"namespace": "shop", "name": name},
					"spec": map[string]any{"replicas": rng.Int64N(4), "minReadySeconds": minReady, "progressDeadlineSeconds": int64(1<<31 - 1),
						"template": map[string]any{"version": version}}}); err != nil {
					t.Fatal(err)
				}
			case d != nil && len(d.Sets) > 0 && len(d.Sets[0].Pods) > 0 && rng.IntN(3) == 0:
				p := d.Sets[0].Pods[0]
				k.Evict("shop", rollout.Pod{Name: p.Name, UID: p.uid})
			}
			for k.Micro() {
			}
			if k.Sparse = false; k.Micro() {
				t.Fatalf("seed %d, change %d: a step remains", seed, i)
			}
			due := k.NextDue()
			if k.Sparse = true; !due.IsZero() && rng.IntN(2) == 0 {
				k.Now = due
			} else {
				k.Now = k.Now.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
			}
		}
	}
}
