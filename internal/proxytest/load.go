package proxytest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"time"
)

// answeredWithin bounds one request. A user gives up no sooner.
const answeredWithin = time.Minute

// Request is what one user sends.
type Request struct {
	URL     string            // one of the World's, with a path
	Host    string            // which route
	Header  map[string]string // besides
	Cookies map[string]string
}

// Result is what became of one request. Latency counts from the moment that
// it was to be sent: if an answer makes others wait, their users waited too.
type Result struct {
	At      time.Time // when it was to be sent
	Latency time.Duration
	Status  int    // 0 without an answer
	Err     error  // why there is no answer
	Version string // X-Version of the pod that answered
	Pod     string // X-Pod
	Ready   string // X-Ready: whether that pod was ready when the request came
	Header  http.Header
	Request Request
}

// Failed reports whether the user did not get what was asked for.
func (r Result) Failed() bool { return r.Err != nil || r.Status < 200 || r.Status > 299 }

func (r Result) String() string {
	if r.Err != nil {
		return fmt.Sprintf("%s +%s: %v", r.At.Format("15:04:05.000"), r.Latency.Round(time.Millisecond), r.Err)
	}
	return fmt.Sprintf("%s +%s: %d from %s of %s", r.At.Format("15:04:05.000"), r.Latency.Round(time.Millisecond), r.Status, r.Pod, r.Version)
}

// Load is requests under way.
type Load struct {
	client *http.Client
	stop   context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	results Results
}

// StartLoad sends so many requests a second at fixed moments, each in its own
// goroutine, whether or not those before it were answered. Connections are kept
// alive. The numbers that next is called with count from 0. The load ends with
// the test, or at Stop.
func StartLoad(tb testing.TB, perSecond float64, next func(n int) Request) *Load {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{client: newClient(), stop: stop}
	began := time.Now()
	l.all.Go(func() {
		for n := 0; ; n++ {
			at := began.Add(time.Duration(float64(n) * float64(time.Second) / perSecond))
			select {
			case <-time.After(time.Until(at)):
			case <-ctx.Done():
				return
			}
			l.all.Go(func() {
				result := send(l.client, at, next(n))
				l.mu.Lock()
				defer l.mu.Unlock()
				l.results = append(l.results, result)
			})
		}
	})
	tb.Cleanup(func() { l.Stop() })
	return l
}

// Stop sends no more requests, waits for the answers to those that were sent,
// and returns the results of all, in the order of their moments.
func (l *Load) Stop() Results {
	l.stop()
	l.all.Wait()
	l.client.CloseIdleConnections()
	return l.Results()
}

// Results returns what has been answered so far, in the order of the moments.
func (l *Load) Results() Results {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.results.sorted()
}

// Always sends the same request each time.
func Always(r Request) func(int) Request { return func(int) Request { return r } }

// Send sends one request now, over a connection of its own.
func Send(r Request) Result {
	client := newClient()
	defer client.CloseIdleConnections()
	return send(client, time.Now(), r)
}

// Await sends a request every 20ms until its result is as wanted.
func Await(tb testing.TB, within time.Duration, r Request, wanted func(Result) bool) {
	tb.Helper()
	client := newClient()
	defer client.CloseIdleConnections()
	for deadline := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		result := send(client, time.Now(), r)
		if wanted(result) {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s%s: not as wanted within %s; at last: %s", r.Host, r.URL, within, result)
		}
	}
}

func newClient() *http.Client {
	return &http.Client{
		Timeout: answeredWithin,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: answeredWithin}).DialContext,
			MaxIdleConnsPerHost: 1000,
			IdleConnTimeout:     time.Minute, // below the three minutes after which Traefik closes
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send sends one request. Go's client would send it again by itself when a kept
// connection breaks, which would hide a failure; that counts as one.
func send(client *http.Client, at time.Time, r Request) Result {
	result := Result{At: at, Request: r}
	written := 0
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		WroteHeaders: func() { written++ },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		result.Err = err
		return result
	}
	req.Host = r.Host
	for name, value := range r.Header {
		req.Header.Set(name, value)
	}
	for name, value := range r.Cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	res, err := client.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		result.Status, result.Header = res.StatusCode, res.Header
		result.Version, result.Pod, result.Ready = res.Header.Get("X-Version"), res.Header.Get("X-Pod"), res.Header.Get("X-Ready")
	}
	if err == nil && written > 1 {
		err = fmt.Errorf("the connection broke; it was sent %d times", written)
	}
	result.Err, result.Latency = err, time.Since(at)
	return result
}
