package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	yaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

var errNoJSON = errors.New("is not JSON")

// readJSON keeps the order of the keys, because the MAC depends on the order.
func readJSON(content []byte) (*yaml.Node, error) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	n, err := nextJSON(decoder, 0)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) || n.Kind != yaml.MappingNode {
		return nil, errNoJSON
	}
	return n, nil
}

func nextJSON(decoder *json.Decoder, depth int) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil || depth > 200 {
		return nil, errNoJSON
	}
	delim, opens := token.(json.Delim)
	if !opens {
		return scalarOf(token)
	}
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if delim == '[' {
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	}
	for decoder.More() {
		below, err := nextJSON(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, below)
	}
	_, err = decoder.Token()
	return n, err
}

func scalarOf(token json.Token) (*yaml.Node, error) {
	n := &yaml.Node{}
	switch v := token.(type) {
	case string:
		return text(v), nil
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return n, n.Encode(whole)
		}
		f, err := v.Float64()
		if err != nil {
			return nil, errNoJSON
		}
		return n, n.Encode(f)
	default:
		return n, n.Encode(token)
	}
}

func appendJSON(to *bytes.Buffer, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		var v any
		if err := n.Decode(&v); err != nil {
			return err
		}
		raw, err := json.Marshal(v)
		to.Write(raw)
		return err
	}
	brackets, between := "[]", []string{","}
	if n.Kind == yaml.MappingNode {
		brackets, between = "{}", []string{":", ","}
	}
	to.WriteByte(brackets[0])
	for i, below := range n.Content {
		if i > 0 {
			to.WriteString(between[(i-1)%len(between)])
		}
		if err := appendJSON(to, below); err != nil {
			return err
		}
	}
	to.WriteByte(brackets[1])
	return nil
}
