package dashboard_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// TestSilentReadersCostLittle opens the event stream of 2,000 apps for 60 clients that do not read. The server may use
// at most 1 MiB for each client, even after the apps have changed 20 times.
func TestSilentReadersCostLittle(t *testing.T) {
	const apps, readers, most = 2000, 60, 1 << 20 // most is the limit in bytes for each reader
	board := dashboard.NewBoard("prod", "")
	change := func(weight int) {
		all := make([]status.App, apps)
		for i := range all {
			all[i] = appOf(fmt.Sprintf("app-%04d", i), rollout.Paused, weight)
		}
		show(t, board, all)
	}
	change(1)
	s, err := dashboard.New(dashboard.Options{Board: board, Records: fakeRecords{},
		Now: func() time.Time { return time.Now().Add(time.Hour) }})
	must(t, err)
	listener := &narrow{}
	server := httptest.NewUnstartedServer(s)
	listener.Listener, server.Listener = server.Listener, listener
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	before := heap()
	for range readers {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		_, err = fmt.Fprint(c, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		must(t, err)
	}
	for deadline := time.Now().Add(time.Minute); listener.writing.Load() < readers; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d are being written to", listener.writing.Load(), readers)
		}
	}
	first := heap() - before
	for weight := range 20 {
		change(2 + weight)
	}
	later := heap() - before
	t.Logf("%d KiB for each reader, %d KiB after 20 changes of all apps", first/readers>>10, later/readers>>10)
	if first > readers*most || later > readers*most {
		t.Errorf("%d KiB for each reader, then %d KiB; want at most %d", first/readers>>10, later/readers>>10, most>>10)
	}
}

// heap returns the heap's size in bytes after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // again, to free objects with finalizers and in pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// narrow is a listener whose connections have small write buffers. It counts the writes in progress.
type narrow struct {
	net.Listener
	writing atomic.Int32
}

func (n *narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return narrowConn{c, n}, err
}

type narrowConn struct {
	net.Conn
	of *narrow
}

func (c narrowConn) Write(p []byte) (int, error) {
	c.of.writing.Add(1)
	defer c.of.writing.Add(-1)
	return c.Conn.Write(p)
}
