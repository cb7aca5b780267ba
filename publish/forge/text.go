package forge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// maxChanges is the maximum number of objects that a pull request lists.
const maxChanges = 20

// describe returns the text of a proposal's pull request. Equal input gives equal text. Text by other authors is quoted
// as code, so that it mentions no user and formats nothing.
func describe(t rollout.ForgeUpdate, p rollout.Proposal) text {
	if p.Kind == rollout.ProposeRevert {
		return describeRevert(t, p)
	}
	return describePromotion(t, p)
}

func describePromotion(t rollout.ForgeUpdate, p rollout.Proposal) text {
	s := t.After
	var b strings.Builder
	title := fmt.Sprintf("Promote %s in %s", s.App, t.Cluster)
	if s.Release == nil {
		return text{title, "This promotion is no longer wanted.\n"}
	}
	of := 0
	for _, standing := range p.Standing {
		of = max(of, standing.Of)
	}
	title += fmt.Sprintf(" past step %d/%d: %s", p.Gate+1, of, plainLine(s.Release.Subject, 120))
	fmt.Fprintf(&b, "Merging this lets release %s of **%s** in **%s** continue past step %d of %d.\n",
		code(string(s.Release.Hash)), s.App, t.Cluster, p.Gate+1, of)

	b.WriteString("\n### What changes\n\n")
	fmt.Fprintf(&b, "- commit %s by %s: %s\n",
		code(rollout.ShortID(s.Release.Commit)), code(s.Release.Author), code(s.Release.Subject))
	writeChanges(&b, p.Changes)

	b.WriteString("\n### Where it stands\n\n")
	for _, standing := range p.Standing {
		fmt.Fprintf(&b, "- %s is at step %d of %d (%s) since %s, with a weight of %d %%.\n", code(standing.Workload.String()),
			min(standing.Step+1, standing.Of), standing.Of, code(standing.Name),
			standing.Entered.UTC().Format(time.RFC3339), standing.Weight)
		fmt.Fprintf(&b, "  %d of %d pods of the new version were ready when this was written.\n",
			standing.Ready, standing.Replicas)
		if standing.Problem != "" {
			fmt.Fprintf(&b, "  A pod of the new version has a problem: %s.\n", code(standing.Problem))
		}
	}
	writeEvidence(&b, s.Analyses)
	if s.Stable != nil {
		fmt.Fprintf(&b, "- %s of commit %s is the stable version: it serves the other traffic, and a rollback restores it.\n",
			code(string(s.Stable.Hash)), code(rollout.ShortID(s.Stable.Commit)))
	}

	fmt.Fprintf(&b, "\n### If you merge\n\nThe release continues with the next step. "+
		"It changes only %s. This file names the release, so a late merge approves no other release. "+
		"Squash, rebase and merge commits all work.\n", code(rollout.PromotionPath(t.Cluster, s.App)))
	b.WriteString("\n### If you do not\n\nThe release stays where it is. Closing this changes nothing.\n")
	fmt.Fprintf(&b, "\n### To undo\n\nBefore or after the merge, revert the commits of the release: %s proposes that, "+
		"for this app alone. A merged revert returns traffic to stable. To stop the release and keep the manifests: %s.\n",
		code("gitrollout undo "+s.App), code("gitrollout abort "+s.App))
	return text{title, b.String()}
}

func describeRevert(t rollout.ForgeUpdate, p rollout.Proposal) text {
	s := t.After
	title := fmt.Sprintf("Revert %s in %s", s.App, t.Cluster)
	var b strings.Builder
	if s.Stable != nil {
		title += " to " + rollout.ShortID(s.Stable.Commit)
	}
	fmt.Fprintf(&b, "A release of **%s** in **%s** was rejected, and the stable version serves. "+
		"Git still requests the rejected version; merging this makes Git agree with the cluster. No pod changes.\n",
		s.App, t.Cluster)
	if len(s.Rejected) > 0 {
		r := s.Rejected[0]
		fmt.Fprintf(&b, "\n### Why\n\n- %s\n- release %s of commit %s, rejected at %s\n",
			code(r.Reason), code(string(r.Hash)), code(rollout.ShortID(r.Commit)), r.At.UTC().Format(time.RFC3339))
		writeEvidence(&b, s.Analyses)
	}
	b.WriteString("\n### What merging changes\n\n")
	writeChanges(&b, p.Changes)
	if s.Stable != nil {
		fmt.Fprintf(&b, "- Afterwards Git requests %s of commit %s again: %s\n",
			code(string(s.Stable.Hash)), code(rollout.ShortID(s.Stable.Commit)), code(s.Stable.Subject))
	}
	if len(p.Sharers) > 0 {
		fmt.Fprintf(&b, "\n**It also changes files of other apps: %s.** Look at their renders before you merge.\n",
			code(strings.Join(p.Sharers, ", ")))
	}
	b.WriteString("\n### Instead\n\nPush a fix: a new version is a new release.")
	if p.Retries {
		fmt.Fprintf(&b, " To try the same version again: %s.", code("gitrollout retry "+s.App))
	}
	b.WriteString("\n")
	return text{title, b.String()}
}

func writeEvidence(b *strings.Builder, runs []rollout.AnalysisRun) {
	for _, line := range rollout.Evidence(runs) {
		fmt.Fprintf(b, "- measured: %s\n", code(line))
	}
}

const goneText = "This proposal is over, and its branch was removed. There is nothing to merge."

// describeGone returns the text of a pull request whose branch was removed.
func describeGone(p pull, why string) text {
	b := goneText + "\n"
	if why != "" {
		b += "\nWhat happened: " + code(why) + "\n"
	}
	return text{p.title, b}
}

func writeChanges(b *strings.Builder, changes []rollout.Change) {
	for i, c := range changes {
		if i == maxChanges {
			fmt.Fprintf(b, "- and %d more objects\n", len(changes)-i)
			break
		}
		name := c.Ref.Name
		if c.Ref.Namespace != "" {
			name = c.Ref.Namespace + "/" + name
		}
		fmt.Fprintf(b, "- %s %s %s\n", c.Ref.Kind, code(name), c.Verb)
		for _, image := range c.Images {
			from, to := cmp.Or(image.From, "none"), cmp.Or(image.To, "none")
			fmt.Fprintf(b, "  - image of %s: %s → %s\n", code(image.Container), code(from), code(to))
		}
	}
	if len(changes) == 0 {
		b.WriteString("- the objects could not be compared\n")
	}
}

// code quotes a text as Markdown code. Single quotes replace backticks.
func code(s string) string {
	return "`" + strings.ReplaceAll(plainLine(s, 300), "`", "'") + "`"
}

// plainLine returns a text as one line without control characters. The maximum length is most, in characters.
func plainLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	return rollout.Cut(rollout.OneLine(s), most)
}

type marked struct {
	commit string
	status
}

// statusesOf returns the statuses that a transition changes. A release that ended early also gets a status.
func statusesOf(t rollout.ForgeUpdate) []marked {
	var all []marked
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
		return status{state, plainLine(fmt.Sprintf(format, args...), 140)}
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
