package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// logsOf returns a reader of pods' logs from an API server with the given handler.
func logsOf(t *testing.T, handler http.HandlerFunc) cluster.PodLogs {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
	must(t, err)
	return cluster.LogsOf(client)
}

// TestReadLog checks the lines that Read passes on, and the last line's time. Connections may break, and lines may be
// long or without a time.
func TestReadLog(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 5000, time.UTC) }
	line := func(second int, text string) string { return at(second).Format(time.RFC3339Nano) + " " + text + "\n" }
	two := line(1, "one") + line(2, "two")
	exact, long := strings.Repeat("x", 64<<10), line(1, strings.Repeat("y", 1<<20))
	all := cluster.LogRange{Tail: -1}
	for name, c := range map[string]struct {
		r      cluster.LogRange
		query  string
		answer string
		broken bool
		want   []string
		last   time.Time
	}{
		"all":  {all, "", two, false, []string{"one", "two"}, at(2)},
		"tail": {cluster.LogRange{Tail: 2, Follow: true}, "follow=true&tailLines=2", two, false, []string{"one", "two"}, at(2)},
		"since": {cluster.LogRange{Since: 1500 * time.Millisecond, Tail: -1}, "sinceSeconds=2", line(1, "one"), false,
			[]string{"one"}, at(1)},
		"no lines":        {cluster.LogRange{Tail: 0}, "tailLines=0", "", false, nil, time.Time{}},
		"after":           {cluster.LogRange{After: at(1), Tail: -1}, "sinceTime=2026-01-02T03%3A04%3A01Z", two, false, []string{"two"}, at(2)},
		"nothing is new":  {cluster.LogRange{After: at(2), Tail: -1}, "sinceTime=2026-01-02T03%3A04%3A02Z", two, false, nil, at(2)},
		"equal times":     {all, "", line(1, "a") + line(1, "b"), false, []string{"a", "b"}, at(1)},
		"no newline":      {all, "", strings.TrimSpace(two), false, []string{"one", "two"}, at(2)},
		"an empty line":   {all, "", line(1, "") + line(2, "two"), false, []string{"", "two"}, at(2)},
		"no time":         {all, "", "unable to retrieve logs\n", false, []string{"unable to retrieve logs"}, time.Time{}},
		"half a line":     {all, "", line(1, "one") + "2026-01-02T03:04:02Z tw", true, []string{"one"}, at(1)},
		"longest":         {all, "", line(1, exact) + two, false, []string{exact, "one", "two"}, at(2)},
		"far too long":    {all, "", long + two, false, []string{"cut", "one", "two"}, at(2)},
		"long at the end": {all, "", strings.TrimSpace(long), false, []string{"cut"}, at(1)},
	} {
		t.Run(name, func(t *testing.T) {
			query := ""
			logs := logsOf(t, func(w http.ResponseWriter, r *http.Request) {
				query = r.URL.Path + "?" + r.URL.RawQuery
				if c.broken {
					w.Header().Set("Content-Length", "1000000")
				}
				_, _ = io.WriteString(w, c.answer)
			})
			var got []string
			source := cluster.LogSource{Namespace: "shop", Pod: "web-0", Container: "app"}
			last, err := logs.Read(t.Context(), source, c.r, func(text string) error {
				if strings.HasPrefix(text, "yy") {
					cut, more, _ := strings.Cut(text, "… (")
					n, err := strconv.Atoi(strings.TrimSuffix(more, " more bytes)"))
					if len(cut) < 64<<10 || len(cut) > 65<<10 || err != nil || len(cut)+n != 1<<20 {
						t.Errorf("cut at %d: %s", len(cut), more)
					}
					text = "cut"
				}
				got = append(got, text)
				return nil
			})
			if c.broken != errors.Is(err, io.ErrUnexpectedEOF) || !c.broken && err != nil {
				t.Error(err)
			}
			compare.Check(t, c.want, got)
			if !last.Equal(c.last) {
				t.Errorf("the last line is from %s, want %s", last, c.last)
			}
			want := "/api/v1/namespaces/shop/pods/web-0/log?container=app&" + strings.TrimPrefix(c.query+"&timestamps=true", "&")
			compare.CheckNamed(t, "the request", sorted(want), sorted(query))
		})
	}
}

func sorted(url string) string {
	path, query, _ := strings.Cut(url, "?")
	r, err := http.NewRequest(http.MethodGet, path+"?"+query, nil)
	if err != nil {
		return err.Error()
	}
	return path + "?" + r.URL.Query().Encode()
}

// TestLogSources checks for containers in each state whether they have a log, and whether another run will follow.
func TestLogSources(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	ended := func(code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, ContainerID: fmt.Sprintf("ended-%d", code)}
	}
	pod := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "uid", Labels: map[string]string{
			rollout.LabelPodHash: "pin"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "migrate"}, {Name: "proxy", RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "app"}, {Name: "crash"}, {Name: "new"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			InitContainerStatuses: []corev1.ContainerStatus{
				{Name: "migrate", State: corev1.ContainerState{Terminated: ended(0)}},
				{Name: "proxy", State: corev1.ContainerState{Terminated: ended(0)}}},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "crash", LastTerminationState: corev1.ContainerState{Terminated: ended(1)},
					State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
				{Name: "new", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
				{Name: "app", ContainerID: "running", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
					LastTerminationState: corev1.ContainerState{Terminated: ended(2)}}},
		},
	}
	of := func(name, run, waits string, over, last bool) cluster.LogSource {
		return cluster.LogSource{Namespace: "shop", Pod: "web-0", Container: name, Run: run, Waits: waits, Over: over, Last: last}
	}
	running := []cluster.LogSource{of("migrate", "ended-0", "", true, true), of("proxy", "ended-0", "", true, false),
		of("app", "running", "", false, false), of("crash", "ended-1", "", true, false), of("new", "", "ErrImagePull", true, false)}
	failed := pod
	failed.Status.Phase = corev1.PodFailed
	failed.Status.InitContainerStatuses = nil
	failed.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: ended(1)}}}
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		uid, pin string
		want     []cluster.LogSource
	}{
		"running":         {&pod, "uid", "pin", running},
		"another pod":     {&pod, "other", "pin", nil},
		"another version": {&pod, "uid", "other", nil},
		"gone":            {nil, "uid", "pin", nil},
		"failed": {&failed, "uid", "pin", []cluster.LogSource{of("migrate", "", "ExitCode:1", true, true),
			of("proxy", "", "ExitCode:1", true, true),
			of("app", "ended-1", "", true, true), of("crash", "", "ExitCode:1", true, true), of("new", "", "ExitCode:1", true, true)}},
	} {
		t.Run(name, func(t *testing.T) {
			logs := logsOf(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				var answer any = c.pod
				if c.pod == nil {
					w.WriteHeader(http.StatusNotFound)
					answer = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 404, Reason: metav1.StatusReasonNotFound}
				}
				must(t, json.NewEncoder(w).Encode(answer))
			})
			got, err := logs.Sources(t.Context(), "shop", "web-0", c.uid, c.pin)
			must(t, err)
			compare.Check(t, c.want, got)
		})
	}
}
