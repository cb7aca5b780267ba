// Package sopstest creates keys and encrypts files in the format of SOPS, so that tests need not run the programs
// sops and gpg. The files in render/sops/testdata, which SOPS has written, show that the format is compatible.
package sopstest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"path"
	"strings"
	"testing"

	"filippo.io/age"
	agearmor "filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	yaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// Key is an age or OpenPGP key.
type Key struct {
	Name   string // the key's name in the data of a Secret
	Secret string
	kind   string
	about  map[string]any
	seal   func(dataKey []byte) (string, error)
}

// Age makes an age key.
func Age(t testing.TB) Key {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	check(t, err)
	return Key{Name: "test.agekey", Secret: id.String() + "\n", kind: "age",
		about: map[string]any{"recipient": id.Recipient().String()},
		seal: func(dataKey []byte) (string, error) {
			return armored(func(w io.Writer) (io.WriteCloser, io.Closer, error) {
				armor := agearmor.NewWriter(w)
				to, err := age.Encrypt(armor, id.Recipient())
				return to, armor, err
			}, dataKey)
		}}
}

// PGP makes an OpenPGP key.
func PGP(t testing.TB) Key {
	t.Helper()
	entity, err := openpgp.NewEntity("Test", "", "test@example.com", nil)
	check(t, err)
	secret, err := armored(func(w io.Writer) (io.WriteCloser, io.Closer, error) {
		armor, err := pgparmor.Encode(w, openpgp.PrivateKeyType, nil)
		if err == nil {
			err = entity.SerializePrivate(armor, nil)
		}
		return armor, io.NopCloser(nil), err
	}, nil)
	check(t, err)
	return Key{Name: "test.asc", Secret: secret, kind: "pgp",
		about: map[string]any{"fp": fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint), "created_at": "2026-01-01T00:00:00Z"},
		seal: func(dataKey []byte) (string, error) {
			return armored(func(w io.Writer) (io.WriteCloser, io.Closer, error) {
				armor, err := pgparmor.Encode(w, "PGP MESSAGE", nil)
				if err != nil {
					return nil, nil, err
				}
				to, err := openpgp.Encrypt(armor, []*openpgp.Entity{entity}, nil, nil, nil)
				return to, armor, err
			}, dataKey)
		}}
}

func armored(open func(io.Writer) (io.WriteCloser, io.Closer, error), data []byte) (string, error) {
	var out bytes.Buffer
	to, armor, err := open(&out)
	if err == nil {
		_, err = to.Write(data)
	}
	if err == nil {
		err = to.Close()
	}
	if err == nil {
		err = armor.Close()
	}
	return out.String(), err
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const when = "2026-01-02T03:04:05Z"

// Encrypt encrypts a file for a key. In YAML and JSON, it encrypts the values below keys that `matches` accepts, and
// records encryptedRegex in the file. If encryptedRegex is "", it ignores `matches` and encrypts all values.
func Encrypt(t testing.TB, name, content, encryptedRegex string, matches func(key string) bool, to Key) string {
	t.Helper()
	e := &encrypter{t: t, key: make([]byte, 32), sum: sha512.New(), matches: matches}
	_, _ = rand.Read(e.key)
	locked, err := to.seal(e.key)
	check(t, err)
	entry := maps.Clone(to.about)
	entry["enc"] = locked
	notes := map[string]any{to.kind: []any{entry}, "lastmodified": when, "version": "3.13.3"}
	if encryptedRegex != "" {
		notes["encrypted_regex"] = encryptedRegex
	} else {
		notes["unencrypted_suffix"] = "_unencrypted"
		e.matches = func(key string) bool { return !strings.HasSuffix(key, "_unencrypted") }
	}
	mac := func() { notes["mac"] = e.seal(fmt.Sprintf("%X", e.sum.Sum(nil)), when) }
	switch path.Ext(name) {
	case ".yaml", ".yml":
		root := e.document(content)
		mac()
		var more yaml.Node
		check(t, more.Encode(map[string]any{"sops": notes}))
		root.Content = append(root.Content, more.Content...)
		out, err := yaml.Marshal(root)
		check(t, err)
		return string(out)
	case ".json": // content must have sorted keys, because the output has sorted keys
		root := e.document(content)
		mac()
		all := map[string]any{}
		check(t, root.Decode(&all))
		all["sops"] = notes
		return e.json(all)
	case ".env":
		return e.dotenv(content, notes, entry, to.kind, mac)
	default:
		e.sum.Write([]byte(content))
		data := e.seal(content, "data:")
		mac()
		return e.json(map[string]any{"data": data, "sops": notes})
	}
}

type encrypter struct {
	t       testing.TB
	key     []byte
	sum     hash.Hash
	matches func(string) bool
}

func (e *encrypter) dotenv(content string, notes, entry map[string]any, kind string, mac func()) string {
	var out strings.Builder
	for line := range strings.Lines(content) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		e.sum.Write([]byte(value))
		fmt.Fprintf(&out, "%s=%s\n", name, e.seal(value, name+":"))
	}
	mac()
	for k, v := range notes {
		if text, is := v.(string); is {
			fmt.Fprintf(&out, "sops_%s=%s\n", k, text)
		}
	}
	for k, v := range entry {
		fmt.Fprintf(&out, "sops_%s__list_0__map_%s=%s\n", kind, k, strings.ReplaceAll(v.(string), "\n", `\n`))
	}
	return out.String()
}

// document parses a document and encrypts its values.
func (e *encrypter) document(content string) *yaml.Node {
	e.t.Helper()
	var doc yaml.Node
	check(e.t, yaml.Unmarshal([]byte(content), &doc))
	e.node(doc.Content[0], nil)
	return doc.Content[0]
}

func (e *encrypter) json(v any) string {
	e.t.Helper()
	out, err := json.MarshalIndent(v, "", "\t")
	check(e.t, err)
	return string(out)
}

func (e *encrypter) node(n *yaml.Node, path []string) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			e.node(n.Content[i+1], append(path[:len(path):len(path)], n.Content[i].Value))
		}
	case yaml.SequenceNode:
		for _, below := range n.Content {
			e.node(below, path)
		}
	default:
		text := n.Value
		if n.ShortTag() == "!!bool" {
			text = strings.ToUpper(text[:1]) + text[1:] // True and False, because the first SOPS was written in Python
		}
		e.sum.Write([]byte(text))
		for _, key := range path {
			if e.matches(key) {
				n.Value, n.Tag, n.Style = e.sealAs(n.Value, strings.Join(path, ":")+":", n.ShortTag()), "!!str", 0
				return
			}
		}
	}
}

func (e *encrypter) sealAs(plain, about, tag string) string {
	kind := strings.TrimPrefix(strings.Replace(tag, "timestamp", "time", 1), "!!")
	block, err := aes.NewCipher(e.key)
	check(e.t, err)
	gcm, err := cipher.NewGCMWithNonceSize(block, 32)
	check(e.t, err)
	iv := make([]byte, 32)
	_, _ = rand.Read(iv)
	out := gcm.Seal(nil, iv, []byte(plain), []byte(about))
	cut, b64 := len(out)-16, base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", b64(out[:cut]), b64(iv), b64(out[cut:]), kind)
}

func (e *encrypter) seal(plain, about string) string {
	return e.sealAs(plain, about, "!!str")
}

// Manifest encrypts a manifest of Secrets, as users do. It encrypts only the values below data and stringData.
func Manifest(t testing.TB, content string, to Key) string {
	t.Helper()
	return Encrypt(t, "secret.yaml", content, "^(data|stringData)$",
		func(key string) bool { return key == "data" || key == "stringData" }, to)
}

// Whole encrypts all values of a file. The file name's extension selects the format.
func Whole(t testing.TB, name, content string, to Key) string {
	t.Helper()
	return Encrypt(t, name, content, "", nil, to)
}
