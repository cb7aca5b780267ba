package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/publish/forge"
)

func (c *planCommand) post(ctx context.Context, text string) error {
	config, number, err := forge.PullOf(os.Getenv)
	if err != nil {
		return usagef("--comment: %v; outside of CI, use -o markdown", err)
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
	_, _ = fmt.Fprintf(c.err, "the plan was not added as a comment to %s#%d: %v\n", remote, number, err)
	summary := os.Getenv("GITHUB_STEP_SUMMARY")
	if summary == "" {
		return nil
	}
	f, err := os.OpenFile(summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
