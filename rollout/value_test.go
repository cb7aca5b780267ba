package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWholeNumbersStayWhole: encoding/json alone would make 1.8e19 of a large one,
// and Kubernetes takes no 1.0 for a 1.
func TestWholeNumbersStayWhole(t *testing.T) {
	got, err := fromJSON([]byte(`{"a": [1, -9007199254740993, 1.0, 1e3, 18446744073709551615], "A": "1"}`))
	want := map[string]any{"a": []any{int64(1), int64(-9007199254740993), 1.0, 1000.0, 18446744073709551615.0}, "A": "1"}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("(-want +got, %v):\n%s", err, diff)
	}
	for _, wrong := range []string{"", "{", "1 2", "5m", "nul"} {
		if got, err := fromJSON([]byte(wrong)); err == nil {
			t.Errorf("%q is read as %v", wrong, got)
		}
	}
}
