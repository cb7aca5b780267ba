package sops

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// ErrChanged means that values were changed after encryption, or the data key is wrong.
var ErrChanged = &Error{"was changed without sops, or the key belongs to another file (the MAC does not match)", again}

var errPlain = &Error{
	"is in plain text, but the file's rules encrypt it", "run sops encrypt, or sops edit, and commit the result",
}

// Open returns the decrypted file without comments. For a wrong MAC, it returns ErrChanged. Open and Seal change f, so
// call only one of them, once.
func (f *File) Open(dataKey []byte) ([]byte, error) {
	block, err := aes.NewCipher(dataKey)
	if err != nil {
		return nil, &Error{"has an invalid data key", again}
	}
	w := walk{file: f, block: block, sum: sha512.New()}
	if f.partly {
		seed := sha256.Sum256([]byte("sops"))
		w.sum.Write(seed[:])
	}
	if err := w.all(); err != nil {
		return nil, err
	}
	want, _, wrong := w.decrypt(f.mac, f.changed)
	got := fmt.Sprintf("%X", w.sum.Sum(nil))
	if text, is := want.(string); wrong != nil || !is || subtle.ConstantTimeCompare([]byte(text), []byte(got)) != 1 {
		return nil, ErrChanged
	}
	return f.print()
}

// Seal replaces each encrypted value by a substitute of the same type. A text's substitute is unique, and also valid
// base64. With twin, Seal uses other substitutes: a text's start, end and length differ, so any use of the text changes
// the build.
func (f *File) Seal(twin bool) ([]byte, error) {
	w := walk{file: f, twin: twin, sum: sha512.New()}
	if err := w.all(); err != nil {
		return nil, err
	}
	return f.print()
}

// IsEncrypted reports whether a text contains an encrypted value.
func IsEncrypted(text string) bool { return anyValue.MatchString(text) }

// sealWord is in each text's substitute. Its length is a multiple of 3, so its base64 form is constant.
const sealWord = "gitrollout-sealed:"

var (
	value    = regexp.MustCompile(`^ENC\[AES256_GCM,data:(.+),iv:(.+),tag:(.+),type:(.+)\]$`)
	anyValue = regexp.MustCompile(`ENC\[AES256_GCM,data:[^,\]]+,iv:[^,\]]+,tag:[^,\]]+,type:\w+\]`)
)

// walk decrypts the values in the file's order. If block is nil, it replaces the values with substitutes.
type walk struct {
	file  *File
	block cipher.Block
	twin  bool
	sum   hash.Hash
}

func (w *walk) all() error {
	for _, doc := range w.file.docs {
		if _, err := w.node(doc, nil); err != nil {
			return err
		}
	}
	return nil
}

// node returns true if n is an encrypted comment. The caller must then remove n.
func (w *walk) node(n *yaml.Node, path []string) (comment bool, err error) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	switch n.Kind {
	case yaml.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			key.HeadComment, key.LineComment, key.FootComment = "", "", ""
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || seen[key.Value] && w.file.form != formDotenv {
				return false, at(path, &Error{"has a key that is not a string, or a duplicate key", again})
			}
			seen[key.Value] = true
			if _, err := w.node(n.Content[i+1], append(slices.Clip(path), key.Value)); err != nil {
				return false, err
			}
		}
	case yaml.SequenceNode:
		left := n.Content[:0]
		for _, item := range n.Content {
			comment, err := w.node(item, path)
			if err != nil {
				return false, err
			}
			if !comment {
				left = append(left, item)
			}
		}
		n.Content = left
	case yaml.ScalarNode:
		return w.scalar(n, path)
	default:
		return false, at(path, &Error{"is an alias, which sops does not write", again})
	}
	return false, nil
}

func at(path []string, what *Error) *Error {
	return &Error{strings.Join(path, ".") + " " + what.Msg, what.Fix}
}

func (w *walk) scalar(n *yaml.Node, path []string) (comment bool, err error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return false, at(path, &Error{"cannot be read", again})
	}
	if v == nil {
		return false, nil
	}
	encrypted := w.file.rules.encrypted(path)
	if encrypted {
		sealed, is := v.(string)
		if !is {
			return false, at(path, errPlain)
		}
		var wrong *Error
		if v, comment, wrong = w.decrypt(sealed, strings.Join(path, ":")+":"); wrong != nil {
			return false, at(path, wrong)
		}
		if !comment && n.Encode(v) != nil {
			return false, at(path, &Error{"cannot be written", again})
		}
	}
	if !comment && (encrypted || !w.file.partly) {
		w.sum.Write(plain(v))
	}
	return comment, nil
}

func plain(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case bool:
		if v {
			return []byte("True")
		}
		return []byte("False")
	case float64:
		return strconv.AppendFloat(nil, v, 'f', -1, 64)
	case time.Time:
		text, _ := v.MarshalText()
		return text
	default:
		return fmt.Append(nil, v)
	}
}

// decrypt returns a value, and reports whether it is a comment. The cipher also authenticates the value's path (about).
func (w *walk) decrypt(sealed, about string) (v any, comment bool, wrong *Error) {
	if sealed == "" {
		return "", false, nil
	}
	parts := value.FindStringSubmatch(sealed)
	if parts == nil {
		return nil, false, errPlain
	}
	if w.block == nil {
		return seal(sealed, parts[4], w.twin), parts[4] == "comment", nil
	}
	var raw [3][]byte
	for i := range raw {
		var err error
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return nil, false, ErrChanged
		}
	}
	if len(raw[1]) == 0 || len(raw[1]) > 64 {
		return nil, false, ErrChanged
	}
	gcm, err := cipher.NewGCMWithNonceSize(w.block, len(raw[1]))
	if err != nil {
		return nil, false, ErrChanged
	}
	opened, err := gcm.Open(nil, raw[1], append(raw[0], raw[2]...), []byte(about))
	if err != nil {
		return nil, false, ErrChanged
	}
	if v, err = typed(parts[4], opened); err != nil {
		return nil, false, &Error{"does not have the type that SOPS recorded", again}
	}
	return v, parts[4] == "comment", nil
}

func typed(kind string, opened []byte) (v any, err error) {
	text := string(opened)
	switch kind {
	case "str", "bytes", "comment":
		return text, nil
	case "int":
		v, err = strconv.Atoi(text)
	case "float":
		v, err = strconv.ParseFloat(text, 64)
	case "bool":
		v, err = strconv.ParseBool(text)
	case "time":
		when := time.Time{}
		err = when.UnmarshalText(opened)
		v = when
	default:
		err = ErrChanged
	}
	return v, err
}

func seal(sealed, kind string, twin bool) any {
	sum := sha256.Sum256([]byte(sealed))
	n := int(sum[0])<<8 + int(sum[1])
	switch kind {
	case "int":
		switch n %= 65535; { // the two substitutes differ even in the lowest bit
		case twin && n < 32768:
			n += 32767
		case twin:
			n -= 32767
		}
		return 1 + n
	case "float":
		if n >>= 8; twin {
			n += 1000
		}
		return 0.5 + float64(n)
	case "bool":
		return n&1 == 1 != twin
	case "time":
		when := time.Unix(int64(n)<<8, 0).UTC()
		if twin {
			when = when.Add(time.Second / 2)
		}
		return when
	}
	text := sealWord + hex.EncodeToString(sum[:6])
	if twin {
		text = "0" + hex.EncodeToString(sum[:9])[1:] + sealWord
	}
	return base64.StdEncoding.EncodeToString([]byte(text))
}

func (f *File) print() ([]byte, error) {
	var out bytes.Buffer
	switch f.form {
	case formJSON:
		var flat bytes.Buffer
		if appendJSON(&flat, f.docs[0]) != nil || json.Indent(&out, flat.Bytes(), "", "\t") != nil { // as sops does
			return nil, &Error{"cannot be written as JSON", again}
		}
		out.WriteByte('\n')
	case formBinary:
		if c := f.docs[0].Content; len(c) == 2 && c[0].Value == "data" && c[1].Kind == yaml.ScalarNode {
			return []byte(c[1].Value), nil
		}
		return nil, &Error{"is JSON, but its name does not end in .json", "end the name in .json"}
	case formDotenv:
		for c := f.docs[0].Content; len(c) > 1; c = c[2:] {
			fmt.Fprintf(&out, "%s=%s\n", c[0].Value, strings.ReplaceAll(c[1].Value, "\n", `\n`))
		}
	default:
		encoder := yaml.NewEncoder(&out)
		for _, doc := range f.docs {
			if err := encoder.Encode(doc); err != nil {
				return nil, &Error{"cannot be written as YAML", again}
			}
		}
		if err := encoder.Close(); err != nil {
			return nil, &Error{"cannot be written as YAML", again}
		}
	}
	return out.Bytes(), nil
}
