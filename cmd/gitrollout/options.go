package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

type sourceOptions struct {
	repo    string
	branch  string
	cluster string
	refs    string           // see git.Options.Refs
	named   string           // "--repo … --cluster …" as set, for commands to copy
	author  string           // the reconciler's "Name <address>", or ""
	who     rollout.Identity // author of pushed commits; if zero, gitrollout
	keys    *git.Keys        // keys that a reconciler trusts; nil: no signatures are checked
	// Secrets are in files or the environment, not in flags.
	access     wire.Auth
	signingKey string
}

func (o *sourceOptions) command(line string) string {
	if !strings.HasPrefix(line, "gitrollout ") {
		return line
	}
	return programName() + strings.TrimPrefix(line, "gitrollout") + o.named
}

type globalOptions struct {
	source sourceOptions
	target clusterOptions
}

var flagUsers = []struct{ title, flags, users string }{
	{"Git and keys", "branch git-ca git-cert git-key git-proxy known-hosts repo signing-key ssh-key",
		gitUsers + ", fleet"},
	{"the configuration of a cluster", "cluster", gitUsers + ", simulate"},
	{"the connection to a cluster", "context kubeconfig namespaces", `abort --break-glass, analysis backtest, analysis run,
dashboard, dashboard export, diff, doctor, events, get, list, logs, mcp, notify test, once,
plan, remove, render --with-state, run, state adopt, state repair, validate --context`},
}

const gitUsers = `abort, analysis backtest, dashboard, dashboard export, diff, doctor, events, get, history,
hold, list, logs, mcp, notify test, once, plan, promote, remove, render, restart, retry, run,
set image, state adopt, state compact, state repair, status, sync, undo, validate`

func refuseUnused(cmd *cobra.Command, _ []string) error {
	root := cmd.Root().CommandPath()
	isUsed := func(user string) bool {
		command, flag, _ := strings.Cut(user, " --")
		return root+" "+command == cmd.CommandPath() && (flag == "" || cmd.Flags().Changed(flag))
	}
	for _, group := range flagUsers {
		set := slices.DeleteFunc(strings.Fields(group.flags), func(flag string) bool {
			return !cmd.InheritedFlags().Changed(flag)
		})
		users := strings.Split(strings.ReplaceAll(group.users, "\n", " "), ", ")
		if len(set) > 0 && !slices.ContainsFunc(users, isUsed) {
			return usagef("%s does not use --%s; see: %s options", cmd.CommandPath(), strings.Join(set, " and --"), root)
		}
	}
	return checkArgument(cmd.Flag("repo").Value.String())
}

func addGlobal(root *cobra.Command, o *globalOptions) {
	flags, from, to, access := root.PersistentFlags(), &o.source, &o.target, &o.source.access
	// Environment variables are not defaults here, because --help would print a URL's credentials.
	flags.StringVar(&from.repo, "repo", "", "Git repository: a URL or a local path (default: the working copy's origin)")
	flags.StringVar(&from.branch, "branch", "main", "branch that people push to")
	flags.StringVar(&from.cluster, "cluster", "", "the cluster's folder under .gitrollout/ (default: the only one)")
	flags.StringVar(&access.SSHKeyFile, "ssh-key", "", "private key `file` for ssh (default: the SSH agent)")
	flags.StringVar(&access.KnownHosts, "known-hosts", "", "known_hosts `file` for ssh (default: ~/.ssh/known_hosts)")
	flags.StringVar(&access.CAFile, "git-ca", "", "`file` of certificates (PEM) to trust for https besides the system's")
	flags.StringVar(&access.CertFile, "git-cert", "", "client certificate `file` (PEM) for https")
	flags.StringVar(&access.KeyFile, "git-key", "", "private key `file` (PEM) of --git-cert (default: in the same file)")
	flags.StringVar(&access.Proxy, "git-proxy", "",
		"proxy `URL` for https (default: HTTPS_PROXY, except for hosts in NO_PROXY)")
	flags.StringVar(&from.signingKey, "signing-key", "",
		"sign pushed commits with the SSH key in this `file` (default: unsigned)")
	flags.StringVar(&to.kubeconfig, "kubeconfig", "",
		"kubeconfig `file` (default: KUBECONFIG, ~/.kube/config, or the pod's own account)")
	flags.StringVar(&to.context, "context", "", "context of the kubeconfig (default: its current one)")
	flags.StringSliceVar(&to.namespaces, "namespaces", nil,
		"watch and write to only the namespaces of these `names`: a Role in each is enough (default: the whole cluster)")
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.", ".LocalNonPersistentFlags.",
		"{{if .HasAvailableInheritedFlags}}\n\nGlobal Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}",
		"\n\nUse \"{{.Root.CommandPath}} options\" for flags for Git, keys and the cluster.",
	).Replace(root.UsageTemplate()))
}

func newOptions(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags for Git, keys and the cluster",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, group := range flagUsers {
				shown := &cobra.Command{}
				for _, name := range strings.Fields(group.flags) {
					shown.Flags().AddFlag(cmd.Flag(name))
				}
				err := s.say("Flags for " + group.title + ":\n\n" + shown.Flags().FlagUsages() +
					"\nfor the commands " + group.users + "\n\n")
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func register(cmd *cobra.Command, all ...interface{ register(cmd *cobra.Command) }) {
	for _, o := range all {
		o.register(cmd)
	}
}

// registerAuthor is for `run` and `once`, which ignore git's user.name.
func (o *sourceOptions) registerAuthor(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.author, "author", "",
		`"Name <address>" of the commits, for servers that accept only known authors `+
			"(default: "+git.Self.Name+" <"+git.Self.Email+">)")
}

type clusterOptions struct {
	kubeconfig string
	context    string
	namespaces []string
}

type logOptions struct {
	format string
	level  string
}

func (o *logOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.format, "log-format", "text", "text or json")
	flags.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
}

// logger writes to standard error, because standard output is for data.
func (o *logOptions) logger(s streams) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return nil, usagef("--log-level %q must be debug, info, warn or error", o.level)
	}
	options := &slog.HandlerOptions{Level: level}
	switch o.format {
	case "text":
		return slog.New(slog.NewTextHandler(s.err, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(s.err, options)), nil
	default:
		return nil, usagef("--log-format %q must be text or json", o.format)
	}
}

func newEnvironment() *cobra.Command {
	return &cobra.Command{
		Use:   "environment",
		Short: "Environment variables and credentials",
		Long: `Environment variables:

  GITROLLOUT_REPO                    default of --repo
  GITROLLOUT_CLUSTER                 default of --cluster
  GITROLLOUT_SERVER                  default of --server
  GITROLLOUT_WEBHOOK                 default of --webhook
  GITROLLOUT_GIT_USERNAME            user name for https
  GITROLLOUT_GIT_PASSWORD            password for https
  GITROLLOUT_GIT_PASSWORD_FILE       a file that holds it
  GITROLLOUT_GIT_TOKEN               a forge's token, instead of a password
  GITROLLOUT_GIT_TOKEN_FILE          a file that holds it
  GITROLLOUT_GITHUB_APP_ID           a GitHub App, instead of a password: its id
  GITROLLOUT_GITHUB_INSTALLATION_ID  the id of its installation
  GITROLLOUT_GITHUB_KEY_FILE         the file of its private key (PEM)
  GITROLLOUT_GITHUB_API              default https://api.github.com; on GitHub
                                     Enterprise Server https://<host>/api/v3
  GITROLLOUT_SSH_PASSPHRASE          passphrase of --ssh-key
  GITROLLOUT_SIGNING_KEY             default of --signing-key
  GITROLLOUT_SIGNING_PASSPHRASE      passphrase of --signing-key
  GITROLLOUT_FORGE_TOKEN             for pull requests (default: what Git uses)
  GITROLLOUT_FORGE_URL               a server besides Git's that may get the token
  GITROLLOUT_WEBHOOK_SECRET          the secret of webhooks, for run and sync
  GITROLLOUT_NOTIFY_…                credentials that notifications name as env
  GITROLLOUT_NOTIFY_DIR              the folder of credentials named as file
  OTEL_EXPORTER_OTLP_ENDPOINT        where run sends traces, by OTLP over HTTP
                                     (default: nowhere; OpenTelemetry's other
                                     OTEL_ variables count, too)
  GITROLLOUT_OIDC_CLIENT_SECRET      the dashboard's secret at the identity provider
  HTTPS_PROXY, NO_PROXY              proxy for https, and the hosts without it
  GIT_AUTHOR_NAME                    author of the commits of promote, abort, hold, retry
  GIT_AUTHOR_EMAIL                   and restart (default: user.name and user.email of git)
  KUBECONFIG                         default of --kubeconfig
  NO_COLOR                           any value: no colours

Credentials for Git: those in the URL of GITROLLOUT_REPO or of the working copy's
origin, or the variables above, or the key and the known hosts of ssh. They are
never logged or stored, and never taken from the command line. Files are read
again when they change.`,
	}
}
