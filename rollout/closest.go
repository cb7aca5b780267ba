package rollout

import (
	"slices"
	"strings"
)

// DidYouMean returns a question with the most similar names, or "".
func DidYouMean(name string, names []string) string {
	if near := Closest(name, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// Closest returns at most three similar names, the most similar first. For names too long for Kubernetes it returns
// nil: comparisons are slow, and anyone may send names to the dashboard.
func Closest(name string, names []string) []string {
	if len(name) > 253 {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	far := max(1, len(name)/3)
	if len(name) > 3 {
		far = max(2, far) // two swapped letters count as two edits
	}
	name = strings.ToLower(name)
	for _, other := range names {
		d := editDistance(name, strings.ToLower(other))
		if d <= far || (len(name) > 1 && strings.HasPrefix(other, name)) {
			near = append(near, candidate{other, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	return Mapped(near[:min(3, len(near))], func(c candidate) string { return c.name })
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
