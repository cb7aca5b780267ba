package main

import (
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gitrollout.dev/gitrollout/views/terminal"
)

type colorOption struct{ never bool }

func (o *colorOption) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.never, "no-color", false, "no colours (also: NO_COLOR, or no terminal)")
}

// lookOf limits the width only on a terminal, so that grep gets complete lines.
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
