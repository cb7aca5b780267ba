package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// prometheusConfig runs an instant or range query on Prometheus. Thanos, Mimir and VictoriaMetrics have the same API:
// https://prometheus.io/docs/prometheus/latest/querying/api/
type prometheusConfig struct {
	Address    string      `json:"address,omitempty" check:"url"` // default from prometheusAddresses
	Query      string      `json:"query" required:"write the PromQL expression"`
	RangeQuery *rangeQuery `json:"rangeQuery,omitempty"`
	Timeout    *int64      `json:"timeout,omitempty" check:"seconds"` // default 30
	sender
}

type rangeQuery struct {
	Start string `json:"start" required:"write it as in now() - duration(\"5m\")" check:"moment"`
	End   string `json:"end" required:"write it as in now() - duration(\"5m\")" check:"moment"`
	Step  string `json:"step" required:"write 30s, 1m or the like" check:"duration"`
}

// prometheusAddresses lists environment variables for the default address; the first has precedence.
var prometheusAddresses = []string{"GITROLLOUT_PROMETHEUS_ADDRESS", "ARGO_ROLLOUTS_PROMETHEUS_ADDRESS"}

func (c *prometheusConfig) check() error { return c.sender.check("aps", c.Address) }

func (c *prometheusConfig) timeout() time.Duration { return seconds(c.Timeout, 30*time.Second) }

func (c *prometheusConfig) measure(ctx context.Context, s *session) (Result, error) {
	address := c.Address
	for _, name := range prometheusAddresses {
		address = cmp.Or(address, s.deps.Getenv(name))
	}
	if address == "" {
		return Result{}, errors.New("there is no address: set " + prometheusAddresses[0] + ", or write prometheus.address")
	}
	form, path := url.Values{"query": {c.Query}}, "/api/v1/query"
	if c.RangeQuery != nil {
		now := cmp.Or(s.request.At, s.deps.Now())
		start, errStart := moment(c.RangeQuery.Start, now)
		end, errEnd := moment(c.RangeQuery.End, now)
		if err := cmp.Or(errStart, errEnd); err != nil {
			return Result{}, err
		}
		path = "/api/v1/query_range"
		form.Set("start", unixSeconds(start))
		form.Set("end", unixSeconds(end))
		form.Set("step", unixSeconds(time.Unix(0, 0).Add(duration(c.RangeQuery.Step, time.Minute))))
	} else if !s.request.At.IsZero() {
		form.Set("time", unixSeconds(s.request.At))
	}
	a, err := c.ask(ctx, s, address, path, form)
	if err != nil {
		return Result{}, err
	}
	value, warnings, err := promValue("Prometheus", a.Body, s.request.Compare)
	if err != nil {
		return Result{}, err
	}
	result := Result{Value: value, Metadata: map[string]string{"ResolvedPrometheusQuery": c.Query}}
	if len(warnings) > 0 {
		result.Metadata["warnings"] = strings.Join(warnings, "; ")
	}
	return result, nil
}

func (c *prometheusConfig) ask(
	ctx context.Context, s *session, address, path string, form url.Values,
) (call.Answer, error) {
	// Proxies may limit the length of URLs, so GET is used only if the server refuses POST.
	a, err := c.send(ctx, s, call.Request{Method: http.MethodPost, Base: address, Path: path,
		Type: "application/x-www-form-urlencoded", Body: []byte(form.Encode())}, "aps")
	if refused := new(call.Error); errors.As(err, &refused) &&
		(refused.Status == http.StatusMethodNotAllowed || refused.Status == http.StatusNotImplemented) {
		return c.send(ctx, s, call.Request{Method: http.MethodGet, Base: address, Path: path, Query: form}, "aps")
	}
	return a, err
}

func unixSeconds(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', -1, 64)
}

// A moment is a time in a range query. Argo Rollouts accepts any expression, but gitrollout accepts only these forms:
//
//	now()
//	now() - duration("5m") + duration("30s")
//	date("2026-01-31T12:00:00Z")
var (
	momentForm = regexp.MustCompile(`^\s*(now\(\)|date\(\s*["']([^"']*)["']\s*\))\s*` +
		`((?:[+-]\s*duration\(\s*["'][^"']*["']\s*\)\s*)*)$`)
	spanForm = regexp.MustCompile(`([+-])\s*duration\(\s*["']([^"']*)["']\s*\)`)
)

func moment(text string, now time.Time) (time.Time, error) {
	parts := momentForm.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, fmt.Errorf("%q is not a moment", text)
	}
	at := now
	if parts[1] != "now()" {
		var err error
		if at, err = time.Parse(time.RFC3339, parts[2]); err != nil {
			if at, err = time.Parse(time.DateOnly, parts[2]); err != nil {
				return time.Time{}, fmt.Errorf("%q is not a date", parts[2])
			}
		}
	}
	for _, span := range spanForm.FindAllStringSubmatch(parts[3], -1) {
		d, err := time.ParseDuration(span[2])
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is not a duration", span[2])
		}
		if span[1] == "-" {
			d = -d
		}
		at = at.Add(d)
	}
	return at, nil
}

func checkMoment(field, text string) error {
	if _, err := moment(text, time.Unix(0, 0)); err != nil {
		return wrong(field, `write it as in now() - duration("5m"), or date("2026-01-31T12:00:00Z")`, "%s", err.Error())
	}
	return nil
}
