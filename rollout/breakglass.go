package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// AnnotationBreakGlass is set on a workload by "gitrollout abort --break-glass". Its value is a BreakGlass as JSON.
// Users who may patch the workload can thus abort a release while Git is unreachable.
const AnnotationBreakGlass = "gitrollout.dev/break-glass"

// BreakGlass requests, in the cluster, the rollback of one release attempt.
type BreakGlass struct {
	Release Hash      `json:"release"` // hash of the release, or of the annotated workload's template
	Serial  int       `json:"serial"`  // LabelSerial at the time of the request
	By      string    `json:"by"`      // user's name at the API server
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

// Encode returns the annotation's value. HTML characters stay unescaped, because admission policies read the user's
// name.
func (b BreakGlass) Encode() string {
	var value strings.Builder
	encoder := json.NewEncoder(&value)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(b)
	return strings.TrimSuffix(value.String(), "\n")
}

// ParseBreakGlass reads the output of Encode, and makes texts printable. It refuses JSON that Encode never writes, such
// as duplicate fields, because a policy might check the first field while ParseBreakGlass reads the last.
func ParseBreakGlass(value string) (b BreakGlass, err error) {
	if err := json.Unmarshal([]byte(value), &b); err != nil {
		return b, fmt.Errorf("is not valid: %w", err)
	}
	switch {
	case b.Release == "" || b.Serial < 1:
		return b, errors.New("lacks a release or a serial")
	case b.Encode() != value:
		return b, errors.New("was not written by gitrollout abort --break-glass")
	}
	b.By, b.Reason = Printable(b.By), Printable(b.Reason)
	return b, nil
}

// Text returns a reason such as "aborted by break glass of ann: v2 fails".
func (b BreakGlass) Text() string {
	text := "aborted by break glass"
	if b.By != "" {
		text += " of " + b.By
	}
	if b.Reason != "" {
		text += ": " + b.Reason
	}
	return Printable(text)
}
