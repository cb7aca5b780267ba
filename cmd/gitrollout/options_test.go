package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestUnusedFlags checks that a command refuses a global flag that it does not use.
func TestUnusedFlags(t *testing.T) {
	const options = "; see: gitrollout options"
	for line, want := range map[string]string{
		"get --repo x --context y --cluster z":    "",
		"promote --repo x --signing-key y":        "",
		"promote --context x --namespaces y":      "gitrollout promote does not use --context and --namespaces" + options,
		"set image --kubeconfig x":                "gitrollout set image does not use --kubeconfig" + options,
		"abort --context x":                       "gitrollout abort does not use --context" + options,
		"abort --break-glass --context x":         "",
		"render --context x":                      "gitrollout render does not use --context" + options,
		"render --with-state --context x":         "",
		"undo --context x":                        "gitrollout undo does not use --context" + options,
		"state compact --context x":               "gitrollout state compact does not use --context" + options,
		"state adopt --context x":                 "",
		"init --cluster x":                        "",
		"init --branch x":                         "gitrollout init does not use --branch" + options,
		"vendor --cluster x":                      "gitrollout vendor does not use --cluster" + options,
		"vendor --ssh-key x":                      "gitrollout vendor does not use --ssh-key" + options,
		"simulate --cluster x":                    "",
		"simulate --repo x":                       "gitrollout simulate does not use --repo" + options,
		"dashboard token --repo x":                "gitrollout dashboard token does not use --repo" + options,
		"notify test --repo x --context y":        "",
		"validate --repo x --cluster y":           "",
		"validate --context x --kubeconfig y":     "",
		"validate --namespaces x":                 "gitrollout validate does not use --namespaces" + options,
		"run --repo x --namespaces y --context z": "",
	} {
		root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
		cmd, args, err := root.Find(strings.Fields(line))
		must(t, err)
		must(t, cmd.ParseFlags(args))
		got := ""
		if err := root.PersistentPreRunE(cmd, nil); err != nil {
			got = err.Error()
		}
		compare.CheckNamed(t, line, want, got)
	}
}

// TestFlagUsers checks that the table of global flags names commands that exist, and has each global flag once.
func TestFlagUsers(t *testing.T) {
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	var flags []string
	for _, group := range flagUsers {
		flags = append(flags, strings.Fields(group.flags)...)
		for user := range strings.SplitSeq(strings.ReplaceAll(group.users, "\n", " "), ", ") {
			name, flag, _ := strings.Cut(user, " --")
			cmd, _, err := root.Find(strings.Fields(name))
			must(t, err)
			compare.CheckNamed(t, "the command of "+user, "gitrollout "+name, cmd.CommandPath())
			compare.CheckNamed(t, user+" has its flag", true, flag == "" || cmd.Flag(flag) != nil)
		}
	}
	slices.Sort(flags)
	global := &cobra.Command{}
	global.Flags().AddFlagSet(root.PersistentFlags())
	compare.Check(t, rollout.Mapped(flagRows(global), func(f flagRow) string { return f.name }), flags)
}
