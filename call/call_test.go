package call_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
)

var testNow = time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)

func newCaller() *call.Caller {
	return &call.Caller{Client: call.Clients(), Secrets: &call.Secrets{}, Tries: 4, Backoff: time.Millisecond}
}

// serve starts a server with a handler and returns the server's URL.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// scripted starts a server that responds with the given statuses in order, and then repeats the last status. It returns a request to the
// server, and a counter of received requests.
func scripted(t *testing.T, after string, statuses ...int) (call.Request, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		status := statuses[min(int(asked.Add(1)), len(statuses))-1]
		if status == 0 {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		w.Header().Set("Retry-After", after)
		w.Header().Set("Date", testNow.Format(http.TimeFormat))
		w.WriteHeader(status)
	})
	return call.Request{Method: http.MethodPost, Base: address, Body: []byte("x")}, asked
}

// TestWhatIsTriedAgain checks that requests are retried after transient errors. A request with Once is retried only if the server has
// certainly not processed it.
func TestWhatIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		after    string
		statuses []int
		once     bool
		tries    int // default 4
		asked    int
		ok       bool
	}{
		"at once":                       {statuses: []int{200}, asked: 1, ok: true},
		"passes":                        {statuses: []int{503, 502, 500, 200}, asked: 4, ok: true},
		"too late":                      {statuses: []int{503, 502, 500, 500, 200}, asked: 4},
		"only one try":                  {statuses: []int{503, 200}, tries: 1, asked: 1},
		"broken connection":             {statuses: []int{0, 200}, asked: 2, ok: true},
		"will not pass":                 {statuses: []int{400, 200}, asked: 1},
		"is not there":                  {statuses: []int{501, 200}, asked: 1},
		"asks for a short break":        {after: "0.001", statuses: []int{429, 200}, asked: 2, ok: true},
		"asks for a long break":         {after: "3600", statuses: []int{429, 200}, asked: 1},
		"asks until":                    {after: testNow.Add(time.Hour).Format(http.TimeFormat), statuses: []int{503, 200}, asked: 1},
		"with effects":                  {statuses: []int{500, 200}, once: true, asked: 1},
		"with effects, broken":          {statuses: []int{0, 200}, once: true, asked: 1},
		"with effects, not yet done":    {statuses: []int{503, 429, 200}, once: true, asked: 3, ok: true},
		"another status than it should": {statuses: []int{304, 200}, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, asked := scripted(t, c.after, c.statuses...)
			r.Once = c.once
			caller := newCaller()
			if c.tries != 0 {
				caller.Tries = c.tries
			}
			_, err := caller.Do(t.Context(), r)
			if (err == nil) != c.ok || int(asked.Load()) != c.asked {
				t.Errorf("asked %d times with %v, want %d times and %v", asked.Load(), err, c.asked, c.ok)
			}
		})
	}
}

// TestNobodyListens checks that the error of a refused connection is transient. The server has processed nothing, so even a request with
// Once can be retried.
func TestNobodyListens(t *testing.T) {
	var failed *call.Error
	_, err := newCaller().Do(t.Context(), call.Request{Method: http.MethodPost, Base: "http://127.0.0.1:1", Once: true})
	if !errors.As(err, &failed) || !failed.IsUndone() || !failed.Passes || failed.Message != "dial: connect: connection refused" {
		t.Errorf("got %+v", failed)
	}
}

// TestNoTimeForAnotherTry lets the context end during the pause before a retry. Do must return the error of the last attempt, not the
// context's error.
func TestNoTimeForAnotherTry(t *testing.T) {
	r, asked := scripted(t, "10", 503)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // long enough for one request, and shorter than the pause of 10 s
	defer cancel()
	_, err := newCaller().Do(ctx, r)
	if failed, is := errors.AsType[*call.Error](err); !is || failed.Status != 503 || asked.Load() != 1 {
		t.Errorf("asked %d times, got %v", asked.Load(), err)
	}
}

func TestNoAnswerInTime(t *testing.T) {
	address := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := newCaller().Do(ctx, call.Request{Method: http.MethodGet, Base: address})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), ": there was no answer in time") {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = newCaller().Do(ctx, call.Request{Method: http.MethodGet, Base: address})
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), ": it was cancelled") {
		t.Errorf("got %v", err)
	}
}

// TestWhatIsSent checks that the server gets all parts of a request.
func TestWhatIsSent(t *testing.T) {
	var got string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %s host=%s agent=%s type=%s key=%s signature=%s body=%s", r.Method, r.URL.RequestURI(), r.Host,
			r.UserAgent(), r.Header.Get("Content-Type"), r.Header.Get("X-Key"), r.Header.Get("X-Signature"), body)
		w.Header().Set("X-Answer", "a")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "done")
	})
	a, err := newCaller().Do(t.Context(), call.Request{
		Method: http.MethodPut, Base: address + "/base?a=1#fragment", Path: "/x%2Fy", Query: url.Values{"b": {"2 3"}},
		Header: http.Header{"x-key": {"k"}, "Host": {"metrics.example"}}, Body: []byte("<b>"), Type: "text/html",
		Sign: func(r *http.Request) { r.Header.Set("X-Signature", r.Method+" "+r.Host) },
	})
	want := "PUT /base/x%2Fy?a=1&b=2+3 host=metrics.example agent=gitrollout type=text/html key=k signature=PUT metrics.example body=<b>"
	if err != nil || got != want || a.Status != 202 || string(a.Body) != "done" || a.Header.Get("X-Answer") != "a" {
		t.Errorf("%v, %+v, sent\n%s\nwant\n%s", err, a, got, want)
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	for _, base := range []string{"", "s3cr3t", "//host", "ftp://me:s3cr3t@host", "http://ho st/s3cr3t", "://", "http://%zz"} {
		_, err := newCaller().Do(t.Context(), call.Request{Method: http.MethodGet, Base: base})
		if failed, is := errors.AsType[*call.Error](err); !is || failed.Passes || strings.Contains(err.Error(), "s3cr3t") ||
			!strings.Contains(err.Error(), "is not a URL") {
			t.Errorf("%q: got %v", base, err)
		}
	}
}

// TestSizes checks that a request without StatusOnly fails if the response is cut off or larger than Caller.Most.
func TestSizes(t *testing.T) {
	for name, c := range map[string]struct {
		size       int
		most       int64
		status     int
		cut        bool
		statusOnly bool
		says       string // "": no error
	}{
		"fits":                  {size: 1 << 20, status: 200},
		"too large":             {size: 1<<20 + 1, status: 200, says: "larger than 1 MiB"},
		"larger bound":          {size: 3 << 20, most: 4 << 20, status: 200},
		"too large for that":    {size: 3 << 20, most: 2 << 20, status: 200, says: "larger than 2 MiB"},
		"status only":           {size: 1 << 20, most: 1000, status: 200, statusOnly: true},
		"status only, cut":      {size: 10, status: 200, cut: true, statusOnly: true},
		"cut":                   {size: 10, status: 200, cut: true, says: "the connection was closed before the answer ended"},
		"a long refusal":        {size: 2 << 20, status: 400, says: "400 Bad Request: xxx"},
		"a refusal that is cut": {size: 10, status: 400, cut: true, says: "400 Bad Request: xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.cut {
					w.Header().Set("Content-Length", "1000000")
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, strings.Repeat("x", c.size))
			})
			caller := newCaller()
			caller.Most, caller.Tries = c.most, 1
			a, err := caller.Do(t.Context(), call.Request{Method: http.MethodGet, Base: address, StatusOnly: c.statusOnly})
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err == nil && !c.statusOnly && len(a.Body) != c.size {
				t.Errorf("%d bytes of %d", len(a.Body), c.size)
			}
			if err != nil && len(err.Error()) > call.MaxMessage+200 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestAccept(t *testing.T) {
	r, _ := scripted(t, "", 409)
	r.Accept = func(status int) bool { return status == 409 }
	if a, err := newCaller().Do(t.Context(), r); err != nil || a.Status != 409 {
		t.Errorf("got %v and %v", a, err)
	}
	r.Accept = func(int) bool { return false }
	if _, err := newCaller().Do(t.Context(), r); err == nil {
		t.Error("it is accepted")
	}
}

// TestError checks the text of an Error, and the fields that callers read.
func TestError(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7.5")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"message":"slow\ndown"}`)
	})
	caller := newCaller()
	caller.Tries = 0
	withPassword := strings.Replace(address, "://", "://me:s3cr3t@", 1)
	_, err := caller.Do(t.Context(), call.Request{Method: http.MethodGet, Base: withPassword + "/hook", Path: "/api"})
	if want := "GET /api of " + address + ": 429 Too Many Requests: slow down"; err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if failed, is := errors.AsType[*call.Error](err); !is || failed.Status != 429 || failed.After != 7500*time.Millisecond || !failed.Passes ||
		failed.Header.Get("Retry-After") != "7.5" {
		t.Errorf("got %+v", failed)
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "-1": 0, "x": 0, "NaN": 0, "2": 2 * time.Second, "0.5": 500 * time.Millisecond,
		"604800": time.Hour, "1e300": time.Hour, "+Inf": time.Hour,
		testNow.Add(time.Minute).Format(http.TimeFormat): time.Minute, testNow.Add(-time.Minute).Format(http.TimeFormat): 0,
		testNow.AddDate(1, 0, 0).Format(http.TimeFormat): time.Hour,
	} {
		compare.CheckNamed(t, text, want, call.Pause(http.Header{"Retry-After": {text}, "Date": {testNow.Format(http.TimeFormat)}}))
	}
	compare.CheckNamed(t, "a date, without the server's time", time.Duration(0),
		call.Pause(http.Header{"Retry-After": {testNow.Format(http.TimeFormat)}}))
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		compare.CheckNamed(t, fmt.Sprintf("after %d failures", failures), want, call.Backoff(failures))
	}
}

func TestJSON(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/wrong" {
			body = []byte(`{"name":["s3cr3t"]}`)
		}
		w.Header().Set("X-Type", r.Header.Get("Content-Type"))
		_, _ = w.Write(body)
	})
	type named struct {
		Name string `json:"name"`
	}
	var got named
	post := call.Request{Method: http.MethodPost, Base: address, Path: "/x"}
	a, err := newCaller().JSON(t.Context(), post, named{"<a&b>"}, &got)
	if err != nil || got.Name != "<a&b>" || string(a.Body) != `{"name":"<a&b>"}` || a.Header.Get("X-Type") != "application/json" {
		t.Errorf("got %+v, %s and %v", got, a.Body, err)
	}
	if a, err := newCaller().JSON(t.Context(), post, nil, nil); err != nil || len(a.Body) > 0 || a.Header.Get("X-Type") != "" {
		t.Errorf("got %s and %v", a.Body, err)
	}
	_, err = newCaller().JSON(t.Context(), call.Request{Method: http.MethodGet, Base: address, Path: "/wrong"}, nil, &got)
	if err == nil || !strings.HasSuffix(err.Error(), "the answer of the server differs from its documentation: name is a list") {
		t.Errorf("got %v", err)
	}
	var failed *call.Error
	if _, err := newCaller().JSON(t.Context(), post, func() {}, nil); !errors.As(err, &failed) || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("got %v", err)
	}
}

func TestReason(t *testing.T) {
	const none = "(no reason given)"
	for body, want := range map[string]string{
		``: none, `<html>x</html>`: none, `{}`: none, `{"error":null}`: none, `7`: none, "no such\n thing": "no such thing",
		`{"message":"m"}`: "m", `{"error":{"reason":"r","type":"t"}}`: "r", `{"errors":["a",{"message":"b"}]}`: "a, b",
		`{"message":"Validation Failed","errors":[{"resource":"PullRequest","message":"it exists"}]}`: "Validation Failed: it exists",
		`{"message":"Validation Failed","errors":[{"resource":"Label","code":"already_exists"}]}`: "Validation Failed: " +
			"code: already_exists, resource: Label",
		`{"message":{"base":["is closed"],"title":[]}}`: "base: is closed", `{"message":["Another one exists: !7"]}`: "Another one exists: !7",
		strings.Repeat("x", 400):                              strings.Repeat("x", 299) + "…",
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000): none,
	} {
		compare.CheckNamed(t, body[:min(len(body), 100)], want, (&call.Secrets{}).Reason([]byte(body)))
	}
}

func TestDecode(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":1}`: "", `{"a":"s3cr3t"}`: "a is a string", `[]`: "it is a list", `{"a":{}}`: "a is a mapping",
		`{"a`: "it is not JSON", ``: "it is not JSON", `{"a":1e999}`: "a is a number",
	} {
		var into struct {
			A float64 `json:"a"`
		}
		err := call.Decode("X", []byte(body), &into)
		if want != "" {
			want = "the answer of X differs from its documentation: " + want
		}
		if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

// TestPausesGrow checks that the pause before a retry begins at Backoff, by default 0.25 s, and doubles each time. If the server requests a
// longer pause, Do waits longer.
func TestPausesGrow(t *testing.T) {
	for name, c := range map[string]struct {
		backoff     time.Duration
		after, want string
	}{
		"usual": {0, "", "[0s 250ms 750ms 1.75s]"}, "told": {time.Second, "", "[0s 1s 3s 7s]"}, "asked for": {0, "0.5", "[0s 500ms 1s 2s]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []time.Duration
				began := time.Now()
				client := &http.Client{Transport: transport(func(*http.Request) *http.Response {
					at = append(at, time.Since(began))
					return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {c.after}}, Body: http.NoBody}
				})}
				caller := &call.Caller{Client: func(bool) *http.Client { return client }, Secrets: &call.Secrets{}, Tries: 4, Backoff: c.backoff}
				_, err := caller.Do(t.Context(), call.Request{Method: http.MethodGet, Base: "http://a.test"})
				if err == nil || fmt.Sprint(at) != c.want {
					t.Errorf("tries at %v, want %s (%v)", at, c.want, err)
				}
			})
		})
	}
}

// TestFewRedirects checks that five redirects are followed, and the sixth is refused.
func TestFewRedirects(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n, _ := strconv.Atoi(r.URL.Path[1:]); n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusTemporaryRedirect)
		}
	})
	for n, ok := range map[int]bool{1: true, 5: true, 6: false} {
		if _, err := newCaller().Do(t.Context(), call.Request{Method: http.MethodGet, Base: address, Path: strconv.Itoa(n)}); (err == nil) != ok {
			t.Errorf("%d redirects: %v", n, err)
		}
	}
}

// TestWordsHaveAnEnd checks that Words leaves out messages that are nested too deeply.
func TestWordsHaveAnEnd(t *testing.T) {
	for name, nest := range map[string]func(any) any{
		"lists": func(v any) any { return []any{v} }, "messages": func(v any) any { return map[string]any{"message": v} },
		"errors": func(v any) any { return map[string]any{"errors": v} },
	} {
		var v any = "deep"
		for depth := range 10 {
			if got, want := call.Words(v), map[bool]string{true: "deep"}[depth < 8]; got != want {
				t.Errorf("%d %s: %q, want %q", depth, name, got, want)
			}
			v = nest(v)
		}
	}
	if got := call.Words(map[string]any{"b": map[string]any{"c": "x"}, "a": "y"}); got != "a: y, b: c: x" {
		t.Errorf("%q", got)
	}
}
