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

// outputOption is the value of the flag -o: "" for text, or one of the allowed formats. It implements pflag.Value.
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

// Set sets the format, if it is allowed.
func (o *outputOption) Set(format string) error {
	if !slices.Contains(o.allowed, format) {
		return fmt.Errorf("%q is not supported; supported values: %s", format, strings.Join(o.allowed, ", "))
	}
	o.format = format
	return nil
}

// Type returns the name of the value's type for help.
func (o *outputOption) Type() string { return "format" }

// show prints a value in the requested format. The default is the text that the function draw returns.
func (o *outputOption) show(s streams, v any, draw func() string) error {
	if done, err := o.write(s, v); done {
		return err
	}
	_, err := io.WriteString(s.out, draw())
	return err
}

// write prints a value as JSON or YAML. For another format, it does nothing, and the result done is false.
func (o *outputOption) write(s streams, v any) (done bool, err error) {
	var data []byte
	switch o.format {
	case "json":
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false) // so that users can copy commands with &&
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
