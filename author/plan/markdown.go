package plan

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"unicode"

	"gitrollout.dev/gitrollout/rollout"
)

// MarkdownLimit is the maximum number of bytes (GitHub allows 65,536). If a comment would be longer, Markdown omits the
// diffs.
const MarkdownLimit = 60_000

// Mark is the first line of a plan's comment. A CI job finds its earlier comment by this line.
const Mark = "<!-- gitrollout plan -->\n"

// Markdown returns a pull request's comment.
func Markdown(all []Plan) string {
	text := markdown(all, true)
	if len(text) > MarkdownLimit {
		text = markdown(all, false)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, text)
	if len(text) > MarkdownLimit {
		cut := strings.LastIndexByte(text[:MarkdownLimit], '\n')
		text = strings.ToValidUTF8(text[:cut+1], "") + "\n*… and more: the plan is longer than a comment may be.*\n"
	}
	return text
}

//go:embed markdown.tmpl
var markdownText string

func markdown(all []Plan, diffs bool) string {
	text := template.Must(template.New("").Funcs(template.FuncMap{
		"count": objectsCount, "headline": headline, "join": strings.Join, "moment": Moment,
		"inline": func(text string) string { return markdownEscapes.Replace(strings.Join(strings.Fields(text), " ")) },
		"diffs":  func() bool { return diffs },
		"icon":   func(c Change) string { return icons[c] },
		"level":  func(l Level) string { return levelNames[l] },
		"number": func(index int) int { return index + 1 },
		"diff": func(objects []Object) string {
			if !diffs {
				return ""
			}
			return strings.Join(rollout.Mapped(objects, func(o Object) string { return o.Diff }), "")
		},
		"fence": func(text string) string { return strings.Repeat("`", max(3, longestRun(text, '`')+1)) },
	}).Parse(markdownText))
	var b strings.Builder
	b.WriteString(Mark)
	_ = text.Execute(&b, all) // cannot fail
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func headline(p Plan) string {
	by := map[Change]int{}
	for _, a := range p.Apps {
		change := a.Change
		isStaged := func(w Workload) bool { return w.Staged }
		if change == Release && !slices.ContainsFunc(a.Workloads, isStaged) {
			change = Fast
		}
		by[change]++
	}
	var parts []string
	for _, c := range []struct {
		change Change
		text   string
	}{
		{Invalid, "would be held"}, {Rejected, "rejected before"}, {Release, "released in stages"},
		{Fast, "released without stages"},
		{Rollback, "rolled back"}, {First, "deployed for the first time"}, {Apply, "applied at once"}, {Gone, "left alone"},
	} {
		if n := by[c.change]; n > 0 {
			parts = append(parts, fmt.Sprintf("**%d** %s", n, c.text))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("Nothing changes (%d apps).", p.Unchanged)
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", %d unchanged.", p.Unchanged)
}

var icons = map[Change]string{
	Invalid: "❌", Rejected: "⛔", Release: "🚦", Fast: "⏩", Rollback: "↩️", First: "🌱", Apply: "📦", Gone: "👋",
}

var levelNames = map[Level]string{Refused: "Refused", AtOnce: "Not staged", Hint: "Note"}

func objectsCount(all []Object) string {
	by := map[string]int{}
	for _, o := range all {
		by[o.Change]++
	}
	var parts []string
	for _, change := range []string{"added", "changed", "removed"} {
		if n := by[change]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, change))
		}
	}
	return rollout.Count(len(all), "object") + ": " + strings.Join(parts, ", ")
}

var markdownEscapes = strings.NewReplacer("<", "&lt;", "@", "@\u200b", "|", "\\|", "[", "\\[", "]", "\\]", "`", "\\`",
	"*", "\\*")

func longestRun(text string, of rune) (longest int) {
	for _, run := range strings.FieldsFunc(text, func(r rune) bool { return r != of }) {
		longest = max(longest, len(run))
	}
	return longest
}
