package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Verb is a promotion file's decision.
type Verb string

const (
	Promote Verb = "promote" // open gates up to the step Through
	Hold    Verb = "hold"    // no workload advances while the file says hold
	Abort   Verb = "abort"   // roll back to stable, and reject the hash
	Retry   Verb = "retry"   // release a rejected hash again, from the first step
	Restart Verb = "restart" // replace stable pods created before RestartAt
)

// Verbs lists all decisions.
func Verbs() []Verb { return []Verb{Promote, Hold, Abort, Retry, Restart} }

// Full is a value of Through. It opens all gates and skips all remaining steps.
const Full = "full"

// ThroughEntry is a value of Through. It lets an app take a change ahead of its cohort or stage, but opens no gate.
const ThroughEntry = "entry"

// Promotion is the file .gitrollout/<cluster>/promote/<app>.yaml. It names a hash, and may name workloads and the
// attempt's start, so that a late merge promotes no other release.
type Promotion struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // Promotion
	Release    Hash   `json:"release" needs:"name the release's hash, such as h1-7b4e2a91d0" like:"hash"`
	Through    string `json:"through,omitempty"` // for all workloads: a step's name, number from 1, or "full"
	// Workloads has a value of Through for each workload to promote. With Workloads, Through is empty.
	Workloads map[Workload]string `json:"workloads,omitempty"`
	Since     time.Time           `json:"since,omitzero"` // Release.Since of the attempt; zero: any attempt
	Decision  Verb                `json:"decision,omitempty" oneOf:"promote hold abort retry restart" default:"promote"`
	Reason    string              `json:"reason,omitempty"`
	At        string              `json:"at,omitempty"`       // time of the decision; a second retry needs a later time
	RestartAt time.Time           `json:"restartAt,omitzero"` // only for "restart"
	// Commit is the commit of the change, if Through is "entry". Without At, the app is approved, but still waits for
	// its turn in a stage.
	Commit string `json:"commit,omitempty"`
	// AdoptAnyway takes the app over from another controller, for this release only.
	AdoptAnyway bool `json:"adoptAnyway,omitempty"`

	Forbidden string `json:"-"` // the policy's rule against skipping waits, or ""
	Barred    bool   `json:"-"` // the author may not promote, so the promotion opens nothing
	Digest    string `json:"-"` // digest of the file's bytes
	Author    string `json:"-"` // author of the file's commit
}

// PromotionPath returns the path of an app's promotion file.
func PromotionPath(cluster, app string) string {
	return ".gitrollout/" + cluster + "/promote/" + app + ".yaml"
}

// ParsePromotion reads a promotion file strictly.
func ParsePromotion(file string, data []byte) (*Promotion, error) {
	wire, err := decode[promotionFile](file, "Promotion", data)
	if err != nil {
		return nil, err
	}
	p := wire.Promotion
	if p.Through = string(wire.Through); p.Through != "" && wire.Workloads != nil {
		return nil, Invalidf(file, "workloads", "conflicts with through").WithFix("keep only one")
	}
	for w, step := range wire.Workloads {
		if p.Workloads == nil {
			p.Workloads = map[Workload]string{}
		}
		p.Workloads[w] = string(step)
	}
	if wire.Workloads == nil {
		p.Through = cmp.Or(p.Through, Full)
	}
	if p.RestartAt.IsZero() == (p.Decision == Restart) {
		return nil, Invalidf(file, "restartAt", "is needed with decision: restart, and only with it").
			WithFix("give both, as in restartAt: %s", "2026-01-02T15:04:05Z")
	}
	p.Digest = Digest(data, 5)
	return &p, nil
}

type promotionFile struct {
	Promotion
	Through   stepText              `json:"through"`
	Workloads map[Workload]stepText `json:"workloads"`
}

// stepText exists because YAML reads "through: 2" as a number.
type stepText string

func (stepText) Shape() map[string]any {
	return either(map[string]any{"type": "integer", "minimum": 0}, map[string]any{"type": "string", "minLength": 1})
}

func (s *stepText) ReadValue(raw any) error {
	switch raw := raw.(type) {
	case string:
		*s = stepText(raw)
	case int64:
		*s = stepText(strconv.FormatInt(raw, 10))
	default:
		return fmt.Errorf("must be the name or the number of a step, not %s", Describe(raw))
	}
	return nil
}

// For returns the promotion in the format of the program that wrote a state. An older program may not know the newest
// APIVersion.
func (p Promotion) For(s State) Promotion {
	if p.APIVersion == "" && s.APIVersion == APIVersion {
		p.APIVersion = APIVersion
	}
	return p
}

// Encode returns the file's bytes. An empty apiVersion becomes StepsVersion if a field needs this version, else
// AlphaVersion.
func (p Promotion) Encode() ([]byte, error) {
	_, err := strconv.Atoi(p.Through)
	if isNew := err == nil || p.Workloads != nil || !p.Since.IsZero(); p.APIVersion == "" && isNew {
		p.APIVersion = StepsVersion
	}
	p.APIVersion, p.Kind = cmp.Or(p.APIVersion, AlphaVersion), "Promotion"
	return encode(p)
}

// Opens reports whether the file opens a step's gate. The list of names has "" for a step without a name. If the file
// names an unknown step, no gate opens.
func (p *Promotion) Opens(release Hash, w Workload, names []string, index int) bool {
	last, found := p.Last(w, names)
	return found && index <= last && p.Says(Promote, release)
}

// Last returns the index of the last opened step, or len(names) for all.
func (p *Promotion) Last(w Workload, names []string) (index int, found bool) {
	if p == nil {
		return 0, false
	}
	through := p.Through
	if p.Workloads != nil {
		through = p.Workloads[w]
	}
	switch n, err := strconv.Atoi(through); {
	case through == Full:
		return len(names), true
	case through == "":
		return 0, false
	case slices.Contains(names, through):
		return slices.Index(names, through), true
	case p.APIVersion == AlphaVersion:
		return n, err == nil && n >= 0 && n < len(names)
	default:
		return n - 1, err == nil && n >= 1 && n <= len(names)
	}
}

// Says reports whether the promotion has a decision for the release. A Barred file never says Promote.
func (p *Promotion) Says(v Verb, release Hash) bool {
	return p != nil && p.Decision == v && p.Release == release && release != "" && (v != Promote || !p.Barred)
}

// SkipsSteps reports whether any workload's remaining steps are skipped.
func (p *Promotion) SkipsSteps() bool {
	return p != nil && p.Decision == Promote &&
		(p.Through == Full || slices.Contains(slices.Collect(maps.Values(p.Workloads)), Full))
}

// OpensAll reports whether all workloads' remaining steps are skipped.
func (p *Promotion) OpensAll(release Hash) bool {
	return p.Says(Promote, release) && p.Through == Full && p.Workloads == nil
}
