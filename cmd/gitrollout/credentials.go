package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
)

// credentialOptions say how to reach the Git server and as whom. What is secret
// comes from files and from the environment: a command line can be read by
// everybody on the machine.
type credentialOptions struct {
	sshKey     string
	knownHosts string
	ca         string
	cert       string
	key        string
	proxy      string
	signingKey string
}

func (o *credentialOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.sshKey, "ssh-key", "", "private key `file` for ssh (default: the SSH agent)")
	flags.StringVar(&o.knownHosts, "known-hosts", "", "known_hosts `file` for ssh (default: ~/.ssh/known_hosts)")
	flags.StringVar(&o.ca, "git-ca", "", "`file` of certificates (PEM) to trust for https besides the system's")
	flags.StringVar(&o.cert, "git-cert", "", "client certificate `file` (PEM) for https")
	flags.StringVar(&o.key, "git-key", "", "private key `file` (PEM) of --git-cert (default: in the same file)")
	flags.StringVar(&o.proxy, "git-proxy", "",
		"proxy `URL` for https (default: HTTPS_PROXY, except for hosts in NO_PROXY)")
	flags.StringVar(&o.signingKey, "signing-key", "",
		"sign the commits that are pushed with the SSH key in this `file` (default: unsigned)")
}

// options are how to reach a repository.
func (o *sourceOptions) options() (git.Options, error) {
	auth, err := o.auth()
	if err != nil {
		return git.Options{}, &failure{code: exitUsage, err: err}
	}
	opts := git.Options{URL: o.repo, Branch: o.branch, Cluster: o.cluster, Auth: auth, Keys: o.keys}
	if file := o.signing(); file != "" {
		s := signer(file)
		if _, err := s.Read(); err != nil {
			return git.Options{}, &failure{code: exitUsage, err: err}
		}
		opts.Sign = s.Sign
	}
	return opts, nil
}

// signing is the file of the signing key, "" if there is none.
func (o *sourceOptions) signing() string {
	return cmp.Or(o.signingKey, os.Getenv("GITROLLOUT_SIGNING_KEY"))
}

// auth collects the credentials. Those in the URL are read by package git. A
// token is sent as the password, which is what forges expect.
func (o *sourceOptions) auth() (wire.Auth, error) {
	a := wire.Auth{
		Username: os.Getenv("GITROLLOUT_GIT_USERNAME"), Password: os.Getenv("GITROLLOUT_GIT_PASSWORD"),
		SSHKeyFile: o.sshKey, SSHPassphrase: os.Getenv("GITROLLOUT_SSH_PASSPHRASE"), KnownHosts: o.knownHosts,
		TLS: wire.TLS{CAFile: o.ca, CertFile: o.cert, KeyFile: o.key, Proxy: o.proxy},
	}
	if u, err := url.Parse(o.proxy); err == nil && u.User != nil {
		return a,
			errors.New("--git-proxy has a user in it, which everybody on this machine could read: put that URL into HTTPS_PROXY")
	}
	if token := os.Getenv("GITROLLOUT_GIT_TOKEN"); token != "" && a.Password == "" {
		a.Password, a.Username = token, cmp.Or(a.Username, "x-access-token")
	}
	file, app := os.Getenv("GITROLLOUT_GIT_PASSWORD_FILE"), os.Getenv("GITROLLOUT_GITHUB_APP_ID")
	user := a.Username
	if name := os.Getenv("GITROLLOUT_GIT_TOKEN_FILE"); name != "" && file == "" {
		file, user = name, cmp.Or(user, "x-access-token")
	}
	switch {
	case (file != "" || app != "") && a.Password != "", file != "" && app != "":
		return a,
			errors.New("more than one credential for https is set; set one of GITROLLOUT_GIT_TOKEN, GITROLLOUT_GIT_PASSWORD, " +
				"GITROLLOUT_GIT_TOKEN_FILE, GITROLLOUT_GIT_PASSWORD_FILE, GITROLLOUT_GITHUB_APP_ID")
	case file != "":
		a.Refresh = func(context.Context) (string, string, error) {
			data, err := os.ReadFile(file)
			if secret := strings.TrimSpace(string(data)); err != nil || secret != "" {
				return user, secret, err
			}
			return "", "", fmt.Errorf("%s is empty", file)
		}
		if _, _, err := a.Refresh(context.Background()); err != nil {
			return a, err
		}
	case app != "":
		return a, gitHubApp(&a, app)
	}
	return a, nil
}

// gitHubApp makes an Auth ask GitHub for tokens.
func gitHubApp(a *wire.Auth, id string) error {
	clients, err := wire.NewClients(a.TLS)
	if err != nil {
		return err
	}
	app := &wire.GitHubApp{
		API: os.Getenv("GITROLLOUT_GITHUB_API"), ID: id, Installation: os.Getenv("GITROLLOUT_GITHUB_INSTALLATION_ID"),
		KeyFile: os.Getenv("GITROLLOUT_GITHUB_KEY_FILE"), Clients: clients, Now: time.Now,
	}
	a.Refresh, a.Refused = app.Refresh, app.Forget
	return app.Check()
}

// checkArgument refuses a password on the command line.
func checkArgument(repo string) error {
	if u, err := url.Parse(repo); err == nil && u.User != nil && strings.HasPrefix(strings.ToLower(u.Scheme), "http") {
		if _, has := u.User.Password(); has {
			return usagef("--repo has a password in it, which everybody on this machine could read: " +
				"put that URL into GITROLLOUT_REPO, or the password into GITROLLOUT_GIT_TOKEN_FILE; see: gitrollout help environment")
		}
	}
	return nil
}

func signer(file string) *git.Signer {
	return &git.Signer{File: file, Passphrase: os.Getenv("GITROLLOUT_SIGNING_PASSPHRASE")}
}
