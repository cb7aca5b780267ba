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

// An app with encrypted files is built three times. Two builds (sealed, twin) have different substitutes for encrypted
// values. The third (open) has the decrypted values. Between the builds, only values of Secrets may differ. gitrollout
// applies the sealed objects with the open build's Secret values, so names and hashes do not depend on keys. Any other
// difference is refused, because a template then depends on an encrypted value.

func (f *treeFS) decrypt(real string, content []byte) ([]byte, error) {
	file, err := sops.Read(real, content)
	if err != nil {
		return nil, f.undecryptable(real, err)
	}
	if file == nil || isLeftAlone(content) {
		return content, nil
	}
	f.encrypted[real] = file.Locks
	var key []byte
	if f.unlock != nil {
		key, err = f.unlock(file.Locks)
	}
	switch {
	case f.unlock == nil:
		content, err = file.Seal(f.twin)
	case errors.Is(err, sops.ErrLocked):
		err = file.NoKey(real, f.keysIn)
	case err != nil:
		err = &sops.Error{Msg: err.Error(),
			Fix: "put the keys into that Secret, in entries that end in .agekey or .asc, and allow gitrollout to read it"}
	default:
		content, err = file.Open(key)
	}
	if err != nil {
		return nil, f.undecryptable(real, err)
	}
	return content, nil
}

func isLeftAlone(content []byte) bool {
	docs, err := decodeDocuments(content)
	return err == nil && !slices.ContainsFunc(docs, func(doc *kyaml.Node) bool {
		var head struct {
			Metadata struct{ Annotations map[string]string }
		}
		return doc.Decode(&head) != nil || head.Metadata.Annotations[rollout.AnnotationDecryption] == ""
	})
}

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

func (b InProcess) open(a *assembly, sealed []rollout.Object) ([]rollout.Object, error) {
	if err := neverEncrypted(sealed, a.origins); err != nil || len(a.fs.encrypted) == 0 {
		return sealed, err
	}
	files := slices.Sorted(maps.Keys(a.fs.encrypted))
	if err := openable(a.fs, a.App, files); err != nil {
		return nil, err
	}
	twin, err := again(a.fs, a.App, func(fs *treeFS) { fs.twin = true })
	if err != nil {
		return nil, dependsOn(files[0], ifBuilt)
	}
	c := comparison{digests: map[string]bool{}, learns: true}
	if twin, err = c.alike(sealed, twin, files[0], a.origins); err != nil {
		return nil, err
	}
	if b.Unlock == nil || a.App.Sealed {
		a.Unopened = files
		return keep(sealed, twin), nil
	}
	open, err := again(a.fs, a.App, func(fs *treeFS) { b.unlocks(fs, a.App) })
	switch {
	case rollout.ReasonOf(err) == rollout.HeldUndecryptable:
		return nil, err
	case err != nil: // err may contain a decrypted value
		return nil, dependsSomewhere(files[0], ifBuilt)
	}
	c.learns = false
	return merge(&c, sealed, open, files[0])
}

func (b InProcess) unlocks(fs *treeFS, app rollout.App) {
	if b.Unlock == nil || app.Sealed {
		return
	}
	fs.keysIn = app.Namespace + "/" + app.Decryption
	fs.unlock = func(locks []sops.Lock) ([]byte, error) { return b.Unlock(app, locks) }
}

func openable(fs *treeFS, app rollout.App, files []string) error {
	for _, file := range files {
		locks := fs.encrypted[file]
		invalid := &rollout.InvalidError{File: file, Reason: rollout.HeldUndecryptable}
		switch {
		case app.Decryption == "":
			invalid.Msg = "is encrypted by SOPS, and the app's entry names no keys"
			invalid.Fix = "add decryption: {provider: sops, secretRef: {name: …}} to the entry in the cluster's config.yaml; " +
				leftAlone
			return invalid
		case !sops.Readable(locks):
			invalid.Msg = fmt.Sprintf("is encrypted by SOPS for %s, but only keys of age and OpenPGP are supported",
				sops.Recipients(locks))
			invalid.Fix = "add a recipient of age or OpenPGP: sops rotate --in-place --add-age age1… " + file
			return invalid
		}
	}
	return nil
}

func again(of *treeFS, app rollout.App, set func(*treeFS)) ([]rollout.Object, error) {
	fs := newTreeFS(of.tree)
	set(fs)
	_, objects, err := build(fs, app)
	of.failed = fs.failed
	return objects, err
}

// orDepends returns err if a build with other substitutes has the same error. Otherwise, it returns the error that the
// build's success depends on encrypted values.
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
	onlyInSecrets = "depends on encrypted values, which are allowed only in data and stringData of Secrets"
	elsewhere     = "a field other than a Secret's values"
	ifBuilt       = "whether the app can be built"
	leftAlone     = "if another operator decrypts it, set the annotation " + rollout.AnnotationDecryption + ": none"
	encryptLess   = "encrypt only values of Secrets (sops encrypt --encrypted-regex), or refer to a Secret in this field"
)

func dependsOn(file, what string) error {
	return &rollout.InvalidError{File: file, Msg: what + " " + onlyInSecrets, Fix: encryptLess}
}

// dependsSomewhere returns an error without a field. A field could reveal a password, because each of many objects can
// test one character.
func dependsSomewhere(file, what string) error {
	return &rollout.InvalidError{File: file, Msg: what + " " + onlyInSecrets,
		Fix: "look for templates that test encrypted values, and encrypt only values of Secrets " +
			"(sops encrypt --encrypted-regex); the place is not shown, because it would reveal the values"}
}

func neverEncrypted(objects []rollout.Object, in origins) error {
	for _, o := range objects {
		const annotated = "metadata.annotations[" + rollout.AnnotationDecryption + "]"
		switch none := o.Annotation(rollout.AnnotationDecryption); {
		case o.Annotation(rollout.AnnotationSealed) != "":
			return in.invalid(o.Ref(), "metadata.annotations["+rollout.AnnotationSealed+"]", "take it out",
				"is reserved for gitrollout, and marks objects that are never applied")
		case none != "" && none != "none":
			return in.invalid(o.Ref(), annotated, `write "none", or take it out`, `is %q, but only "none" is allowed`, none)
		case none != "" && o.IsSecret():
			return in.invalid(o.Ref(), annotated, "take it out", "is on a Secret, so pods would read the encrypted values")
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
				Msg: "holds a value that SOPS has encrypted, in a file without the metadata of SOPS",
				Fix: "encrypt the file itself, with sops encrypt; " + leftAlone}, o.Ref())
		}
	}
	return nil
}

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

func (c *comparison) alike(sealed, twin []rollout.Object, file string, in origins) ([]rollout.Object, error) {
	twin, lone := counterparts(sealed, twin)
	if lone != (rollout.Ref{}) {
		return nil, dependsOn(file, "whether "+shortRef(lone)+" exists")
	}
	i, field := c.first(sealed, twin)
	if i < 0 {
		return twin, nil
	}
	invalid := &rollout.InvalidError{Field: field, Msg: onlyInSecrets, Fix: encryptLess}
	switch {
	case sealed[i].IsSecret() && (strings.HasPrefix(field, "data") || strings.HasPrefix(field, "stringData")):
		invalid.Msg = "is a key, or a value other than a string, and " + onlyInSecrets
		invalid.Fix = "encrypt only values, and put numbers in quotes"
	case strings.Contains(field, "annotations"):
		invalid.Fix += "; a digest is also allowed, with 8 to 128 hex digits"
	default:
		invalid.Fix += "; a digest is also allowed, with 40 to 128 hex digits, or 8 to 128 in an annotation"
	}
	err := in.blame(invalid, sealed[i].Ref())
	if in.fs.encrypted[invalid.File] != nil {
		invalid.Fix += "; " + leftAlone
	}
	return nil, err
}

func keep(sealed, twin []rollout.Object) []rollout.Object {
	for i, o := range sealed {
		if !o.IsSecret() || reflect.DeepEqual(o["data"], twin[i]["data"]) &&
			reflect.DeepEqual(o["stringData"], twin[i]["stringData"]) {
			continue
		}
		o.Set("true", "metadata", "annotations", rollout.AnnotationSealed)
	}
	return sealed
}

// merge copies Secrets' values from the open build's objects to the sealed objects. Errors name no object, because a
// name may contain a value.
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
