package rollout

import "time"

// Notified is the file notified.yaml on the branch gitrollout/notified/<cluster>, with each receiver's position. A
// process claims events in the file, so that no other process sends them.
type Notified struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`           // Notified
	By         string            `json:"by,omitempty"`   // the process that sends the claimed events
	Since      time.Time         `json:"since,omitzero"` // the time of the claim, by the clock of the process By
	Receivers  map[string]Cursor `json:"receivers"`      // the key is the receiver's name
}

// Cursor is one receiver's position in the history of the state branch.
type Cursor struct {
	Told    string `json:"told,omitempty"`    // the last state commit whose events were all sent, "" if there is none
	App     string `json:"app,omitempty"`     // the last app (by name) whose events in the commit after Told were sent
	Claimed string `json:"claimed,omitempty"` // the last state commit whose events a process has claimed
}

// NotifiedPath is the path of notified.yaml on its branch.
const NotifiedPath = "notified.yaml"

// NotifiedBranch returns the branch of notified.yaml. Pushes to it do not delay pushes to the state branch.
func NotifiedBranch(cluster string) string { return "gitrollout/notified/" + cluster }

// ParseNotified reads notified.yaml strictly.
func ParseNotified(data []byte) (*Notified, error) {
	return decode[Notified](NotifiedPath, "Notified", data)
}

// Encode returns the bytes of notified.yaml. Equal values have equal bytes.
func (n Notified) Encode() ([]byte, error) {
	n.APIVersion, n.Kind = APIVersion, "Notified"
	return encode(n)
}
