package provider_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"gitrollout.dev/gitrollout/analysis"
)

// FuzzAnswers sends arbitrary responses to each provider. The result must be a value that conditions can use, or an error that contains no
// credentials.
func FuzzAnswers(f *testing.F) {
	all := contracts()
	for i, c := range all {
		for _, a := range c.answers {
			f.Add(uint8(i), a.reply)
		}
		for _, reply := range []string{"", "null", "[]", "{}", "[[]]", `{"data":null}`, `[{"data":[[null,1]]}]`, "NaN", "\x00",
			`{"data":{"result":[{}]}}`} {
			f.Add(uint8(i), reply)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, reply string) {
		b := newBench(t, all[int(which)%len(all)])
		b.reply = reply
		got, err := b.measure(t.Context())
		if err != nil {
			if strings.Contains(err.Error(), token) || !utf8.ValidString(err.Error()) && utf8.ValidString(reply) {
				t.Errorf("%s: %q", b.c.kind, err)
			}
			return
		}
		checkValue(t, got.Value)
	})
}

// checkValue fails the test unless conditions can use a value.
func checkValue(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case nil, bool, float64, int64, uint64, string, analysis.Histogram:
	case []any:
		for _, e := range v {
			checkValue(t, e)
		}
	case map[string]any:
		for _, e := range v {
			checkValue(t, e)
		}
	default:
		t.Errorf("a value is %T", v)
	}
}
