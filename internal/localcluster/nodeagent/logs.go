package nodeagent

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// logVariable is the environment variable with the lines of a container's log. The pod's annotation adds further lines,
// even while the pod runs.
const (
	logVariable   = "LOCALCLUSTER_LOG"
	logAnnotation = "localcluster/log"
)

// logServer is the part of a kubelet that serves logs to the API server: /containerLogs/{namespace}/{pod}/{container}.
// One server serves all nodes.
type logServer struct {
	listener net.Listener
	http     *http.Server
}

func newLogServer(find func(namespace, name string) (*corev1.Pod, error)) (*logServer, error) {
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil) // by default, the API server does not verify the certificate
	if err != nil {
		return nil, fmt.Errorf("make a kubelet's certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		return nil, fmt.Errorf("read a kubelet's certificate: %w", err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, fmt.Errorf("listen for requests to kubelets: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		find := func() (*corev1.Pod, error) { return find(r.PathValue("namespace"), r.PathValue("pod")) }
		if code, err := sendLog(w, r, r.PathValue("container"), find); err != nil {
			http.Error(w, err.Error(), code)
		}
	})
	return &logServer{listener, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}, nil
}

// sendLog sends the log of a container. With follow=true, it sends further lines until the container's run ends.
func sendLog(w http.ResponseWriter, r *http.Request, name string, find func() (*corev1.Pod, error)) (int, error) {
	pod, err := find()
	if err != nil {
		return http.StatusNotFound, err
	}
	run, start := runOf(pod, name)
	if run == "" {
		return http.StatusBadRequest, fmt.Errorf("container %q in pod %q is waiting to start", name, pod.Name)
	}
	all := logOf(pod, name)
	_, _ = w.Write(selected(all, start, r.URL.Query()))
	for r.FormValue("follow") == "true" {
		_ = http.NewResponseController(w).Flush() // a failed write ends the request's context
		select {
		case <-r.Context().Done():
			return 0, nil
		case <-time.After(20 * time.Millisecond):
		}
		if pod, err = find(); err != nil {
			return 0, nil
		}
		now := logOf(pod, name)
		more := url.Values{"tailLines": {strconv.Itoa(len(now) - len(all))}, "timestamps": r.URL.Query()["timestamps"]}
		_, _ = w.Write(selected(now, start, more))
		if is, _ := runOf(pod, name); is != run || statusOf(pod, name).State.Running == nil {
			return 0, nil
		}
		all = now
	}
	return 0, nil
}

func statusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	return podutil.GetExistingContainerStatus(all, container)
}

// runOf returns the id and the start of a container's current or last run. The id is "" before the first run.
func runOf(pod *corev1.Pod, container string) (id string, start time.Time) {
	s := statusOf(pod, container)
	for _, state := range []corev1.ContainerState{s.State, s.LastTerminationState} {
		switch {
		case state.Running != nil:
			return s.ContainerID, state.Running.StartedAt.Time
		case state.Terminated != nil:
			return s.ContainerID, state.Terminated.StartedAt.Time
		}
	}
	return "", time.Time{}
}

// logOf returns the lines of a container's log: the lines of LOCALCLUSTER_LOG, or a default line.
// Except in init containers, the lines of the pod's annotation follow.
func logOf(pod *corev1.Pod, container string) []string {
	text := container + " has nothing to say"
	for i, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Name != container {
			continue
		}
		for _, v := range c.Env {
			if v.Name == logVariable {
				text = strings.TrimSuffix(v.Value, "\n")
			}
		}
		if i < len(pod.Spec.Containers) {
			text = strings.TrimSuffix(text+"\n"+pod.Annotations[logAnnotation], "\n")
		}
	}
	return strings.Split(text, "\n")
}

// selected formats the log lines that a query selects. Like a kubelet, it takes the last tailLines lines, omits lines
// before sinceSeconds or sinceTime, and returns at most limitBytes bytes. The times of successive lines are one
// microsecond apart.
func selected(lines []string, start time.Time, query url.Values) []byte {
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	if n, err := strconv.Atoi(query.Get("sinceSeconds")); err == nil {
		since = time.Now().Add(-time.Duration(n) * time.Second)
	}
	first := 0
	if n, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		first = max(0, len(lines)-n)
	}
	var b bytes.Buffer
	for i, line := range lines {
		at := start.Add(time.Duration(i) * time.Microsecond)
		if i < first || at.Before(since) {
			continue
		}
		if query.Get("timestamps") == "true" {
			line = at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00") + " " + line
		}
		b.WriteString(line + "\n")
	}
	if n, err := strconv.Atoi(query.Get("limitBytes")); err == nil {
		b.Truncate(min(n, b.Len()))
	}
	return b.Bytes()
}
