package main

import (
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/rollout"
)

// sourceOptions select the repository, the users' branch in it, and the cluster.
type sourceOptions struct {
	repo    string
	branch  string
	cluster string
	named   string           // "--repo … --cluster …" as the user set them, for commands to copy
	author  string           // "Name <address>" of the reconciler's commits; "" for the default
	who     rollout.Identity // the author of pushed commits; the zero value means gitrollout itself
	keys    *git.Keys        // the keys that a reconciler trusts; nil to check no signatures
	credentialOptions
}

// command adds the user's flags --repo and --cluster to a suggested command line, so that users can copy it.
func (o *sourceOptions) command(line string) string {
	if !strings.HasPrefix(line, "gitrollout ") {
		return line
	}
	return programName() + strings.TrimPrefix(line, "gitrollout") + o.named
}

func (o *sourceOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	// The environment does not set the defaults of flags, because --help would then show credentials in a URL.
	flags.StringVar(&o.repo, "repo", "", "Git repository: a URL or a local path (default: the working copy's origin)")
	flags.StringVar(&o.branch, "branch", "main", "branch that people push to")
	flags.StringVar(&o.cluster, "cluster", "", "the cluster's folder under .gitrollout/ (default: the only one)")
	o.credentialOptions.register(cmd)
}

func register(cmd *cobra.Command, all ...interface{ register(cmd *cobra.Command) }) {
	for _, o := range all {
		o.register(cmd)
	}
}

// registerAuthor adds the flag --author of run and once. Unlike other commands, these two ignore git's user.name.
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

func (o *clusterOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig `file` (default: KUBECONFIG, ~/.kube/config, or the pod's own account)")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig (default: its current one)")
	flags.StringSliceVar(&o.namespaces, "namespaces", nil,
		"the only `names` of namespaces to watch and to write to: a Role in each is enough (default: the whole cluster)")
}

// logOptions configure the log of the commands "run" and "once".
type logOptions struct {
	format string
	level  string
}

func (o *logOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.format, "log-format", "text", "text or json")
	flags.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
}

// logger returns a logger that writes to standard error, because standard output is only for data.
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
  GITROLLOUT_FORGE_URL               where that may go besides Git's own host
  GITROLLOUT_WEBHOOK_SECRET          the secret of webhooks, for run and sync
  GITROLLOUT_NOTIFY_…                credentials that notifications name as env
  GITROLLOUT_NOTIFY_DIR              the folder of credentials named as file
  OTEL_EXPORTER_OTLP_ENDPOINT        where run sends traces, by OTLP over HTTP
                                     (default: nowhere; OpenTelemetry's other
                                     OTEL_ variables count, too)
  GITROLLOUT_OIDC_CLIENT_SECRET      of the dashboard, where people sign in
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
