package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// In a release, the linker sets these variables. Other builds use Go's build information.
var released, commit string

func versionOf() versionInfo {
	v := versionInfo{Version: cmp.Or(released, "unknown"), Commit: commit,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok || released != "" {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionInfo) text() string {
	text := "gitrollout " + v.Version
	if v.Commit != "" {
		text += " (" + v.Commit[:min(12, len(v.Commit))] + ")"
	}
	return fmt.Sprintf("%s %s %s\n", text, v.Go, v.Platform)
}

func newVersion(s streams) *cobra.Command {
	var output outputOption
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  gitrollout version -o json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			v := versionOf()
			return output.show(s, v, v.text)
		},
	}
	output.register(cmd, "json", "yaml")
	return cmd
}
