package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestOwnNames checks that a server accepts only requests for its own host names, which prevents DNS rebinding.
func TestOwnNames(t *testing.T) {
	const public = "https://r.example.com:8443/x"
	for name, c := range map[string]struct {
		address, public string
		taken, refused  string
	}{
		"loopback": {"127.0.0.1:3100", "",
			"localhost:3100 127.0.0.1:1 [::1]:3100 localhost", "evil.example localhost.evil.example 10.0.0.1:3100 a"},
		"loopback, IPv6":   {"[::1]:3100", public, "[::1]:3100 r.example.com localhost", "evil.example x.r.example.com"},
		"loopback by name": {"localhost:0", "", "localhost:80", "evil.example"},
		"everywhere":       {":3100", "", "evil.example 10.0.0.1 r", ""},
		"one address":      {"10.0.0.1:3100", "", "evil.example 10.0.0.1", ""},
		"everywhere, one URL": {":3100", public,
			"r.example.com:8443 10.0.0.1:3100 localhost:3100 gitrollout:80 gitrollout.ns.svc gitrollout.ns.svc.cluster.local [::1]:3100",
			"evil.example rebound.evil.example svc.evil.example r.example.com.evil.example"},
	} {
		t.Run(name, func(t *testing.T) {
			here := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
			s := Options{Address: c.address, Public: c.public, Server: &http.Server{Handler: here}}.server()
			for code, hosts := range map[int]string{http.StatusOK: c.taken, http.StatusMisdirectedRequest: c.refused} {
				for _, host := range strings.Fields(hosts) {
					r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
					r.Host = host
					s.Handler.ServeHTTP(w, r)
					compare.CheckNamed(t, host, code, w.Code)
				}
			}
		})
	}
}

// fakeConn is a connection from a client's IP address.
type fakeConn struct {
	net.Conn
	client string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.client), Port: 1} }

func (c *fakeConn) Close() error { c.closed = true; return nil }

type fakeListener struct {
	net.Listener
	next []*fakeConn
}

func (l *fakeListener) Accept() (net.Conn, error) {
	c := l.next[0]
	l.next = l.next[1:]
	return c, nil
}

// TestConnectionsAreBounded checks that a new connection is always accepted. Beyond a limit, the client with the most connections loses
// one: its oldest idle connection, or else its oldest connection.
func TestConnectionsAreBounded(t *testing.T) {
	l := &fakeListener{}
	b := &bounded{Listener: l, now: time.Now}
	open := func(client string, state http.ConnState) *fakeConn {
		c := &fakeConn{client: client}
		l.next = append(l.next, c)
		accepted, err := b.Accept()
		if err != nil {
			t.Fatal(err)
		}
		b.state(accepted, state)
		return c
	}
	var first, second []*fakeConn
	for range mostOfAddress {
		first = append(first, open("10.0.0.1", http.StateActive))
	}
	b.state(b.open[5], http.StateIdle)
	open("10.0.0.1", http.StateActive)
	compare.CheckNamed(t, "the idle one is closed, of", []any{true, mostOfAddress}, []any{first[5].closed, len(b.open)})
	open("10.0.0.1", http.StateActive)
	compare.CheckNamed(t, "without an idle one the oldest is closed, of", []any{true, mostOfAddress}, []any{first[0].closed, len(b.open)})
	for range mostConnections - mostOfAddress - 1 {
		second = append(second, open("10.0.0.2", http.StateIdle))
	}
	probe := open("10.0.0.3", http.StateActive)
	again := open("10.0.0.3", http.StateActive)
	compare.CheckNamed(t, "connections", mostConnections, len(b.open))
	compare.CheckNamed(t, "probes are closed", [2]bool{}, [2]bool{probe.closed, again.closed})
	compare.CheckNamed(t, "closed of the busiest, and of another", [2]bool{true, false}, [2]bool{first[1].closed, second[0].closed})
	for _, c := range slices.Clone(b.open) {
		_ = c.Close()
	}
	compare.CheckNamed(t, "connections that are left", 0, len(b.open))
}

// TestProbesAreAnswered checks that a new request is answered even when earlier connections have reached the limit.
func TestProbesAreAnswered(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	here := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if w.WriteHeader(http.StatusOK); r.URL.Path == "/stream" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	t.Cleanup(On(listener, Options{Server: &http.Server{Handler: here}, Ended: func(err error) { t.Error(err) }, Now: time.Now}))
	ask := func(path string) error {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path); err != nil {
			return err
		}
		_, err = http.ReadResponse(bufio.NewReader(c), nil)
		return err
	}
	for _, path := range []string{"/", "/stream"} {
		for range mostConnections {
			if err := ask(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := ask("/healthz"); err != nil {
			t.Errorf("beside many of %s: %v", path, err)
		}
	}
}

// TestWhoDoesNotReadIsLetGo checks that each write has a deadline, so that a client that does not read loses its connection.
func TestWhoDoesNotReadIsLetGo(t *testing.T) {
	c := &boundedConn{Conn: deadlines{}, of: &bounded{now: time.Now}}
	_, err := c.Write(nil)
	compare.Contains(t, fmt.Sprint(err), "is to be over in 30s")
}

// deadlines is a connection whose SetWriteDeadline returns an error with the deadline.
type deadlines struct{ net.Conn }

func (deadlines) SetWriteDeadline(at time.Time) error {
	return fmt.Errorf("it is to be over in %s", time.Until(at).Round(time.Second))
}
