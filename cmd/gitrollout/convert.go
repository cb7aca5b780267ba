package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/render/convert"
	"gitrollout.dev/gitrollout/rollout"
)

func newConvert(s streams) *cobra.Command {
	check := false
	cmd := &cobra.Command{
		Use:   "convert [PATH...]",
		Short: "Write the newest apiVersion into gitrollout's files",
		Long: `Replace ` + rollout.AlphaVersion + ` by ` + rollout.APIVersion + ` in the YAML and JSON
files of the current folder, or at each PATH: in configurations, Rollout documents,
AnalysisTemplates, stages, freezes, policies, templates of charts and patches of
kustomizations. Comments and all other bytes stay, and nothing is committed.

gitrollout reads both versions, which have the same fields, in any mix. It writes each
new record of a cluster in the version of its config.yaml, and promotion files in the
version of the app's record. An older gitrollout reads only the old version, and holds
apps with files of the new one. So first upgrade gitrollout in all clusters of the
repository.

Promotion files stay, because an edit would repeat the decision. So do vendored folders,
files that SOPS has signed, and symbolic links. gitrollout applies a converted patch also
to a vendored object, but the program kustomize compares the versions. If a file needs a
change by hand, the exit code is 1.`,
		Example: `  gitrollout convert && gitrollout validate
  gitrollout convert --check                     # for CI
  gitrollout convert .gitrollout apps/shop policy.yaml`,
		RunE: func(_ *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				paths = []string{"."}
			}
			return s.convert(paths, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "list the files that would change, and write nothing")
	return cmd
}

var mayConvert = regexp.MustCompile(`((?i:\.ya?ml|\.json|\.tpl)|Kustomization|vendor\.lock)$`)

func (s streams) convert(paths []string, check bool) error {
	root, err := os.OpenRoot(".") // no file outside the current folder can be written
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	count, left := 0, 0
	each := func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
			return fs.SkipDir
		case !e.Type().IsRegular() || !mayConvert.MatchString(name) || vendoring.IsIn(name):
			return nil
		}
		data, err := root.ReadFile(name)
		made, why := convert.File(data)
		if err == nil && why != nil {
			err = s.say("left " + name + ": " + why.Error())
		}
		if why != nil && !errors.Is(why, convert.ErrDecision) {
			left++
		}
		if err != nil || bytes.Equal(made, data) {
			return err
		}
		if count++; !check {
			err = root.WriteFile(name, made, 0o644)
		}
		return errors.Join(err, s.say(name))
	}
	for _, at := range paths {
		if !filepath.IsLocal(at) {
			return usagef("%s is not below the current folder", at)
		}
		if target, err := filepath.EvalSymlinks(at); err == nil && filepath.IsLocal(target) {
			at = target // vendoring.IsIn needs a vendored folder's real path
		}
		if err := fs.WalkDir(root.FS(), path.Clean(filepath.ToSlash(at)), each); err != nil {
			return err
		}
	}
	switch {
	case count > 0 && check:
		return fmt.Errorf("%d files have %s; run gitrollout convert", count, rollout.AlphaVersion)
	case left > 0:
		return fmt.Errorf("%d files still have %s; change them by hand", left, rollout.AlphaVersion)
	case count == 0:
		return s.say("no file has " + rollout.AlphaVersion + " to convert")
	}
	return s.say("now: gitrollout validate")
}
