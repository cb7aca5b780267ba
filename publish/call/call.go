package call

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// maxWait is the longest break that a server may ask for and be asked again
// within the same Do. After a longer one, whoever called decides.
const maxWait = 10 * time.Second

// Caller makes requests that share credentials. Secrets are hidden as they are used, so a Caller is for one goroutine.
type Caller struct {
	Client  func(insecure bool) *http.Client // Clients'
	Secrets *Secrets                         // no error and no message has them
	Now     func() time.Time
	Most    int64         // bytes that an answer may have; default 1 MiB
	Tries   int           // for what may pass; default 1
	Backoff time.Duration // before the second try, and twice as long before each further one; default 250ms
	Name    string        // of whom is asked, where an answer cannot be read; default the server
}

// Request is one request.
type Request struct {
	Method string
	Base   string      // a URL out of a configuration or a Secret: errors name its host alone
	Path   string      // is added to the base, and is shown in errors
	Query  url.Values  // is added to the base's
	Header http.Header // its values are hidden, but for a few that are never secret
	Body   []byte
	Type   string // of the body: its Content-Type

	Sign       func(*http.Request)   // adds what follows from all the rest; called last
	Insecure   bool                  // the server's certificate is not verified
	Once       bool                  // it has effects: it is repeated only if it had none for certain
	StatusOnly bool                  // it is done when the status says so, however the answer's body ends
	Accept     func(status int) bool // which statuses are an answer; default 2xx
}

// Answer is what a server answers.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // whole, unless the request was StatusOnly
}

// Error is a request that was not answered as it should be.
type Error struct {
	What    string        // GET /api/v1/query of http://prometheus:9090
	Status  int           // 0 if there was no answer
	Header  http.Header   // of the answer
	Message string        // one line without credentials, at most MaxMessage characters
	After   time.Duration // for so long the server wants to be left alone, an hour at most; 0 if it does not say
	Passes  bool          // another try may have another answer
	undone  bool          // the server has not acted on it
	cause   error
}

// Error names the request, the status and the server's words.
func (e *Error) Error() string {
	text := e.What + ": "
	if e.Status != 0 {
		text += fmt.Sprintf("%d %s: ", e.Status, http.StatusText(e.Status))
	}
	return text + e.Message
}

// Unwrap is the context's error if that is why there is no answer.
func (e *Error) Unwrap() error { return e.cause }

// Backoff is how long to leave a server alone after so many failures in a row, from 1: 1 s, 2 s, 4 s … 5 min.
func Backoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 9), 5*time.Minute)
}

// Do makes a request, repeats it while that may help, and returns the answer. The error is an *Error.
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
			return Answer{}, err // says more than that time is up
		case <-time.After(max(pause, err.After)):
		}
		pause *= 2
	}
}

// JSON sends a value as JSON, if it is not nil, and decodes the answer into
// another one, if that is not nil. The error is an *Error, or Decode's.
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

// request makes an HTTP request, and hides all that is secret in it.
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
		for key, values := range r.Query {
			query[key] = values
		}
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
	c.Secrets.hideHeader(req.Header)
	return req, nil
}

// what names a request by what is no secret.
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

// Encode writes JSON without the escapes that are for HTML: a person may read it.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write it as JSON: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
