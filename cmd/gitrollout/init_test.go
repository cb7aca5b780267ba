package main

import (
	"strings"
	"testing"
	"time"
)

// TestLooking checks that init prints which folder it renders, but at most once in two seconds.
func TestLooking(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	looks := looking(&out, func() time.Time { return now })
	for _, second := range []int64{1, 2, 3, 4, 6} {
		now = time.Unix(second, 0)
		looks("apps/shop")
	}
	const want = "looking: 3 folders rendered, now apps/shop\nlooking: 5 folders rendered, now apps/shop\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
