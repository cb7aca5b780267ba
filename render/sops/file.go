// Package sops opens files that SOPS has encrypted for age or OpenPGP keys: YAML, JSON, dotenv, and files in SOPS' JSON
// form. Only the parent of the render workers has private keys.
package sops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	yaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// File is a file that SOPS has encrypted.
type File struct {
	form    form
	docs    []*yaml.Node // mappings without SOPS' metadata
	Locks   []Lock       // sorted by Kind
	rules   rules
	mac     string
	partly  bool   // the MAC covers only encrypted values
	changed string // sops.lastmodified, authenticated with the MAC
}

// Lock is a file's data key, encrypted for one recipient.
type Lock struct {
	Kind      string // KindAge, KindPGP, or another kind's name in SOPS
	Recipient string
	Encrypted string
}

// KindAge and KindPGP are the supported kinds of recipients.
const (
	KindAge = "age"
	KindPGP = "pgp"
)

type form int

const (
	formYAML form = iota
	formJSON
	formBinary // any bytes, as a JSON object's only value
	formDotenv
)

var (
	sealedValue = []byte("ENC[AES256_GCM,data:")
	noted       = regexp.MustCompile(`(?m)^\s*"?sops"?\s*:|"sops"\s*:|^sops_mac=|^\[sops\]`)
	iniSection  = regexp.MustCompile(`(?m)^\[sops\]`)
	dotenvMAC   = regexp.MustCompile(`(?m)^sops_mac=`)
)

// Error is an error about an encrypted file. It contains no decrypted value.
type Error struct{ Msg, Fix string }

func (e *Error) Error() string { return e.Msg + "; " + e.Fix }

const again = "restore the file that sops wrote, or encrypt it again with sops encrypt"

// Is reports whether SOPS seems to have encrypted a file.
func Is(content []byte) bool {
	return bytes.Contains(content, []byte("sops")) && noted.Match(content) &&
		(bytes.Contains(content, sealedValue) || bytes.Contains(content, []byte("lastmodified")))
}

// Read parses an encrypted file. If SOPS has not encrypted the file, it returns nil. Errors contain no values.
func Read(name string, content []byte) (_ *File, err error) {
	f := &File{}
	var notes map[string]any
	trimmed := bytes.TrimSpace(content)
	switch {
	case bytes.HasPrefix(trimmed, []byte("{")):
		f.form = formJSON
		var doc *yaml.Node
		if doc, err = readJSON(trimmed); err != nil {
			return nil, nil
		}
		f.docs = []*yaml.Node{doc}
		if ext := path.Ext(name); !slices.Contains([]string{".json", ".yaml", ".yml"}, ext) {
			f.form = formBinary
		}
		notes, err = f.take()
	case dotenvMAC.Match(content):
		f.form = formDotenv
		notes, err = f.readDotenv(content)
	case iniSection.Match(content):
		return nil, &Error{"is an INI file encrypted by SOPS, and values of INI files are not supported",
			"encrypt it as a whole, with sops encrypt --input-type binary"}
	default:
		notes, err = f.readYAML(content)
	}
	if err != nil || notes == nil {
		return nil, err
	}
	return f, f.note(notes)
}

func (f *File) readYAML(content []byte) (map[string]any, error) {
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return f.take()
		}
		if err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
			return nil, nil
		}
		f.docs = append(f.docs, doc.Content[0])
	}
}

func (f *File) take() (notes map[string]any, err error) {
	for i, doc := range f.docs {
		for at := 0; at < len(doc.Content); {
			if doc.Content[at].Value != "sops" {
				at += 2
				continue
			}
			if value := doc.Content[at+1]; i == 0 && value.Kind == yaml.MappingNode && notes == nil {
				if hasAlias(value) || value.Decode(&notes) != nil {
					return nil, &Error{"has SOPS metadata that cannot be read", again}
				}
			}
			doc.Content = slices.Delete(doc.Content, at, at+2)
		}
	}
	if notes["mac"] == nil && notes["lastmodified"] == nil {
		return nil, nil // "sops" has another purpose
	}
	return notes, nil
}

func hasAlias(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, hasAlias)
}

func (f *File) readDotenv(content []byte) (map[string]any, error) {
	doc, notes := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, map[string]any{}
	for line := range strings.SplitSeq(string(content), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, is := strings.Cut(line, "=")
		if !is {
			return nil, &Error{"has a line that is not NAME=value", again}
		}
		value = strings.ReplaceAll(value, `\n`, "\n")
		if note, ours := strings.CutPrefix(name, "sops_"); ours {
			place(notes, note, value)
			continue
		}
		doc.Content = append(doc.Content, text(name), text(value))
	}
	f.docs = []*yaml.Node{doc}
	return notes, nil
}

// place sets the value at a dotenv path, such as age__list_0__map_enc. Lists become mappings with the keys 0, 1, and so
// on.
func place(into map[string]any, name, value string) {
	parts := strings.FieldsFunc(strings.NewReplacer("__list_", "\x00", "__map_", "\x00").Replace(name),
		func(r rune) bool { return r == 0 })
	for i, part := range parts {
		if i == len(parts)-1 {
			into[part] = value
			return
		}
		below, is := into[part].(map[string]any)
		if !is {
			below = map[string]any{}
			into[part] = below
		}
		into = below
	}
}

func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

func (f *File) note(notes map[string]any) (err error) {
	is := func(key string) string {
		if v := notes[key]; v != nil {
			return fmt.Sprint(v)
		}
		return ""
	}
	if when, isTime := notes["lastmodified"].(time.Time); isTime { // YAML parses an unquoted time
		notes["lastmodified"] = when.Format(time.RFC3339)
	}
	when, err := time.Parse(time.RFC3339, is("lastmodified"))
	if err != nil {
		return &Error{"has no time in sops.lastmodified", again}
	}
	f.mac, f.changed = is("mac"), when.Format(time.RFC3339)
	if f.mac == "" {
		return &Error{"has no sops.mac, without which changes cannot be detected", again}
	}
	if is("encrypted_comment_regex")+is("unencrypted_comment_regex") != "" {
		return &Error{"selects the encrypted values by comments (sops.encrypted_comment_regex), which is not supported",
			"encrypt it with --encrypted-regex"}
	}
	if len(entries(notes["key_groups"])) > 1 {
		return &Error{"needs keys of several groups (sops.key_groups), which is not supported", "encrypt it for one group"}
	}
	f.partly = is("mac_only_encrypted") == "true"
	if err := f.rules.read(is); err != nil {
		return err
	}
	for _, group := range append([]map[string]any{notes}, entries(notes["key_groups"])...) {
		for kind, recipient := range map[string]string{KindAge: "recipient", KindPGP: "fp", "kms": "arn",
			"gcp_kms": "resource_id", "azure_kv": "vault_url", "hc_vault": "vault_address", "hckms": "key_id"} {
			for _, e := range entries(group[kind]) {
				f.Locks = append(f.Locks, Lock{Kind: kind, Recipient: fmt.Sprint(e[recipient]), Encrypted: fmt.Sprint(e["enc"])})
			}
		}
	}
	slices.SortStableFunc(f.Locks, func(a, b Lock) int { return strings.Compare(a.Kind, b.Kind) })
	return nil
}

func entries(v any) (all []map[string]any) {
	list, _ := v.([]any)
	numbered, _ := v.(map[string]any) // place stores a list as a mapping
	for i := range len(numbered) {
		list = append(list, numbered[fmt.Sprint(i)])
	}
	for _, e := range list {
		if m, is := e.(map[string]any); is {
			all = append(all, m)
		}
	}
	return all
}

// NoKey returns the error for a file that no key in the Secret opens.
func (f *File) NoKey(name, secret string) error {
	return &Error{fmt.Sprintf("is encrypted by SOPS for %s, and no key in Secret %s opens it", Recipients(f.Locks),
		secret),
		"add a recipient's key to the Secret, or encrypt the file for a key in the Secret: sops updatekeys " + name}
}

type rules struct {
	suffix, regex string
	matches       *regexp.Regexp
	encrypts      bool // false: the matching values are plain, and others are encrypted
}

func (r *rules) read(is func(string) string) (err error) {
	n := 0
	for _, rule := range []struct {
		key      string
		into     *string
		encrypts bool
	}{
		{"unencrypted_suffix", &r.suffix, false}, {"encrypted_suffix", &r.suffix, true},
		{"unencrypted_regex", &r.regex, false}, {"encrypted_regex", &r.regex, true},
	} {
		if v := is(rule.key); v != "" {
			*rule.into, r.encrypts = v, rule.encrypts
			n++
		}
	}
	switch {
	case n > 1:
		return &Error{"has more than one rule for encrypted values (sops.encrypted_regex and the like)", again}
	case n == 0:
		r.suffix = "_unencrypted"
	}
	if r.regex != "" {
		if r.matches, err = regexp.Compile(r.regex); err != nil {
			return &Error{"has a sops.encrypted_regex that is not a regular expression",
				"write a Go regular expression into .sops.yaml, and encrypt the file again"}
		}
	}
	return nil
}

func (r *rules) encrypted(path []string) bool {
	matches := slices.ContainsFunc(path, func(key string) bool {
		return r.matches != nil && r.matches.MatchString(key) || r.suffix != "" && strings.HasSuffix(key, r.suffix)
	})
	return matches == r.encrypts
}
