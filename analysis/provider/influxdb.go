package provider

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// influxConfig runs a Flux query on InfluxDB 2 (https://docs.influxdata.com/influxdb/v2/api/#operation/PostQuery). The
// result lists the values of the column _value. The Secret with the credentials is in gitrollout's namespace.
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
	body, err := json.Marshal(map[string]any{
		"query": c.Query, "type": "flux",
		"dialect": map[string]any{"header": true, "delimiter": ",", "commentPrefix": "#",
			"annotations": []string{"datatype", "group", "default"}},
	})
	if err != nil {
		return Result{}, fmt.Errorf("encode the query: %w", err)
	}
	a, err := s.do(ctx, call.Request{
		Method: http.MethodPost, Base: secret["address"], Path: "/api/v2/query", Query: url.Values{"org": {secret["org"]}},
		Type: "application/json", Body: body,
		Header: http.Header{"Accept": {"application/csv"}, "Authorization": {"Token " + secret["authToken"]}},
	})
	if err != nil {
		return Result{}, err
	}
	values, err := fluxValues(string(a.Body))
	return Result{Value: values}, err
}

// fluxValues parses annotated CSV (https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/). Each table
// has annotations, a header and records. A failed query returns its error as a table.
func fluxValues(text string) ([]any, error) {
	values := []any{}
	var table fluxTable
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	for {
		record, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			if !table.headed && strings.TrimSpace(text) != "" {
				return nil, errFlux
			}
			return values, nil
		case err != nil:
			return nil, errFlux
		case strings.HasPrefix(record[0], "#"):
			table = table.annotate(record)
			continue
		case !table.headed:
			if err := table.head(record); err != nil {
				return nil, err
			}
			continue
		}
		if at := table.column["error"]; at > 0 && table.column["reference"] > 0 && at < len(record) &&
			table.column["_value"] == 0 {
			return nil, refusal("InfluxDB", record[at])
		}
		value, found, err := table.value(record)
		if err != nil {
			return nil, err
		}
		if found {
			values = append(values, value)
		}
	}
}

var errFlux = errors.New("the answer of InfluxDB differs from its documentation: it is no annotated CSV")

type fluxTable struct {
	types, defaults []string
	column          map[string]int // by label; 0 is the annotation column
	headed          bool
}

func (t fluxTable) annotate(record []string) fluxTable {
	if t.headed {
		t = fluxTable{} // an annotation after records begins a new table
	}
	switch record[0] {
	case "#datatype":
		t.types = record
	case "#default":
		t.defaults = record
	}
	return t
}

func (t *fluxTable) head(record []string) error {
	t.column = map[string]int{}
	for i, label := range record {
		t.column[label] = i
	}
	t.headed = true
	if len(record) < 2 {
		return errFlux
	}
	return nil
}

func (t *fluxTable) value(record []string) (any, bool, error) {
	at := t.column["_value"]
	if at == 0 {
		return nil, false, nil
	}
	if at >= len(record) {
		return nil, false, errFlux
	}
	text, kind := record[at], "string"
	if text == "" && at < len(t.defaults) {
		text = t.defaults[at]
	}
	if at < len(t.types) {
		kind = t.types[at]
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
	if text == "" {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("the answer of InfluxDB differs from its documentation: a value is no %s", kind)
	}
	return value, true, nil
}
