package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/internal/compare"
)

var update = flag.Bool("update", false, "rewrite the files that the tests write")

const commandsPage = "../../docs/reference/commands.md"

// TestCommandsPage checks that docs/reference/commands.md describes exactly the commands and flags of the program.
func TestCommandsPage(t *testing.T) {
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	var b strings.Builder
	b.WriteString(`# Commands

<!-- Written by go test ./cmd/gitrollout -run TestCommandsPage -update. -->

Every command with its flags, as ` + "`gitrollout help COMMAND`" + ` has them. The exit codes and the variables of
the environment are [at the end](#gitrollout-exit-codes).

## Global flags

` + "`gitrollout options`" + ` lists these flags, and the commands that use them. Other commands refuse them.

`)
	b.WriteString(flagTable)
	global := &cobra.Command{}
	global.Flags().AddFlagSet(root.PersistentFlags())
	for _, f := range flagRows(global) {
		b.WriteString(f.row)
	}
	b.WriteString("\n## Common flags\n\n")
	uses := map[string]int{} // for each table row, the number of commands with its flag
	countFlags(root, uses)
	var common []string
	for row, n := range uses {
		if n >= leastCommon {
			common = append(common, row)
		}
	}
	slices.Sort(common)
	b.WriteString(flagTable + strings.Join(common, ""))
	var write func(*cobra.Command)
	write = func(c *cobra.Command) {
		if c.IsAvailableCommand() && c.HasParent() || c.IsAdditionalHelpTopicCommand() {
			writeCommand(&b, c, uses)
		}
		for _, sub := range c.Commands() {
			if !sub.IsAdditionalHelpTopicCommand() {
				write(sub)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAdditionalHelpTopicCommand() {
				write(sub)
			}
		}
	}
	write(root)
	want := b.String()
	if *update {
		must(t, os.WriteFile(commandsPage, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(commandsPage)
	must(t, err)
	if diff := compare.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from the commands (-want +got), rewrite it with -update:\n%s", commandsPage, diff)
	}
}

// leastCommon is a number of commands. A flag of at least this many commands is in the table of common flags.
const leastCommon = 4

const flagTable = "| flag | default | meaning |\n|---|---|---|\n"

// countFlags adds 1 to uses[row] for each command that has the flag of this row. The commands are c and its subcommands.
func countFlags(c *cobra.Command, uses map[string]int) {
	for _, f := range flagRows(c) {
		uses[f.row]++
	}
	for _, sub := range c.Commands() {
		countFlags(sub, uses)
	}
}

func writeCommand(b *strings.Builder, c *cobra.Command, uses map[string]int) {
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n", c.CommandPath(), strings.TrimSpace(long))
	if c.Runnable() {
		fmt.Fprintf(b, "\nUsage: %s\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	b.WriteString("```\n")
	var own, common []string
	for _, f := range flagRows(c) {
		if uses[f.row] >= leastCommon {
			common = append(common, "`--"+f.name+"`")
		} else {
			own = append(own, f.row)
		}
	}
	if len(own) > 0 {
		b.WriteString("\n" + flagTable + strings.Join(own, ""))
	}
	if len(common) > 0 {
		fmt.Fprintf(b, "\n[Common flags](#common-flags): %s\n", strings.Join(common, ", "))
	}
}

// flagRow is the name of a flag, and its row in a table of flags.
type flagRow struct{ name, row string }

// flagRows returns the table rows for a command's own flags, except --help.
func flagRows(c *cobra.Command) (rows []flagRow) {
	flags := c.LocalNonPersistentFlags()
	for _, m := range flagLine.FindAllStringSubmatch(flags.FlagUsages(), -1) {
		f := flags.Lookup(m[1])
		if f.Name == "help" {
			continue
		}
		name := "`--" + strings.TrimSpace(m[1]+" "+m[2]) + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0s" && f.DefValue != "0" && f.DefValue != "[]" {
			value = "`" + f.DefValue + "`"
		}
		usage := strings.NewReplacer("`", "", "|", `\|`, "<", "&lt;").Replace(f.Usage)
		rows = append(rows, flagRow{f.Name, fmt.Sprintf("| %s | %s | %s |\n", name, value, usage)})
	}
	return rows
}

// TestSettingsPage checks that docs/settings.md lists exactly mainFlags.
func TestSettingsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/settings.md")
	must(t, err)
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` ").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, m[1])
	}
	if diff := compare.Diff(mainFlags, listed); diff != "" {
		t.Errorf("docs/settings.md (-the program's +the page's):\n%s", diff)
	}
}

// TestEnvironmentIsDocumented checks that `gitrollout help environment` describes each environment variable that this package reads.
func TestEnvironmentIsDocumented(t *testing.T) {
	page := newEnvironment().Long
	files, err := filepath.Glob("*.go")
	must(t, err)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		must(t, err)
		for _, m := range regexp.MustCompile(`"(GITROLLOUT_[A-Z_]+[A-Z]|OTEL_[A-Z_]+)"`).FindAllStringSubmatch(string(source), -1) {
			if found++; !regexp.MustCompile(`(?m)^  ` + m[1] + ` `).MatchString(page) {
				t.Errorf("%s reads %s, which gitrollout help environment does not have", file, m[1])
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d variables in the source: are they read right?", found)
	}
}
