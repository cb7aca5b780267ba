package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// searchConfig runs a search on Elasticsearch or OpenSearch
// (https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search,
// https://docs.opensearch.org/latest/api-reference/search-apis/search/). The result is the value at jsonPath. Argo
// Rollouts lacks both providers.
type searchConfig struct {
	name, service string // name in messages, and sigv4's AWS service

	Address string `json:"address" required:"give the URL of the server" check:"url"`
	// Index is one index, a list of indices separated by commas, or a pattern.
	Index    string `json:"index" required:"name the index, or a pattern as in logs-*"`
	Query    any    `json:"query,omitempty"`                     // in the query DSL: a mapping, or a text with JSON
	Aggs     any    `json:"aggs,omitempty"`                      // in the same forms as Query
	JSONPath string `json:"jsonPath,omitempty" check:"jsonPath"` // default {$.hits.total.value}, with aggs {$.aggregations}
	Timeout  *int64 `json:"timeout,omitempty" check:"seconds"`   // default 30
	sender
}

func (c *searchConfig) check() error {
	err := cmp.Or(
		checkDSL("query", c.Query),
		checkDSL("aggs", c.Aggs),
		c.sender.check(c.service, c.Address))
	if err == nil && !hasArgument(c.Index) &&
		(strings.ContainsAny(c.Index, `/\?"<>| #`) || strings.HasPrefix(c.Index, "_") && c.Index != "_all") {
		return wrong("index", "write it as in logs-*", "%q is not a valid index name", c.Index)
	}
	return err
}

func checkDSL(field string, v any) error {
	if text, ok := v.(string); ok && hasArgument(text) {
		return nil
	}
	if _, err := mappingOf(v); err != nil {
		return wrong(field, "write it as the search API has it", "%s", err.Error())
	}
	return nil
}

func mappingOf(v any) (map[string]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	case string:
		var m map[string]any
		if err := json.Unmarshal([]byte(v), &m); err != nil {
			return nil, fmt.Errorf("%q is not a JSON object", rollout.Cut(v, 60))
		}
		return m, nil
	}
	return nil, fmt.Errorf("%v is neither a mapping nor a text with JSON", v)
}

func (c *searchConfig) timeout() time.Duration { return seconds(c.Timeout, 30*time.Second) }

func (c *searchConfig) measure(ctx context.Context, s *session) (Result, error) {
	search := map[string]any{"size": 0, "track_total_hits": true}
	path := "{$.hits.total.value}"
	for field, v := range map[string]any{"query": c.Query, "aggs": c.Aggs} {
		m, err := mappingOf(v)
		if err != nil {
			return Result{}, fmt.Errorf("%s: %w", field, err)
		}
		if m != nil {
			search[field] = m
		}
	}
	if search["aggs"] != nil {
		path = "{$.aggregations}"
	}
	body, err := json.Marshal(search)
	if err != nil {
		return Result{}, fmt.Errorf("encode the search: %w", err)
	}
	ask := call.Request{Method: http.MethodPost, Base: c.Address, Path: "/" + url.PathEscape(c.Index) + "/_search",
		Type: "application/json", Body: body}
	a, err := c.send(ctx, s, ask, c.service)
	if err != nil {
		return Result{}, err
	}
	return c.result(a.Body, cmp.Or(c.JSONPath, path))
}

func (c *searchConfig) result(body []byte, path string) (Result, error) {
	var state struct {
		Error    any                         `json:"error"`
		TimedOut *bool                       `json:"timed_out"`
		Shards   struct{ Total, Failed int } `json:"_shards"`
	}
	var parsed any
	if err := cmp.Or(call.Decode(c.name, body, &parsed), call.Decode(c.name, body, &state)); err != nil {
		return Result{}, err
	}
	switch {
	case state.Error != nil:
		return Result{}, refusal(c.name, call.Words(state.Error))
	case state.TimedOut == nil:
		return Result{}, unlike(c.name, "it has no timed_out")
	case *state.TimedOut:
		return Result{}, errors.New("the search took too long; partial results do not count")
	case state.Shards.Failed > 0:
		return Result{}, fmt.Errorf("%d of %d shards failed; partial results do not count",
			state.Shards.Failed, state.Shards.Total)
	}
	value, err := valueAt(path, parsed)
	return Result{Value: value}, err
}
