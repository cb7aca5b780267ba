package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// podServer serves pods with one container. The container's log has the line "first", and then the lines from the channel `more`.
type podServer struct {
	start time.Time
	more  chan string // the later lines; each goes to only one of the open logs

	mu       sync.Mutex
	hash     string   // the pods' revision
	restarts int      // how many logs still end after the line "first", because the container restarts
	run      int      // the number of the container's current run
	events   []string // the requests for logs, and the ends of these requests
}

func (s *podServer) event(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, text)
}

// await waits for len(want) events. The events must equal want, in any order.
func (s *podServer) await(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	got := func() []string {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Sorted(slices.Values(s.events))
	}
	await(t, fmt.Sprint("the requests ", want), func() bool { return len(got()) >= len(want) })
	compare.Check(t, want, got())
}

func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, name, _ := strings.Cut(r.URL.Path, "/pods/")
	s.mu.Lock()
	hash, run := s.hash, fmt.Sprint("run-", s.run)
	s.mu.Unlock()
	if path.Base(name) != "log" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
				Labels: map[string]string{rollout.LabelPodHash: hash}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", ContainerID: run,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
		})
		return
	}
	name = path.Dir(name)
	asked := name + " from the start"
	for _, key := range []string{"tailLines", "sinceSeconds", "sinceTime"} {
		if r.URL.Query().Has(key) {
			asked = name + " by " + key
		}
	}
	line := func(text string, at time.Time) {
		_, _ = fmt.Fprintln(w, at.Format(time.RFC3339Nano), text)
		w.(http.Flusher).Flush()
	}
	line("first", s.start)
	s.event(asked)
	s.mu.Lock()
	if s.restarts > 0 {
		s.restarts--
		s.run++
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	for {
		select {
		case text := <-s.more:
			line(text, s.start.Add(time.Second))
		case <-r.Context().Done():
			s.event(name + " ended")
			return
		}
	}
}

// TestFollow checks what happens to followed logs when pods change their version: which logs are read again, and from which line.
func TestFollow(t *testing.T) {
	of := func(role, hash string, pods ...string) status.Revision {
		r := status.Revision{Name: hash, Role: role, PodHash: hash}
		for _, name := range pods {
			r.Pods = append(r.Pods, status.Pod{Name: name, UID: "uid-" + name})
		}
		return r
	}
	listing := func(revisions ...status.Revision) []status.Revision { return revisions }
	for name, c := range map[string]struct {
		version  status.Version
		restarts int
		listings [][]status.Revision
		hash     []string   // the pods' revision at each listing
		want     [][]string // the additional events after each listing
		first    int        // how many times the line "first" is printed
	}{
		"a promoted canary has joined the stable pods": {status.Stable, 0, [][]status.Revision{
			listing(of("stable", "a", "old")),
			listing(of("stable", "a", "old"), of("canary", "b", "new")),
			listing(of("", "a", "old"), of("stable", "b", "new")),
		}, []string{"a", "a", "b"}, [][]string{{"old by tailLines"}, nil, {"old ended", "new by sinceSeconds"}}, 2},
		"a new pod has all its lines": {status.New, 0, [][]status.Revision{
			listing(of("stable", "a", "old")),
			listing(of("stable", "a", "old"), of("canary", "b", "new")),
		}, []string{"a", "b"}, [][]string{nil, {"new from the start"}}, 1},
		"a pod leaves the version for a moment": {status.New, 0, [][]status.Revision{
			listing(of("canary", "a", "web")), listing(of("stable", "a", "web")), listing(of("canary", "a", "web")),
		}, []string{"a", "a", "a"}, [][]string{{"web by tailLines"}, {"web ended"}, {"web by sinceTime"}}, 1},
		"an update in place": {"", 0, [][]status.Revision{
			listing(of("stable", "a", "web")), listing(of("stable", "a"), of("canary", "b", "web")),
		}, []string{"a", "b"}, [][]string{{"web by tailLines"}, {"web ended", "web by sinceTime"}}, 1},
		"a missing pod prints its last lines": {status.New, 0, [][]status.Revision{
			listing(of("canary", "a", "web")), listing(of("stable", "b")),
		}, []string{"a", "a"}, [][]string{{"web by tailLines"}, nil}, 1},
		"the log is of the run after a restart": {status.New, 1, [][]status.Revision{
			listing(of("canary", "a", "web")),
		}, []string{"a"}, [][]string{{"web by tailLines", "web by sinceTime"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &podServer{start: time.Now(), more: make(chan string), restarts: c.restarts}
			server := httptest.NewServer(s)
			defer server.Close()
			client, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
			must(t, err)
			out := &safeBuffer{}
			follower := &tailer{logsCommand: &logsCommand{streams: streams{out: out, err: out}}, logs: cluster.LogsOf(client),
				fail: func(err error) { t.Error(err) }, known: map[string]*knownPod{}, told: map[string]time.Time{}}
			ctx, cancel := context.WithCancel(t.Context())
			defer follower.pods.Wait()
			defer cancel()
			r := cluster.LogRange{Tail: 5, Follow: true}
			var want []string
			for i, revisions := range c.listings {
				s.mu.Lock()
				s.hash = c.hash[i]
				s.mu.Unlock()
				app := status.App{Workloads: []status.Workload{{Workload: "shop/web", Revisions: revisions}}}
				follower.update(ctx, c.version, app, r)
				r = cluster.LogRange{Tail: -1, Follow: true}
				want = append(want, c.want[i]...)
				s.await(t, slices.Clone(want)...)
				if len(want) > 0 {
					await(t, "the first line", func() bool { return strings.Contains(out.String(), "first\n") })
				}
			}
			s.more <- "later"
			await(t, "the later line", func() bool { return strings.Contains(out.String(), "later\n") })
			if n := strings.Count(out.String(), "first\n"); n != c.first {
				t.Errorf("the first line is there %d times, want %d:\n%s", n, c.first, out)
			}
		})
	}
}
