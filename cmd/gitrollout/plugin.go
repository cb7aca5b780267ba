package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// pluginName is the program's file name as a plugin of kubectl, which finds its
// plugins by the start of their names.
const pluginName = "kubectl-gitrollout"

// programName is how people call the program, in help and in commands to copy.
func programName() string {
	if isPlugin(os.Args[0]) {
		return "kubectl gitrollout"
	}
	return "gitrollout"
}

func isPlugin(path string) bool {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, ".exe") == pluginName
}

// asCalled makes the help and the examples of all commands name the program as
// people call it.
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
