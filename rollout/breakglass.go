package rollout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// AnnotationBreakGlass is set on a workload by "gitrollout abort --break-glass". Its value is a BreakGlass as JSON. The
// right to patch the workload is the right to abort its release while Git is away.
const AnnotationBreakGlass = "gitrollout.dev/break-glass"

// BreakGlass is a user's request in the cluster to roll a release back. It applies to one attempt at one version.
type BreakGlass struct {
	Release Hash      `json:"release"` // the release's hash, or the template hash of the annotated workload
	Serial  int       `json:"serial"`  // the workload's LabelSerial at the time of the request
	By      string    `json:"by"`      // the user's name at the API server
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
}

// Encode returns the annotation's value.
func (b BreakGlass) Encode() string {
	data, _ := json.Marshal(b) // cannot fail for texts and numbers
	return string(data)
}

// ParseBreakGlass reads the annotation's value. Its texts are made printable.
func ParseBreakGlass(value string) (b BreakGlass, err error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(value)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		return b, fmt.Errorf("is not valid: %w", err)
	}
	if b.Release == "" || b.Serial < 1 {
		return b, errors.New("names no release or no serial")
	}
	b.By, b.Reason = Printable(b.By), Printable(b.Reason)
	return b, nil
}

// Text returns the reason of the rollback: "aborted by break glass of ann: v2 fails".
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
