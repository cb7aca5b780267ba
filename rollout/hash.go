package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// HashVersion is the version of the template hash. It is part of each hash, so
// that a change of the algorithm is told apart from a change of the template
// and starts no release.
const HashVersion = "h1"

// Hash identifies a pod template, or a release of several, as "h1-" and ten
// hexadecimal digits. The digits are the start of the SHA-256 of the template
// as JSON with sorted keys, exactly as it was rendered: no API server has
// defaulted it and no Kubernetes library's struct is involved, so that neither
// an upgrade of the cluster nor one of the libraries changes it.
type Hash string

// HashTemplate returns the hash of a pod template (spec.template).
func HashTemplate(template map[string]any) (Hash, error) {
	raw, err := json.Marshal(template) // encoding/json writes map keys sorted
	if err != nil {
		return "", fmt.Errorf("hash pod template: %w", err)
	}
	return hashBytes(raw), nil
}

// ReleaseHash returns the identity of a release: the template hash of its only
// staged workload, or one hash over the sorted list of them. No staged workload
// has no release: "".
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
	return hashBytes([]byte(strings.Join(lines, "\n")))
}

func hashBytes(raw []byte) Hash {
	sum := sha256.Sum256(raw)
	return Hash(HashVersion + "-" + hex.EncodeToString(sum[:5]))
}
