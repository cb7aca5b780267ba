package rollout

import (
	"strings"
	"time"
)

// Freeze is the file .gitrollout/<cluster>/freeze.yaml. Until the freeze ends, no release advances.
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

// ParseFreeze reads a freeze strictly. After an error, call Unreadable: an invalid file also stops releases.
func ParseFreeze(file string, data []byte) (*Freeze, error) {
	raw, err := decode[freezeFile](file, "Freeze", data)
	if err != nil {
		return nil, err
	}
	f, err := newFreeze(file, "", raw.Reason, raw.Until)
	if err != nil {
		return nil, err
	}
	f.Apps = raw.Apps
	if err := checkGlobs(file, "apps", f.Apps); err != nil {
		return nil, err
	}
	return f, nil
}

func newFreeze(file, below, reason, until string) (f *Freeze, err error) {
	f = &Freeze{Reason: strings.Join(strings.Fields(reason), " ")}
	if f.Reason == "" {
		return nil, Invalidf(file, below+"reason", "is missing").
			WithFix("say why nothing is to be released: waiting users will read it")
	}
	if until != "" {
		if f.Until, err = time.Parse(time.RFC3339, until); err != nil {
			return nil, Invalidf(file, below+"until", "%q is not a time", until).
				WithFix("write 2027-01-07T08:00:00+01:00 or the like, or leave it out")
		}
	}
	return f, nil
}

// Unreadable returns a freeze of all apps.
func Unreadable(err error) *Freeze { return &Freeze{Reason: err.Error()} }

// At reports whether the freeze, perhaps nil, is in force.
func (f *Freeze) At(t time.Time) bool { return f != nil && (f.Until.IsZero() || t.Before(f.Until)) }

// Longer returns the freeze that ends later. Each may be nil.
func (f *Freeze) Longer(o *Freeze) *Freeze {
	if f == nil || o != nil && !f.Until.IsZero() && (o.Until.IsZero() || o.Until.After(f.Until)) {
		return o
	}
	return f
}

// Equal compares freezes, perhaps nil.
func (f *Freeze) Equal(o *Freeze) bool { return equality.DeepEqual(f, o) }
