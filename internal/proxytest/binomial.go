package proxytest

import "math"

// Within999 reports whether k successes are a usual result of n draws with probability p: both "k or fewer" and "k or more" have a
// probability of at least 1 in 2000, computed exactly. For n = 1000 and p = 0.2, it returns true for k from 159 to 243.
func Within999(k, n int, p float64) bool {
	const rare = 0.0005
	if k < 0 || k > n {
		return false
	}
	return atMost(k, n, p) >= rare && atMost(n-k, n, 1-p) >= rare
}

// atMost returns the probability of k or fewer successes in n draws with probability p.
func atMost(k, n int, p float64) float64 {
	switch {
	case k >= n, p <= 0:
		return 1
	case p >= 1:
		return 0
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		sum += math.Exp(logChoose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return math.Min(sum, 1)
}

// logChoose returns the logarithm of the binomial coefficient n over k.
func logChoose(n, k int) float64 {
	lgamma := func(x int) float64 {
		v, _ := math.Lgamma(float64(x) + 1)
		return v
	}
	return lgamma(n) - lgamma(k) - lgamma(n-k)
}
