package forge

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// pullText has the texts of pull requests as Markdown templates.
//
//go:embed pull.tmpl
var pullText string

type proposed struct {
	rollout.State
	rollout.Proposal
	Cluster  string
	File     string // the promotion file
	Past, Of int    // Past: number of the gate's step, counted from 1; Of: number of steps
}

// describe returns a proposal's title and body. It quotes users' texts as code, so that mentions and formatting have no
// effect.
func describe(t rollout.ForgeUpdate, p rollout.Proposal) text {
	s := t.After
	all := proposed{State: s, Proposal: p, Cluster: t.Cluster, Past: p.Gate + 1}
	all.File = rollout.PromotionPath(t.Cluster, s.App)
	if p.Kind == rollout.ProposeRevert {
		title := fmt.Sprintf("Revert %s in %s", s.App, t.Cluster)
		if s.Stable != nil {
			title += " to " + rollout.ShortID(s.Stable.Commit)
		}
		return text{title, markdown(string(p.Kind), all)}
	}
	if n := len(p.Enters); n > 0 {
		apps := map[bool]string{true: p.Enters[0], false: fmt.Sprintf("%d apps", n)}[n == 1]
		return text{fmt.Sprintf("Let %s take %s in %s", apps, p.Approves.Short(), t.Cluster), markdown("entry", all)}
	}
	title := fmt.Sprintf("Promote %s in %s", s.App, t.Cluster)
	if s.Release == nil {
		return text{title, "This promotion is no longer wanted.\n"}
	}
	for _, standing := range p.Standing {
		all.Of = max(all.Of, standing.Of)
	}
	title += fmt.Sprintf(" past step %d/%d: %s", all.Past, all.Of, rollout.Cut(rollout.OneLine(s.Release.Subject), 120))
	return text{title, markdown(string(p.Kind), all)}
}

func markdown(name string, of any) string {
	var b strings.Builder
	texts := template.Must(template.New("").Funcs(template.FuncMap{
		"code":     func(v any) string { return code(fmt.Sprint(v)) },
		"short":    rollout.ShortID,
		"name":     func(r rollout.Ref) string { return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") },
		"time":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"next":     func(step, of int) int { return min(step+1, of) },
		"join":     strings.Join,
		"evidence": rollout.Evidence,
	}).Parse(pullText))
	_ = texts.ExecuteTemplate(&b, name, of) // cannot fail, because the templates fit these types
	return b.String()
}

const goneText = "This proposal is over, and its branch was removed. There is nothing to merge."

func describeGone(p pull, why string) text {
	b := goneText + "\n"
	if why != "" {
		b += "\nWhat happened: " + code(why) + "\n"
	}
	return text{p.title, b}
}

func code(s string) string {
	return "`" + strings.ReplaceAll(rollout.Cut(rollout.OneLine(s), 300), "`", "'") + "`"
}

type marked struct {
	commit string
	status
}

func statusesOf(t rollout.ForgeUpdate) (all []marked) {
	now, has := statusOf(t.After)
	if before, had := statusOf(t.Before); has && (!had || now != before) {
		all = append(all, now)
	}
	r, next := t.Before.Release, t.After.Release
	if r != nil && !(has && now.commit == r.Commit) && (next == nil || next.Commit != r.Commit) {
		what := "taken back"
		if next != nil {
			what = "superseded by " + rollout.ShortID(next.Commit)
		}
		all = append(all, marked{r.Commit, status{failure, what}})
	}
	return all
}

func statusOf(s rollout.State) (m marked, ok bool) {
	describe := func(state statusState, format string, args ...any) status {
		return status{state, rollout.Cut(rollout.OneLine(fmt.Sprintf(format, args...)), 140)}
	}
	switch {
	case s.Held.Waits():
		return marked{s.Held.Commit, describe(pending, "%s", s.Held.Message)}, true
	case s.Held != nil && s.Held.Commit != "":
		return marked{s.Held.Commit, describe(failure, "not followed: %s", s.Held.Message)}, true
	case s.Phase == rollout.Degraded && len(s.Rejected) > 0:
		return marked{s.Rejected[0].Commit, describe(failure, "rejected: %s", s.Rejected[0].Reason)}, true
	case s.Phase == rollout.Aborting && s.Release != nil:
		return marked{s.Release.Commit, describe(failure, "going back to stable: %s", s.Reason)}, true
	case s.Release != nil:
		what := string(s.Phase)
		for _, p := range s.Progress {
			what += fmt.Sprintf(", step %d/%d (%s) at %d %%", min(p.Step+1, p.Of), p.Of, p.Name, p.Weight)
		}
		return marked{s.Release.Commit, describe(pending, "%s", what)}, true
	case s.Phase == rollout.Healthy && s.Stable != nil:
		return marked{s.Stable.Commit, describe(success, "serving")}, true
	}
	return marked{}, false
}
