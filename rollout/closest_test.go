package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestClosest(t *testing.T) {
	names := []string{"shop", "shop-admin", "checkout", "search"}
	for typed, want := range map[string][]string{
		"shpo": {"shop"}, "Shop": {"shop", "shop-admin"}, "chekout": {"checkout"}, "zebra": nil, "shop-admim": {"shop-admin"}, "shxyz": nil,
		"checkxyz": nil, "shop-axxxn": {"shop-admin"},
		"c": nil, "ch": {"checkout"}, "sho": {"shop", "shop-admin"}, "hop": {"shop"}, "sxo": nil, "xhxp": {"shop"}, "": nil, "seach": {"search"},
		"zzop": {"shop"},
	} {
		compare.CheckNamed(t, typed, strings.Join(want, " "), strings.Join(rollout.Closest(typed, names), " "))
	}
	for length, want := range map[int]int{253: 1, 254: 0} {
		name := strings.Repeat("x", length)
		compare.CheckNamed(t, fmt.Sprintf("names like a name of %d bytes", length), want, len(rollout.Closest(name, []string{name})))
	}
}
