package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/views/terminal"
)

type outputOption struct{ format string }

func (o *outputOption) register(cmd *cobra.Command, allowed ...string) {
	known := strings.Join(allowed, ", ")
	cmd.Flags().FuncP("output", "o", "output `format`: "+known, func(format string) error {
		if o.format = format; !slices.Contains(allowed, format) {
			return fmt.Errorf("%q is not supported; supported values: %s", format, known)
		}
		return nil
	})
}

func (o *outputOption) show(s streams, v any, draw func() string) error {
	if s.shown != nil {
		*s.shown = v
	}
	if done, err := o.write(s, v); done {
		return err
	}
	_, err := io.WriteString(s.out, draw())
	return err
}

func (o *outputOption) write(s streams, v any) (done bool, err error) {
	switch o.format {
	case "json":
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false) // so that users can copy commands with &&
		return true, e.Encode(v)
	case "yaml":
		data, err := yaml.Marshal(v)
		if err == nil {
			_, err = s.out.Write(data)
		}
		return true, err
	}
	return false, nil
}

type colorOption struct{ never bool }

func (o *colorOption) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.never, "no-color", false, "no colours (also: NO_COLOR, or no terminal)")
}

// lookOf limits the width only on a terminal, because grep needs complete lines.
func (o *colorOption) lookOf(out io.Writer) terminal.Look {
	k := terminal.Look{Now: time.Now()}
	if columns, _, isTerminal := terminalSize(out); isTerminal {
		k.Width = columns
		k.Color = !o.never && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return k
}

func terminalSize(out io.Writer) (columns, rows int, terminal bool) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80, 24, true
	}
	return columns, rows, true
}
