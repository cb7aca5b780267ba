package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

const (
	pluginName    = "kubectl-gitrollout"
	completerName = "kubectl_complete-gitrollout"
)

func programName() string {
	if fileName() == pluginName {
		return "kubectl gitrollout"
	}
	return "gitrollout"
}

// commandLine begins with cobra's completion command if kubectl asks for completions.
func commandLine() []string {
	if fileName() == completerName {
		return append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...)
	}
	return os.Args[1:]
}

func fileName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

func asCalled(root *cobra.Command, name string) {
	if name == root.Name() {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	var rename func(*cobra.Command)
	rename = func(cmd *cobra.Command) {
		cmd.Example = strings.ReplaceAll(cmd.Example, "  "+root.Name()+" ", "  "+name+" ")
		for _, sub := range cmd.Commands() {
			rename(sub)
		}
	}
	rename(root)
}
