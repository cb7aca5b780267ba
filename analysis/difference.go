package analysis

import "math"

// Difference returns the new version's bad share minus stable's, and the 95 % interval (Newcombe 1998, method 10).
// Without requests, the interval is -1..1.
func Difference(canaryBad, canaryAll, stableBad, stableAll int) (estimate, low, high float64) {
	if canaryAll <= 0 || stableAll <= 0 {
		return 0, -1, 1
	}
	c, cLow, cHigh := wilson(canaryBad, canaryAll)
	s, sLow, sHigh := wilson(stableBad, stableAll)
	return c - s, c - s - math.Hypot(c-cLow, sHigh-s), c - s + math.Hypot(cHigh-c, s-sLow)
}

// wilson returns the 95 % score interval (Wilson 1927).
func wilson(bad, all int) (share, low, high float64) {
	const z2 = 1.959963984540054 * 1.959963984540054
	n := float64(all)
	share = float64(min(max(bad, 0), all)) / n
	center, half := share+z2/(2*n), math.Sqrt(z2*share*(1-share)/n+z2*z2/(4*n*n))
	return share, max(0, (center-half)/(1+z2/n)), min(1, (center+half)/(1+z2/n))
}
