package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// An app with encrypted files is built twice: sealed, where other values stand in place of those that are encrypted,
// and open. All is the sealed one's but for the values of Secrets, and nothing else may differ: so names, hashes and
// everything that people are shown are the same for who has keys and for who has none, and what is encrypted is in
// Secrets alone.

// decrypt returns an encrypted file as it is to be read.
func (f *treeFS) decrypt(real string, content []byte) ([]byte, error) {
	file, err := sops.Read(real, content)
	if err != nil {
		return nil, f.undecryptable(real, err.Error(), "")
	}
	if file == nil {
		return content, nil
	}
	f.encrypted[real] = file.Locks()
	if f.unlock == nil {
		if content, err = file.Seal(); err != nil {
			return nil, f.undecryptable(real, err.Error(), "")
		}
		return content, nil
	}
	key, err := f.unlock(file.Locks())
	if err == nil {
		content, err = file.Open(key)
	}
	switch {
	case err == nil:
		return content, nil
	case errors.Is(err, sops.ErrLocked):
		return nil, f.undecryptable(real, fmt.Sprintf("is encrypted by SOPS for %s, and no key in Secret %s opens it",
			sops.Recipients(file.Locks()), f.keysIn),
			"put one of those keys there, or encrypt the file for one that is there: sops updatekeys "+real)
	default:
		return nil, f.undecryptable(real, err.Error(), "")
	}
}

// undecryptable refuses a file, as refuse does.
func (f *treeFS) undecryptable(real, msg, fix string) error {
	err := f.refuse(real, msg, fix)
	if f.refused.File == real && f.refused.Msg == msg {
		f.refused.Reason = rollout.HeldUndecryptable
		return f.refused
	}
	return err
}

// open puts the values into Secrets that are encrypted in Git, if there are keys, and marks them as sealed if not.
func (b InProcess) open(a *assembly, sealed []rollout.Object) ([]rollout.Object, error) {
	if err := a.neverEncrypted(sealed); err != nil || len(a.fs.encrypted) == 0 {
		return sealed, err
	}
	files := slices.Sorted(maps.Keys(a.fs.encrypted))
	for _, file := range files {
		locks := a.fs.encrypted[file]
		invalid := &rollout.InvalidError{File: file, Reason: rollout.HeldUndecryptable}
		switch {
		case a.app.Decryption == "":
			invalid.Msg = "is encrypted by SOPS, and the app's entry names no keys"
			invalid.Fix = "add decryption: {provider: sops, secretRef: {name: …}} to it in the cluster's config.yaml"
			return nil, invalid
		case !sops.Readable(locks):
			invalid.Msg = fmt.Sprintf("is encrypted by SOPS for %s, and keys of age and OpenPGP alone are read",
				sops.Recipients(locks))
			invalid.Fix = "add such a recipient: sops rotate --in-place --add-age age1… " + file
			return nil, invalid
		}
	}
	if err := a.secretsAlone(sealed); err != nil {
		return nil, err
	}
	if b.Unlock == nil || a.app.Sealed {
		return a.keep(sealed, files), nil
	}
	fs := newTreeFS(a.fs.tree)
	fs.keysIn = a.app.Namespace + "/" + a.app.Decryption
	fs.unlock = func(locks []sops.Lock) ([]byte, error) { return b.Unlock(a.app, locks) }
	_, open, err := build(fs, a.app)
	switch {
	case fs.failed != nil:
		a.fs.failed = fs.failed
		return nil, fs.failed
	case rollout.ReasonOf(err) == rollout.HeldUndecryptable:
		return nil, err
	case err != nil: // whose text may have values in it
		return nil, dependsSomewhere(files[0], "whether it can be built at all")
	case len(open) != len(sealed):
		return nil, dependsSomewhere(files[0], elsewhere)
	}
	return merge(sealed, open, files[0])
}

const (
	onlyInSecrets = "depends on values that are encrypted, and those may be in data and stringData of Secrets alone"
	elsewhere     = "something that is no value of a Secret"
)

// dependsSomewhere refuses an app that depends on encrypted values elsewhere than in the values of Secrets. It does not
// say where: a hundred objects, each of which is there if a character of a password is another one, would have it told.
func dependsSomewhere(file, what string) error {
	return &rollout.InvalidError{File: file, Msg: what + " " + onlyInSecrets,
		Fix: "look for templates that ask about them, shorten or encode them, and encrypt only what belongs into Secrets " +
			"(sops encrypt --encrypted-regex); the place is not told, for it would tell of the values"}
}

// neverEncrypted refuses objects that hold values as SOPS encrypts them: no key would ever open those.
func (a *assembly) neverEncrypted(objects []rollout.Object) error {
	for _, o := range objects {
		if o.Annotation(rollout.AnnotationSealed) != "" {
			return a.blame(&rollout.InvalidError{Field: "metadata.annotations[" + rollout.AnnotationSealed + "]",
				Msg: "is gitrollout's own, for what is never applied", Fix: "take it out"}, o.Ref())
		}
		field := ""
		each(o, func(at, text string) {
			if field == "" && sops.IsEncrypted(text) {
				field = at
			}
		})
		if field != "" {
			return a.blame(&rollout.InvalidError{Field: field, Reason: rollout.HeldUndecryptable,
				Msg: "holds a value that SOPS has encrypted, in a file without what SOPS notes of it",
				Fix: "encrypt the file as a whole, with sops encrypt"}, o.Ref())
		}
	}
	return nil
}

// each calls f with each text of an object, and with what the values of a Secret are before base64.
func each(o rollout.Object, f func(at, text string)) {
	eachText(map[string]any(o), "", func(at, text string) {
		f(at, text)
		if isSecret(o) && strings.HasPrefix(at, "data") {
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
				f(at, string(plain))
			}
		}
	})
}

func isSecret(o rollout.Object) bool { return o.Kind() == "Secret" && o.APIVersion() == "v1" }

// secretsAlone refuses objects with sealed values elsewhere than in the values of Secrets.
func (a *assembly) secretsAlone(sealed []rollout.Object) error {
	for _, o := range sealed {
		field := ""
		each(o, func(at, text string) {
			ours := isSecret(o) && (strings.HasPrefix(at, "data") || strings.HasPrefix(at, "stringData"))
			if field == "" && !ours && sops.IsSealed(text) {
				field = at
			}
		})
		if field != "" {
			return a.blame(&rollout.InvalidError{Field: field, Msg: onlyInSecrets,
				Fix: "encrypt only what belongs into Secrets (sops encrypt --encrypted-regex), or refer to a Secret there"},
				o.Ref())
		}
	}
	return nil
}

// keep marks the Secrets whose values are not known.
func (a *assembly) keep(sealed []rollout.Object, files []string) []rollout.Object {
	for _, o := range sealed {
		is := false
		each(o, func(_, text string) { is = is || sops.IsSealed(text) })
		if !is {
			continue
		}
		metadata := o.Map("metadata")
		notes, _ := metadata["annotations"].(map[string]any)
		if notes == nil {
			notes = map[string]any{}
			metadata["annotations"] = notes
		}
		notes[rollout.AnnotationSealed] = "true"
	}
	a.warn("what is encrypted in %s is not looked at: there is no key here", strings.Join(files, ", "))
	return sealed
}

// digest is what a template may make of a Secret, such as checksum/secret of a chart: it tells nothing of the content.
var digest = regexp.MustCompile(`^[0-9a-f]{40,128}$`)

// merge returns the sealed objects with the values of the open Secrets. The names of those are not theirs to choose:
// they are told where a value cannot be read.
func merge(sealed, open []rollout.Object, file string) ([]rollout.Object, error) {
	var names []string // of generated Secrets, open and sealed in turns
	for i, o := range sealed {
		was, is := open[i].Name(), o.Name()
		if was != is && isSecret(o) && isSecret(open[i]) && generatedSuffix.MatchString(was) &&
			generatedSuffix.ReplaceAllString(was, "") == generatedSuffix.ReplaceAllString(is, "") {
			names = append(names, was, is)
		}
	}
	same := comparison{strings.NewReplacer(names...)}
	for i, o := range sealed {
		values := map[string]any{}
		if isSecret(o) {
			for _, field := range []string{"data", "stringData"} {
				if v, has := open[i][field]; has {
					values[field] = v
				}
				if !sameNames(o[field], open[i][field]) {
					return nil, dependsSomewhere(file, elsewhere)
				}
				delete(o, field)
				delete(open[i], field)
			}
		}
		if same.differ(map[string]any(o), map[string]any(open[i])) {
			return nil, dependsSomewhere(file, elsewhere)
		}
		maps.Copy(o, values)
	}
	return sealed, nil
}

// comparison knows how generated Secrets are called when they are sealed.
type comparison struct{ names *strings.Replacer }

// differ reports whether a sealed value is another one than the open one, by more than what stands for content.
func (c comparison) differ(sealed, open any) bool {
	switch sealed := sealed.(type) {
	case map[string]any:
		other, is := open.(map[string]any)
		if !is || len(other) != len(sealed) {
			return true
		}
		for key, value := range sealed {
			if open, has := other[key]; !has || c.differ(value, open) {
				return true
			}
		}
		return false
	case []any:
		other, is := open.([]any)
		return !is || !slices.EqualFunc(sealed, other, func(a, b any) bool { return !c.differ(a, b) })
	case string:
		other, is := open.(string)
		return !is || sealed != other && sealed != c.names.Replace(other) &&
			!(digest.MatchString(sealed) && digest.MatchString(other) && len(sealed) == len(other))
	default:
		return !reflect.DeepEqual(sealed, open)
	}
}

// sameNames reports whether the values of a Secret have the same names sealed and open, and are texts where they
// differ.
func sameNames(sealed, open any) bool {
	was, _ := sealed.(map[string]any)
	is, isMap := open.(map[string]any)
	if open == nil || !isMap {
		return open == nil && sealed == nil
	}
	for name, value := range is {
		_, has := was[name]
		if _, isText := value.(string); !has || !isText && !reflect.DeepEqual(was[name], value) {
			return false
		}
	}
	return len(was) == len(is)
}
