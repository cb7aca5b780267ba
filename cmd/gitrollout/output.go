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

// outputOption is -o: an allowed format, or "" for text.
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
	if done, err := o.write(s, v); done {
		return err
	}
	_, err := io.WriteString(s.out, draw())
	return err
}

// write reports as done whether it printed JSON or YAML.
func (o *outputOption) write(s streams, v any) (done bool, err error) {
	var data []byte
	switch o.format {
	case "json":
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false) // keep &&, so that users can copy commands
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
