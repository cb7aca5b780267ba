package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTailsOfAnyCounts checks samples of up to 1e15 requests. With and without a margin, the function worse returns a probability between 0
// and 1. More bad requests of the new version never raise the probability. Without the limit mostSamples, the test would not end.
func TestTailsOfAnyCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 12))
	table := func() sample {
		all := int(math.Pow(10, 15*rng.Float64()))
		share := []float64{rng.Float64(), rng.Float64() / 1000, 0.5}[rng.IntN(3)]
		return sample{bad: int(share * float64(all)), all: all}
	}
	for range 150 {
		c, s := table(), table()
		was := 1.0
		for _, more := range []float64{0, 1e-9, 1e-6, 1e-4, 0.01, 0.5, 1} { // shares of the good requests that become bad
			worst := sample{bad: c.bad + int(more*float64(c.all-c.bad)), all: c.all}
			p := worse(worst.judged(), s.judged(), 0, 0.001)
			if math.IsNaN(p) || p < 0 || p > was*(1+1e-4)+1e-9 {
				t.Fatalf("%v beside %v: %g, and with fewer bad ones %g", worst, s, p, was)
			}
			was = p
		}
		if p := worse(c.judged(), s.judged(), 0.01, 0.001); math.IsNaN(p) || p < 0 || p > 1 {
			t.Fatalf("%v beside %v, with a margin: %g", c, s, p)
		}
	}
	// The method judged keeps the share of bad requests, and returns at most mostSamples requests.
	for _, all := range []int{1, mostSamples, mostSamples + 1, 1e12, 1e15} {
		got := sample{bad: all / 4, all: all}.judged()
		if got.all > mostSamples || math.Abs(float64(got.bad)/float64(got.all)-float64(all/4)/float64(all)) > 1e-8 {
			t.Errorf("of %d, %v is judged", all, got)
		}
	}
}
