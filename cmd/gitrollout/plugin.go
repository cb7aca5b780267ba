package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// These are kubectl's names for this program: as a plugin, and for shell completion.
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

// commandLine returns the arguments. For kubectl's completion, cobra's completion command comes first.
func commandLine() []string {
	if fileName() == completerName {
		return append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...)
	}
	return os.Args[1:]
}

func fileName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// asCalled replaces the program's name in help and examples by the called name.
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
