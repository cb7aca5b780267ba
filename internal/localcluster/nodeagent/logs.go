package nodeagent

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// logVariable is the environment variable with a container's log.
const logVariable = "LOCALCLUSTER_LOG"

// logServer is the part of a kubelet that serves logs to the API server: /containerLogs/{namespace}/{pod}/{container}.
// One server serves all nodes.
type logServer struct {
	listener net.Listener
	http     *http.Server
}

func newLogServer(find func(namespace, name string) (*corev1.Pod, error)) (*logServer, error) {
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil) // the API server does not verify it by default
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
		pod, err := find(r.PathValue("namespace"), r.PathValue("pod"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(logOf(pod, r.PathValue("container"), r.FormValue("tailLines"), r.FormValue("limitBytes")))
	})
	return &logServer{listener, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}, nil
}

// logOf returns a container's log: the value of LOCALCLUSTER_LOG, or a default line. Like a kubelet, it first selects
// the last tailLines lines, and then their first limitBytes bytes.
func logOf(pod *corev1.Pod, container, tailLines, limitBytes string) []byte {
	text := container + " has nothing to say\n"
	for _, c := range pod.Spec.Containers {
		for _, v := range c.Env {
			if c.Name == container && v.Name == logVariable {
				text = strings.TrimSuffix(v.Value, "\n") + "\n"
			}
		}
	}
	if n, err := strconv.Atoi(tailLines); err == nil {
		lines := strings.SplitAfter(text, "\n")
		text = strings.Join(lines[max(0, len(lines)-1-n):], "")
	}
	if n, err := strconv.Atoi(limitBytes); err == nil {
		text = text[:min(n, len(text))]
	}
	return []byte(text)
}

func (s *logServer) port() int32 { return int32(s.listener.Addr().(*net.TCPAddr).Port) }

func (s *logServer) serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve logs: %w", err)
	}
	return nil
}
