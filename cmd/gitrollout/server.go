package main

import (
	"log/slog"
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

// newServer returns a server of those that come under a name of its own. What is wrong with connections is told at the
// level of debugging.
func newServer(names func(string) bool, handler http.Handler, log slog.Handler) *http.Server {
	ours := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !names(hostOf(r.Host)) {
			http.Error(w, "no such host is here: "+r.Host+"; if it is meant to be, name it with --dashboard-url",
				http.StatusMisdirectedRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
	return &http.Server{
		Handler: ours, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log, slog.LevelDebug),
	}
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
	if err := c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
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
