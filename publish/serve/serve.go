// Package serve serves a port. It limits connections, and accepts only its own host names.
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

// A browser opens at most six HTTP/1.1 connections, so mostOfAddress serves ten browsers.
const (
	mostConnections = 128
	mostOfAddress   = 64
	writeTime       = 30 * time.Second // for each write; an event stream has many writes
)

// Options configure a server.
type Options struct {
	Address string       // together with Public, determines the accepted host names
	Public  string       // URL in browsers
	Server  *http.Server // has a Handler and an ErrorLog; this package sets the limits
	Ended   func(error)  // called if serving fails
	Now     func() time.Time
}

// On serves a listener. The returned function cancels the contexts of all requests, and stops the server.
func On(listener net.Listener, o Options) (stop func()) {
	streams, end := context.WithCancel(context.Background())
	server := o.server()
	server.BaseContext = func(net.Listener) context.Context { return streams }
	bound := &bounded{Listener: listener, now: o.Now}
	server.ConnState = bound.state
	go func() {
		if err := server.Serve(bound); err != nil && !errors.Is(err, http.ErrServerClosed) {
			o.Ended(err)
		}
	}()
	return func() {
		end()
		last, done := context.WithTimeout(context.Background(), 3*time.Second) // for responses after stop
		defer done()
		if err := server.Shutdown(last); err != nil {
			_ = server.Close()
		}
	}
}

func (o Options) server() *http.Server {
	names := ownNames(o.Address, o.Public)
	s, handler := o.Server, o.Server.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !names(hostOf(r.Host)) {
			http.Error(w, "this server does not serve the host "+r.Host+"; to accept this host, name it with --dashboard-url",
				http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
	s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = 5*time.Second, 30*time.Second, 10*time.Second
	s.MaxHeaderBytes = 64 << 10
	return s
}

// ownNames checks a request's host. It prevents DNS rebinding, in which another site's name resolves to this machine. A
// loopback address accepts local names and the public URL's host. Any other address also accepts IP addresses, names
// without a dot and names of Services or, without a public URL, any name.
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
		return func(string) bool { return true }
	}
	return func(host string) bool {
		_, noAddress := netip.ParseAddr(host)
		isInside := !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") ||
			strings.HasSuffix(host, ".svc.cluster.local")
		return slices.Contains(own, host) || host == known && known != "" || !isLoopback && (noAddress == nil || isInside)
	}
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// bounded limits open connections, in total and for each client. Above a limit, it closes an older connection, so that
// a new connection, such as a probe's, is served.
type bounded struct {
	net.Listener
	now func() time.Time

	mu   sync.Mutex
	open []*boundedConn // oldest first
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

// victim returns the connection to close for a client's new connection, or nil. A client at its limit loses its own
// connection. At the total limit, the client with the most connections loses one. The victim is the client's oldest
// idle connection or, if all are active, its oldest. The caller holds mu.
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
	active bool // of.mu guards active
}

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
