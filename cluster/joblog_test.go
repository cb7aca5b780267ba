package cluster_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// TestLogOfAJob checks the log in the state of a Job with the log annotation. The log has the last lines of the newest pod's failed
// container. If no container failed, the log has the first container's lines. Jobs without the annotation have no log.
func TestLogOfAJob(t *testing.T) {
	w := newWorld(t)
	const many = "first\\nsecond\\n"
	container := func(image, log string) string {
		return `{name: a, image: "job:v1-` + image + `", env: [{name: LOCALCLUSTER_LOG, value: "` + log + `"}]}`
	}
	for name, c := range map[string]struct{ annotation, containers, want string }{
		"asks":  {"record", container("run10ms", many), "first\nsecond"},
		"fails": {"record", container("crash", many) + ", {name: b, image: b}", "first\nsecond"},
		"says-all": {"record", container("run10ms", strings.Repeat("0123456789\\n", 900)),
			strings.TrimSpace(strings.Repeat("0123456789\n", 50))},
		"is-long":  {"record", container("run10ms", strings.Repeat("0123456789", 900)), strings.Repeat("0123456789", 205)[2:]},
		"does-not": {"", container("run10ms", "x"), ""},
		"gone":     {"record", `{name: a, image: "job:v1-run10ms"}`, "(there is no log: the Job's pods no longer exist)"},
	} {
		t.Run(name, func(t *testing.T) {
			job := w.objects("apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", namespace: " + w.ns +
				", annotations: {x: z, gitrollout.dev/hook-log: '" + c.annotation + "'}}\n" +
				"spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [" + c.containers + "]}}}\n")[0]
			var state rollout.JobState
			look := func() (bool, string) {
				var err error
				if state, err = w.EnsureJob(t.Context(), job, "x", false); err != nil {
					return false, err.Error()
				}
				return state.Complete || state.Failed, "it runs"
			}
			w.until("the end of "+name, look)
			if name == "gone" {
				err := w.cluster.Kube.CoreV1().Pods(w.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{},
					metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + name})
				must(t, err)
				w.until("no pod of "+name, func() (bool, string) { look(); return state.Log == c.want, state.Log })
			}
			if state.Log != c.want {
				t.Errorf("the log is %q, want %q", state.Log, c.want)
			}
		})
	}
}
