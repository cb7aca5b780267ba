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
	"sync/atomic"
	"time"
)

// What a connection may cost, whoever makes it. A page takes six connections of a browser at most
// (https://html.spec.whatwg.org leaves it to the browser, and all of them do so).
const (
	mostConnections = 128
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
	go func() {
		err := server.Serve(&bounded{Listener: listener, now: o.Now})
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
	s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = 5*time.Second, 30*time.Second, 2*time.Minute
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

// bounded takes so many connections at once and no more, and ends those that are written to and not read.
type bounded struct {
	net.Listener
	now  func() time.Time
	open atomic.Int32
}

func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= mostConnections {
			return &boundedConn{Conn: c, of: b}, nil
		}
		b.open.Add(-1)
		_ = c.Close()
	}
}

type boundedConn struct {
	net.Conn
	of     *bounded
	closed atomic.Bool
}

func (c *boundedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(c.of.now().Add(writeTime)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *boundedConn) Close() error {
	if !c.closed.Swap(true) {
		c.of.open.Add(-1)
	}
	return c.Conn.Close()
}
