package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// skywalkingConfig runs a GraphQL query on Apache SkyWalking
// (https://skywalking.apache.org/docs/main/latest/en/api/query-protocol/). The result is the response's data. The
// variable $duration is the configured interval until now, in minutes and in the process's time zone.
type skywalkingConfig struct {
	Address  string `json:"address" required:"give the URL of SkyWalking's OAP server" check:"url"`
	Query    string `json:"query" required:"write the GraphQL query"`
	Interval string `json:"interval,omitempty" check:"duration"` // default 5m
}

func (c *skywalkingConfig) check() error {
	if !strings.Contains(c.Query, "{") {
		return wrong("query", "write it as in query q($duration: Duration!) { … }",
			"%q is not GraphQL", rollout.Cut(c.Query, 60))
	}
	return nil
}

func (c *skywalkingConfig) timeout() time.Duration { return 30 * time.Second }

func (c *skywalkingConfig) measure(ctx context.Context, s *session) (Result, error) {
	const minutes = "2006-01-02 1504"
	now := s.deps.Now()
	data, err := askGraphQL(ctx, s, "SkyWalking", call.Request{Base: c.Address, Path: "/graphql"}, c.Query, map[string]any{
		"duration": map[string]string{"start": now.Add(-duration(c.Interval, 5*time.Minute)).Format(minutes),
			"end": now.Format(minutes), "step": "MINUTE"}})
	if err != nil {
		return Result{}, err
	}
	var value any
	err = call.Decode("SkyWalking", data, &value)
	return Result{Value: value}, err
}

func askGraphQL(
	ctx context.Context, s *session, from string, ask call.Request, query string, variables map[string]any,
) (json.RawMessage, error) {
	ask.Method = http.MethodPost
	var answered struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	question := map[string]any{"query": query, "variables": variables}
	if err := s.json(ctx, from, ask, question, &answered); err != nil {
		return nil, err
	}
	if len(answered.Errors) > 0 {
		return nil, refusal(from, answered.Errors[0].Message)
	}
	if answered.Data == nil {
		return nil, unlike(from, "it has no data")
	}
	return answered.Data, nil
}
