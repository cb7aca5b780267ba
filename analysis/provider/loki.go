package provider

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// lokiConfig runs a metric query on Grafana Loki
// (https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-at-a-single-point-in-time). It has the same
// fields as prometheus. Argo Rollouts has no such provider.
type lokiConfig struct {
	Address string `json:"address"`
	Query   string `json:"query"`
	Timeout *int64 `json:"timeout,omitempty"` // seconds; default 30
	sender
}

func (c *lokiConfig) check() error {
	return cmp.Or(
		required("address", c.Address, "give Loki's URL"),
		checkURL("address", c.Address),
		required("query", c.Query, `write a metric query, as in sum(count_over_time({app="shop"} |= "error" [5m]))`),
		checkSeconds("timeout", c.Timeout),
		c.sender.check("", ""))
}

func (c *lokiConfig) timeout() time.Duration { return seconds(c.Timeout, 30*time.Second) }

func (c *lokiConfig) measure(ctx context.Context, s *session) (Result, error) {
	a, err := c.send(ctx, s, call.Request{
		Method: http.MethodGet, Base: c.Address, Path: "/loki/api/v1/query", Query: url.Values{"query": {c.Query}},
	}, "")
	if err != nil {
		return Result{}, err
	}
	value, _, err := promValue("Loki", a.Body)
	return Result{Value: value}, err
}
