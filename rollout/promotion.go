package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
)

// Verb is the decision that a promotion file carries.
type Verb string

// The decisions.
const (
	Promote Verb = "promote" // open the gates up to Through
	Hold    Verb = "hold"    // no advance while this is what the file says
	Abort   Verb = "abort"   // back to stable; the hash is not tried again
	Retry   Verb = "retry"   // try a rejected hash again, from the first step
)

// Verbs lists all decisions.
func Verbs() []Verb { return []Verb{Promote, Hold, Abort, Retry} }

// Full is the Through of a promotion that opens all gates and skips the
// remaining weights.
const Full = "full"

// Promotion is the file .gitrollout/<cluster>/promote/<app>.yaml on the users'
// branch. It names the release by its hash, so that a late merge approves
// nothing that it was not meant for.
type Promotion struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"` // Promotion
	Release    Hash   `json:"release" needs:"name the release's hash, such as h1-7b4e2a91d0" like:"hash"`
	Through    string `json:"through,omitempty"` // a step's index or name, or "full"; for promote only; default full
	Decision   Verb   `json:"decision,omitempty" oneOf:"promote hold abort retry" default:"promote"`
	Reason     string `json:"reason,omitempty"` // for people
	At         string `json:"at,omitempty"`     // for people, and to make a second retry differ from the first

	Digest string `json:"-"` // of the file's bytes
	Author string `json:"-"` // of the head commit that the file was read from
}

// PromotionPath returns where an app's promotion file is.
func PromotionPath(cluster, app string) string {
	return ".gitrollout/" + cluster + "/promote/" + app + ".yaml"
}

// ParsePromotion reads a promotion file strictly: an unknown field, decision or
// version is an InvalidError that names the file.
func ParsePromotion(file string, data []byte) (*Promotion, error) {
	var wire promotionFile
	if err := decodeStrict(file, "Promotion", data, &wire); err != nil {
		return nil, err
	}
	p := wire.Promotion
	p.Through = string(wire.Through)
	sum := sha256.Sum256(data)
	p.Digest = hex.EncodeToString(sum[:5])
	return &p, nil
}

// promotionFile is the file's form: through: 2 is a number.
type promotionFile struct {
	Promotion
	Through stepText `json:"through" default:"full"`
}

// stepText takes a step as people write it in YAML: through: 2 is a number.
type stepText string

// Shape is the JSON Schema of a step.
func (stepText) Shape() map[string]any {
	return either(map[string]any{"type": "integer", "minimum": 0}, map[string]any{"type": "string", "minLength": 1})
}

// ReadValue reads a text or a whole number.
func (s *stepText) ReadValue(raw any) error {
	switch raw := raw.(type) {
	case string:
		*s = stepText(raw)
	case int64:
		*s = stepText(strconv.FormatInt(raw, 10))
	default:
		return fmt.Errorf("is %s where the name or the number of a step belongs", Describe(raw))
	}
	return nil
}

// Encode returns the bytes of the file, always the same for the same promotion.
func (p Promotion) Encode() ([]byte, error) {
	p.APIVersion, p.Kind = APIVersion, "Promotion"
	return encode(p)
}

// Opens reports whether the promotion opens the gate at step index of the
// release, whose steps have the given names ("" for none). A Through that names
// no step of the list opens nothing.
func (p *Promotion) Opens(release Hash, names []string, index int) bool {
	if !p.Says(Promote, release) {
		return false
	}
	if p.Through == Full {
		return true
	}
	through := slices.Index(names, p.Through)
	if n, err := strconv.Atoi(p.Through); through < 0 && err == nil {
		through = n
	}
	return through >= 0 && through < len(names) && index <= through
}

// Says reports whether the promotion carries a decision for the release.
func (p *Promotion) Says(v Verb, release Hash) bool {
	return p != nil && p.Decision == v && p.Release == release && release != ""
}

// OpensAll reports whether the promotion skips all the rest of the release.
func (p *Promotion) OpensAll(release Hash) bool { return p.Says(Promote, release) && p.Through == Full }
