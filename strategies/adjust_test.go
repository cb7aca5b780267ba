package strategies_test

import (
	"math/rand/v2"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/strategies"
)

// TestAdjustmentsSettle checks that a decision does not change if all adjustments are applied to it a second time, in the same order.
func TestAdjustmentsSettle(t *testing.T) {
	compared := 0
	for seed := range uint64(3000) {
		rng, data := rand.New(rand.NewPCG(seed, 7)), make([]byte, 200)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		given, _ := fuzzInput(seed, data)
		once := strategies.Decide(given)
		if once.Rollback || once.Ask != nil {
			continue // Decide is called again after a rollback or a question
		}
		compared++
		again := strategies.Adjusted(given, once)
		if !again.State.Equal(&once.State) {
			t.Fatalf("seed %d:\n%s", seed, compare.Diff(once.State, again.State))
		}
	}
	if compared < 100 {
		t.Errorf("only %d decisions were compared", compared)
	}
}
