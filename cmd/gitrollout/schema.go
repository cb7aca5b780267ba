package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/render/schema"
	"gitrollout.dev/gitrollout/views/terminal"
)

func newSchema(s streams) *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of document, for editors",
		Long: `Print the JSON Schema of a kind of document; without KIND, list them. With
--write they are written into a folder, one file for each kind, KIND.json.

Editors with the YAML language server complete and check a document that says
where its schema is, by a path from the document or by a URL:

    # yaml-language-server: $schema=../schemas/config.json

A schema has the fields of a document and their types. gitrollout validate checks
all that depends on the rest of the repository.`,
		Example: `  gitrollout schema
  gitrollout schema rollout > rollout.json
  gitrollout schema --write .gitrollout/schemas`,
		Args:      atMostOne("kind"),
		ValidArgs: schema.Names(),
		RunE:      func(_ *cobra.Command, args []string) error { return printSchemas(s, folder, args) },
	}
	cmd.Flags().StringVar(&folder, "write", "", "write into this `folder` instead")
	return cmd
}

func printSchemas(s streams, folder string, args []string) error {
	names := schema.Names()
	if len(args) == 1 {
		names = args
	}
	if len(args) == 0 && folder == "" {
		longest := len(slices.MaxFunc(names, func(a, b string) int { return len(a) - len(b) }))
		for _, name := range names {
			if _, err := fmt.Fprintf(s.out, "%s  %s\n", terminal.Pad(name, longest), schema.Title(name)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range names {
		data, err := schema.Of(name)
		if err != nil {
			return usagef("%v", err)
		}
		if folder == "" {
			_, err = s.out.Write(data)
		} else if err = os.MkdirAll(folder, 0o755); err == nil {
			err = os.WriteFile(filepath.Join(folder, name+".json"), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
