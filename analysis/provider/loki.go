package provider

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// lokiConfig runs a metric query on Grafana Loki
// (https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-at-a-single-point-in-time). lokiConfig has
// prometheusConfig's fields except rangeQuery. Argo Rollouts lacks this provider.
type lokiConfig struct {
	Address string `json:"address" required:"give Loki's URL" check:"url"`
	Query   string `json:"query" required:"write a metric query, as in sum(count_over_time({app=\"shop\"}[5m]))"`
	Timeout *int64 `json:"timeout,omitempty" check:"seconds"` // default 30
	sender
}

func (c *lokiConfig) check() error { return c.sender.check("", "") }

func (c *lokiConfig) timeout() time.Duration { return seconds(c.Timeout, 30*time.Second) }

func (c *lokiConfig) measure(ctx context.Context, s *session) (Result, error) {
	a, err := c.send(ctx, s, call.Request{Method: http.MethodGet, Base: c.Address, Path: "/loki/api/v1/query",
		Query: url.Values{"query": {c.Query}}}, "")
	if err != nil {
		return Result{}, err
	}
	value, _, err := promValue("Loki", a.Body, s.request.Compare)
	return Result{Value: value}, err
}
