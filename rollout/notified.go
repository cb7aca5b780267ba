package rollout

import "time"

// Notified is notified.yaml on the branch gitrollout/notified/<cluster>, with receivers' positions. A process claims
// events before it sends them, so that no other process sends the same events.
type Notified struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`           // Notified
	By         string            `json:"by,omitempty"`   // process that sends the claimed events
	Since      time.Time         `json:"since,omitzero"` // time of the claim, by the clock of By
	Receivers  map[string]Cursor `json:"receivers"`      // by the receiver's name
}

// Cursor is a receiver's position in the state branch's history.
type Cursor struct {
	Told    string `json:"told,omitempty"`    // last state commit whose events were all sent, or ""
	App     string `json:"app,omitempty"`     // in the commit after Told: last app (by name) whose events were sent
	Claimed string `json:"claimed,omitempty"` // last state commit whose events are claimed
}

// NotifiedPath is the path of notified.yaml.
const NotifiedPath = "notified.yaml"

// NotifiedBranch returns the branch of notified.yaml. Pushes to a separate branch do not delay pushes of states.
func NotifiedBranch(cluster string) string { return "gitrollout/notified/" + cluster }

// ParseNotified reads notified.yaml strictly.
func ParseNotified(data []byte) (*Notified, error) {
	return decode[Notified](NotifiedPath, "Notified", data)
}

// Encode returns notified.yaml. Equal values have equal bytes.
func (n Notified) Encode() ([]byte, error) {
	n.APIVersion, n.Kind = AlphaVersion, "Notified"
	return encode(n)
}
