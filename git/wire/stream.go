package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

const userAgent = "gitrollout/1"

type stream struct {
	in     io.Reader
	out    io.Writer
	end    func() error
	close  func()        // close also ends a waiting read
	stderr func() string // the server's, or ""
}

type streamLink struct {
	dial  func(ctx context.Context, service string) (*stream, error)
	stats *counters
	limit int64
}

func (l *streamLink) open(ctx context.Context, service string) (*Session, error) {
	l.stats.requests.Add(1)
	s, err := l.dial(ctx, service)
	if err != nil {
		return nil, err
	}
	// Reads and writes take no context, so the end of ctx closes the stream.
	unwatch := context.AfterFunc(ctx, s.close)
	in := &countedReader{Reader: s.in, total: &l.stats.received, left: l.limit}
	out := countedWriter{s.out, &l.stats.sent}
	pkt := newPktReader(in)
	greet, err := readAdvertisement(pkt)
	if err != nil {
		err = s.explain(ctx, err)
		unwatch()
		s.close()
		return nil, err
	}
	exchanged := false
	return &Session{
		advertisement: greet,
		exchange: func(ctx context.Context, request []byte) (io.ReadCloser, error) {
			exchanged = true
			if _, err := out.Write(request); err != nil {
				return nil, s.explain(ctx, err)
			}
			return io.NopCloser(&explained{pkt.r, ctx, s}), nil
		},
		Close: func() {
			if !exchanged || greet.V2 {
				_, _ = io.WriteString(out, "0000")
			}
			_ = s.end()
			unwatch()
			s.close()
		},
		Stale: func() {},
	}, nil
}

func (s *stream) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if server := new(serverError); errors.As(err, &server) {
		return err
	}
	if text := s.stderr(); text != "" {
		return &serverError{oneLine(text)}
	}
	return err
}

type explained struct {
	io.Reader
	ctx context.Context
	s   *stream
}

func (e *explained) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = e.s.explain(e.ctx, err)
	}
	return n, err
}

type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 1<<10 - t.buf.Len(); room > 0 {
		t.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

func (r Remote) dialGit(ctx context.Context, service string) (*stream, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.hostPort("9418"))
	if err != nil {
		return nil, err
	}
	var hello pktWriter
	hello.linef("%s %s\x00host=%s\x00\x00version=2\x00", service, r.path, r.host)
	if _, err := conn.Write(hello.buf); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &stream{
		in: conn, out: conn,
		end:    conn.(*net.TCPConn).CloseWrite,
		close:  func() { _ = conn.Close() },
		stderr: func() string { return "" },
	}, nil
}

// dialLocal runs the git program as the server. go-git's server lacks compare-and-swap, hooks and shallow clients. It
// would also move a checked-out branch, which git refuses (receive.denyCurrentBranch).
func (r Remote) dialLocal(ctx context.Context, service string) (*stream, error) {
	if info, err := os.Stat(r.path); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%w: no folder %s", ErrNotFound, r.path)
	}
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("a repository on this machine's disk is read with the git command: %w", err)
	}
	cmd := exec.Command(path, strings.TrimPrefix(service, "git-"), r.path)
	cmd.Env = localEnv(service)
	cmd.WaitDelay = time.Second
	stderr := &tail{}
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("git: %w", err)
	}
	// The git program ends after its output is read.
	wait := sync.OnceFunc(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return &stream{
		in: out, out: in,
		end:    func() error { wait(); return nil },
		close:  func() { _ = cmd.Process.Kill(); go wait() },
		stderr: func() string { wait(); return stderr.String() },
	}, nil
}

var ofHooks = []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
	"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_PROTOCOL",
	"GIT_SHALLOW_FILE", "LC_ALL", "LANGUAGE"}

func localEnv(service string) []string {
	env := append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(ofHooks, name)
	}), "LC_ALL=C")
	if service == uploadPack {
		env = append(env, "GIT_PROTOCOL=version=2")
	}
	return env
}
