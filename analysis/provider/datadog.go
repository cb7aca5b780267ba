package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// datadogConfig reads a series' newest point with API v1, or one number with API v2
// (https://docs.datadoghq.com/api/latest/metrics/#query-timeseries-points,
// #query-scalar-data-across-multiple-products). Without data, the result is nil. secretRef's Secret has the
// credentials. Without secretRef, they are in DD_API_KEY, DD_APP_KEY and DD_ADDRESS, or in gitrollout's Secret
// "datadog".
type datadogConfig struct {
	Interval       string            `json:"interval,omitempty" check:"duration"` // the period to query; default 5m
	Query          string            `json:"query,omitempty"`
	Queries        map[string]string `json:"queries,omitempty"`    // v2; the key is the query's name in the formula
	Formula        string            `json:"formula,omitempty"`    // v2
	APIVersion     string            `json:"apiVersion,omitempty"` // v1 or v2; default v1
	Aggregator     string            `json:"aggregator,omitempty"` // v2; default last, or sum for a comparison
	RequestTimeout string            `json:"requestTimeout,omitempty" check:"duration"`
	SecretRef      struct {
		Name       string `json:"name,omitempty" check:"secretName"`
		Namespaced bool   `json:"namespaced,omitempty"` // the Secret is in the Rollout's namespace
	} `json:"secretRef,omitempty"`
}

var datadogAggregators = []string{"avg", "min", "max", "sum", "last", "percentile", "mean", "l2norm", "area"}

func (c *datadogConfig) check() error {
	err := cmp.Or(
		oneOf("apiVersion", c.APIVersion, "v1", "v2"),
		oneOf("aggregator", c.Aggregator, datadogAggregators...))
	switch {
	case err != nil:
		return err
	case c.SecretRef.Namespaced && c.SecretRef.Name == "":
		return wrong("secretRef.name", "name the Secret in the Rollout's namespace", "is missing")
	}
	return c.checkQueries(!hasArgument(c.APIVersion) && cmp.Or(c.APIVersion, "v1") == "v1")
}

func (c *datadogConfig) checkQueries(v1 bool) error {
	names := slices.Sorted(maps.Keys(c.Queries))
	switch {
	case c.Query != "" && len(c.Queries) > 0:
		return wrong("queries", "keep only one", "conflict with query")
	case v1 && len(c.Queries) > 0:
		return wrong("queries", "write apiVersion: v2, or give query instead", "are given, and the API is v1")
	case c.Query == "" && len(c.Queries) == 0:
		return required("query", "", "write the query; with apiVersion: v2 there can be queries and a formula")
	case c.Formula != "" && len(c.Queries) == 0:
		return wrong("formula", "give the queries that the formula uses", "is given without queries")
	case c.Formula == "" && len(names) > 1 && !slices.Equal(names, []string{"bad", "of"}):
		return wrong("formula", "write the result, as in a / b", "is missing, but there are %d queries", len(c.Queries))
	case v1 && c.Aggregator != "":
		return wrong("aggregator", "write apiVersion: v2, or remove aggregator", "is %q, but the API is v1", c.Aggregator)
	}
	return nil
}

func (c *datadogConfig) timeout() time.Duration { return duration(c.RequestTimeout, 10*time.Second) }

func (c *datadogConfig) measure(ctx context.Context, s *session) (Result, error) {
	address, keys, err := c.credentials(ctx, s)
	if err != nil {
		return Result{}, err
	}
	to := s.deps.Now()
	from := to.Add(-duration(c.Interval, 5*time.Minute))
	ask := call.Request{Base: address, Type: "application/json", Header: http.Header{
		"Dd-Api-Key": {keys["api-key"]}, "Dd-Application-Key": {keys["app-key"]}}}
	read := datadogNewest
	if c.APIVersion == "v2" {
		ask.Body, _ = json.Marshal(c.scalarRequest(from, to)) // texts and numbers always encode
		ask.Method, ask.Path = http.MethodPost, "/api/v2/query/scalar"
		read = func(body []byte) (any, error) { return datadogScalar(body, s.request.Compare != nil) }
	} else {
		ask.Method, ask.Path = http.MethodGet, "/api/v1/query"
		ask.Query = url.Values{"query": {c.Query}, "from": {strconv.FormatInt(from.Unix(), 10)},
			"to": {strconv.FormatInt(to.Unix(), 10)}}
	}
	a, err := s.do(ctx, ask)
	if err != nil {
		return Result{}, err
	}
	value, err := read(a.Body)
	return Result{Value: value}, err
}

func (c *datadogConfig) credentials(ctx context.Context, s *session) (string, map[string]string, error) {
	name, namespace := c.SecretRef.Name, ""
	if c.SecretRef.Namespaced {
		namespace = s.request.Namespace
	}
	keys := map[string]string{"api-key": s.deps.Getenv("DD_API_KEY"), "app-key": s.deps.Getenv("DD_APP_KEY"),
		"address": s.deps.Getenv("DD_ADDRESS")}
	if name != "" || keys["api-key"] == "" || keys["app-key"] == "" {
		var err error
		if keys, err = s.secret(ctx, namespace, cmp.Or(name, "datadog"), "api-key", "app-key"); err != nil {
			return "", nil, err
		}
	}
	s.Hide(keys["api-key"], keys["app-key"])
	return cmp.Or(keys["address"], "https://api.datadoghq.com"), keys, nil
}

func (c *datadogConfig) scalarRequest(from, to time.Time) any {
	named := c.Queries
	if len(named) == 0 {
		named = map[string]string{"query": c.Query}
	}
	queries, formulas := []any{}, []any{}
	pair := c.Formula == "" && len(named) > 1 // the queries "bad" and "of" of a comparison
	for _, name := range slices.Sorted(maps.Keys(named)) {
		queries = append(queries, map[string]string{
			"aggregator":  cmp.Or(c.Aggregator, map[bool]string{true: "sum", false: "last"}[pair]),
			"data_source": "metrics", "name": name, "query": strings.TrimSpace(named[name])})
		if pair {
			formulas = append(formulas, map[string]string{"formula": name})
		}
	}
	if c.Formula != "" {
		formulas = append(formulas, map[string]string{"formula": c.Formula})
	}
	return map[string]any{"data": map[string]any{"type": "scalar_request", "attributes": map[string]any{
		"from": from.UnixMilli(), "to": to.UnixMilli(), "queries": queries, "formulas": formulas}}}
}

func datadogNewest(body []byte) (any, error) {
	var answered struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Series *[]struct {
			Points [][]*float64 `json:"pointlist"`
		} `json:"series"`
	}
	if err := call.Decode("Datadog", body, &answered); err != nil {
		return nil, err
	}
	switch {
	case answered.Status == "error" || answered.Error != "":
		return nil, refusal("Datadog", answered.Error)
	case answered.Series == nil:
		return nil, unlike("Datadog", "it has no series")
	case len(*answered.Series) == 0:
		return nil, nil
	}
	for _, point := range slices.Backward((*answered.Series)[0].Points) {
		if len(point) != 2 {
			return nil, unlike("Datadog", "a point is not a pair")
		}
		if point[1] != nil {
			return *point[1], nil
		}
	}
	return nil, nil
}

func datadogScalar(body []byte, pair bool) (any, error) {
	var answered struct {
		Errors any `json:"errors"`
		Data   *struct {
			Errors     string `json:"errors"`
			Attributes struct {
				Columns []struct {
					Name   string            `json:"name"`
					Type   string            `json:"type"`
					Values []json.RawMessage `json:"values"`
				} `json:"columns"`
			} `json:"attributes"`
		} `json:"data"`
	}
	if err := call.Decode("Datadog", body, &answered); err != nil {
		return nil, err
	}
	switch text := call.Words(answered.Errors); {
	case text != "":
		return nil, refusal("Datadog", text)
	case answered.Data == nil:
		return nil, unlike("Datadog", "it has no data")
	case answered.Data.Errors != "":
		return nil, refusal("Datadog", answered.Data.Errors)
	}
	named := map[string]float64{}
	for _, column := range answered.Data.Attributes.Columns {
		if pair && column.Name != "bad" && column.Name != "of" {
			return nil, errors.New(`Datadog's answer has columns besides "bad" and "of": remove groups from the queries`)
		}
		if column.Type == "group" || len(column.Values) == 0 {
			continue
		}
		var value *float64
		err := call.Decode("Datadog", column.Values[0], &value)
		switch {
		case err != nil || value == nil && !pair:
			return nil, err
		case !pair:
			return *value, nil
		case value != nil:
			named[column.Name] = *value
		}
	}
	return map[bool]any{true: pairOf(named)}[pair], nil
}
