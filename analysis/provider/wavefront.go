package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// wavefrontConfig runs a query on Wavefront, now VMware Aria Operations for Applications
// (https://docs.wavefront.com/wavefront_api.html, Charts API). The result is each series' point nearest to now: a
// number, or a list for several series. gitrollout's Secret wavefront-api-tokens has a token per host.
type wavefrontConfig struct {
	Address string `json:"address" required:"give the host, as in example.wavefront.com"` // or a URL
	Query   string `json:"query" required:"write the query, as in ts(…)"`
}

const wavefrontSecret = "wavefront-api-tokens"

func (c *wavefrontConfig) check() error {
	if !hasArgument(c.Address) && checkURL("address", c.url()) != nil {
		return wrong("address", "write it as in example.wavefront.com", "%q is not a host", shown(c.Address))
	}
	return nil
}

func (c *wavefrontConfig) url() string {
	if strings.Contains(c.Address, "://") {
		return c.Address
	}
	return "https://" + c.Address
}

func (c *wavefrontConfig) timeout() time.Duration { return 30 * time.Second }

func (c *wavefrontConfig) measure(ctx context.Context, s *session) (Result, error) {
	u, err := url.Parse(c.url())
	if err != nil {
		return Result{}, errors.New("wavefront.address is not a host")
	}
	secret, err := s.secret(ctx, "", wavefrontSecret)
	if err != nil {
		return Result{}, err
	}
	token := cmp.Or(secret[c.Address], secret[u.Hostname()])
	if token == "" {
		return Result{}, fmt.Errorf("the Secret %s has no %s", wavefrontSecret, u.Hostname())
	}
	now := s.deps.Now()
	at := strconv.FormatInt(now.Unix()*1000, 10)
	// The query asks for one point per series at the current time; the answer's points may be older.
	a, err := s.do(ctx, call.Request{
		Method: http.MethodGet, Base: c.url(), Path: "/api/v2/chart/api",
		Query:  url.Values{"q": {c.Query}, "s": {at}, "e": {at}, "p": {"1"}, "g": {"s"}, "i": {"true"}},
		Header: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		return Result{}, err
	}
	return wavefrontResult(a.Body, float64(now.Unix()), s.request.Compare != nil)
}

func wavefrontResult(body []byte, now float64, pair bool) (Result, error) {
	var answered struct {
		Series []struct {
			Points [][]float64 `json:"data"` // [seconds, value]
		} `json:"timeseries"`
		Warnings     string `json:"warnings"`
		ErrorType    string `json:"errorType"`
		ErrorMessage string `json:"errorMessage"`
	}
	if err := call.Decode("Wavefront", body, &answered); err != nil {
		return Result{}, err
	}
	if answered.ErrorType != "" || answered.ErrorMessage != "" {
		return Result{}, refusal("Wavefront", cmp.Or(answered.ErrorMessage, answered.ErrorType))
	}
	result := Result{Metadata: map[string]string{}}
	if answered.Warnings != "" {
		result.Metadata["warnings"] = answered.Warnings
	}
	var values []any
	var times, drifts []string
	for _, series := range answered.Series {
		nearest := []float64{0, 0}
		for i, p := range series.Points {
			if len(p) != 2 {
				return Result{}, unlike("Wavefront", "a point is not a pair")
			}
			if i == 0 || math.Abs(p[0]-now) < math.Abs(nearest[0]-now) {
				nearest = p
			}
		}
		if len(series.Points) > 0 {
			values = append(values, nearest[1])
			times = append(times, strconv.FormatFloat(nearest[0], 'f', 0, 64))
			drifts = append(drifts, strconv.FormatFloat(nearest[0]-now, 'f', 0, 64))
		}
	}
	switch n := len(values); {
	case n == 0:
	case n == 1 && !pair:
		result.Value, result.Metadata["timestamps"], result.Metadata["drift"] = values[0], times[0], drifts[0]
	default:
		result.Value, result.Metadata["timestamps"] = values, "["+strings.Join(times, ",")+"]"
		result.Metadata["drift"] = "[" + strings.Join(drifts, ",") + "]"
	}
	return result, nil
}
