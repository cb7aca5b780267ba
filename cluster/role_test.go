package cluster_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestSetRole gives a pod the metadata of one role after the other. The pod must have its own keys and the last role's keys, but no former
// role's keys. If the pod template or another client has set a label, SetRole keeps the label's value and returns an error.
func TestSetRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("db", ordinals("db:v1", 1, "h1-one", ""))
	pod := w.awaitPods(1).Revisions[0].Members[0]
	own := w.pod(pod.Name)
	set := func(of rollout.Pod, role string) error {
		return cluster.Annotator{Client: w.Client}.SetRole(t.Context(), w.ns, of, role)
	}
	type texts = map[string]string
	const canary = `{"labels":{"role":"canary","track":"new"},"annotations":{"example.com/note":"v2"}}`
	const stable = `{"labels":{"role":"stable"}}`
	for _, step := range []struct {
		name, byHand, role  string
		labels, annotations texts
		refused             string
	}{
		{"the canary's", "", canary, texts{"role": "canary", "track": "new"}, texts{"example.com/note": "v2"}, ""},
		{"stable's", "", stable, texts{"role": "stable"}, nil, ""},
		{"another client's label", "role=mine", canary, texts{"role": "mine"}, nil, "metadata.labels.role"},
		{"other annotations", "", `{"annotations":{"a":"b"}}`, texts{"role": "mine"}, texts{"a": "b"}, ""},
		{"none, and no label of another client", "role-", "", nil, nil, ""},
		{"a label of the pod template", "", `{"labels":{"app":"canary"}}`, nil, nil, "metadata.labels.app"},
		{"the canary's again", "", canary, texts{"role": "canary", "track": "new"}, texts{"example.com/note": "v2"}, ""},
	} {
		if step.byHand != "" {
			w.kubectl("", "label", "pod", pod.Name, step.byHand, "--overwrite")
		}
		was := w.pod(pod.Name).Annotations[rollout.AnnotationRole]
		switch err := set(pod, step.role); {
		case step.refused == "":
			must(t, err)
			was = step.role
		case !errors.Is(err, rollout.ErrUnlabelled) || !strings.Contains(err.Error(), step.refused):
			t.Errorf("%s: the error is %v", step.name, err)
		}
		is, labels, annotations := w.pod(pod.Name), maps.Clone(own.Labels), texts{}
		maps.Copy(annotations, own.Annotations)
		maps.Copy(labels, step.labels)
		if maps.Copy(annotations, step.annotations); was != "" {
			annotations[rollout.AnnotationRole] = was
		}
		compare.CheckNamed(t, step.name, labels, is.Labels)
		compare.CheckNamed(t, step.name+", entries", len(annotations), len(is.Annotations))
		for key, want := range annotations {
			compare.CheckNamed(t, step.name+", "+key, want, is.Annotations[key])
		}
		if step.refused == "" {
			compare.CheckNamed(t, step.name+", as observed", step.role, w.observeSet().Revisions[0].Members[0].Role)
			must(t, set(pod, step.role))
			compare.CheckNamed(t, step.name+", twice", is.ResourceVersion, w.pod(pod.Name).ResourceVersion)
		}
	}
	other, gone := pod, rollout.Pod{Name: "db-9", UID: pod.UID}
	other.UID = "another"
	was := w.pod(pod.Name).ResourceVersion
	must(t, set(other, stable))
	must(t, set(gone, stable))
	compare.CheckNamed(t, "after the role of another pod", was, w.pod(pod.Name).ResourceVersion)
	if list, err := w.cluster.Kube.CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("%d pods exist, %v", len(list.Items), err)
	}
	err := set(pod, `{"labels":{"a b":"c"}}`)
	compare.Contains(t, fmt.Sprint(err), "cannot set labels and annotations of pods: Pod "+w.ns+"/"+pod.Name+": ")
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	p, err := w.cluster.Kube.CoreV1().Pods(w.ns).Get(w.t.Context(), name, metav1.GetOptions{})
	must(w.t, err)
	return p
}
