package rollout

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Sequential is the state of a sequential test of a new version against stable. Its size is constant.
type Sequential struct {
	Since  time.Time `json:"since"`              // start of the counts: start of the present weight, or later
	Canary int       `json:"canary" large:"yes"` // all requests to the new version
	Stable int       `json:"stable" large:"yes"` // all requests to stable
	// Past has stable's bad and total requests at earlier weights. It is nil without Compare.MaxIncrease.
	Past []int `json:"past,omitempty" large:"yes"`
	// Last has each version's new requests in the last measurement that counted both versions.
	Last  []int  `json:"last,omitempty" large:"yes"`
	Tests []Test `json:"tests"` // one, or one for each bound of a histogram

	// The release fails when its metrics' mean evidence reaches Limit. Metrics is the number of these metrics.
	Limit   float64 `json:"limit"`
	Metrics int     `json:"metrics"`
}

// Value returns a metric's evidence that the new version is worse, or 1 before the first measurement. By Ville's
// inequality, the evidence of a version that is not worse reaches 1/α with probability at most α. The same holds for
// several metrics' mean.
func (s *Sequential) Value() float64 {
	if s == nil || len(s.Tests) == 0 {
		return 1
	}
	sum := 0.0
	for _, t := range s.Tests {
		for _, v := range t.Logs {
			sum += math.Exp(v)
		}
	}
	return sum / float64(len(s.Tests)*len(Ratios))
}

// Ratios lists the relative risks for which a Test collects evidence. A relative risk is the fraction of the new
// version's requests that are bad, divided by stable's fraction.
var Ratios = [8]float64{1.25, 1.6, 2, 3, 5, 10, 25, 60}

// Test counts bad requests. A histogram has one Test for each bound.
type Test struct {
	Bound          float64 // in a histogram, slower requests are bad; else 0
	Canary, Stable int     // bad requests
	// Logs has the natural logarithm of the evidence for each of Ratios.
	Logs [len(Ratios)]float64
}

// MarshalText writes "BOUND CANARY STABLE LOGS". LOGS are base64 of 32-bit floats, rounded down.
func (t Test) MarshalText() ([]byte, error) {
	var raw []byte
	for _, v := range t.Logs {
		short := float32(v)
		if float64(short) > v {
			short = math.Nextafter32(short, float32(math.Inf(-1)))
		}
		raw = binary.BigEndian.AppendUint32(raw, math.Float32bits(short))
	}
	return fmt.Appendf(nil, "%v %d %d %s", t.Bound, t.Canary, t.Stable, base64.RawStdEncoding.EncodeToString(raw)), nil
}

// UnmarshalText reads MarshalText's form. Numbers must be finite.
func (t *Test) UnmarshalText(text []byte) error {
	var logs string
	_, err := fmt.Sscanf(string(text), "%g %d %d %s", &t.Bound, &t.Canary, &t.Stable, &logs)
	raw, errLogs := base64.RawStdEncoding.DecodeString(logs)
	if err != nil || errLogs != nil || len(raw) != 4*len(t.Logs) {
		return fmt.Errorf("%q is not BOUND CANARY STABLE LOGS of a sequential test", text)
	}
	sum := t.Bound
	for i := range t.Logs {
		t.Logs[i] = float64(math.Float32frombits(binary.BigEndian.Uint32(raw[4*i:])))
		sum += t.Logs[i]
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) || t.Canary < 0 || t.Stable < 0 {
		return fmt.Errorf("%q has a number that is negative or not finite", text)
	}
	return nil
}
