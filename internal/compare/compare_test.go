package compare

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name   string
	hidden int
	at     time.Time
}

type level int

func (level) String() string { return "level" }

func TestDiff(t *testing.T) {
	now := time.Now()
	cases := map[string]struct {
		a, b   any
		public []any
		want   []string // lines of the difference; nil if the values are equal
	}{
		"equal":                     {a: []inner{{"a", 1, now}}, b: []inner{{"a", 1, now}}},
		"a moment elsewhere":        {a: inner{at: now}, b: inner{at: now.In(time.FixedZone("", 3600))}},
		"another moment":            {a: inner{at: now}, b: inner{at: now.Add(1)}, want: []string{"-  at: ", "+  at: "}},
		"not a number":              {a: math.NaN(), b: math.NaN()},
		"minus nothing":             {a: 0.0, b: math.Copysign(0, -1), want: []string{"-float64 0", "+float64 -0"}},
		"through pointers":          {a: &inner{Name: "a"}, b: &inner{Name: "a"}},
		"a field":                   {a: &inner{Name: "a"}, b: &inner{Name: "b"}, want: []string{`-  Name: "a"`, `+  Name: "b"`}},
		"a hidden field":            {a: inner{hidden: 1}, b: inner{hidden: 2}, want: []string{"-  hidden: 1", "+  hidden: 2"}},
		"a hidden field left aside": {a: inner{hidden: 1}, b: inner{hidden: 2}, public: []any{inner{}}},
		"nil is not empty":          {a: []string(nil), b: []string{}, want: []string{"-[]string nil", "+[]string ["}},
		"neither is it a map":       {a: map[string]int(nil), b: map[string]int{}, want: []string{"-map[string]int nil"}},
		"a line of a text":          {a: "one\ntwo\n", b: "one\nthree\n", want: []string{`-string "two\n"`, `+string "three\n"`}},
		"bytes":                     {a: []byte("one"), b: []byte("two"), want: []string{`-[]uint8 "one"`}},
		"types behind interfaces":   {a: []any{1}, b: []any{int64(1)}, want: []string{"-  int 1", "+  int64 1"}},
		"maps in another order":     {a: map[int]bool{1: true, 2: true}, b: map[int]bool{2: true, 1: true}},
		"a key":                     {a: map[string]int{"a": 1}, b: map[string]int{"b": 1}, want: []string{`-  "a": 1`, `+  "b": 1`}},
		"of one name":               {a: level(1), b: level(2), want: []string{"-compare.level level = 1", "+compare.level level = 2"}},
		"errors":                    {a: errors.New("a"), b: errors.New("b"), want: []string{`-  s: "a"`, `+  s: "b"`}},
		"nothing":                   {a: nil, b: nil},
		"nothing and something":     {a: nil, b: 1, want: []string{"-nil", "+int 1"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Diff(c.a, c.b, c.public...)
			if (got == "") != (c.want == nil) || Equal(c.a, c.b) != (Diff(c.a, c.b) == "") {
				t.Errorf("says:\n%s", got)
			}
			for _, line := range c.want {
				if !strings.Contains(got, "\n"+line) {
					t.Errorf("has no line %s:\n%s", line, got)
				}
			}
		})
	}
}

// reported is a Reporter that collects all reported texts.
type reported struct{ text string }

func (*reported) Helper() {}

func (r *reported) Errorf(format string, args ...any) { r.text += fmt.Sprintf(format, args...) }

func TestCheckError(t *testing.T) {
	abc := errors.New("abc")
	for _, c := range []struct {
		err        error
		want, told string
	}{
		{nil, "", ""}, {abc, "b", ""}, {abc, "", "x: abc"}, {abc, "d", `x: error abc, want one with "d"`},
		{nil, "nil", `x: error <nil>, want one with "nil"`},
	} {
		var r reported
		if CheckError(&r, "x", c.err, c.want); r.text != c.told {
			t.Errorf("an error %v that needs %q is told as %q, want %q", c.err, c.want, r.text, c.told)
		}
	}
}
