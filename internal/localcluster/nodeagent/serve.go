package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/internal/localcluster/podsim"
)

// drainWithin limits the time for which a request can continue after its pod is removed.
const drainWithin = time.Second

// server responds to HTTP requests for all pods: on one loopback address, and on each pod's address if possible.
type server struct {
	listener net.Listener
	http     *http.Server
	bindIPs  bool
	log      *slog.Logger

	mu    sync.Mutex
	byPod map[types.NamespacedName]*podServer
	byIP  map[string]*podServer
}

// podServer responds to HTTP requests for one pod.
type podServer struct {
	app       *app
	uid       types.UID
	ip        string
	listeners map[int32]*http.Server // by container port
}

func newServer(options Options) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for requests to pods: %w", err)
	}
	s := &server{
		listener: listener, bindIPs: options.BindPodIPs, log: options.Log,
		byPod: make(map[types.NamespacedName]*podServer), byIP: make(map[string]*podServer),
	}
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 10 * time.Second}
	return s, nil
}

func (s *server) url() string { return "http://" + s.listener.Addr().String() }

// serve serves until the server is closed.
func serve(what string, server *http.Server, listener net.Listener, log *slog.Logger) {
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error("serve "+what, "address", listener.Addr(), "error", err)
	}
}

func (s *server) close() {
	s.http.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range s.byPod {
		pod.close()
	}
}

// routes selects the pod by path (/namespaces/shop/pods/web-0/any/path) or, for any other path, by Host: the pod's IP,
// or name.namespace.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/namespaces/{namespace}/pods/{name}/", func(w http.ResponseWriter, r *http.Request) {
		key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
		prefix := "/namespaces/" + key.Namespace + "/pods/" + key.Name
		http.StripPrefix(prefix, s.answer(s.find(key))).ServeHTTP(w, r)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.answer(s.findHost(r.Host)).ServeHTTP(w, r)
	})
	return mux
}

// answer returns the pod's handler. If the pod does not run, the handler responds with 502, as a proxy would.
func (s *server) answer(pod *podServer) http.Handler {
	if pod == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no such pod is running", http.StatusBadGateway)
		})
	}
	return pod.app
}

func (s *server) find(key types.NamespacedName) *podServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byPod[key]
}

func (s *server) findHost(host string) *podServer {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod := s.byIP[host]; pod != nil {
		return pod
	}
	name, namespace, _ := strings.Cut(host, ".")
	return s.byPod[types.NamespacedName{Namespace: namespace, Name: name}]
}

// update makes the pod respond to requests while its container runs, and refuse connections otherwise.
func (s *server) update(pod *corev1.Pod, status corev1.PodStatus) error {
	key := keyOf(pod)
	if !podsim.Serves(status) {
		s.remove(key)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.byPod[key]
	if known != nil && known.uid == pod.UID {
		known.app.setReady(status)
		return nil
	}
	if known != nil {
		s.drop(key, known)
	}
	behaviour, _ := podsim.Of(pod) // there is no error: a pod with an invalid behaviour does not run
	added := &podServer{
		app: newApp(pod, status, behaviour), uid: pod.UID, ip: status.PodIP,
		listeners: make(map[int32]*http.Server),
	}
	added.app.setReady(status)
	if s.bindIPs {
		if err := added.listen(pod, s.log); err != nil {
			added.close()
			return fmt.Errorf("listen for pod %s: %w", key, err)
		}
	}
	s.byPod[key], s.byIP[added.ip] = added, added
	return nil
}

func (s *server) remove(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod := s.byPod[key]; pod != nil {
		s.drop(key, pod)
	}
}

// drop closes the pod's server. The caller must hold the lock.
func (s *server) drop(key types.NamespacedName, pod *podServer) {
	pod.close()
	delete(s.byPod, key)
	if s.byIP[pod.ip] == pod {
		delete(s.byIP, pod.ip)
	}
}

// listen serves the pod on each TCP port that its containers declare.
func (p *podServer) listen(pod *corev1.Pod, log *slog.Logger) error {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Protocol != corev1.ProtocolTCP && port.Protocol != "" || p.listeners[port.ContainerPort] != nil {
				continue
			}
			listener, err := net.Listen("tcp", net.JoinHostPort(p.ip, strconv.Itoa(int(port.ContainerPort))))
			if err != nil {
				return err
			}
			server := &http.Server{Handler: p.app, ReadHeaderTimeout: 10 * time.Second}
			p.listeners[port.ContainerPort] = server
			go serve("pod", server, listener, log)
		}
	}
	return nil
}

// close stops accepting connections, and lets requests in progress end, as in a graceful shutdown.
func (p *podServer) close() {
	for _, server := range p.listeners {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
			defer cancel()
			if server.Shutdown(ctx) != nil {
				server.Close()
			}
		}()
	}
}
