package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

var testNow = time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSigv4 compares signatures with examples of AWS's test suite for Signature Version 4
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
func TestSigv4(t *testing.T) {
	for name, c := range map[string]struct{ method, url, kind, body, want string }{
		"get-vanilla": {"GET", "https://example.amazonaws.com/", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-query-order-key-case": {"GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", "", "",
			"b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"post-vanilla": {"POST", "https://example.amazonaws.com/", "", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-x-www-form-urlencoded": {"POST", "https://example.amazonaws.com/", "application/x-www-form-urlencoded", "Param1=value1",
			"ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, strings.NewReader(c.body))
		must(t, err)
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		g := signer{
			awsKeys: awsKeys{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"},
			region:  "us-east-1", service: "service", at: time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC),
		}
		g.sign(r, []byte(c.body))
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.want) {
			t.Errorf("%s: got %s, want the signature %s", name, got, c.want)
		}
	}
}

// TestLookback checks the time that a comparison covers: the last interval or, with lookback, the whole run.
func TestLookback(t *testing.T) {
	started := testNow.Add(-time.Hour)
	for name, c := range map[string]struct {
		lookback bool
		started  time.Time
		want     string
	}{
		"Interval": {false, started, "2026-01-31T11:55:30Z"}, "Run": {true, started, "2026-01-31T11:00:30Z"},
		"NoRun": {true, time.Time{}, "2026-01-31T11:55:30Z"},
	} {
		config := &kayentaConfig{Lookback: c.lookback, Threshold: &kayentaThreshold{}, Scopes: []kayentaScope{{Name: "d"}}}
		s := &session{deps: Deps{Now: func() time.Time { return testNow }}, request: Request{Started: c.started, Interval: 5 * time.Minute}}
		text, err := json.Marshal(config.comparison(s))
		if err != nil || strings.Count(string(text), `"start":"`+c.want+`"`) != 2 {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}
