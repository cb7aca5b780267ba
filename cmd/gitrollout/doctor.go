package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// examination is what doctor finds, and what it prints as JSON or YAML.
type examination struct {
	Cluster  string    `json:"cluster"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []symptom `json:"findings"`
}

// symptom is the result of one check.
type symptom struct {
	Check   string `json:"check"`  // git.read, cluster.rights …
	Status  health `json:"status"` //
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// health is how a check has ended.
type health string

const (
	healthy health = "ok"
	warning health = "warning" // it works, and may not be meant
	problem health = "problem" // a release would be held, or not begin
	unknown health = "unknown" // it could not be looked at from here
)

func (e *examination) add(check string, status health, fix, format string, args ...any) {
	e.Findings = append(e.Findings, symptom{Check: check, Status: status, Message: fmt.Sprintf(format, args...), Fix: fix})
	switch status {
	case problem:
		e.Problems++
	case warning:
		e.Warnings++
	}
}

type doctorCommand struct {
	streams
	source sourceOptions
	target clusterOptions
	output outputOption
	color  colorOption
	as     string
	noPush bool
}

func newDoctor(s streams) *cobra.Command {
	c := &doctorCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what gitrollout needs of Git and of the cluster, with the fix for each",
		Long: `Check what "gitrollout run" would need, with the rights that this command has, and
say for each thing that is missing what to do:

  git      the branch can be read; branches below gitrollout/ can be pushed; the
           configuration can be read; whose state the state branch has
  forge    branch protection, where the configuration names a forge
  cluster  it answers; its version; the rights, kind by kind and namespace by
           namespace; that it knows all kinds; Secrets that analyses name
  clock    this machine's, the API server's and the Git server's

Whether it may push is tried out: it pushes one commit to a new branch,
gitrollout/promote/<cluster>/doctor-<time>, and removes that again. --no-push
leaves this out; then nothing at all is written. The rights on the cluster are asked for
(SelfSubjectAccessReview), --as asks for another account's.

The exit code is 1 if there is a problem; warnings do not count.`,
		Example: `  gitrollout doctor
  gitrollout doctor --as system:serviceaccount:gitrollout:gitrollout
  gitrollout doctor --no-push -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), time.Now) },
	}
	c.source.register(cmd)
	c.target.register(cmd)
	c.output.register(cmd, "json", "yaml")
	c.color.register(cmd)
	cmd.Flags().StringVar(&c.as, "as", "", "ask for the rights of this `user` on the cluster, such as the reconciler's service account")
	cmd.Flags().BoolVar(&c.noPush, "no-push", false, "do not try out whether branches can be pushed")
	return cmd
}

func (c *doctorCommand) run(ctx context.Context, now func() time.Time) error {
	e := &examination{Findings: []symptom{}}
	w, err := openWorld(ctx, c.source, c.streams)
	if err != nil {
		e.Cluster = c.source.cluster
		e.add("git.read", problem, gitFix(err), "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	} else {
		e.Cluster = w.source.cluster
		c.examineGit(ctx, e, w, now)
	}
	c.examineCluster(ctx, e, w, now)
	if done, err := c.output.write(c.streams, e); err != nil {
		return err
	} else if !done {
		if _, err := fmt.Fprint(c.out, drawExamination(*e, c.color.lookOf(c.out))); err != nil {
			return err
		}
	}
	if e.Problems > 0 {
		return silent(exitFailed)
	}
	return nil
}

// drawExamination shows a line for each check, and the fix below it. Without a
// terminal no line is broken.
func drawExamination(e examination, k look) string {
	colors := map[health]paint{healthy: green, warning: yellow, problem: red, unknown: dim}
	var b strings.Builder
	names := 0
	for _, f := range e.Findings {
		names = max(names, width(f.Check))
	}
	const statuses = 11 // "  problem  "
	indent := statuses + names + 2
	broken := func(text string, used int) []string {
		if k.width == 0 {
			return []string{clean(text)}
		}
		return wrap(clean(text), max(30, k.width-used))
	}
	for _, f := range e.Findings {
		for i, part := range broken(f.Message, indent) {
			if i == 0 {
				b.WriteString(k.line(span{pad("  "+string(f.Status), statuses), colors[f.Status]}, span{pad(f.Check, names) + "  ", dim}, span{part, plain}))
				continue
			}
			b.WriteString(k.line(span{strings.Repeat(" ", indent) + part, plain}))
		}
		if f.Fix == "" {
			continue
		}
		for i, part := range broken(f.Fix, indent+5) {
			label := "     "
			if i == 0 {
				label = "fix: "
			}
			b.WriteString(k.line(span{strings.Repeat(" ", indent) + label, cyan}, span{part, plain}))
		}
	}
	fmt.Fprintf(&b, "%s, %s\n", count(e.Problems, "problem"), count(e.Warnings, "warning"))
	return b.String()
}
