package wire

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Complete sets credentials from variables such as GITROLLOUT_GIT_TOKEN and GITROLLOUT_SSH_PASSPHRASE. A token's user
// is "x-access-token" by default. For https, only one source may be set: variables, a file, or a GitHub App.
func (a *Auth) Complete(env func(string) string, now func() time.Time) error {
	const token, password, app = "GITROLLOUT_GIT_TOKEN", "GITROLLOUT_GIT_PASSWORD", "GITROLLOUT_GITHUB_APP_ID"
	set := []string{token, password, token + "_FILE", password + "_FILE", app}
	set = slices.DeleteFunc(set, func(name string) bool { return env(name) == "" })
	if len(set) > 1 {
		return fmt.Errorf("more than one credential for https is set; keep only one: %s", strings.Join(set, ", "))
	}
	a.SSHPassphrase, a.Username = env("GITROLLOUT_SSH_PASSPHRASE"), env("GITROLLOUT_GIT_USERNAME")
	if env(token)+env(token+"_FILE") != "" {
		a.Username = cmp.Or(a.Username, "x-access-token")
	}
	a.Password = env(token) + env(password)
	user, file := a.Username, env(token+"_FILE")+env(password+"_FILE")
	switch {
	case file != "":
		a.Refresh = func(context.Context) (string, string, error) {
			data, err := os.ReadFile(file)
			if secret := strings.TrimSpace(string(data)); err != nil || secret != "" {
				return user, secret, err
			}
			return "", "", fmt.Errorf("%s is empty", file)
		}
		if _, _, err := a.Refresh(context.Background()); err != nil {
			return err
		}
	case env(app) != "":
		clients, err := NewClients(a.TLS)
		if err != nil {
			return err
		}
		github := &GitHubApp{
			API: env("GITROLLOUT_GITHUB_API"), ID: env(app), Installation: env("GITROLLOUT_GITHUB_INSTALLATION_ID"),
			KeyFile: env("GITROLLOUT_GITHUB_KEY_FILE"), Clients: clients, Now: now,
		}
		a.Refresh, a.Refused = github.Refresh, github.Forget
		return github.Check()
	}
	return nil
}

// Token returns a function for a forge API's default credential: Git's or the URL's. It calls Refresh: tokens expire.
func (a *Auth) Token(repo string) func(context.Context) (string, error) {
	if a.Refresh != nil {
		return func(ctx context.Context) (string, error) {
			_, token, err := a.Refresh(ctx)
			return token, err
		}
	}
	token := a.Password
	if token == "" {
		if _, inURL, err := ParseRemote(repo); err == nil {
			token = inURL.Password
		}
	}
	return func(context.Context) (string, error) { return token, nil }
}
