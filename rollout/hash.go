package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// HashVersion is the prefix of template hashes, and changes with the algorithm.
const HashVersion = "h1"

const contentVersion = "c1"

// Hash identifies a pod template, or a release of several: "h1-" and ten hexadecimal digits of a SHA-256. The hashed
// text is the rendered template as JSON with sorted keys, without API servers' defaults.
type Hash string

// HashTemplate returns the hash of spec.template.
func HashTemplate(template map[string]any) (Hash, error) {
	raw, err := json.Marshal(template) // sorts keys
	if err != nil {
		return "", fmt.Errorf("hash pod template: %w", err)
	}
	return hashBytes(HashVersion, raw), nil
}

// HashContent returns a hash ("c1-") of an app's namespace and objects. The order has no effect.
func HashContent(namespace string, objects []Object) (Hash, error) {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b Object) int { return a.Ref().Compare(b.Ref()) })
	raw, err := json.Marshal([]any{namespace, objects})
	if err != nil {
		return "", fmt.Errorf("hash content: %w", err)
	}
	return hashBytes(contentVersion, raw), nil
}

// ReleaseHash returns the hash of one template, or of the sorted list of workloads and template hashes. Without
// templates, it is "".
func ReleaseHash(templates map[Workload]Hash) Hash {
	lines := make([]string, 0, len(templates))
	var only Hash
	for w, h := range templates {
		lines = append(lines, w.String()+"="+string(h))
		only = h
	}
	if len(lines) <= 1 {
		return only
	}
	slices.Sort(lines)
	return hashBytes(HashVersion, []byte(strings.Join(lines, "\n")))
}

// IsHash reports whether a text has the prefix of a hash. No commit id has.
func IsHash(text string) bool {
	return strings.HasPrefix(text, HashVersion+"-") || strings.HasPrefix(text, contentVersion+"-")
}

func hashBytes(version string, raw []byte) Hash { return Hash(version + "-" + Digest(raw, 5)) }

// Digest returns the first bytes of a SHA-256 in hexadecimal.
func Digest(data []byte, bytes int) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:bytes])
}
