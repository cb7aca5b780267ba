package wire

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// Server is a repository's server. Sessions may run concurrently.
type Server struct {
	// begin uses a stored greeting if there is one.
	begin  func(ctx context.Context, service string) (*Session, error)
	stats  *counters
	bounds bounds
}

// Open checks credentials, keys and known hosts. It does not connect. maxBytes limits each response.
func Open(remote Remote, auth Auth, maxBytes int64) (*Server, error) {
	s := &Server{stats: &counters{}, bounds: boundsOver(1)}
	stream := &streamLink{stats: s.stats, limit: maxBytes}
	s.begin = stream.open
	var err error
	switch remote.scheme {
	case "http", "https":
		var link *httpLink
		if link, err = newHTTPLink(remote, auth, s.stats, maxBytes); err == nil {
			s.begin = link.open
		}
	case "ssh":
		var dialer *sshDialer
		if dialer, err = newSSHDialer(remote, auth); err == nil {
			stream.dial = dialer.dial
		}
	case "git":
		stream.dial = remote.dialGit
	default:
		stream.dial = remote.dialLocal
	}
	return s, err
}

// Narrow divides the size limits of packs. Tests call it before the first session.
func (s *Server) Narrow(times int64) { s.bounds = boundsOver(times) }

// ToFetch begins a session for lookups and fetches.
func (s *Server) ToFetch(ctx context.Context) (*Session, error) { return s.open(ctx, uploadPack) }

// ToPush begins a session for a push.
func (s *Server) ToPush(ctx context.Context) (*Session, error) { return s.open(ctx, receivePack) }

func (s *Server) open(ctx context.Context, service string) (*Session, error) {
	session, err := s.begin(ctx, service)
	if err != nil {
		return nil, err
	}
	session.stats, session.bounds = s.stats, s.bounds
	return session, nil
}

// Session is a series of requests to one service.
type Session struct {
	*advertisement
	stats  *counters
	bounds bounds
	// exchange sends a request. A stream without protocol version 2 allows only one call.
	exchange func(ctx context.Context, request []byte) (io.ReadCloser, error)
	Close    func()
	Stale    func()
}

type counters struct {
	requests, lookups, fetches, pushes, sent, received atomic.Int64
}

// Stats counts operations since Open.
type Stats struct {
	Requests                 int64 // HTTP requests, and connections of other schemes
	Lookups, Fetches, Pushes int64
	Sent, Received           int64 // bytes in HTTP bodies or streams
}

// Stats returns the current counts.
func (s *Server) Stats() Stats {
	c := s.stats
	return Stats{
		Requests: c.requests.Load(), Lookups: c.lookups.Load(), Fetches: c.fetches.Load(), Pushes: c.pushes.Load(),
		Sent: c.sent.Load(), Received: c.received.Load(),
	}
}

// countedReader fails after a limit, so that memory is bounded.
type countedReader struct {
	io.Reader
	io.Closer
	total *atomic.Int64
	left  int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.Reader.Read(p)
	c.total.Add(int64(n))
	if c.left -= int64(n); c.left < 0 {
		c.left = 0
		return 0, errors.New("the answer is larger than the limit (MaxBytes)")
	}
	return n, err
}

type countedWriter struct {
	io.Writer
	total *atomic.Int64
}

func (c countedWriter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.total.Add(int64(n))
	return n, err
}
