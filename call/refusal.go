package call

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxMessage limits a server's message in an error, in characters.
const MaxMessage = 300

// maxBreak limits Pause, because a misconfigured server may request days.
const maxBreak = time.Hour

func (c *Caller) refused(r Request, res *http.Response, body []byte) *Error {
	undone := res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable
	return &Error{
		What: r.what(), Status: res.StatusCode, Header: res.Header, Message: c.Secrets.Reason(body),
		After:  Pause(res.Header),
		Passes: undone || res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented,
		undone: undone,
	}
}

// noAnswer returns the error of a request without a response. It omits addresses and ports, because these vary.
func (c *Caller) noAnswer(ctx context.Context, r Request, res *http.Response, err error) *Error {
	e := &Error{What: r.what()}
	if ctx.Err() != nil {
		e.Message, e.cause = "there was no answer in time", ctx.Err()
		if errors.Is(ctx.Err(), context.Canceled) {
			e.Message = "it was cancelled"
		}
		return e
	}
	for wrapped := new(url.Error); errors.As(err, &wrapped); {
		err = wrapped.Err // wrapped's text contains the whole URL
	}
	e.Passes, e.Message = true, err.Error()
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		e.Passes, e.Message = false, "its certificate is not trusted: "+certificate.Err.Error()
	case errors.As(err, &op):
		e.undone, e.Message = op.Op == "dial", op.Op+": "+op.Err.Error()
	case errors.Is(err, errRedirect):
		if e.Passes = false; res != nil {
			e.Status, e.Header = res.StatusCode, res.Header
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Message = "the connection was closed before the answer ended"
	}
	e.Message = c.Secrets.line(e.Message)
	return e
}

// Pause returns the header Retry-After, but at most 1h. A date is relative to the header Date.
func Pause(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, maxBreak.Seconds()) * float64(time.Second))
	}
	until, _ := http.ParseTime(text)
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		return min(max(until.Sub(sent), 0), maxBreak)
	}
	return 0
}

// Reason extracts a server's message from a JSON or text body: one line of at most MaxMessage characters.
func (s *Secrets) Reason(body []byte) string {
	var parsed any
	text := ""
	if json.Unmarshal(body, &parsed) == nil {
		text = Words(parsed)
	} else if trimmed := strings.TrimSpace(string(body)); !strings.HasPrefix(trimmed, "<") {
		text = trimmed // an HTML page contains no message
	}
	if text = s.line(text); text == "" {
		return "(no reason given)"
	}
	return text
}

// Words extracts a message from decoded JSON, including nested values.
func Words(v any) string { return words(v, 8) }

func words(v any, depth int) string {
	if depth == 0 {
		return ""
	}
	var parts []string
	switch v := v.(type) {
	case string:
		return v
	case []any:
		for _, e := range v {
			parts = append(parts, words(e, depth-1))
		}
		return join(parts, ", ")
	case map[string]any:
		for _, key := range []string{"error", "errorMessage", "message", "reason", "detail", "title", "type"} {
			if text := words(v[key], depth-1); text != "" {
				parts = append(parts, text)
				break
			}
		}
		if text := join(append(parts, words(v["errors"], depth-1)), ": "); text != "" {
			return text
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text := words(v[key], depth-1); text != "" {
				parts = append(parts, key+": "+text)
			}
		}
		return join(parts, ", ")
	}
	return ""
}

func join(parts []string, between string) string {
	return strings.Join(slices.DeleteFunc(parts, func(text string) bool { return text == "" }), between)
}

// Decode parses a JSON body. Errors name the server (from), but do not quote the body.
func Decode(from string, body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	what := err.Error()
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		kind := strings.Fields(wrong.Value)[0]
		what = fmt.Sprintf("%s is a %s", cmp.Or(wrong.Field, "it"), cmp.Or(kinds[kind], kind))
	case errors.As(err, &syntax):
		what = "it is not JSON"
	}
	return fmt.Errorf("the answer of %s differs from its documentation: %s", from, what)
}

var kinds = map[string]string{"array": "list", "object": "mapping"}
