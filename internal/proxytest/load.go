package proxytest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	answeredWithin = time.Minute // a user's timeout for one request
	inFlight       = 100         // a load's maximum number of requests without an answer
)

// Request is a user's request.
type Request struct {
	URL     string            // a URL of the World, with a path
	Host    string            // selects the route
	Header  map[string]string // additional headers
	Cookies map[string]string
}

// Result is the result of one request. Latency begins at the scheduled time, so it includes a delay before the request was sent.
type Result struct {
	At      time.Time // scheduled time
	Latency time.Duration
	Status  int    // 0 without a response
	Err     error  // the error if there was no response
	Version string // X-Version of the pod that responded
	Pod     string // X-Pod of the pod that responded
	Ready   string // X-Ready: whether this pod was ready when the request came
	Header  http.Header
	Request Request
}

// Failed reports whether the user got an error or no response.
func (r Result) Failed() bool { return r.Err != nil || r.Status < 200 || r.Status > 299 }

func (r Result) String() string {
	if r.Err != nil {
		return fmt.Sprintf("%s +%s: %v", r.At.Format("15:04:05.000"), r.Latency.Round(time.Millisecond), r.Err)
	}
	return fmt.Sprintf("%s +%s: %d from %s of %s", r.At.Format("15:04:05.000"), r.Latency.Round(time.Millisecond), r.Status, r.Pod, r.Version)
}

// Load is a running series of requests.
type Load struct {
	client *http.Client
	stop   context.CancelFunc
	all    sync.WaitGroup

	mu      sync.Mutex
	results Results
}

// StartLoad sends perSecond requests per second at fixed times, without waiting for answers. It pauses only while 100
// requests (inFlight) have no answer, because more would slow down a busy machine further. Connections are kept alive.
// next(n) returns request n, counted from 0. The load ends with the test, or at Stop.
func StartLoad(tb testing.TB, perSecond float64, next func(n int) Request) *Load {
	tb.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{client: newClient(), stop: stop}
	at, interval, slots := time.Now(), time.Duration(float64(time.Second)/perSecond), make(chan struct{}, inFlight)
	l.all.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-time.After(time.Until(at)):
			case <-ctx.Done():
				return
			}
			full := len(slots) == inFlight
			if slots <- struct{}{}; full { // blocks for at most answeredWithin, the timeout of each send
				at = time.Now()
			}
			scheduled := at
			at = at.Add(interval)
			l.all.Go(func() {
				defer func() { <-slots }()
				result := send(l.client, scheduled, next(n))
				l.mu.Lock()
				defer l.mu.Unlock()
				l.results = append(l.results, result)
			})
		}
	})
	tb.Cleanup(func() { l.Stop() })
	return l
}

// Stop stops sending requests, waits for outstanding responses, and returns all results in the order of their times.
func (l *Load) Stop() Results {
	l.stop()
	l.all.Wait()
	l.client.CloseIdleConnections()
	return l.Results()
}

// Results returns the results so far, in the order of their times.
func (l *Load) Results() Results {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(l.results), func(a, b Result) int { return a.At.Compare(b.At) })
}

// Always returns a function that returns the same request each time.
func Always(r Request) func(int) Request { return func(int) Request { return r } }

// Send sends one request now, over a new connection.
func Send(r Request) Result {
	client := newClient()
	defer client.CloseIdleConnections()
	return send(client, time.Now(), r)
}

// Await sends a request every 20ms until a result is accepted. It fails the test if none is accepted within the given
// time.
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
			tb.Fatalf("%s%s: no accepted result within %s; the last result: %s", r.Host, r.URL, within, result)
		}
	}
}

func newClient() *http.Client {
	return &http.Client{
		Timeout: answeredWithin,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: answeredWithin}).DialContext,
			MaxIdleConnsPerHost: 1000,
			IdleConnTimeout:     time.Minute, // Traefik closes an idle connection only after three minutes
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send sends one request. Go's client retries when a kept-alive connection breaks, which would hide a failure. send
// counts such a retry as a failure.
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
		err = fmt.Errorf("the connection broke; the request was sent %d times", written)
	}
	result.Err, result.Latency = err, time.Since(at)
	return result
}
