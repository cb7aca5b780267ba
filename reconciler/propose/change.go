package propose

import (
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Change is one commit to make.
type Change struct {
	App     string // if a user requested the change
	Branch  string
	Edits   map[string][]byte // nil deletes the file
	Message string
	When    time.Time
	Subject string // for example "Promote shop past step 2"
	Effect  string
	uses    []string // files of the version that an undo restores

	Again func() (Change, error) // repeats the change on a newer head; nil if the edits do not depend on the head
}

// Target names the cluster and the branch that a Change is for.
type Target struct {
	Cluster string
	Branch  string
}

func (t Target) promotion(app string, p *rollout.Promotion, s rollout.State, when time.Time) Change {
	o := Change{Branch: t.Branch, Edits: map[string][]byte{rollout.PromotionPath(t.Cluster, app): nil}, When: when}
	if p != nil {
		o.Edits[rollout.PromotionPath(t.Cluster, app)], _ = p.For(s).Encode() // texts can always be encoded
	}
	if r := s.Release; r != nil {
		o.Message = "\n" + releaseLine(r, "") + "\n"
	}
	if p != nil && p.Reason != "" {
		o.Message += "\nReason: " + p.Reason + "\n"
	}
	return o
}

func releaseLine(r *rollout.Release, what string) string {
	return fmt.Sprintf("Release %s of %s by %s%s:\n%s", r.Hash, rollout.ShortID(r.Commit), r.Author, what, r.Subject)
}

// Promotion proposes to open gates. The commit's time is the start of the newest step, so that equal proposals give
// equal commits.
func Promotion(cluster string, s rollout.State, key *rollout.Promotion) Change {
	about := rollout.State{APIVersion: s.APIVersion}
	o := Target{Cluster: cluster}.promotion(s.App, key, about, time.Time{})
	o.Branch = rollout.ProposalBranch(rollout.ProposePromotion, cluster, s.App)
	o.Subject = "Promote " + s.App + " " + upTo(key)
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s\n\n%s\n\n", o.Subject, cluster, releaseLine(s.Release, ""))
	b.WriteString(measured(s))
	for _, p := range s.Progress {
		fmt.Fprintf(&b, "%s is at step %d/%d (%s), %d%%.\n", p.Workload, min(p.Step+1, p.Of), p.Of, p.Name, p.Weight)
		o.When = rollout.Later(o.When, p.Entered)
	}
	fmt.Fprintf(&b, "\nMerge this commit to let the release go on.\n"+
		"To undo the release, before or after that: gitrollout undo %s\n", s.App)
	o.Message = b.String()
	return o
}

func measured(s rollout.State) string {
	text := ""
	for _, line := range rollout.Evidence(s.Analyses) {
		text += "Measured: " + line + ".\n"
	}
	return text
}

func logged(s rollout.State, why rollout.Rejection) string {
	for _, run := range s.Hooks {
		if run.Name == why.Hook && run.Release == why.Hash && run.Phase == rollout.HookFailed && run.Log != "" {
			return fmt.Sprintf("\nThe last lines of the log of Job %s:\n\n    %s\n", run.Job,
				strings.ReplaceAll(run.Log, "\n", "\n    "))
		}
	}
	return ""
}

// Revert proposes to revert a rejected release. The commit has the rejection's time. If canRetry is true, the message
// says how to retry.
func Revert(cluster string, s rollout.State, rejection rollout.Rejection, canRetry bool, v Reversion) Change {
	o := Change{
		Branch: rollout.ProposalBranch(rollout.ProposeRevert, cluster, s.App), Edits: v.Edits, When: rejection.At,
		Subject: fmt.Sprintf("Revert %s in %s to %s", s.App, cluster, rollout.ShortID(s.Stable.Commit)),
	}
	o.Message = fmt.Sprintf("%s\n\nRelease %s of %s was rejected:\n%s\n\n%s serves, and this commit restores it in Git.\n",
		o.Subject, rejection.Hash, rollout.ShortID(rejection.Commit), rejection.Reason, s.Stable.Hash)
	if canRetry {
		o.Message += "To try the same version again instead: gitrollout retry " + s.App + "\n"
	}
	o.Message += measured(s) + logged(s, rejection) + v.Caution()
	return o
}
