package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// outputOption holds the value of the flag -o: one of the allowed formats, or "" for text. It implements pflag.Value.
type outputOption struct {
	format  string
	allowed []string
}

func (o *outputOption) register(cmd *cobra.Command, allowed ...string) {
	o.allowed = allowed
	cmd.Flags().VarP(o, "output", "o", "output `format`: "+strings.Join(allowed, ", "))
}

// String returns the format.
func (o *outputOption) String() string { return o.format }

// Set sets the format. It returns an error if the format is not allowed.
func (o *outputOption) Set(format string) error {
	if !slices.Contains(o.allowed, format) {
		return fmt.Errorf("%q is not supported; supported values: %s", format, strings.Join(o.allowed, ", "))
	}
	o.format = format
	return nil
}

// Type returns the type of the value, which --help shows.
func (o *outputOption) Type() string { return "format" }

// show prints a value as JSON or YAML. For any other format, it prints the text that the function draw returns.
func (o *outputOption) show(s streams, v any, draw func() string) error {
	if done, err := o.write(s, v); done {
		return err
	}
	_, err := io.WriteString(s.out, draw())
	return err
}

// write prints a value as JSON or YAML, and returns done = true. For any other format, it prints nothing.
func (o *outputOption) write(s streams, v any) (done bool, err error) {
	var data []byte
	switch o.format {
	case "json":
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false) // print && as it is, so that users can copy commands
		err = e.Encode(v)
		data = text.Bytes()
	case "yaml":
		data, err = yaml.Marshal(v)
	default:
		return false, nil
	}
	if err == nil {
		_, err = s.out.Write(data)
	}
	return true, err
}
