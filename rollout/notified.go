package rollout

import "time"

// Notified is the file notified.yaml on the branch gitrollout/notified/<cluster>: up to where each receiver has been
// told. Whoever is about to tell something claims it first, so that no two processes do.
type Notified struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`           // Notified
	By         string            `json:"by,omitempty"`   // the process that is telling what is claimed
	Since      time.Time         `json:"since,omitzero"` // when it claimed that, by its own clock
	Receivers  map[string]Cursor `json:"receivers"`      // by name
}

// Cursor is how far one receiver has been told.
type Cursor struct {
	Told    string `json:"told,omitempty"`    // the state commit; "": before the first one
	App     string `json:"app,omitempty"`     // and of the commit after it all apps up to this one, by name
	Claimed string `json:"claimed,omitempty"` // the state commit up to which it is being told
}

// NotifiedPath is where the record is on its branch.
const NotifiedPath = "notified.yaml"

// NotifiedBranch returns the branch that a cluster's record is on. It is not the
// state branch: telling people must never stand in the way of a release.
func NotifiedBranch(cluster string) string { return "gitrollout/notified/" + cluster }

// ParseNotified reads the record strictly.
func ParseNotified(data []byte) (*Notified, error) {
	return decode[Notified](NotifiedPath, "Notified", data)
}

// Encode returns the bytes of the file, always the same for the same record.
func (n Notified) Encode() ([]byte, error) {
	n.APIVersion, n.Kind = APIVersion, "Notified"
	return encode(n)
}
