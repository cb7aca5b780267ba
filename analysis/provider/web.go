package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// webConfig sends a request to any HTTP service. The result is the value at jsonPath or, if the body is not JSON, the
// body as a text. Conditions judge such a text; in Argo Rollouts, a text is always a success.
type webConfig struct {
	Method         string `json:"method,omitempty"` // GET, POST or PUT; default GET
	URL            string `json:"url" required:"give the URL to ask" check:"url"`
	Body           string `json:"body,omitempty"`
	JSONBody       any    `json:"jsonBody,omitempty"`
	TimeoutSeconds int64  `json:"timeoutSeconds,omitempty"`            // default 10
	JSONPath       string `json:"jsonPath,omitempty" check:"jsonPath"` // default {$}
	sender
}

func (c *webConfig) check() error {
	err := cmp.Or(
		oneOf("method", c.Method, http.MethodGet, http.MethodPost, http.MethodPut),
		c.sender.check("", ""))
	switch {
	case err != nil:
		return err
	case c.Body != "" && c.JSONBody != nil:
		return wrong("jsonBody", "keep only one", "conflicts with body")
	case c.Body != "" && cmp.Or(c.Method, http.MethodGet) == http.MethodGet:
		return wrong("body", "write method: POST, or remove body", "is set, but the method is GET")
	case c.JSONBody != nil && cmp.Or(c.Method, http.MethodGet) == http.MethodGet:
		return wrong("jsonBody", "write method: POST, or remove jsonBody", "is set, but the method is GET")
	case c.TimeoutSeconds < 0 || c.TimeoutSeconds > maxSeconds:
		return checkSeconds("timeoutSeconds", &c.TimeoutSeconds)
	}
	return nil
}

func (c *webConfig) timeout() time.Duration {
	return time.Duration(cmp.Or(c.TimeoutSeconds, 10)) * time.Second
}

func (c *webConfig) measure(ctx context.Context, s *session) (Result, error) {
	ask := call.Request{Method: cmp.Or(c.Method, http.MethodGet), Base: c.URL, Body: []byte(c.Body),
		Once: c.Method == http.MethodPost}
	if c.JSONBody != nil {
		data, err := json.Marshal(c.JSONBody)
		if err != nil {
			return Result{}, err
		}
		ask.Body, ask.Type = data, "application/json"
	}
	a, err := c.send(ctx, s, ask, "")
	if err != nil {
		return Result{}, err
	}
	if !json.Valid(a.Body) {
		return Result{Value: string(a.Body)}, nil
	}
	var parsed any
	if err := call.Decode("the service", a.Body, &parsed); err != nil {
		return Result{}, err
	}
	value, err := valueAt(cmp.Or(c.JSONPath, "{$}"), parsed)
	return Result{Value: value}, err
}
