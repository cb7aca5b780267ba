package nodeagent

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// talking returns a pod whose container "app" has run since the year 2020. The container's log has two lines, and then the given lines.
func talking(more string) *corev1.Pod {
	start := metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-0", Annotations: map[string]string{logAnnotation: more}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "app", Env: []corev1.EnvVar{{Name: logVariable, Value: "one\ntwo\n"}}}, {Name: "late"}},
			InitContainers: []corev1.Container{{Name: "migrate"}}},
		Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "migrate", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, ContainerID: "y"}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: "x",
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}}}}},
	}
}

func TestLog(t *testing.T) {
	for name, c := range map[string]struct {
		container, query, want string
		code                   int
	}{
		"all":                 {"app", "", "one\ntwo\nthree\n", 200},
		"the last lines":      {"app", "tailLines=2", "two\nthree\n", 200},
		"no line":             {"app", "tailLines=0", "", 200},
		"bytes":               {"app", "tailLines=2&limitBytes=5", "two\nt", 200},
		"seconds":             {"app", "sinceSeconds=60", "", 200},
		"since":               {"app", "sinceTime=2020-01-01T00:00:00Z", "one\ntwo\nthree\n", 200},
		"times":               {"app", "tailLines=1&timestamps=true", "2020-01-01T00:00:00.000002000Z three\n", 200},
		"an init container":   {"migrate", "", "migrate has nothing to say\n", 200},
		"a waiting container": {"late", "", "container \"late\" in pod \"web-0\" is waiting to start\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodGet, "/?"+c.query, nil)
			code, err := sendLog(answer, request, c.container, func() (*corev1.Pod, error) { return talking("three"), nil })
			if err != nil {
				http.Error(answer, err.Error(), code)
			}
			if got := answer.Body.String(); got != c.want || answer.Code != c.code {
				t.Errorf("%d %q, want %d %q", answer.Code, got, c.code, c.want)
			}
		})
	}
}

// TestFollowedLog checks that a request with follow=true also gets later lines, and ends when the container terminates.
func TestFollowedLog(t *testing.T) {
	var pod atomic.Pointer[corev1.Pod]
	pod.Store(talking(""))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = sendLog(w, r, "app", func() (*corev1.Pod, error) { return pod.Load(), nil })
	}))
	defer server.Close()
	answer, err := http.Get(server.URL + "?follow=true&tailLines=1")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func(want string) {
		t.Helper()
		if lines.Scan(); lines.Text() != want {
			t.Errorf("line %q, want %q (%v)", lines.Text(), want, lines.Err())
		}
	}
	next("two")
	pod.Store(talking("three"))
	next("three")
	over := talking("three\nfour")
	over.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	pod.Store(over)
	next("four")
	next("")
}
