package analysis_test

import (
	"fmt"
	"testing"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestDifference checks the intervals of method 10 in Newcombe (1998), table II, and samples without a valid share.
func TestDifference(t *testing.T) {
	for _, c := range []struct {
		canaryBad, canaryAll, stableBad, stableAll int
		want                                       string
	}{
		{56, 70, 48, 80, "0.2000: 0.0524 to 0.3339"},
		{9, 10, 3, 10, "0.6000: 0.1705 to 0.8090"},
		{6, 7, 2, 7, "0.5714: 0.0582 to 0.8062"},
		{5, 56, 0, 29, "0.0893: -0.0381 to 0.1926"},
		{0, 10, 0, 20, "0.0000: -0.1611 to 0.2775"},
		{0, 10, 0, 10, "0.0000: -0.2775 to 0.2775"},
		{10, 10, 0, 20, "1.0000: 0.6791 to 1.0000"},
		{10, 10, 0, 10, "1.0000: 0.6075 to 1.0000"},
		{0, 0, 5, 10, "0.0000: -1.0000 to 1.0000"},
		{5, 10, 0, 0, "0.0000: -1.0000 to 1.0000"},
		{11, 10, -1, 20, "1.0000: 0.6791 to 1.0000"},
	} {
		estimate, low, high := analysis.Difference(c.canaryBad, c.canaryAll, c.stableBad, c.stableAll)
		name := fmt.Sprintf("%d/%d and %d/%d", c.canaryBad, c.canaryAll, c.stableBad, c.stableAll)
		compare.CheckNamed(t, name, c.want, fmt.Sprintf("%.4f: %.4f to %.4f", estimate, low, high))
	}
}
