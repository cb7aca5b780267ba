package main

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// TestJobWithATTLRunsOnce checks that a Job with a TTL in an app's manifests runs once, even if gitrollout restarts. The Job
// runs again only after a user has deleted it. A second Job with the same TTL shows that the cluster's TTL controller runs.
func TestJobWithATTLRunsOnce(t *testing.T) {
	const job = `apiVersion: batch/v1
kind: Job
metadata: {name: move}
spec:
  ttlSecondsAfterFinished: 1
  template: {spec: {restartPolicy: Never, containers: [{name: move, image: "move:v1-run200ms"}]}}
`
	files := with(version("v1", halfThenGate), map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, job.yaml]\n", "job.yaml": job,
	})
	w := newLoopWorld(t, files)
	jobs := w.kube.Kube.BatchV1().Jobs(w.ns)
	get := func(name string) *batchv1.Job {
		t.Helper()
		j, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		must(t, err)
		return j
	}
	p := w.start()
	p.await("it has run", func(rollout.State) bool { j := get("move"); return j != nil && j.Status.Succeeded == 1 })
	ran := get("move").UID
	var control batchv1.Job
	must(t, yaml.Unmarshal([]byte(strings.Replace(job, "name: move}", "name: control}", 1)), &control))
	must(t, errorOf(jobs.Create(t.Context(), &control, metav1.CreateOptions{})))
	p.await("the controller has deleted the other one", func(rollout.State) bool { return get("control") == nil })
	p = p.restart()
	p.passWell(5)
	if j := get("move"); j == nil || j.UID != ran {
		t.Errorf("it ran again: %+v, was %s", j, ran)
	}

	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	must(t, jobs.Delete(t.Context(), "move", background))
	p.await("made again", func(rollout.State) bool { j := get("move"); return j != nil && j.UID != ran })
}
