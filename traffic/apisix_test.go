package traffic

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

func TestApisixSources(t *testing.T) {
	for _, c := range []struct {
		name    string
		own     []any
		network string
		want    []any
	}{
		{"all", nil, "10.1.0.0/16", []any{"10.1.0.0/16"}},
		{"narrower", []any{"10.0.0.0/8"}, "10.1.0.0/16", []any{"10.1.0.0/16"}},
		{"wider", []any{"10.1.2.3", "10.1.3.0/24"}, "10.1.0.0/16", []any{"10.1.2.3", "10.1.3.0/24"}},
		{"elsewhere", []any{"10.2.0.0/16", "::1"}, "10.1.0.0/16", nil},
	} {
		got, err := apisixSources(c.own, c.network)
		must(t, err)
		compare.CheckNamed(t, c.name, c.want, got)
	}
}
