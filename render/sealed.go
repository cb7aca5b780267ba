package render

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// An app with encrypted files is built three times: sealed, where other values stand in place of those that are
// encrypted, sealed with yet other ones, and open. What differs between the first two is made of encrypted values,
// and that may be values of Secrets alone. What is applied is the first, with the values of the open Secrets: so
// names, hashes and everything that people are shown are the same for who has keys and for who has none. What is open
// may differ elsewhere only where a template asks what a value is.

// decrypt returns an encrypted file as it is to be read.
func (f *treeFS) decrypt(real string, content []byte) ([]byte, error) {
	file, err := sops.Read(real, content)
	if err != nil {
		return nil, f.undecryptable(real, err)
	}
	if file == nil || isLeftAlone(content) {
		return content, nil
	}
	f.encrypted[real] = file.Locks()
	if f.unlock == nil {
		if content, err = file.Seal(f.twin); err != nil {
			return nil, f.undecryptable(real, err)
		}
		return content, nil
	}
	key, err := f.unlock(file.Locks())
	switch {
	case errors.Is(err, sops.ErrLocked):
		err = file.NoKey(real, f.keysIn)
	case err != nil:
		err = &sops.Error{Msg: err.Error(),
			Fix: "put its keys there, in entries that end in .agekey or .asc, and allow reading it"}
	default:
		content, err = file.Open(key)
	}
	if err != nil {
		return nil, f.undecryptable(real, err)
	}
	return content, nil
}

// isLeftAlone reports whether all objects of an encrypted file are for somebody else to decrypt.
func isLeftAlone(content []byte) bool {
	docs, err := decodeDocuments(content)
	return err == nil && !slices.ContainsFunc(docs, func(doc *kyaml.Node) bool {
		var head struct {
			Metadata struct{ Annotations map[string]string }
		}
		return doc.Decode(&head) != nil || head.Metadata.Annotations[rollout.AnnotationDecryption] == ""
	})
}

// undecryptable refuses a file, as refuse does.
func (f *treeFS) undecryptable(real string, why error) error {
	var wrong *sops.Error
	if !errors.As(why, &wrong) {
		wrong = &sops.Error{Msg: why.Error()}
	}
	err := f.refuse(real, wrong.Msg, wrong.Fix)
	if f.refused.File == real && f.refused.Msg == wrong.Msg {
		f.refused.Reason = rollout.HeldUndecryptable
		return f.refused
	}
	return err
}

// open puts the values into Secrets that are encrypted in Git, if there are keys, and marks them as sealed if not.
func (b InProcess) open(a *assembly, sealed []rollout.Object) ([]rollout.Object, error) {
	if err := neverEncrypted(sealed, a.origins); err != nil || len(a.fs.encrypted) == 0 {
		return sealed, err
	}
	files := slices.Sorted(maps.Keys(a.fs.encrypted))
	if err := openable(a.fs, a.app, files); err != nil {
		return nil, err
	}
	twin, err := again(a.fs, a.app, func(fs *treeFS) { fs.twin = true })
	if err != nil {
		return nil, dependsOn(files[0], ifBuilt)
	}
	c := comparison{digests: map[string]bool{}, learns: true}
	if twin, err = c.alike(sealed, twin, files[0], a.origins); err != nil {
		return nil, err
	}
	if b.Unlock == nil || a.app.Sealed {
		a.unopened = files
		return keep(sealed, twin), nil
	}
	open, err := again(a.fs, a.app, func(fs *treeFS) { b.unlocks(fs, a.app) })
	switch {
	case rollout.ReasonOf(err) == rollout.HeldUndecryptable:
		return nil, err
	case err != nil: // whose text may have values in it
		return nil, dependsSomewhere(files[0], ifBuilt)
	}
	c.learns = false
	return merge(&c, sealed, open, files[0])
}

// unlocks has the encrypted files of a build opened, if there are keys.
func (b InProcess) unlocks(fs *treeFS, app rollout.App) {
	if b.Unlock == nil || app.Sealed {
		return
	}
	fs.keysIn = app.Namespace + "/" + app.Decryption
	fs.unlock = func(locks []sops.Lock) ([]byte, error) { return b.Unlock(app, locks) }
}

// openable refuses files that no key would open.
func openable(fs *treeFS, app rollout.App, files []string) error {
	for _, file := range files {
		locks := fs.encrypted[file]
		invalid := &rollout.InvalidError{File: file, Reason: rollout.HeldUndecryptable}
		switch {
		case app.Decryption == "":
			invalid.Msg = "is encrypted by SOPS, and the app's entry names no keys"
			invalid.Fix = "add decryption: {provider: sops, secretRef: {name: …}} to it in the cluster's config.yaml; " +
				leftAlone
			return invalid
		case !sops.Readable(locks):
			invalid.Msg = fmt.Sprintf("is encrypted by SOPS for %s, and keys of age and OpenPGP alone are read",
				sops.Recipients(locks))
			invalid.Fix = "add such a recipient: sops rotate --in-place --add-age age1… " + file
			return invalid
		}
	}
	return nil
}

// again builds an app with its encrypted files read in another way. A tree that cannot be read is the error of the
// whole build, whatever is made of this one: see InProcess.Build.
func again(of *treeFS, app rollout.App, set func(*treeFS)) ([]rollout.Object, error) {
	fs := newTreeFS(of.tree)
	set(fs)
	_, objects, err := build(fs, app)
	of.failed = fs.failed
	return objects, err
}

// orDepends is the error of an app that cannot be built, or that this is for an encrypted value to say: then the twin
// can be built, or fails by what stands in other places there, as a number does that a schema bounds.
func orDepends(fs *treeFS, app rollout.App, err error) error {
	if len(fs.encrypted) == 0 || fs.failed != nil || rollout.ReasonOf(err) == rollout.HeldUndecryptable {
		return err
	}
	if _, twins := again(fs, app, func(twin *treeFS) { twin.twin = true }); twins == nil || twins.Error() != err.Error() {
		return dependsOn(slices.Min(slices.Collect(maps.Keys(fs.encrypted))), ifBuilt)
	}
	return err
}

const (
	onlyInSecrets = "depends on values that are encrypted, and those may be in data and stringData of Secrets alone"
	elsewhere     = "something that is no value of a Secret"
	ifBuilt       = "whether it can be built at all"
	leftAlone     = "an object that another operator decrypts is annotated " + rollout.AnnotationDecryption + ": none"
	encryptLess   = "encrypt only what belongs into Secrets (sops encrypt --encrypted-regex), or refer to a Secret there"
)

// dependsOn refuses an app in which something is for an encrypted value to say.
func dependsOn(file, what string) error {
	return &rollout.InvalidError{File: file, Msg: what + " " + onlyInSecrets, Fix: encryptLess}
}

// dependsSomewhere refuses an app that depends on encrypted values elsewhere than in the values of Secrets. It does not
// say where: a hundred objects, each of which is there if a character of a password is another one, would have it told.
func dependsSomewhere(file, what string) error {
	return &rollout.InvalidError{File: file, Msg: what + " " + onlyInSecrets,
		Fix: "look for templates that ask about them, and encrypt only what belongs into Secrets " +
			"(sops encrypt --encrypted-regex); the place is not told, for it would tell of the values"}
}

// neverEncrypted refuses objects that hold values as SOPS encrypts them: no key would ever open those.
func neverEncrypted(objects []rollout.Object, in origins) error {
	for _, o := range objects {
		const annotated = "metadata.annotations[" + rollout.AnnotationDecryption + "]"
		switch none := o.Annotation(rollout.AnnotationDecryption); {
		case o.Annotation(rollout.AnnotationSealed) != "":
			return in.invalid(o.Ref(), "metadata.annotations["+rollout.AnnotationSealed+"]", "take it out",
				"is gitrollout's own, for what is never applied")
		case none != "" && none != "none":
			return in.invalid(o.Ref(), annotated, "write none, or take it out", "is %q, and none is all that it may be", none)
		case none != "" && o.IsSecret():
			return in.invalid(o.Ref(), annotated, "take it out", "is on a Secret, which pods read as it is")
		case none != "":
			continue
		}
		field := ""
		each(o, func(at, text string) {
			if field == "" && sops.IsEncrypted(text) {
				field = at
			}
		})
		if field != "" {
			return in.blame(&rollout.InvalidError{Field: field, Reason: rollout.HeldUndecryptable,
				Msg: "holds a value that SOPS has encrypted, in a file without what SOPS notes of it",
				Fix: "encrypt the file itself, with sops encrypt; " + leftAlone}, o.Ref())
		}
	}
	return nil
}

// each calls f with each text of an object, and with what the values of a Secret are before base64.
func each(o rollout.Object, f func(at, text string)) {
	eachText(map[string]any(o), "", func(at, text string) {
		f(at, text)
		if o.IsSecret() && strings.HasPrefix(at, "data") {
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
				f(at, string(plain))
			}
		}
	})
}

// alike returns the twin in the order of what is sealed, and refuses what differs between them, but for values of
// Secrets.
func (c *comparison) alike(sealed, twin []rollout.Object, file string, in origins) ([]rollout.Object, error) {
	twin, lone := counterparts(sealed, twin)
	if lone != (rollout.Ref{}) {
		return nil, dependsOn(file, "whether "+shortRef(lone)+" is there")
	}
	i, field := c.first(sealed, twin)
	if i < 0 {
		return twin, nil
	}
	invalid := &rollout.InvalidError{Field: field, Msg: onlyInSecrets, Fix: encryptLess}
	switch {
	case sealed[i].IsSecret() && (strings.HasPrefix(field, "data") || strings.HasPrefix(field, "stringData")):
		invalid.Msg = "is a name of values or no text, and " + onlyInSecrets
		invalid.Fix = "encrypt values alone, and numbers in quotes"
	case strings.Contains(field, "annotations"):
		invalid.Fix += "; a digest is one of 8 to 128 digits, as sha256sum writes them"
	default:
		invalid.Fix += "; a digest has 40 to 128 digits, as sha256sum writes them, and 8 will do in an annotation"
	}
	err := in.blame(invalid, sealed[i].Ref())
	if in.fs.encrypted[invalid.File] != nil {
		invalid.Fix += "; " + leftAlone
	}
	return nil, err
}

// keep marks the Secrets whose values are not known.
func keep(sealed, twin []rollout.Object) []rollout.Object {
	for i, o := range sealed {
		if !o.IsSecret() || reflect.DeepEqual(o["data"], twin[i]["data"]) &&
			reflect.DeepEqual(o["stringData"], twin[i]["stringData"]) {
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
	return sealed
}

// merge returns the sealed objects with the values of the open Secrets. The names of those are not theirs to choose:
// they are told where a value cannot be read.
func merge(c *comparison, sealed, open []rollout.Object, file string) ([]rollout.Object, error) {
	open, lone := counterparts(sealed, open)
	if lone != (rollout.Ref{}) {
		return nil, dependsSomewhere(file, elsewhere)
	}
	if i, _ := c.first(sealed, open); i >= 0 {
		return nil, dependsSomewhere(file, elsewhere)
	}
	for i, o := range sealed {
		for _, field := range valueFields {
			if values, has := open[i][field]; has && o.IsSecret() {
				o[field] = values
			}
		}
	}
	return sealed, nil
}
