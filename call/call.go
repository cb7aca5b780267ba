package call

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// maxWait limits a server's Retry-After. If the server requests a longer pause, Do does not retry.
const maxWait = 10 * time.Second

// Caller sends HTTP requests. It is not safe for concurrent use.
type Caller struct {
	Client  func(insecure bool) *http.Client // from Clients or ClientsWithin
	Secrets *Secrets                         // texts that no error contains
	Most    int64                            // maximum bytes of a response; default 1 MiB
	Tries   int                              // maximum attempts; default 1
	Backoff time.Duration                    // pause before the first retry, then doubled; default 250ms
	Name    string                           // server in errors; default "the server"
}

// Request is an HTTP request for a Caller.
type Request struct {
	Method string
	Base   string      // address from a configuration or Secret; errors show only scheme and host
	Path   string      // shown in errors
	Query  url.Values  // added to the query of Base
	Header http.Header // errors show only plainHeaders' values
	Body   []byte
	Type   string // Content-Type

	Sign       func(*http.Request)   // signs the complete request
	Insecure   bool                  // do not verify the certificate
	Once       bool                  // not idempotent: retry only if the server certainly did not process the request
	StatusOnly bool                  // ignore the body, even if it is incomplete
	Accept     func(status int) bool // success; default 2xx
}

// Answer is a server's response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // complete, unless StatusOnly
}

// Error reports a failed request.
type Error struct {
	What    string // the request, such as GET /api/v1/query of http://prometheus:9090
	Status  int    // 0 without a response
	Header  http.Header
	Message string        // one line without credentials, up to MaxMessage characters
	After   time.Duration // the pause that the server requests, up to an hour
	Passes  bool          // the error is transient, so a retry can succeed
	undone  bool          // the server certainly did not process the request
	cause   error
}

// Error returns the request, the status and the server's message.
func (e *Error) Error() string {
	text := e.What + ": "
	if e.Status != 0 {
		text += fmt.Sprintf("%d %s: ", e.Status, http.StatusText(e.Status))
	}
	return text + e.Message
}

// Unwrap returns the context's error if the context ended the request.
func (e *Error) Unwrap() error { return e.cause }

// Backoff returns the pause after consecutive failures: 1 s, 2 s, 4 s up to 5 min.
func Backoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 9), 5*time.Minute)
}

// Do returns the response or an *Error. After transient errors, it makes up to Tries attempts.
func (c *Caller) Do(ctx context.Context, r Request) (Answer, error) {
	pause := cmp.Or(c.Backoff, 250*time.Millisecond)
	for try := 1; ; try++ {
		a, err := c.try(ctx, r)
		if err == nil {
			return a, nil
		}
		if try >= c.Tries || !err.Passes || r.Once && !err.undone || err.After > maxWait || ctx.Err() != nil {
			return Answer{}, err
		}
		select {
		case <-ctx.Done():
			return Answer{}, err
		case <-time.After(max(pause, err.After)):
		}
		pause *= 2
	}
}

// JSON sends "in" as JSON and decodes the response into "out". Either may be nil.
func (c *Caller) JSON(ctx context.Context, r Request, in, out any) (Answer, error) {
	if in != nil {
		body, err := Encode(in)
		if err != nil {
			return Answer{}, &Error{What: r.what(), Message: err.Error()}
		}
		r.Body, r.Type = body, "application/json"
	}
	a, err := c.Do(ctx, r)
	if err != nil || out == nil {
		return a, err
	}
	return a, Decode(cmp.Or(c.Name, "the server"), a.Body, out)
}

func (c *Caller) try(ctx context.Context, r Request) (Answer, *Error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return Answer{}, &Error{What: r.what(), Message: err.Error()}
	}
	client := *c.Client(r.Insecure)
	client.CheckRedirect = redirects(r, req)
	res, err := client.Do(req)
	if err != nil {
		return Answer{}, c.noAnswer(ctx, r, res, err)
	}
	defer func() { _ = res.Body.Close() }()
	most := cmp.Or(c.Most, 1<<20)
	body, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	good := res.StatusCode/100 == 2
	if r.Accept != nil {
		good = r.Accept(res.StatusCode)
	}
	switch {
	case !good:
		return Answer{}, c.refused(r, res, body)
	case r.StatusOnly:
	case err != nil:
		return Answer{}, c.noAnswer(ctx, r, nil, err)
	case int64(len(body)) > most:
		message := fmt.Sprintf("the answer is larger than %d MiB; ask for less", max(most>>20, 1))
		return Answer{}, &Error{What: r.what(), Message: message}
	}
	return Answer{res.StatusCode, res.Header, body}, nil
}

func (c *Caller) request(ctx context.Context, r Request) (*http.Request, error) {
	u, err := url.Parse(r.Base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address is not a URL that begins with https:// or http://")
	}
	c.Secrets.HideURL(u)
	if r.Path != "" {
		u = u.JoinPath(r.Path)
	}
	if len(r.Query) > 0 {
		query := u.Query()
		maps.Copy(query, r.Query)
		u.RawQuery = query.Encode()
	}
	u.Fragment = ""
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, errors.New("the request cannot be made")
	}
	if r.Type != "" {
		req.Header.Set("Content-Type", r.Type)
	}
	for key, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(key)] = values
	}
	req.Header.Set("User-Agent", "gitrollout")
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	if r.Sign != nil {
		r.Sign(req)
	}
	for key, values := range req.Header {
		if !slices.Contains(plainHeaders, key) {
			c.Secrets.Hide(values...)
		}
	}
	return req, nil
}

func (r Request) what() string {
	text := r.Method
	if r.Path != "" {
		text += " " + r.Path + " of"
	}
	if u, err := url.Parse(r.Base); err == nil && u.Host != "" {
		text += " " + u.Scheme + "://" + u.Host
	}
	return rollout.OneLine(text)
}

// Encode returns a value as JSON without HTML escapes.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write it as JSON: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
