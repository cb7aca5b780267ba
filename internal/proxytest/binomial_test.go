package proxytest

import (
	"math/big"
	"testing"
)

func TestWithin999(t *testing.T) {
	for _, test := range []struct {
		k, n int
		p    float64
		want bool
	}{
		{0, 100, 0, true}, {1, 100, 0, false},
		{100, 100, 1, true}, {99, 100, 1, false},
		{0, 0, 0.5, true},
		{-1, 10, 0.5, false}, {11, 10, 0.5, false},
		{0, 10, 0.5, true}, {10, 10, 0.5, true}, // 1 of 1024 is frequent enough
		{0, 11, 0.5, false}, {11, 11, 0.5, false}, // 1 of 2048 is not frequent enough
	} {
		if got := Within999(test.k, test.n, test.p); got != test.want {
			t.Errorf("%d of %d with %v: %v, want %v", test.k, test.n, test.p, got, test.want)
		}
	}
}

// TestWithin999IsExact compares Within999 with exact sums of fractions, for both tails.
func TestWithin999IsExact(t *testing.T) {
	const n = 100
	for _, p := range []*big.Rat{big.NewRat(1, 100), big.NewRat(1, 5), big.NewRat(1, 2), big.NewRat(9, 10)} {
		probability, _ := p.Float64()
		exact := make([]*big.Rat, n+1) // probability of exactly k
		not := new(big.Rat).Sub(big.NewRat(1, 1), p)
		for k := range exact {
			exact[k] = new(big.Rat).SetInt(new(big.Int).Binomial(n, int64(k)))
			for i := range n {
				if i < k {
					exact[k].Mul(exact[k], p)
				} else {
					exact[k].Mul(exact[k], not)
				}
			}
		}
		rare := big.NewRat(1, 2000)
		for k := range exact {
			low, high := new(big.Rat), new(big.Rat)
			for i := range exact {
				if i <= k {
					low.Add(low, exact[i])
				}
				if i >= k {
					high.Add(high, exact[i])
				}
			}
			want := low.Cmp(rare) >= 0 && high.Cmp(rare) >= 0
			if got := Within999(k, n, probability); got != want {
				t.Errorf("%d of %d with %s: %v, want %v", k, n, p, got, want)
			}
		}
	}
}
