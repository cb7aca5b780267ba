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

// Hash identifies pod templates ("h1-") or content ("c1-"). After the prefix, it has ten hexadecimal digits of a
// SHA-256 of JSON. The JSON has sorted keys, and no defaults of API servers.
type Hash string

// HashTemplate returns the hash of spec.template.
func HashTemplate(template map[string]any) (Hash, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("hash pod template: %w", err)
	}
	return hashBytes(HashVersion, raw), nil
}

// HashContent returns a hash ("c1-") of a namespace and objects, regardless of order.
func HashContent(namespace string, objects []Object) (Hash, error) {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b Object) int { return a.Ref().Compare(b.Ref()) })
	raw, err := json.Marshal([]any{namespace, objects})
	if err != nil {
		return "", fmt.Errorf("hash content: %w", err)
	}
	return hashBytes(contentVersion, raw), nil
}

// ReleaseHash returns a single template's hash, or "" without templates. For several templates, it returns a hash of
// the sorted workloads and their hashes.
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

// IsHash distinguishes hashes from commit ids by the prefix.
func IsHash(text string) bool {
	return strings.HasPrefix(text, HashVersion+"-") || strings.HasPrefix(text, contentVersion+"-")
}

func hashBytes(version string, raw []byte) Hash { return Hash(version + "-" + Digest(raw, 5)) }

// Digest returns a SHA-256's first bytes in hexadecimal.
func Digest(data []byte, bytes int) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:bytes])
}
