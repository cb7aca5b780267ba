package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/publish/serve"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// dashAddress is a loopback address, so other machines need a port-forward.
const dashAddress = "127.0.0.1:3100"

type dashOptions struct {
	address string
	actions bool
	tokens  string
	url     string
	issuer  string
	client  string
	scopes  []string
	email   bool
}

func (o *dashOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.address, "dashboard-address", dashAddress, "`host:port` of the dashboard; \"\" for none")
	flags.BoolVar(&o.actions, "dashboard-actions", false,
		"let signed-in users promote, hold, abort, retry and undo releases, and restart apps, in the dashboard")
	flags.StringVar(&o.tokens, "dashboard-tokens", "", "with --dashboard-actions: `file` of people and their rights")
	flags.StringVar(&o.url, "dashboard-url", "", "the dashboard's URL in browsers, if it differs from --dashboard-address")
	flags.StringVar(&o.issuer, "dashboard-oidc-issuer", "", "`URL` of the OpenID Connect provider that people sign in at")
	flags.StringVar(&o.client, "dashboard-oidc-client", "",
		"client `id` of the dashboard at the provider; GITROLLOUT_OIDC_CLIENT_SECRET has the client secret")
	flags.StringSliceVar(&o.scopes, "dashboard-oidc-scopes", nil,
		"scopes to ask for besides openid, profile and email, such as groups")
	flags.BoolVar(&o.email, "dashboard-oidc-email-unverified", false, "accept email addresses even if the provider "+
		"does not say that they are verified: only safe if users cannot choose their own address")
}

func (o *dashOptions) check() error {
	u, err := url.Parse(o.url)
	switch {
	case o.url != "" && (err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http")):
		return usagef("--dashboard-url %q is not an address; write https://rollouts.example.com", o.url)
	case !o.actions && (o.tokens != "" || o.issuer != ""):
		return usagef("--dashboard-tokens and --dashboard-oidc-issuer are for --dashboard-actions, which is not set")
	case o.actions && o.tokens == "":
		return usagef("--dashboard-actions is set without a file of rights: name one with --dashboard-tokens")
	case o.issuer != "" && (o.client == "" || o.url == ""):
		return usagef(
			"--dashboard-oidc-issuer needs --dashboard-oidc-client and --dashboard-url, to which the provider sends people back")
	}
	return nil
}

func (o *dashOptions) server(records *console.Records, board *dashboard.Board) (*dashboard.Server, error) {
	u, err := url.Parse(o.url)
	options := dashboard.Options{Board: board, Records: records, Fleet: records.Fleet, Now: time.Now,
		Secure: err == nil && u.Scheme == "https"}
	if o.actions {
		options.Access, options.Actor = &dashboard.Access{File: o.tokens}, dashActor{records}
		if err := options.Access.Check(); err != nil {
			return nil, err
		}
		if o.issuer != "" {
			options.OIDC = &dashboard.OIDC{Issuer: o.issuer, ClientID: o.client,
				Secret: os.Getenv("GITROLLOUT_OIDC_CLIENT_SECRET"), URL: o.url, Scopes: o.scopes, Unverified: o.email}
		}
	}
	return dashboard.New(options)
}

func (o *dashOptions) serve(listener net.Listener, handler http.Handler, ended func(error)) (stop func()) {
	return serve.On(listener, serve.Options{Address: o.address, Public: o.url, Server: quiet(handler, slog.DiscardHandler),
		Ended: ended, Now: time.Now})
}

func newDashboard(s streams) *cobra.Command {
	c := &dashCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve a web page of all releases",
		Long: `Serve a web page that shows all apps of a cluster, and each release live: its
steps, weights, pods, verdicts, changes, and why it waits.

Like get, it reads Git, and the cluster if that can be reached. "gitrollout run"
serves the same page, with the current measurements.

The page is read-only. With --dashboard-actions, people who sign in can promote,
hold, abort, retry, undo and restart: each action is a commit under their name.
--dashboard-tokens names the file of people and their rights.`,
		Example: `  gitrollout dashboard
  gitrollout dashboard --cluster prod-eu --dashboard-address 127.0.0.1:8080`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.options.register(cmd)
	cmd.Flags().DurationVar(&c.every, "refresh", 5*time.Second, "time between looks at Git")
	cmd.AddCommand(newDashboardExport(s), newDashboardToken(s))
	return cmd
}

func newDashboardToken(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "token",
		Short: "Make a token to sign in with, and its digest for --dashboard-tokens",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			token, digest := dashboard.NewToken()
			return s.say("for the person:               " + token + "\nfor the --dashboard-tokens file: " + digest)
		},
	}
}

func newDashboardExport(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "export DIR",
		Short: "Write the pages to a folder, to open them without a server",
		Long: `Write the pages to the folder DIR, from which they open without a server: as a website,
or to attach the page of an app, app-NAME.html, to a postmortem. DIR is new, empty, or
an earlier export, which is replaced.

They show what the dashboard shows without a sign-in, and cannot act. Ages are as of
the newest commit on the state branch. The same commits give the same files, except
for pods, which are from the cluster if that can be reached.`,
		Example: `  gitrollout dashboard export site`,
		Args:    exactlyOne("folder"),
		RunE:    func(cmd *cobra.Command, args []string) error { return exportDashboard(cmd.Context(), args[0], s) },
	}
}

func exportDashboard(ctx context.Context, dir string, s streams) error {
	dir, err := filepath.Abs(dir)
	if target, missing := filepath.EvalSymlinks(dir); missing == nil {
		dir = target
	}
	if err = cmp.Or(err, checkExport(dir)); err != nil {
		return err
	}
	w, err := openWorld(ctx, &s.source, s)
	if err == nil && w.State == nil {
		err = fmt.Errorf("nothing to export: there is no state branch %s", w.Config().StateBranch)
	}
	if err == nil {
		err = tryConnect(ctx, w, nil, s)
	}
	if err != nil {
		return err
	}
	if gitAlone, why, has := strings.Cut(w.Note, ": "); has { // the reason may contain local addresses and paths
		w.Note = gitAlone
		_, _ = fmt.Fprintf(s.err, "%s: %s\n", gitAlone, why)
	}
	w.Command = func(line string) string { return line } // shown commands omit this command's flags
	tip, state := w.Tip.Tree.Commit(), w.State.Commit()
	l, err := w.Listing(ctx, nil, state.When)
	board := dashboard.NewBoard(w.Cluster, "")
	board.Staged.Store(w.Tip.Fleet != nil)
	if err = cmp.Or(err, board.Show(state.When, l.Note, l.Apps, nil)); err != nil {
		return err
	}
	records := dashRecords(s.source, &adapters.Repository{Repo: w.Repo}, s)
	records.Session, records.Now = w, func() time.Time { return state.When }
	server, err := (&dashOptions{}).server(records, board)
	if err != nil {
		return err
	}
	apps := rollout.Count(len(l.Apps), "app")
	pages, err := slowly(s, "reading the history of "+apps, func() (map[string][]byte, error) {
		return server.Export(ctx, fmt.Sprintf("%s at %s, state %s", w.Branch, tip.Short(), state.Short()), state.When)
	})
	if err == nil {
		err = replaceExport(dir, pages)
	}
	if err != nil {
		return err
	}
	return s.say(filepath.Join(dir, "index.html") + " shows " + apps + "\n")
}

const exportMark = ".gitrollout-export"

var exportPage = regexp.MustCompile(`^(index|apps|app-.+)\.html$`)

func checkExport(dir string) error {
	info, missing := os.Lstat(dir) // follows no link, even if its target is an export
	entries, err := os.ReadDir(dir)
	isOther := func(e os.DirEntry) bool {
		return e.Name() != exportMark && !(e.Type().IsRegular() && exportPage.MatchString(e.Name()))
	}
	if missing == nil && !info.IsDir() || err != nil && !errors.Is(err, os.ErrNotExist) ||
		slices.ContainsFunc(entries, isOther) || len(entries) > 0 && entries[0].Name() != exportMark { // sorted
		return usagef("%s is no folder, or has files that are not from an export: name a new or an empty folder", dir)
	}
	return nil
}

// removeExport removes the folder of a complete or a killed export. It removes exportMark last, so that a later call
// still recognizes the folder.
func removeExport(dir string) error {
	entries, _ := os.ReadDir(dir)
	err := checkExport(dir)
	for i := len(entries) - 1; i >= 0 && err == nil; i-- { // the mark is the first
		err = os.Remove(filepath.Join(dir, entries[i].Name()))
	}
	if err == nil {
		err = os.Remove(dir)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func replaceExport(dir string, pages map[string][]byte) error {
	next, old := dir+".gitrollout-new", dir+".gitrollout-old"
	switch info, err := os.Stat(next); {
	case err != nil: // from here on, another export may create this folder
	case time.Since(info.ModTime()) < time.Minute: // writing takes seconds
		return fmt.Errorf("another export writes %s: repeat this export in a minute", next)
	default:
		_ = removeExport(next)
	}
	err := cmp.Or(os.MkdirAll(filepath.Dir(next), 0o755), os.Mkdir(next, 0o755))
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(next, exportMark), nil, 0o644) // first, for removeExport
	for file, page := range pages {
		err = cmp.Or(err, os.WriteFile(filepath.Join(next, file), page, 0o644))
	}
	if err = cmp.Or(err, checkExport(dir)); err == nil { // check again, because reading may take minutes
		err = exchange(next, dir, old)
	}
	if err != nil {
		_ = removeExport(next)
		return err
	}
	return removeExport(old)
}

func exchange(next, dir, old string) error {
	_ = removeExport(old)
	missing := os.Rename(dir, old) // a folder that cannot be moved, such as a mount, keeps its files
	if missing != nil && !errors.Is(missing, os.ErrNotExist) {
		return missing
	}
	err := os.Rename(next, dir)
	if err != nil && missing == nil {
		return cmp.Or(os.Rename(old, dir), err)
	}
	return err
}

type dashCommand struct {
	streams
	options dashOptions
	every   time.Duration
}

func (c *dashCommand) run(ctx context.Context) error {
	if err := c.options.check(); err != nil {
		return err
	}
	if c.options.address == "" || c.every < 100*time.Millisecond {
		return usagef("--dashboard-address must be set, and --refresh must be 100ms or more")
	}
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.options.address)
	if err != nil {
		return usagef("--dashboard-address: %v", err)
	}
	defer listener.Close()
	board := dashboard.NewBoard(w.Cluster, "reading Git and the cluster …")
	records := dashRecords(c.source, &adapters.Repository{Repo: w.Repo}, c.streams)
	server, err := c.options.server(records, board)
	if err != nil {
		return err
	}
	broken := make(chan error, 1)
	defer c.options.serve(listener, server, func(err error) { broken <- err })()
	if _, err := fmt.Fprintf(c.out, "http://%s shows cluster %s; Ctrl-C ends it\n", listener.Addr(),
		w.Cluster); err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	if err := tryConnect(ctx, w, func(string) { poke(changed) }, c.streams); err != nil {
		return err
	}
	records.Watch(w.Client, w.Within, w.Note)
	return c.follow(ctx, w, board, changed, broken)
}

// follow updates the board until ctx ends. If Git is unreachable, it keeps the last data and adds a note.
func (c *dashCommand) follow(ctx context.Context, w *console.Session, board *dashboard.Board, changed <-chan struct{},
	broken <-chan error) error {
	looked, trouble := time.Now(), ""
	for {
		board.Staged.Store(w.Tip.Fleet != nil || w.Tip.Unstaged != nil)
		l, err := w.Listing(ctx, nil, time.Now())
		if ctx.Err() != nil {
			return nil
		}
		left := slices.DeleteFunc(board.Names(), func(name string) bool { _, is := w.Apps[name]; return is })
		if err != nil {
			trouble, l.Apps, left = err.Error(), nil, nil
		}
		if trouble != "" {
			l.Note = strings.TrimSuffix("Git cannot be read, so Git's data is old: "+trouble+";\n"+l.Note, ";\n")
		}
		if err := board.Show(time.Now(), l.Note, l.Apps, left); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-broken:
			return fmt.Errorf("serve the dashboard: %w", err)
		case <-time.After(c.every):
		case <-changed:
			if !sleep(ctx, 200*time.Millisecond) { // to show several changes together
				return nil
			}
		}
		if time.Since(looked) < c.every {
			continue
		}
		trouble, looked = "", time.Now()
		if _, err := w.Refresh(ctx); err != nil {
			trouble = err.Error()
		}
	}
}

func startDashboard(o dashOptions, l *loop, log *slog.Logger, s streams) (stop func(), err error) {
	if o.address == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		log.Warn("no dashboard is served", "flag", "--dashboard-address", "error", err)
		return func() {}, nil
	}
	board := dashboard.NewBoard(l.source.cluster,
		"no pass has been made yet: the cluster is being read, or this replica stands by while another one works")
	records := dashRecords(l.source, l.created, s)
	records.Watch(l.client, nil, "")
	server, err := o.server(records, board)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	feed := dashboard.NewFeed(board, log.Warn, log.Error)
	l.sinks.Others = append(l.sinks.Others, feed.Tell)
	ctx, cancel := context.WithCancel(context.Background())
	go feed.Run(ctx, time.Now)
	end := o.serve(listener, server, func(err error) { log.Error("the dashboard is no longer served", "error", err) })
	log.Info("serving the dashboard", "url", "http://"+listener.Addr().String(), "actions", o.actions)
	return func() { end(); cancel() }, nil
}
