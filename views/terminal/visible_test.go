package terminal_test

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/views/doctor"
	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// TestNoTextControlsTheTerminal checks that no view prints control characters or direction marks, although each text in its data has some.
func TestNoTextControlsTheTerminal(t *testing.T) {
	var plans []plan.Plan
	var listing status.Listing
	var history status.History
	var report doctor.Report
	var examination doctor.Examination
	for _, view := range []any{&plans, &listing, &history, &report, &examination} {
		disguise(reflect.ValueOf(view).Elem(), 0)
	}
	var news terminal.News
	for _, k := range []terminal.Look{{Now: at()}, {Width: 80, Now: at(), Wide: true}, {Width: 80, Now: at(), Rows: 20}} {
		for name, text := range map[string]string{
			"plan": terminal.Plans(plans, k), "markdown": plan.Markdown(plans), "get": terminal.Apps(listing, k), "list": terminal.List(listing, k),
			"watch":  news.Of(listing, k, func(k terminal.Look) string { return terminal.List(listing, k) }),
			"none":   terminal.List(status.Listing{Cluster: disguised}, k),
			"no app": terminal.Apps(status.Listing{Cluster: disguised}, k), "history": terminal.History(history, k),
			"validate": terminal.Report(report, k),
			"doctor":   terminal.Examination(examination, k),
			"log":      terminal.LogLine(disguised, "", disguised, k), "diff": terminal.Diff("+"+disguised+"\n", k),
			"line": terminal.Line(listing.Apps[0]),
		} {
			compare.CheckNamed(t, name+" shows its text in "+text, true, strings.Contains(text, "name"))
			bad := func(r rune) bool { return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) }
			if i := strings.IndexFunc(text, bad); i >= 0 {
				t.Errorf("%s: %q", name, text[max(0, i-100):min(len(text), i+50)])
			}
		}
		news.Add(disguised) // the next listing reports this app as removed
	}
}

const disguised = "\u202ename\u2066\x1b]0;owned\a\x1b[2J\u009b"

// disguise fills a view's data. It sets every text to the constant disguised, and gives every list one element.
func disguise(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(disguised)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(1)
	case reflect.Slice:
		if v.Type() != reflect.TypeFor[[]byte]() && depth < 12 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			disguise(v.Index(0), depth+1)
		}
	case reflect.Pointer:
		if depth < 12 {
			v.Set(reflect.New(v.Type().Elem()))
			disguise(v.Elem(), depth+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at()))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				disguise(v.Field(i), depth+1)
			}
		}
	}
}
