package wire

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
)

// The two services of a Git server.
const (
	uploadPack  = "git-upload-pack"  // fetch
	receivePack = "git-receive-pack" // push
)

// link connects to one repository. open begins a conversation, without a request if smart HTTP has a greeting.
type link interface {
	open(ctx context.Context, service string) (*Session, error)
}

// Server is one repository's server, for concurrent, separate conversations.
type Server struct {
	link   link
	stats  *counters
	bounds bounds
}

// Open validates credentials, key and known hosts without a connection. maxBytes bounds each response.
func Open(remote Remote, auth Auth, maxBytes int64) (*Server, error) {
	s := &Server{stats: &counters{}, bounds: boundsOver(1)}
	stream := &streamLink{stats: s.stats, limit: maxBytes}
	s.link = stream
	var err error
	switch remote.scheme {
	case "http", "https":
		s.link, err = newHTTPLink(remote, auth, s.stats, maxBytes)
	case "ssh":
		var dialer *sshDialer
		if dialer, err = newSSHDialer(remote, auth); err == nil {
			stream.dial = dialer.dial
		}
	case "git":
		stream.dial = dialGit(remote)
	default:
		stream.dial = dialLocal(remote)
	}
	return s, err
}

// Narrow divides the bounds on packs by times, before the first conversation of a test.
func (s *Server) Narrow(times int64) { s.bounds = boundsOver(times) }

// ToFetch begins a conversation for lookups and fetches.
func (s *Server) ToFetch(ctx context.Context) (*Session, error) { return s.open(ctx, uploadPack) }

// ToPush begins a conversation for a push.
func (s *Server) ToPush(ctx context.Context) (*Session, error) { return s.open(ctx, receivePack) }

func (s *Server) open(ctx context.Context, service string) (*Session, error) {
	session, err := s.link.open(ctx, service)
	if err != nil {
		return nil, err
	}
	session.stats, session.bounds = s.stats, s.bounds
	return session, nil
}

// Session is one conversation with one service.
type Session struct {
	*advertisement
	stats  *counters
	bounds bounds
	// exchange sends one request and returns its response. Smart HTTP allows any number; a stream's last one of
	// version 0 ends the conversation.
	exchange func(ctx context.Context, request []byte) (io.ReadCloser, error)
	// Close ends the conversation.
	Close func()
	// Stale drops the greeting of a server that behaved differently, for the next conversation.
	Stale func()
}

// V2 reports whether the server speaks protocol version 2.
func (s *Session) V2() bool { return s.v2 }

// Advertised returns the ids of all refs in the greeting, by full name; nil in version 2 or if kept.
func (s *Session) Advertised() map[string]string { return s.refs }

type counters struct {
	requests, lookups, fetches, pushes, sent, received atomic.Int64
}

// Stats counts the operations with a server since Open.
type Stats struct {
	// Requests are HTTP requests; on the other transports, connections.
	Requests int64
	// Lookups are ref lookups, Fetches are requested packs, Pushes are sent packs or deletions.
	Lookups, Fetches, Pushes int64
	// Sent and Received are bytes of Git's protocol: HTTP bodies, or the stream.
	Sent, Received int64
}

// Stats returns the current counts.
func (s *Server) Stats() Stats {
	c := s.stats
	return Stats{
		Requests: c.requests.Load(), Lookups: c.lookups.Load(), Fetches: c.fetches.Load(), Pushes: c.pushes.Load(),
		Sent: c.sent.Load(), Received: c.received.Load(),
	}
}

// countedReader counts read bytes and fails past a limit, against a broken server that fills the memory.
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
