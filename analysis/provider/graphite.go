package provider

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// graphiteConfig uses Graphite's render API (https://graphite.readthedocs.io/en/stable/render_api.html). The result
// lists the first series' values without empty points.
type graphiteConfig struct {
	Address string `json:"address" required:"give Graphite's URL" check:"url"`
	// Query has the parameters of /render, such as target=…&from=-5min.
	Query string `json:"query" required:"write target= and the expression"`
}

func (c *graphiteConfig) check() error {
	if query, err := c.parameters(); err != nil || query.Get("target") == "" {
		return wrong("query", "write it as in target=averageSeries(…)&from=-5min",
			"%q has no target", rollout.Cut(c.Query, 60))
	}
	return nil
}

func (c *graphiteConfig) timeout() time.Duration { return 10 * time.Second }

func (c *graphiteConfig) parameters() (url.Values, error) {
	q, err := url.ParseQuery(strings.Join(strings.Fields(c.Query), ""))
	if err != nil {
		return nil, err
	}
	q.Set("format", "json")
	return q, nil
}

func (c *graphiteConfig) measure(ctx context.Context, s *session) (Result, error) {
	query, err := c.parameters()
	if err != nil {
		return Result{}, errors.New("graphite.query is not a list of parameters")
	}
	var series []struct {
		Points *[][]json.Number `json:"datapoints"` // [value or null, seconds]
	}
	ask := call.Request{Method: http.MethodGet, Base: c.Address, Path: "/render", Query: query}
	if err := s.json(ctx, "Graphite", ask, nil, &series); err != nil {
		return Result{}, err
	}
	values := []any{}
	if len(series) == 0 {
		return Result{Value: values}, nil
	}
	if series[0].Points == nil {
		return Result{}, unlike("Graphite", "a series has no datapoints")
	}
	for _, point := range *series[0].Points {
		if len(point) != 2 {
			return Result{}, unlike("Graphite", "a datapoint is not a pair")
		}
		if point[0] == "" {
			continue
		}
		f, err := strconv.ParseFloat(string(point[0]), 64) // 1e9999 is infinity
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return Result{}, unlike("Graphite", "a value is not a number")
		}
		values = append(values, f)
	}
	return Result{Value: values}, nil
}
