package sign

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// git signs commits in this namespace. Signatures in other namespaces, such as "file", are refused.
const namespace = "git"

// Signers is a list of SSH keys in the format allowed_signers (see ssh-keygen(1)), one per line:
//
//	ann@example.com,ann namespaces="git",valid-before="20270101" ssh-ed25519 AAAA… comment
//
// Options are namespaces (patterns; default all), valid-after and valid-before (YYYYMMDD, YYYYMMDDHHMM or
// YYYYMMDDHHMMSS, always UTC). cert-authority is refused, because certificates are not supported.
type Signers struct {
	file string
	keys []allowed
}

type allowed struct {
	principal     string
	principals    string // all principals, as a pattern list
	key           []byte // in SSH's wire format
	after, before time.Time
}

// ParseSigners parses a list, which needs at least one key for commits. Its errors begin with `file`.
func ParseSigners(file string, data []byte) (*Signers, error) {
	s := &Signers{file: file}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		a, ok, err := parseAllowed(line)
		if err != nil {
			return nil, fmt.Errorf("%s line %d: %w", file, i+1, err)
		}
		if ok {
			s.keys = append(s.keys, a)
		}
	}
	if len(s.keys) == 0 {
		return nil, fmt.Errorf("%s: lists no key for signing commits; "+
			"write one on each line: ann@example.com ssh-ed25519 AAAA…", file)
	}
	return s, nil
}

func parseAllowed(line string) (a allowed, ok bool, err error) {
	principals, rest := word(line)
	a.principals = strings.Trim(principals, `"`)
	a.principal, _, _ = strings.Cut(a.principals, ",")
	if a.principal == "" || rest == "" {
		return a, false, errors.New("the line must have a principal and a key: ann@example.com ssh-ed25519 AAAA…")
	}
	key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil {
		return a, false, fmt.Errorf("the key of %s cannot be read; write the content of its .pub file", a.principal)
	}
	if _, is := key.(*ssh.Certificate); is {
		return a, false, fmt.Errorf("the key of %s is a certificate, which is not supported; list the key itself",
			a.principal)
	}
	a.key = key.Marshal()
	ok, err = a.options(options)
	return a, ok, err
}

func word(s string) (first, rest string) {
	quoted := false
	i := strings.IndexFunc(s, func(r rune) bool {
		quoted = quoted != (r == '"')
		return !quoted && (r == ' ' || r == '\t')
	})
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

func (a *allowed) options(options []string) (ok bool, err error) {
	ok = true
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		value = strings.Trim(value, `"`)
		switch strings.ToLower(name) {
		case "namespaces":
			ok = ok && matches(value, namespace)
		case "valid-after":
			a.after, err = timestamp(value)
		case "valid-before":
			a.before, err = timestamp(value)
		case "cert-authority":
			err = errors.New("cert-authority is not supported; list the keys themselves")
		default:
			err = fmt.Errorf("option %q must be namespaces, valid-after or valid-before", name)
		}
		if err != nil {
			return false, err
		}
	}
	return ok, nil
}

// matches reports whether an OpenSSH pattern list accepts s: a pattern matches s, and no negated pattern does.
func matches(patterns, s string) bool {
	found := false
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		is, err := path.Match(strings.NewReplacer("[", `\[`, `\`, `\\`).Replace(pattern), s)
		switch {
		case err != nil || !is:
		case negated:
			return false
		default:
			found = true
		}
	}
	return found
}

func timestamp(value string) (time.Time, error) {
	digits := strings.TrimSuffix(value, "Z")
	for _, layout := range []string{"20060102", "200601021504", "20060102150405"} {
		if t, err := time.Parse(layout, digits); err == nil && len(digits) == len(layout) {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time; write YYYYMMDD or YYYYMMDDHHMMSS, in UTC", value)
}

// Of returns the keys whose principals match a name. Principals are OpenSSH patterns, such as prod-*.
func (s *Signers) Of(name string) *Signers {
	others := func(a allowed) bool { return !matches(a.principals, name) }
	return &Signers{
		file: "the lines of " + name + " in " + s.file,
		keys: slices.DeleteFunc(slices.Clone(s.keys), others),
	}
}

func (s *Signers) allows(key []byte, at time.Time) (principal string, err error) {
	err = fmt.Errorf("its key is not in %s", s.file)
	for _, a := range s.keys {
		bounded := func(valid string, bound time.Time) error {
			return fmt.Errorf("the key of %s in %s %s %s, but the commit is from %s",
				a.principal, s.file, valid, bound.Format(time.RFC3339), at.Format(time.RFC3339))
		}
		switch {
		case !bytes.Equal(a.key, key):
		case !a.after.IsZero() && at.Before(a.after):
			err = bounded("is valid from", a.after)
		case !a.before.IsZero() && !at.Before(a.before):
			err = bounded("was valid until", a.before)
		default:
			return a.principal, nil
		}
	}
	return "", err
}
