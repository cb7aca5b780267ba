package rollout

import (
	"strings"
	"time"
)

// Freeze is the file .gitrollout/<cluster>/freeze.yaml. Until its end, no release advances.
type Freeze struct {
	Reason string
	Until  time.Time // zero: until the file is removed
	Apps   []string  // globs for apps' names; empty: all apps
}

// FreezePath returns the path of freeze.yaml.
func FreezePath(cluster string) string { return ".gitrollout/" + cluster + "/freeze.yaml" }

type freezeFile struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"` // Freeze
	Reason     string   `json:"reason" needs:"say why nothing is to be released: waiting users will read it"`
	Until      string   `json:"until" like:"time"`
	Apps       []string `json:"apps" like:"glob"`
}

// ParseFreeze reads a freeze strictly. After an error, call Unreadable: an invalid file stops releases, too.
func ParseFreeze(file string, data []byte) (*Freeze, error) {
	raw, err := decode[freezeFile](file, "Freeze", data)
	if err != nil {
		return nil, err
	}
	f := &Freeze{Reason: strings.Join(strings.Fields(raw.Reason), " "), Apps: raw.Apps}
	if f.Reason == "" {
		return nil, Invalidf(file, "reason", "is missing").
			WithFix("say why nothing is to be released: waiting users will read it")
	}
	if raw.Until != "" {
		until, err := time.Parse(time.RFC3339, raw.Until)
		if err != nil {
			return nil, Invalidf(file, "until", "%q is not a time", raw.Until).
				WithFix("write 2027-01-07T08:00:00+01:00 or the like, or leave it out")
		}
		f.Until = until
	}
	if err := checkGlobs(file, "apps", f.Apps); err != nil {
		return nil, err
	}
	return f, nil
}

// Unreadable returns a freeze of all apps.
func Unreadable(err error) *Freeze { return &Freeze{Reason: err.Error()} }

// At reports whether the freeze, perhaps nil, is in force.
func (f *Freeze) At(t time.Time) bool { return f != nil && (f.Until.IsZero() || t.Before(f.Until)) }

// Equal compares freezes, perhaps nil.
func (f *Freeze) Equal(o *Freeze) bool { return equality.DeepEqual(f, o) }
