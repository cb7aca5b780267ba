package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/author/convert"
	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/rollout"
)

func newConvert(s streams) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:   "convert [PATH...]",
		Short: "Write the newest apiVersion into gitrollout's files",
		Long: `Replace ` + rollout.AlphaVersion + ` by ` + rollout.APIVersion + ` in the YAML files of
the current folder, or at each PATH: in configurations, Rollout documents,
AnalysisTemplates, stages, freezes, policies, templates of charts and patches of
kustomizations. Comments and all other bytes stay, and nothing is committed.

gitrollout reads both versions, which have the same fields, in any mix. It writes the
records and promotion files of a cluster in the version of its config.yaml. An older
gitrollout reads only the old version, and holds the apps at a new one. So first upgrade
gitrollout in all clusters of the repository.

Promotion files stay, because an edit would repeat the decision. So do vendored folders,
files that SOPS has signed, and symbolic links.`,
		Example: `  gitrollout convert && gitrollout validate
  gitrollout convert --check                     # for CI
  gitrollout convert .gitrollout apps/shop policy.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			return s.convert(args, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "list the files that would change, and write nothing")
	return cmd
}

func (s streams) convert(paths []string, check bool) error {
	root, err := os.OpenRoot(".")
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	count := 0
	for _, at := range paths {
		if info, err := root.Lstat(at); !filepath.IsLocal(at) || err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return usagef("%s is a symbolic link, or not below the current folder", at)
		}
		n, err := s.convertAll(root, path.Clean(filepath.ToSlash(at)), check)
		if count += n; err != nil {
			return err
		}
	}
	switch {
	case count == 0:
		return s.say("no file has " + rollout.AlphaVersion + " to convert")
	case check:
		return fmt.Errorf("%d files have %s; run gitrollout convert", count, rollout.AlphaVersion)
	}
	return s.say("now: gitrollout validate")
}

// convertAll follows no symbolic links.
func (s streams) convertAll(root *os.Root, at string, check bool) (count int, err error) {
	err = fs.WalkDir(root.FS(), at, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != at && isForeign(e.Name()), (e.IsDir() || name == at) && isVendored(name):
			return fs.SkipDir
		case !e.Type().IsRegular() || name != at && !mayConvert(name):
			return nil
		}
		data, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		made, why := convert.File(data)
		if why != nil {
			err = s.say("left " + name + ": " + why.Error())
		}
		if bytes.Equal(made, data) {
			return err
		}
		count++
		if !check {
			err = errors.Join(err, root.WriteFile(name, made, 0o644))
		}
		return errors.Join(err, s.say(name))
	})
	return count, err
}

func isForeign(folder string) bool {
	return folder == "node_modules" || strings.HasPrefix(folder, ".") && folder != ".gitrollout"
}

func mayConvert(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".tpl"}, path.Ext(name)) ||
		slices.Contains([]string{"Kustomization", rollout.VendorLock}, path.Base(name))
}

func isVendored(dir string) bool {
	for at := dir; at != "."; {
		at = path.Dir(at)
		if below, err := filepath.Rel(at, dir); err == nil && vendoring.Brings(at, filepath.ToSlash(below)) {
			return true
		}
	}
	return false
}
