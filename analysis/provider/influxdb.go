package provider

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// influxConfig runs a Flux query on InfluxDB 2 (https://docs.influxdata.com/influxdb/v2/api/#operation/PostQuery). The
// result lists the values of the column _value. The credentials' Secret is in gitrollout's namespace.
type influxConfig struct {
	Profile string `json:"profile,omitempty" check:"secretName"` // name of the Secret; default influxdb
	Query   string `json:"query" required:"write the Flux query, as in from(bucket: …) |> range(…)"`
}

func (c *influxConfig) check() error { return nil }

func (c *influxConfig) timeout() time.Duration { return 30 * time.Second }

func (c *influxConfig) measure(ctx context.Context, s *session) (Result, error) {
	secret, err := s.secret(ctx, "", cmp.Or(c.Profile, "influxdb"), "address", "authToken", "org")
	if err != nil {
		return Result{}, err
	}
	body, _ := json.Marshal(map[string]any{ // texts always encode
		"query": c.Query, "type": "flux",
		"dialect": map[string]any{"header": true, "delimiter": ",", "commentPrefix": "#",
			"annotations": []string{"datatype", "group", "default"}}})
	a, err := s.do(ctx, call.Request{
		Method: http.MethodPost, Base: secret["address"], Path: "/api/v2/query", Query: url.Values{"org": {secret["org"]}},
		Type: "application/json", Body: body,
		Header: http.Header{"Accept": {"application/csv"}, "Authorization": {"Token " + secret["authToken"]}}})
	if err != nil {
		return Result{}, err
	}
	values, err := fluxValues(string(a.Body))
	return Result{Value: values}, err
}

// fluxValues parses annotated CSV (https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/). If the
// query failed, a table has the error.
func fluxValues(text string) ([]any, error) {
	values := []any{}
	annotations, column := map[string][]string{}, map[string]int(nil) // by label; 0: annotations
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	for {
		record, err := r.Read()
		switch {
		case errors.Is(err, io.EOF) && (column != nil || strings.TrimSpace(text) == ""):
			return values, nil
		case err != nil:
			return nil, errFlux
		case strings.HasPrefix(record[0], "#"):
			if column != nil { // an annotation after records begins a new table
				annotations, column = map[string][]string{}, nil
			}
			annotations[record[0]] = record
			continue
		case column == nil && len(record) < 2:
			return nil, errFlux
		case column == nil:
			column = map[string]int{}
			for i, label := range record {
				column[label] = i
			}
			continue
		}
		at := column["_value"]
		if e := column["error"]; e > 0 && column["reference"] > 0 && e < len(record) && at == 0 {
			return nil, refusal("InfluxDB", record[e])
		}
		if at == 0 {
			continue
		}
		value, err := fluxValue(record, at, annotations["#datatype"], annotations["#default"])
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
}

var errFlux = unlike("InfluxDB", "it is not annotated CSV")

func fluxValue(record []string, at int, types, defaults []string) (any, error) {
	if at >= len(record) {
		return nil, errFlux
	}
	text, kind := record[at], "string"
	if text == "" && at < len(defaults) {
		text = defaults[at]
	}
	if at < len(types) {
		kind = types[at]
	}
	if text == "" {
		return nil, nil
	}
	var value any = text
	var err error
	switch kind {
	case "double":
		value, err = strconv.ParseFloat(text, 64)
	case "long":
		value, err = strconv.ParseInt(text, 10, 64)
	case "unsignedLong":
		value, err = strconv.ParseUint(text, 10, 64)
	case "boolean":
		value, err = strconv.ParseBool(text)
	}
	if err != nil {
		return nil, unlike("InfluxDB", "a value is no "+kind)
	}
	return value, nil
}
