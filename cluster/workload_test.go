package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// statefulSets is a kind of workload that owns its pods itself and numbers its
// templates by ControllerRevisions: as unlike a Deployment as there is.
var statefulSets = workloadKind{
	gvk: appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
	read: func(u *unstructured.Unstructured) (*workload, error) {
		var s appsv1.StatefulSet
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s)
		return &workload{
			template: s.Status.UpdateRevision, generation: s.Generation, observed: s.Status.ObservedGeneration,
			replicas: int(*s.Spec.Replicas), total: int(s.Status.Replicas),
			updated: int(s.Status.UpdatedReplicas), available: int(s.Status.AvailableReplicas),
		}, err
	},
	readRevision: func(obj any) (*revision, error) {
		r, ok := obj.(*appsv1.ControllerRevision)
		if !ok {
			return nil, fmt.Errorf("watch of ControllerRevisions brought a %T", obj)
		}
		return &revision{stamp: stampOf(&r.ObjectMeta), kind: "ControllerRevision", number: int(r.Revision), template: r.Name}, nil
	},
	watchRevisions: func(b *background, kube typed, t *table[*revision]) {
		watchTyped(b, t, "controllerrevisions.apps", &appsv1.ControllerRevision{},
			kube.apps.ControllerRevisions(metav1.NamespaceAll))
	},
	current: func(w *workload, _ bool, revisions []*revision) *revision {
		for _, r := range revisions {
			if r.template == w.template {
				return r
			}
		}
		return nil
	},
	pods: func(all *table[*pod], l *live, _ *revision) []*pod { return all.ownedBy(l.uid) },
}

func TestAnotherKindOfWorkloadIsOneRow(t *testing.T) {
	workloadKinds = append(workloadKinds, &statefulSets)
	defer func() { workloadKinds = workloadKinds[:len(workloadKinds)-1] }()
	running := testcluster.Shared(t)
	ns := running.Namespace(t)
	app := ns // no other test has it
	told := make(chan struct{}, 1)
	c, err := New(running.Config, Options{Cluster: "test", OnChange: func(of string) {
		if of == app {
			select {
			case told <- struct{}{}:
			default:
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer c.Wait()
	defer cancel()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	labels := map[string]any{"app": "db"}
	_, err = c.Apply(ctx, app, []rollout.Object{{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"name": "db", "namespace": ns, "annotations": map[string]any{rollout.AnnotationHash: "h1-x"}},
		"spec": map[string]any{
			"replicas": 2, "serviceName": "db", "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "db:v1"}}},
			},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	name := rollout.Workload{Namespace: ns, Name: "db"}
	var seen rollout.ObservedWorkload
	late := time.After(time.Minute)
	for {
		seen = c.Observe(app, []rollout.Workload{name}, nil).Workloads[name]
		if seen.Complete && len(seen.Revisions) == 1 && len(seen.Revisions[0].ReadySince) == 2 {
			break
		}
		select {
		case <-told:
		case <-late:
			t.Fatalf("after a minute: %+v", seen)
		}
	}
	if seen.Hash != "h1-x" || !seen.Revisions[0].Current || seen.Revisions[0].Pods != 2 {
		t.Errorf("observed %+v", seen)
	}
}
