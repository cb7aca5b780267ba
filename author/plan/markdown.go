package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"gitrollout.dev/gitrollout/rollout"
)

// MarkdownLimit is a comment's largest size, in bytes. GitHub accepts 65,536 characters. A longer comment has no diffs.
const MarkdownLimit = 60_000

// Mark is the first line of a plan's comment. By this line, a CI job finds and updates its earlier comment.
const Mark = "<!-- gitrollout plan -->\n"

// Markdown returns the plans as the text of a pull request's comment.
func Markdown(all []Plan) string {
	text := markdown(all, true)
	if len(text) > MarkdownLimit {
		text = markdown(all, false)
	}
	if text = strings.Map(visible, text); len(text) > MarkdownLimit {
		cut := strings.LastIndexByte(text[:MarkdownLimit], '\n')
		text = strings.ToValidUTF8(text[:cut+1], "") + "\n*… and more: the plan is longer than a comment may be.*\n"
	}
	return text
}

// visible maps control characters and marks of text direction to -1, so that strings.Map drops them.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) {
		return -1
	}
	return r
}

func markdown(all []Plan, diffs bool) string {
	var b strings.Builder
	b.WriteString(Mark)
	for _, p := range all {
		fmt.Fprintf(&b, "### Release plan for `%s`\n\n%s\n\n", p.Cluster, headline(p))
		if p.Error != nil {
			fmt.Fprintf(&b, "> **Error** %s\n\n", inline(p.Error.Error()))
			continue
		}
		for _, s := range p.Shared {
			fmt.Fprintf(&b, "- `%s` is shared by %d apps: %s\n", s.File, len(s.Apps), strings.Join(s.Apps, ", "))
		}
		if len(p.Shared) > 0 {
			b.WriteString("\n")
		}
		for _, a := range p.Apps {
			markdownApp(&b, p, a, diffs)
		}
		if !diffs {
			b.WriteString("*Differences are left out: the comment would be too long.*\n\n")
		}
		fmt.Fprintf(&b, "<sub>Compared with %s at %s. State: %s. Times are lower bounds.</sub>\n\n", p.Base,
			p.At.Format("2006-01-02 15:04 MST"), inline(p.State))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func headline(p Plan) string {
	by := map[Change]int{}
	for _, a := range p.Apps {
		change := a.Change
		isStaged := func(w Workload) bool { return w.Staged }
		if change == Release && !slices.ContainsFunc(a.Workloads, isStaged) {
			change = Fast // without Rollout documents, a release has no steps
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

func markdownApp(b *strings.Builder, p Plan, a App, diffs bool) {
	fmt.Fprintf(b, "#### %s %s\n\n%s", icons[a.Change], a.App, inline(a.Summary))
	if cost := a.Cost(); cost != "" {
		fmt.Fprintf(b, " (%s)", cost)
	}
	b.WriteString("\n\n")
	if a.Error != nil {
		fmt.Fprintf(b, "> **Error** %s\n\n", inline(a.Error.Error()))
	}
	for _, n := range a.Notes {
		fmt.Fprintf(b, "> **%s** %s", levelNames[n.Level], inline(n.Message))
		if n.Fix != "" {
			fmt.Fprintf(b, "; %s", inline(n.Fix))
		}
		b.WriteString("\n\n")
	}
	for _, w := range a.Workloads {
		fmt.Fprintf(b, "%s `%s`: %s, %s\n\n", w.Kind, w.Name(), w.Strategy, w.Sizing())
		if len(w.Stages) == 0 {
			continue
		}
		b.WriteString("| | stage | weight | new / old pods | takes at least | not before |\n|---|---|---|---|---|---|\n")
		for i, s := range w.Stages {
			not := Moment(s.Enters, p.At)
			if s.Shut != "" {
				not += "<br>waits for " + inline(s.Shut)
			}
			fmt.Fprintf(b, "| %d | %s | %s | %d / %d | %s | %s |\n", i+1, inline(s.Text), w.Share(s.Weight), s.Canary, s.Stable,
				inline(s.Takes()), not)
		}
		b.WriteString("\n")
	}
	if len(a.Objects) == 0 {
		return
	}
	fmt.Fprintf(b, "<details><summary>%s</summary>\n\n", objectsCount(a.Objects))
	var text strings.Builder
	for _, o := range a.Objects {
		text.WriteString(o.Diff)
	}
	if !diffs || text.Len() == 0 {
		for _, o := range a.Objects {
			fmt.Fprintf(b, "- %s `%s`\n", o.Change, o.Object)
		}
		b.WriteString("\n</details>\n\n")
		return
	}
	fence := strings.Repeat("`", max(3, longestRun(text.String(), '`')+1))
	fmt.Fprintf(b, "%sdiff\n%s%s\n\n</details>\n\n", fence, text.String(), fence)
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

// inline escapes a user's text for Markdown. The text then has no HTML, mention, image, link or line break.
func inline(text string) string {
	return markdownEscapes.Replace(strings.Join(strings.Fields(text), " "))
}

var markdownEscapes = strings.NewReplacer("<", "&lt;", "@", "@\u200b", "|", "\\|", "[", "\\[", "]", "\\]", "`", "\\`",
	"*", "\\*")

func longestRun(text string, of byte) (longest int) {
	run := 0
	for i := range len(text) {
		if text[i] != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
