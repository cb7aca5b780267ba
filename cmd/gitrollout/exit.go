package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

type exitCode int

// Exit codes must not change. newExitCodes documents them.
const (
	exitOK      exitCode = 0
	exitFailed  exitCode = 1
	exitUsage   exitCode = 2
	exitGit     exitCode = 3
	exitCluster exitCode = 4
	exitConfig  exitCode = 5

	// "gitrollout status" returns these codes. "once" also returns exitHeld. "abort --now" also returns exitNotYet.
	// "analysis run" returns exitNotYet after its time limit, and exitHeld for an inconclusive result.
	exitDegraded exitCode = 6
	exitNotYet   exitCode = 7
	exitHeld     exitCode = 8

	exitChanges exitCode = 10
)

// failure is an error with an exit code. If the error is already printed, err is nil.
type failure struct {
	code exitCode
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func usagef(format string, args ...any) error {
	return &failure{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func withCode(code exitCode, err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: code, err: err}
}

func silentIf(failed bool, code exitCode) error {
	if !failed {
		return nil
	}
	return &failure{code: code}
}

func codeOf(err error) exitCode {
	var stated *failure
	var refused *cluster.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &stated):
		return stated.code
	case errors.As(err, new(*propose.UnknownStepError)):
		return exitUsage
	case errors.Is(err, git.ErrUnreachable), errors.Is(err, git.ErrAuth), errors.Is(err, git.ErrNotFound):
		return exitGit
	case errors.As(err, &refused) && (refused.Reason == cluster.Unavailable || refused.Reason == cluster.Forbidden):
		return exitCluster
	case rollout.IsInvalid(err):
		return exitConfig
	default:
		return exitFailed
	}
}

func message(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n", "\n            ")
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, git.ErrAuth):
		text += "\n            credentials: see gitrollout help environment"
	case errors.Is(err, git.ErrRejected):
		text += "\n            a protected branch takes merges only: merge the proposal, or commit the file through a review"
	}
	return text
}

func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `The exit codes of gitrollout:

  0  it worked
  1  it failed, or diff found differences, or validate, plan or doctor found errors
  2  the command line is wrong
  3  Git is unreachable, refuses the credentials, or has no such repository,
     branch or commit
  4  the cluster is unreachable or forbids a request
  5  the configuration in Git is invalid

of gitrollout status, besides 0 for healthy (or the goal of --for):

  6  the release was rejected or reverted, or a newer push has overtaken it
  7  not there yet: the time is up (also for abort --now), or there was no --wait
  8  the app is held, and a person has to do something; for once: any app is held

of gitrollout analysis run:

  7  the time is up, and a metric has no verdict
  8  the analysis is inconclusive

and of gitrollout plan --exit-code:

 10  an app changes`,
	}
}
