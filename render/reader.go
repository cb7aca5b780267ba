package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// reader reads one document strictly. It keeps the first error, so that what
// reads a document can go on to the end and look for it once.
type reader struct {
	ref      string // Rollout/shop/checkout
	object   rollout.Object
	err      *rollout.InvalidError
	warnings []string
}

func (r *reader) fail(field, fix, format string, args ...any) {
	if r.err == nil {
		r.err = &rollout.InvalidError{Field: field, Msg: fmt.Sprintf(format, args...) + " (" + r.ref + ")", Fix: fix}
	}
}

func (r *reader) warn(field, format string, args ...any) {
	r.warnings = append(r.warnings, r.ref+": "+field+" "+fmt.Sprintf(format, args...))
}

// value is one value of a document, with the path that leads to it. An absent
// one is nil.
type value struct {
	r    *reader
	path string
	raw  any
}

func (v value) fail(fix, format string, args ...any) { v.r.fail(v.path, fix, format, args...) }

func (v value) given() bool { return v.raw != nil }

// field returns a field of a mapping.
func (v value) field(name string) value {
	m, _ := v.raw.(map[string]any)
	return value{r: v.r, path: strings.TrimPrefix(v.path+"."+name, "."), raw: m[name]}
}

// support says what gitrollout does with a field.
type support int

const (
	supported support = iota
	notYet            // Argo Rollouts has it: refused, so that nothing is silently left out
	ignored           // harmless without effect: accepted with a warning
	refused           // wrong here
)

// fieldRule is what is known of one field; note is the reason, if there is one.
type fieldRule struct {
	support support
	note    string
}

// object checks that the value is a mapping with known fields only, and reports
// whether it is there.
func (v value) object(rules map[string]fieldRule) bool {
	if v.raw == nil {
		return false
	}
	m, ok := v.raw.(map[string]any)
	if !ok {
		v.fail("", "is %s where a mapping belongs", describe(v.raw))
		return false
	}
	for _, name := range sortedKeys(m) {
		field := v.field(name)
		rule, known := rules[name]
		switch {
		case !known:
			field.fail(nearest(name, rules), "is not a known field")
		case rule.support == notYet:
			field.fail(rule.note, "is not supported yet")
		case rule.support == refused:
			field.fail(rule.note, "does not belong here")
		case rule.support == ignored:
			v.r.warn(field.path, "is ignored: %s", rule.note)
		}
	}
	return true
}

// nearest suggests a field that differs in case only, the usual mistake.
func nearest(name string, rules map[string]fieldRule) string {
	for known := range rules {
		if strings.EqualFold(known, name) {
			return "write " + known
		}
	}
	return ""
}

// list returns the elements of a list.
func (v value) list() []value {
	if v.raw == nil {
		return nil
	}
	elements, ok := v.raw.([]any)
	if !ok {
		v.fail("", "is %s where a list belongs", describe(v.raw))
	}
	out := make([]value, len(elements))
	for i, e := range elements {
		out[i] = value{r: v.r, path: fmt.Sprintf("%s[%d]", v.path, i), raw: e}
	}
	return out
}

// count returns a whole number of at least 0, nil if the value is absent.
func (v value) count() *int {
	if v.raw == nil {
		return nil
	}
	n, ok := v.raw.(int64)
	switch {
	case !ok:
		v.fail("", "is %s where a whole number belongs", describe(v.raw))
		return nil
	case n < 0:
		v.fail("", "%d is negative", n)
		return nil
	case n > math.MaxInt32:
		v.fail("", "%d is more than Kubernetes can hold", n)
		return nil
	}
	small := int(n)
	return &small
}

func (v value) countOr(absent int) int {
	if n := v.count(); n != nil {
		return *n
	}
	return absent
}

// percent returns a whole number within 0..100, nil if the value is absent.
func (v value) percent() *int { return v.atMost(100) }

// atMost returns a whole number within 0..limit, nil if the value is absent.
func (v value) atMost(limit int) *int {
	n := v.count()
	if n != nil && *n > limit {
		v.fail("", "%d is not within 0..%d", *n, limit)
		return nil
	}
	return n
}

func (v value) boolOr(absent bool) bool {
	if v.raw == nil {
		return absent
	}
	b, ok := v.raw.(bool)
	if !ok {
		v.fail("", "is %s where true or false belongs", describe(v.raw))
	}
	return b
}

func (v value) text() string {
	if v.raw == nil {
		return ""
	}
	s, ok := v.raw.(string)
	if !ok {
		v.fail("quote it", "is %s where a text belongs", describe(v.raw))
	}
	return s
}

// oneOf returns a text that is one of the given ones, the first if the value is
// absent.
func (v value) oneOf(allowed ...string) string {
	s := v.text()
	if s == "" {
		return allowed[0]
	}
	if !slices.Contains(allowed, s) {
		v.fail("", "%q is not one of %s", s, strings.Join(allowed, ", "))
	}
	return s
}

// amount returns a number of pods or a percentage. A number in quotes is a
// percentage to Argo Rollouts ("3" is 3 %), and refused by Kubernetes.
func (v value) amount(quotedIsPercent bool) *rollout.Amount {
	s, isText := v.raw.(string)
	if !isText {
		if n := v.count(); n != nil {
			return &rollout.Amount{Value: *n}
		}
		return nil
	}
	digits, isPercent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || digits == "" || digits[0] == '+':
		v.fail("", "%q is neither a number of pods nor a percentage such as 25%%", s)
	case n < 0:
		v.fail("", "%q is negative", s)
	case n > math.MaxInt32:
		v.fail("", "%q is more than Kubernetes can hold", s)
	case !isPercent && !quotedIsPercent:
		v.fail("remove the quotes, or add %", "%q is a text, not a number", s)
	default:
		return &rollout.Amount{Value: n, Percent: true}
	}
	return nil
}

// describe names a value for a message.
func describe(raw any) string {
	switch raw := raw.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the text %q", cut(raw))
	default:
		return fmt.Sprint(raw)
	}
}

func cut(s string) string {
	if len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(s[:60], "") + "…"
}
