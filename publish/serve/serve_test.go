package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestOwnNames: a page of another site that makes its own name point at an address of ours (DNS rebinding) gets nothing.
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
					if w.Code != code {
						t.Errorf("%s is answered %d, want %d", host, w.Code, code)
					}
				}
			}
		})
	}
}

// TestConnectionsAreBounded: who opens more connections than there are is turned away, and who closes one makes room.
func TestConnectionsAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	here := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	t.Cleanup(On(listener, Options{
		Server: &http.Server{Handler: here}, Ended: func(err error) { t.Error(err) }, Now: time.Now,
	}))
	ask := func(c net.Conn) error {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return err
		}
		_, err := http.ReadResponse(bufio.NewReader(c), nil)
		return err
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	var all []net.Conn
	for range mostConnections {
		c := dial()
		if err := ask(c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := ask(dial()); err == nil {
		t.Errorf("connection %d is taken", mostConnections+1)
	}
	_ = all[0].Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if ask(dial()) == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("one that was closed makes no room")
		}
	}
}

// TestWhoDoesNotReadIsLetGo: an answer that nobody reads is not kept in memory for ever.
func TestWhoDoesNotReadIsLetGo(t *testing.T) {
	c := &boundedConn{Conn: deadlines{}, of: &bounded{now: time.Now}}
	_, err := c.Write(nil)
	if err == nil || !strings.Contains(err.Error(), "is to be over in 30s") {
		t.Errorf("a write: %v", err)
	}
}

// deadlines is a connection whose deadline is its error.
type deadlines struct{ net.Conn }

func (deadlines) SetWriteDeadline(at time.Time) error {
	return fmt.Errorf("it is to be over in %s", time.Until(at).Round(time.Second))
}
