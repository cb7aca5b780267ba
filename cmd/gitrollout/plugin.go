package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names under which kubectl calls this program: the first as a plugin, and the second for shell completion.
const (
	pluginName    = "kubectl-gitrollout"
	completerName = "kubectl_complete-gitrollout"
)

// programName returns how the user calls the program, for help texts and suggested commands.
func programName() string {
	if fileName() == pluginName {
		return "kubectl gitrollout"
	}
	return "gitrollout"
}

// commandLine returns the arguments. If kubectl calls for completion, it puts cobra's completion command before them.
func commandLine() []string {
	if fileName() == completerName {
		return append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...)
	}
	return os.Args[1:]
}

func fileName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// asCalled replaces the program's name in help texts and examples by the name under which the user called the program.
func asCalled(root *cobra.Command, name string) {
	if name == root.Name() {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	var rename func(*cobra.Command)
	rename = func(cmd *cobra.Command) {
		lines := strings.Split(cmd.Example, "\n")
		for i, line := range lines {
			lines[i] = strings.Replace(line, "  "+root.Name()+" ", "  "+name+" ", 1)
		}
		cmd.Example = strings.Join(lines, "\n")
		for _, sub := range cmd.Commands() {
			rename(sub)
		}
	}
	rename(root)
}
