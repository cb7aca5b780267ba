package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Complete sets the credentials from environment variables, such as GITROLLOUT_GIT_USERNAME, GITROLLOUT_GIT_TOKEN and
// GITROLLOUT_SSH_PASSPHRASE. A token is a password with the default user name "x-access-token". For https, only one
// source may be set: variables with a token or password, a file with a token or password, or a GitHub App.
func (a *Auth) Complete(env func(string) string, now func() time.Time) error {
	a.Username, a.Password = env("GITROLLOUT_GIT_USERNAME"), env("GITROLLOUT_GIT_PASSWORD")
	a.SSHPassphrase = env("GITROLLOUT_SSH_PASSPHRASE")
	if token := env("GITROLLOUT_GIT_TOKEN"); token != "" && a.Password == "" {
		a.Password, a.Username = token, cmp.Or(a.Username, "x-access-token")
	}
	file, app := env("GITROLLOUT_GIT_PASSWORD_FILE"), env("GITROLLOUT_GITHUB_APP_ID")
	user := a.Username
	if name := env("GITROLLOUT_GIT_TOKEN_FILE"); name != "" && file == "" {
		file, user = name, cmp.Or(user, "x-access-token")
	}
	switch {
	case (file != "" || app != "") && a.Password != "", file != "" && app != "":
		return errors.New("more than one credential for https is set; keep only one: GITROLLOUT_GIT_TOKEN, " +
			"GITROLLOUT_GIT_PASSWORD, GITROLLOUT_GIT_TOKEN_FILE, GITROLLOUT_GIT_PASSWORD_FILE, GITROLLOUT_GITHUB_APP_ID")
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
	case app != "":
		return a.useApp(app, env, now)
	}
	return nil
}

func (a *Auth) useApp(id string, env func(string) string, now func() time.Time) error {
	clients, err := NewClients(a.TLS)
	if err != nil {
		return err
	}
	app := &GitHubApp{
		API: env("GITROLLOUT_GITHUB_API"), ID: id, Installation: env("GITROLLOUT_GITHUB_INSTALLATION_ID"),
		KeyFile: env("GITROLLOUT_GITHUB_KEY_FILE"), Clients: clients, Now: now,
	}
	a.Refresh, a.Refused = app.Refresh, app.Forget
	return app.Check()
}

// Token returns a function that returns the default credential for a forge's API: the password for Git, or else the
// password in the repository's URL. If Refresh is set, it is called each time, because tokens expire.
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
