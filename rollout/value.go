package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func (v value) text(to reflect.Value, f Field) {
	text, ok := v.raw.(string)
	if !ok {
		v.misfit(f, "a string")
		return
	}
	to.SetString(text)
	if text == "" {
		return
	}
	if allowed := f.Words("oneOf"); len(allowed) > 0 && !slices.Contains(allowed, text) {
		what := strings.Join(allowed, ", ")
		if len(allowed) > 1 {
			what = "one of " + what
		}
		v.fail(f.Tag.Get("fix"), "%q is not %s", Cut(text, maxShown), what)
	}
	if format, has := formats[f.Tag.Get("is")]; has && !format.Pattern.MatchString(text) {
		v.fail(cmp.Or(f.Tag.Get("fix"), format.Fix), "%q is not %s", Redact(Cut(text, maxShown)), format.What)
	}
}

func (v value) whole(to reflect.Value, f Field) {
	n, ok := v.raw.(int64)
	if fraction, is := v.raw.(float64); is && fraction == math.Trunc(fraction) {
		n, ok = int64(fraction), true // JSON may write 1 as 1.0
	}
	if !ok {
		v.misfit(f, "a whole number")
		return
	}
	switch least := f.Tag.Get("min"); {
	case n < 0 && !strings.HasPrefix(least, "-"):
		v.fail(cmp.Or(f.Tag.Get("fix"), "give 0 or more"), "%d is negative", n)
	case n > math.MaxInt32 && !f.Has("large"):
		v.fail("", "%d is more than Kubernetes can hold", n)
	default:
		v.bounds(n, f)
		to.SetInt(n)
	}
}

func (v value) number(to reflect.Value, f Field) {
	switch n := v.raw.(type) {
	case int64:
		to.SetFloat(float64(n))
	case float64:
		to.SetFloat(n)
	default:
		v.misfit(f, "a number")
	}
}

func (v value) bounds(n int64, f Field) {
	least, _ := strconv.ParseInt(f.Tag.Get("min"), 10, 64)
	most, err := strconv.ParseInt(f.Tag.Get("max"), 10, 64)
	switch fix := f.Tag.Get("fix"); {
	case err == nil && (n < least || n > most):
		v.fail(fix, "%d is not within %d..%d", n, least, most)
	case n < least:
		v.fail(fix, "%d is less than %d", n, least)
	}
}

func (v value) duration(to *time.Duration, f Field) {
	const fix = "write seconds, or a duration such as 30s, 5m, 1h30m"
	text, isText := v.raw.(string)
	n, ok := v.raw.(int64)
	if isText {
		var err error
		if n, err = strconv.ParseInt(text, 10, 32); err != nil {
			d, err := time.ParseDuration(text)
			if err != nil {
				v.fail(fix, "%q is not a duration", Cut(text, maxShown))
			}
			if *to = d; d < 0 {
				v.fail(cmp.Or(f.Tag.Get("fix"), fix), "%q is negative", text)
			}
			v.positive(d, f)
			return
		}
	}
	switch {
	case !isText && !ok:
		v.fail(fix, "must be a duration, not %s", Describe(v.raw))
	case n < 0:
		v.fail(cmp.Or(f.Tag.Get("fix"), fix), "%d is negative", n)
	case n > math.MaxInt32:
		v.fail(fix, "%d is more than Kubernetes can hold", n)
	default:
		*to = time.Duration(n) * time.Second
		v.positive(*to, f)
	}
}

func (v value) positive(d time.Duration, f Field) {
	if f.Has("min") && d <= 0 {
		v.fail(f.Tag.Get("fix"), "must be more than 0, not %s", Describe(v.raw))
	}
}

// Plain converts a value to FromJSON's types.
func Plain(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, &InvalidError{Msg: "is not JSON: " + err.Error()}
	}
	return FromJSON[any](data)
}

// FromJSON decodes whole numbers as int64, and other numbers as float64, unlike encoding/json alone.
func FromJSON[T any](data []byte) (v T, err error) {
	err = utiljson.Unmarshal(data, &v)
	return v, err
}

// Describe returns a value for a message: 'a mapping', 'the string "5m"', '1.5'.
func Describe(raw any) string {
	switch raw := raw.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		return fmt.Sprintf("the string %q", Cut(raw, maxShown))
	}
	return fmt.Sprint(raw)
}

const maxShown = 60 // characters in an error
