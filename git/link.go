package git

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

// link is the way to one repository. open begins a conversation with one of its services; it sends nothing
// when smart HTTP already knows the server.
type link interface {
	open(ctx context.Context, service string) (*session, error)
}

// session is one conversation with one service.
type session struct {
	*advertisement
	// exchange sends one request and gives its answer. Smart HTTP may be asked many times; on a stream the
	// last exchange of version 0 ends the conversation.
	exchange func(ctx context.Context, request []byte) (io.ReadCloser, error)
	// close ends the conversation.
	close func()
	// stale is called when the server does not behave as the advertisement said, so that the next open asks
	// for it again.
	stale func()
}

// counters are Stats in the making.
type counters struct {
	requests, lookups, fetches, pushes, sent, received atomic.Int64
}

// Stats counts what a Repo has done since it was opened.
type Stats struct {
	// Requests are HTTP requests; on the other transports, connections.
	Requests int64
	// Lookups are ref look-ups, Fetches are packs received, Pushes are packs (or deletions) sent.
	Lookups, Fetches, Pushes int64
	// Sent and Received are bytes of Git's protocol: HTTP bodies, or the stream.
	Sent, Received int64
	// Objects and Bytes are what the store holds now.
	Objects, Bytes int64
}

// countedReader counts what is read and fails past a limit, so that a broken server cannot fill the memory.
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
		return 0, errors.New("the answer is larger than the limit (Options.MaxBytes)")
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
