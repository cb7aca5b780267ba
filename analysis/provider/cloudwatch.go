package provider

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// cloudWatchConfig calls GetMetricData of Amazon CloudWatch
// (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html). The result is the list of
// MetricDataResults, as in result[0].Values. Region and credentials come from the environment.
type cloudWatchConfig struct {
	Interval string            `json:"interval,omitempty" check:"duration"` // queried period; default 5m
	Queries  []cloudWatchQuery `json:"metricDataQueries"`
}

type cloudWatchQuery struct {
	ID         string          `json:"id,omitempty"`
	Expression string          `json:"expression,omitempty"`
	Label      string          `json:"label,omitempty"`
	MetricStat *cloudWatchStat `json:"metricStat,omitempty"`
	Period     numberOrText    `json:"period,omitempty"`
	ReturnData *bool           `json:"returnData,omitempty"`
}

type cloudWatchStat struct {
	Metric struct {
		Namespace  string `json:"namespace,omitempty"`
		MetricName string `json:"metricName,omitempty" required:"name the metric"`
		Dimensions []struct {
			Name  string `json:"name,omitempty"`
			Value string `json:"value,omitempty"`
		} `json:"dimensions,omitempty"`
	} `json:"metric,omitempty"`
	Period numberOrText `json:"period,omitempty"`
	Stat   string       `json:"stat,omitempty" required:"give Sum, Average, p99 or the like"`
	Unit   string       `json:"unit,omitempty"`
}

// numberOrText is 300 or "300", because a filled-in "{{args.period}}" is a text.
type numberOrText string

func (numberOrText) Shape() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}
}

func (n *numberOrText) ReadValue(raw any) error {
	*n = numberOrText(fmt.Sprint(raw))
	return nil
}

func (n numberOrText) check(field string) error {
	if n == "" || hasArgument(string(n)) {
		return nil
	}
	if seconds, err := strconv.Atoi(string(n)); err != nil || seconds < 1 {
		return wrong(field, "give a number of seconds: 60 or a multiple of 60", "is %s", string(n))
	}
	return nil
}

var cloudWatchID = regexp.MustCompile(`^[a-z][a-zA-Z0-9_]{0,254}$`)

func (c *cloudWatchConfig) check() error {
	if len(c.Queries) == 0 {
		return required("metricDataQueries", "", "give at least one query with an id, and a metricStat or an expression")
	}
	returned := 0
	for i, q := range c.Queries {
		if err := q.check(fmt.Sprintf("metricDataQueries[%d]", i)); err != nil {
			return err
		}
		if q.ReturnData == nil || *q.ReturnData {
			returned++
		}
	}
	if returned == 0 {
		return wrong("metricDataQueries", "remove it from the query that gives the result", "all have returnData: false")
	}
	return nil
}

func (q cloudWatchQuery) check(at string) error {
	switch {
	case !cloudWatchID.MatchString(q.ID) && !hasArgument(q.ID):
		return wrong(at+".id", "begin with a small letter, and use letters, digits and _", "%q is not a valid id", q.ID)
	case (q.Expression == "") == (q.MetricStat == nil):
		return wrong(at, "give exactly one", "needs either expression or metricStat")
	case q.MetricStat == nil:
		return q.Period.check(at + ".period")
	}
	period := at + ".metricStat.period"
	return cmp.Or(
		required(period, string(q.MetricStat.Period), "give the seconds per value: 60 or a multiple of 60"),
		q.MetricStat.Period.check(period))
}

func (c *cloudWatchConfig) timeout() time.Duration { return 30 * time.Second }

func (c *cloudWatchConfig) measure(ctx context.Context, s *session) (Result, error) {
	g, err := sigv4Config{}.signer(ctx, s, "monitoring")
	if err != nil {
		return Result{}, err
	}
	a, err := askAWS(ctx, s, awsEndpoint(s, "monitoring", "CLOUDWATCH", g.region), c.form(s.deps.Now()), g)
	if err != nil {
		return Result{}, err
	}
	return cloudWatchResult(a.Body, s.request.Compare != nil)
}

func (c *cloudWatchConfig) form(now time.Time) url.Values {
	f := url.Values{"Action": {"GetMetricData"}, "Version": {"2010-08-01"}}
	f.Set("EndTime", now.UTC().Format(time.RFC3339))
	f.Set("StartTime", now.Add(-duration(c.Interval, 5*time.Minute)).UTC().Format(time.RFC3339))
	queries, _ := rollout.Plain(c.Queries) // cannot fail
	addParameters(f, "MetricDataQueries", queries)
	return f
}

// addParameters adds a value's parameters with the names of AWS' query protocol, such as A.member.1.B for the first B
// in a list A.
func addParameters(f url.Values, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for field, sub := range v {
			addParameters(f, name+"."+strings.ToUpper(field[:1])+field[1:], sub)
		}
	case []any:
		for i, sub := range v {
			addParameters(f, fmt.Sprintf("%s.member.%d", name, i+1), sub)
		}
	default:
		f.Set(name, fmt.Sprint(v))
	}
}

type cloudWatchMessage struct {
	Code  string
	Value string
}

// cloudWatchResult refuses the status InternalError or Forbidden. If pair is set, it also refuses PartialData, and
// returns [bad, all]: the sums of the queries "bad" and "of".
func cloudWatchResult(body []byte, pair bool) (Result, error) {
	var answered struct {
		XMLName xml.Name `xml:"GetMetricDataResponse"`
		Data    []struct {
			ID         string              `xml:"Id"`
			Label      string              `xml:"Label"`
			StatusCode string              `xml:"StatusCode"`
			Values     []string            `xml:"Values>member"`
			Timestamps []string            `xml:"Timestamps>member"`
			Messages   []cloudWatchMessage `xml:"Messages>member"`
		} `xml:"GetMetricDataResult>MetricDataResults>member"`
		Messages []cloudWatchMessage `xml:"GetMetricDataResult>Messages>member"`
	}
	if err := xml.Unmarshal(body, &answered); err != nil {
		return Result{}, errors.New("the answer of CloudWatch differs from its documentation")
	}
	messages := answered.Messages
	results, named := []any{}, map[string]float64{}
	for _, data := range answered.Data {
		messages = append(messages, data.Messages...)
		if s := data.StatusCode; s == "InternalError" || s == "Forbidden" || s == "PartialData" && pair {
			return Result{}, refusal("CloudWatch", rollout.Cut(data.ID, 60)+" is "+data.StatusCode+messagesOf(messages))
		}
		values, times := []any{}, []any{}
		for _, text := range data.Values {
			f, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return Result{}, unlike("CloudWatch", "a value is not a number")
			}
			values = append(values, f)
			named[data.ID] += f
		}
		for _, text := range data.Timestamps {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return Result{}, unlike("CloudWatch", "a timestamp is invalid")
			}
			times = append(times, at)
		}
		results = append(results, map[string]any{"Id": data.ID, "Label": data.Label, "StatusCode": data.StatusCode,
			"Values": values, "Timestamps": times})
	}
	result := Result{Value: map[bool]any{true: pairOf(named), false: results}[pair]}
	if len(messages) > 0 {
		result.Metadata = map[string]string{"messages": strings.TrimPrefix(messagesOf(messages), ": ")}
	}
	return result, nil
}

func messagesOf(messages []cloudWatchMessage) string {
	if len(messages) == 0 {
		return ""
	}
	texts := rollout.Mapped(messages, func(m cloudWatchMessage) string { return m.Code + " " + m.Value })
	return ": " + strings.Join(texts, "; ")
}
