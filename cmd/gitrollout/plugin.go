package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The file names of the kubectl plugin. kubectl runs the first file as a plugin, and the second file for completion.
const (
	pluginName    = "kubectl-gitrollout"
	completerName = "kubectl_complete-gitrollout"
)

// programName returns the name under which the program was called, for help texts and suggested commands.
func programName() string {
	if fileName() == pluginName {
		return "kubectl gitrollout"
	}
	return "gitrollout"
}

// commandLine returns the arguments. For kubectl's completer, it returns a call of cobra's completion command.
func commandLine() []string {
	if fileName() == completerName {
		return append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...)
	}
	return os.Args[1:]
}

func fileName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// asCalled puts the program's name, as the user called it, into all help and examples.
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
