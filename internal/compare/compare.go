// Package compare shows the lines in which two values differ. The tests of all packages use it instead of a library
// that only tests would need.
package compare

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff returns the lines in which two values differ, or "". Lines of want begin with -, and lines of got with +. Diff
// also compares unexported fields and the dynamic types of interfaces. A nil slice or map differs from an empty one.
// Diff ignores unexported fields of a struct if an argument after got has the struct's type.
func Diff(want, got any, public ...any) string {
	return string(diff.Diff("want", lines(want, public), "got", lines(got, public)))
}

// Reporter is the part of testing.TB that reports a difference.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Check reports the lines in which two values differ.
func Check(t Reporter, want, got any, public ...any) {
	t.Helper()
	if diff := Diff(want, got, public...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// CheckNamed reports the lines in which two values differ, after the name of a test case or of a value.
func CheckNamed(t Reporter, name string, want, got any, public ...any) {
	t.Helper()
	if diff := Diff(want, got, public...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Contains reports each part that the text lacks.
func Contains(t Reporter, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// Equal reports whether two values have no difference.
func Equal(a, b any) bool { return Diff(a, b) == "" }

func lines(v any, public []any) []byte {
	p := printer{public: map[reflect.Type]bool{}}
	for _, one := range public {
		p.public[reflect.TypeOf(one)] = true
	}
	if v != nil { // timeOf needs an addressable copy to read a time in an unexported field
		root := reflect.New(reflect.TypeOf(v)).Elem()
		root.Set(reflect.ValueOf(v))
		p.print("", root.Type().String()+" ", root)
	} else {
		p.line("", "nil")
	}
	return []byte(p.text.String())
}

// printer prints a value with one leaf per line.
type printer struct {
	text   strings.Builder
	public map[reflect.Type]bool
}

func (p *printer) line(indent string, text ...string) {
	p.text.WriteString(indent + strings.Join(text, "") + "\n")
}

// print prints a value, preceded by its name.
func (p *printer) print(indent, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if v.IsNil() {
			p.line(indent, name, "nil")
			return
		}
	}
	inner := indent + "  "
	switch v.Kind() {
	case reflect.Pointer:
		p.print(indent, name+"&", v.Elem())
	case reflect.Interface:
		p.print(indent, name+v.Elem().Type().String()+" ", v.Elem())
	case reflect.Struct:
		p.fields(indent, name, v)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			p.quoted(indent, name, string(v.Bytes()))
			return
		}
		p.line(indent, name, "[")
		for i := range v.Len() {
			p.print(inner, "", v.Index(i))
		}
		p.line(indent, "]")
	case reflect.Map:
		p.line(indent, name, "{")
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, key := range keys {
			p.print(inner, fmt.Sprintf("%#v: ", key), v.MapIndex(key))
		}
		p.line(indent, "}")
	case reflect.String:
		p.quoted(indent, name, v.String())
	default:
		text := fmt.Sprint(v)
		if raw := fmt.Sprintf("%#v", v); raw != text && v.Type().NumMethod() > 0 { // String may hide a difference
			text += " = " + raw
		}
		p.line(indent, name, text)
	}
}

// quoted prints each line of a text as a quoted string.
func (p *printer) quoted(indent, name, text string) {
	for i, part := range strings.SplitAfter(text, "\n") {
		if i == 0 || part != "" {
			p.line(indent, name, strconv.Quote(part))
		}
	}
}

// fields prints a struct. A time is printed in UTC, so that equal moments in different time zones are equal.
func (p *printer) fields(indent, name string, v reflect.Value) {
	if at, is := timeOf(v); is {
		p.line(indent, name, at.UTC().Format(time.RFC3339Nano))
		return
	}
	p.line(indent, name, "{")
	for field, value := range v.Fields() {
		if field.IsExported() || !p.public[v.Type()] {
			p.print(indent+"  ", field.Name+": ", value)
		}
	}
	p.line(indent, "}")
}

func timeOf(v reflect.Value) (time.Time, bool) {
	if v.Type() != reflect.TypeFor[time.Time]() {
		return time.Time{}, false
	}
	if v.CanInterface() {
		return v.Interface().(time.Time), true
	}
	if v.CanAddr() {
		return *(*time.Time)(v.Addr().UnsafePointer()), true
	}
	return time.Time{}, false
}
