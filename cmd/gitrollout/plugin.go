package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// File names of the program as a kubectl plugin. kubectl finds plugins by the prefix of the first name, and calls the
// second one to complete command lines.
const (
	pluginName    = "kubectl-gitrollout"
	completerName = "kubectl_complete-gitrollout"
)

// programName returns the name by which users call the program, for help and for commands to copy.
func programName() string {
	if fileName() == pluginName {
		return "kubectl gitrollout"
	}
	return "gitrollout"
}

// commandLine returns the program's arguments. As kubectl's completer it receives the words so far, and passes these to
// cobra's completion command.
func commandLine() []string {
	if fileName() == completerName {
		return append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...)
	}
	return os.Args[1:]
}

func fileName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// asCalled puts the program's name as called into the help and the examples of all commands.
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
