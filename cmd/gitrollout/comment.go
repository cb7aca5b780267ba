package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/publish/call"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/plan"
)

// post makes a plan the comment of the pull request that a CI job runs for. A token that may not write, as those of
// forks' pull requests, is no failure of the job.
func (c *planCommand) post(ctx context.Context, text string) error {
	config, number, err := pullOf(os.Getenv)
	if err != nil {
		return err
	}
	auth, err := c.source.auth()
	if err != nil {
		return err
	}
	remote := config.URL + "/" + config.Repository
	err = forge.Comment(ctx, forge.Options{
		Remote: remote, Trusted: os.Getenv("GITROLLOUT_FORGE_URL"), Token: forgeToken(c.source, auth), Now: time.Now,
	}, config, number, strings.TrimSpace(plan.Mark), text)
	refused := new(call.Error)
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w: the token is wrong, or has expired; look at GITROLLOUT_FORGE_TOKEN or "+
			"GITROLLOUT_GIT_TOKEN", err)
	case refused.Status != http.StatusForbidden:
		return err
	}
	_, _ = fmt.Fprintf(c.err, "the plan is no comment of %s#%d: %v\n", remote, number, err)
	if summary := os.Getenv("GITHUB_STEP_SUMMARY"); summary != "" {
		return appendTo(summary, text)
	}
	return nil
}

// appendTo adds a text to a file, which other steps may have written to.
func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

var pullRef = regexp.MustCompile(`^refs/pull/([0-9]+)/`)

// pullOf is the pull request of a CI job, by the variables that forges set: which forge, and its number.
func pullOf(env func(string) string) (rollout.Forge, int, error) {
	if iid := env("CI_MERGE_REQUEST_IID"); iid != "" {
		number, err := strconv.Atoi(iid)
		return rollout.Forge{
			Type: rollout.GitLab, URL: env("CI_SERVER_URL"), Repository: env("CI_MERGE_REQUEST_PROJECT_PATH"),
		}, number, err
	}
	m := pullRef.FindStringSubmatch(env("GITHUB_REF"))
	if m == nil {
		return rollout.Forge{}, 0, usagef("--comment is for a CI job of a pull request, " +
			"where GITHUB_REF is refs/pull/…, or CI_MERGE_REQUEST_IID is set; elsewhere: -o markdown")
	}
	number, err := strconv.Atoi(m[1])
	return forgeOf(env), number, err
}

// forgeOf is the repository of a CI job, whatever it runs for; zero elsewhere.
func forgeOf(env func(string) string) rollout.Forge {
	f := rollout.Forge{
		Type: rollout.GitHub, URL: strings.TrimSuffix(env("GITHUB_SERVER_URL"), "/"), Repository: env("GITHUB_REPOSITORY"),
	}
	switch {
	case env("CI_PROJECT_PATH") != "":
		return rollout.Forge{Type: rollout.GitLab, URL: env("CI_SERVER_URL"), Repository: env("CI_PROJECT_PATH")}
	case f.Repository == "":
		return rollout.Forge{}
	case env("GITEA_ACTIONS") != "" || env("FORGEJO_ACTIONS") != "":
		f.Type = rollout.Gitea
	}
	return f
}
