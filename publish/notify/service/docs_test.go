package service_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/rollout"
)

// TestPage checks that the tables in docs/notifications.md are the same as in the code.
func TestPage(t *testing.T) {
	data, err := os.ReadFile("../../../docs/notifications.md")
	must(t, err)
	page := string(data)
	quoted := func(names []string, between string) string {
		if len(names) == 0 {
			return "–"
		}
		return "`" + strings.Join(names, "`"+between+"`") + "`"
	}
	fields := rollout.Services()
	for _, name := range slices.Sorted(maps.Keys(service.Table())) {
		var told string
		switch {
		case service.Table()[name].Resolves:
			told = "problems, until they end"
		case slices.Equal(service.Table()[name].Defaults, service.Usual().Defaults):
			told = "the usual"
		case slices.Equal(service.Table()[name].Defaults, rollout.EventKinds()):
			told = "everything"
		default:
			told = quoted(texts(service.Table()[name].Defaults), ", ")
		}
		needs := strings.ReplaceAll(quoted(fields[name].Needs, ", "), "|", "` or `")
		row := fmt.Sprintf("| `%s` | %s | %s | %s |", name, needs, quoted(fields[name].May, ", "), told)
		if !strings.Contains(page, row) {
			t.Errorf("the page has no row\n%s", row)
		}
	}
	last := 0
	for _, kind := range rollout.EventKinds() {
		i := strings.Index(page, "\n| `"+string(kind)+"` |")
		if i < last {
			t.Errorf("event %s is not in the page's table, or not in its place", kind)
		}
		last = i
	}
	usual := "The usual is " + strings.ReplaceAll(quoted(texts(service.Usual().Defaults), ", "), ", `recovered`", " and `recovered`") + "."
	if !strings.Contains(strings.Join(strings.Fields(page), " "), usual) {
		t.Errorf("the page does not say: %s", usual)
	}
}

func texts(kinds []rollout.EventKind) []string {
	return rollout.Mapped(kinds, func(k rollout.EventKind) string { return string(k) })
}
