// Package serve answers HTTP on a port of this program: the dashboard, the metrics, webhooks. Who asks it is bounded in
// connections and time, and comes under a name of its own.
package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// What a connection may cost, whoever makes it. A page takes six connections of a browser at most
// (https://html.spec.whatwg.org leaves it to the browser, and all of them do so).
const (
	mostConnections = 128
	mostOfAddress   = 64
	writeTime       = 30 * time.Second // for one write, which a stream of events may have many of
)

// Options say how a port is answered.
type Options struct {
	Address string // as it was named, and Public the URL in browsers: the names to come under; without both, any
	Public  string
	Server  *http.Server // its Handler and its ErrorLog; the bounds are set here
	Ended   func(error)  // is told when nothing is answered any more
	Now     func() time.Time
}

// lastAnswers is how long an answer may take that has begun when it is to stop.
const lastAnswers = 3 * time.Second

// On answers on a port until the returned function is called. Requests' contexts end with it.
func On(listener net.Listener, o Options) (stop func()) {
	streams, end := context.WithCancel(context.Background())
	server := o.server()
	server.BaseContext = func(net.Listener) context.Context { return streams }
	bound := &bounded{Listener: listener, now: o.Now}
	server.ConnState = bound.state
	go func() {
		err := server.Serve(bound)
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			o.Ended(err)
		}
	}()
	return func() {
		end()
		last, done := context.WithTimeout(context.Background(), lastAnswers)
		defer done()
		if err := server.Shutdown(last); err != nil {
			_ = server.Close()
		}
	}
}

// server is the one that answers those who come under a name of its own.
func (o Options) server() *http.Server {
	names := ownNames(o.Address, o.Public)
	s, handler := o.Server, o.Server.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !names(hostOf(r.Host)) {
			http.Error(w, "no such host is here: "+r.Host+"; if it is meant to be, name it with --dashboard-url",
				http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
	s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = 5*time.Second, 30*time.Second, 10*time.Second
	s.MaxHeaderBytes = 64 << 10
	return s
}

func anyName(string) bool { return true }

// ownNames are the hosts that requests may be for, so that no page of another site reaches an address by a name of its
// own that it makes point here (DNS rebinding). On a loopback address these are the machine's own and that of the
// public URL. On another one it is that URL's, any address, and what no public name can be: a name without a dot, or of
// a Service in the cluster. Without a public URL any name may lead there.
func ownNames(address, public string) func(host string) bool {
	host := hostOf(address)
	own := []string{"localhost", "127.0.0.1", "::1", host}
	known := ""
	if u, err := url.Parse(public); err == nil {
		known = u.Hostname()
	}
	ip, err := netip.ParseAddr(host)
	isLoopback := host == "localhost" || err == nil && ip.IsLoopback()
	if !isLoopback && known == "" {
		return anyName
	}
	return func(host string) bool {
		_, noAddress := netip.ParseAddr(host)
		isInside := !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") ||
			strings.HasSuffix(host, ".svc.cluster.local")
		return slices.Contains(own, host) || host == known && known != "" ||
			!isLoopback && (noAddress == nil || isInside)
	}
}

// hostOf is the host of what may have a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// bounded keeps at most mostConnections open, and mostOfAddress of one client. A new connection is always taken, so
// that a probe is answered whatever other clients do: an older one gives way.
type bounded struct {
	net.Listener
	now func() time.Time

	mu   sync.Mutex
	open []*boundedConn // the oldest first
}

func (b *bounded) Accept() (net.Conn, error) {
	accepted, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &boundedConn{Conn: accepted, of: b, client: hostOf(accepted.RemoteAddr().String())}
	b.mu.Lock()
	victim := b.victim(c.client)
	b.open = append(b.open, c)
	b.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
	return c, nil
}

// victim returns the connection that gives way to a new one of a client, nil if there is room: one of the client itself
// if it has all that it may have, or else of the client with the most. One without a request goes first. The caller
// holds mu.
func (b *bounded) victim(client string) (victim *boundedConn) {
	count := map[string]int{}
	for _, c := range b.open {
		count[c.client]++
	}
	switch {
	case count[client] >= mostOfAddress:
	case len(b.open) < mostConnections:
		return nil
	default:
		for other, n := range count {
			if n > count[client] {
				client = other
			}
		}
	}
	for _, c := range b.open {
		if c.client == client && (victim == nil || victim.active && !c.active) {
			victim = c
		}
	}
	return victim
}

// state notes whether a connection has a request.
func (b *bounded) state(c net.Conn, state http.ConnState) {
	if c, is := c.(*boundedConn); is {
		b.mu.Lock()
		c.active = state == http.StateActive
		b.mu.Unlock()
	}
}

type boundedConn struct {
	net.Conn
	of     *bounded
	client string
	active bool // under of.mu
}

// Write ends a connection that is written to and not read.
func (c *boundedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.of.now().Add(writeTime)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *boundedConn) Close() error {
	c.of.mu.Lock()
	c.of.open = slices.DeleteFunc(c.of.open, func(other *boundedConn) bool { return other == c })
	c.of.mu.Unlock()
	return c.Conn.Close()
}
