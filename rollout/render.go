package rollout

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// App is one folder of manifests for one cluster, the unit of release.
type App struct {
	Name      string // a DNS label, unique in the cluster; see AppGlob.App
	Path      string // slash-separated folder, relative to the repository's root
	Namespace string // for namespaced objects that set none; never empty
	Formerly  string // names in older commits; newest first, separated by spaces
	Limits    Limits // for rendering; from the newest configuration even for an older commit

	// Further allowed namespaces, and allowed cluster-scoped kinds, separated by spaces.
	Namespaces, ClusterResources string
	ServiceAccount               string // account that applies objects, as namespace/name; "": default

	Sealed    bool // encrypted files stay encrypted, and their Secrets are not applied
	Plain     bool // the folder needs no kustomization: Directory can select the manifests
	Directory Directory

	Helm        Helm   // for a chart in a folder without a kustomization
	Kubernetes  string // version for charts; "": DefaultKubernetes
	APIVersions string // for charts, besides Kubernetes' own; separated by spaces

	Workloads string // additional kinds with staged releases, encoded by PartitionedText

	Variables Variables // values for ${name} in the app's objects

	Links string // templates of dashboard addresses, as JSON; key: title

	Decryption string // Secret in Namespace with keys for encrypted files; from the newest configuration
}

// Variables are values for ${name} in rendered objects.
type Variables struct {
	On     bool   // substitution is on, even without values
	Values string // from the app's entry, as JSON; "" for none
	Files  string // paths, one per line; later files win, and Values wins over files
}

// NewVariables returns Variables that are On.
func NewVariables(values map[string]string, files []string) Variables {
	v := Variables{On: true, Files: strings.Join(files, "\n")}
	if len(values) > 0 {
		data, _ := json.Marshal(values)
		v.Values = string(data)
	}
	return v
}

// From returns the paths in Files.
func (v Variables) From() []string { return lines(v.Files) }

// Map returns Values as a map.
func (v Variables) Map() map[string]string {
	values := map[string]string{}
	_ = json.Unmarshal([]byte(v.Values), &values) // fails only without values
	return values
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether a text may name a variable.
func IsVariable(name string) bool { return variable.MatchString(name) }

// BadVariable is the fix for an invalid name.
const BadVariable = "use letters, digits and _, and no digit first"

// Helm has options for a chart in an app's folder.
type Helm struct {
	ReleaseName string // default: the app's name
	ValueFiles  string // paths relative to the folder, one per line; later files win
	Values      string // win over the files, as JSON; "" for none
	SkipCRDs    bool   // leave out objects in crds folders
}

// Files returns the paths in ValueFiles.
func (h Helm) Files() []string { return lines(h.ValueFiles) }

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// Directory selects manifests of a folder without a kustomization. Its field names are Argo CD's.
type Directory struct {
	Recurse bool   `json:"recurse"`
	Include string `json:"include"` // files to read: one pattern, or several as in "{a.yaml,b/*}"; default: all
	Exclude string `json:"exclude"` // files to leave out, in the form of Include
}

// Commit is one commit of the users' branch.
type Commit struct {
	ID      string    `json:"commit"`            // full hexadecimal id
	Author  string    `json:"author,omitempty"`  // "Ann Lee <ann@example.com>"
	Subject string    `json:"subject,omitempty"` // first line of the message
	When    time.Time `json:"when,omitzero"`     // the author's time, in UTC and whole seconds
}

// Short returns the id's first seven digits.
func (c Commit) Short() string { return ShortID(c.ID) }

// ShortID returns at most seven characters of an id or name.
func ShortID(id string) string { return id[:min(7, len(id))] }

// Render is one app at one commit. It is immutable.
type Render struct {
	App       App
	Commit    Commit
	Objects   []Object          // objects to apply, in this order, and hooks; no Rollout documents
	Specs     []Spec            // for each staged workload, ordered by workload
	Templates map[Workload]Hash // of all workloads, with or without a Rollout
	Files     []string          // paths of all read files, sorted
	Digest    string            // digest of Specs and Objects (see Object.Told); equal digests mean no change
	Content   Hash              // HashContent of objects, with encrypted values as in Git; "" with Specs
	Hooked    bool              // Objects has hook Jobs
	Warnings  []string          // probable mistakes in accepted values, one sentence each
	Unopened  []string          // encrypted files read without a key, sorted
	Generated []Ref             // objects generated for routers during releases, sorted

	packed string // Objects as JSON, after Pack
	of     *Render
}

// Pack stores Objects as JSON, which takes a tenth of the memory. Objects is then nil.
func (r *Render) Pack() {
	text, _ := json.Marshal(r.Objects) // cannot fail, because the objects are JSON values
	r.Objects, r.packed = nil, string(text)
}

// Unpacked returns a packed render with its objects, and any other render unchanged.
func (r *Render) Unpacked() *Render {
	if r == nil || r.packed == "" || r.of != nil {
		return r
	}
	out := *r
	out.Objects, _ = FromJSON[[]Object]([]byte(r.packed))
	out.of = r
	return &out
}

// Packed returns the packed render from which Unpacked made r. It returns any other render, or a changed copy, as is.
func (r *Render) Packed() *Render {
	if r != nil && r.of != nil {
		same := *r
		if same.Objects, same.of = nil, nil; reflect.DeepEqual(&same, r.of) {
			return r.of
		}
	}
	return r
}

// Object returns an object, or nil. It unpacks only a render that has the object's name.
func (r *Render) Object(ref Ref) Object {
	name, _ := json.Marshal(ref.Name)
	if r.packed != "" && !strings.Contains(r.packed, string(name)) {
		return nil
	}
	object, _ := Find(r.Unpacked().Objects, func(o Object) bool { return o.Ref() == ref })
	return object
}

// Spec returns a staged workload's spec. A nil Render has none.
func (r *Render) Spec(w Workload) (Spec, bool) {
	return Find(cmp.Or(r, &Render{}).Specs, func(s Spec) bool { return s.Workload == w })
}

// Staged returns the staged workloads' template hashes.
func (r *Render) Staged() map[Workload]Hash {
	staged := make(map[Workload]Hash, len(r.Specs))
	for _, s := range r.Specs {
		staged[s.Workload] = r.Templates[s.Workload]
	}
	return staged
}

// Release returns the staged templates' hash. Without Specs, it returns Content if there are hooks, else "".
func (r *Render) Release() Hash {
	if len(r.Specs) == 0 && r.Hooked {
		return r.Content
	}
	return ReleaseHash(r.Staged())
}

// Version returns Release or, for an app without releases, Content.
func (r *Render) Version() Hash { return cmp.Or(r.Release(), r.Content) }

// InvalidError is an error in the users' repository. It stops one app's updates. An error in the configuration stops
// all apps' updates. The text must be stable, because each new text is committed.
type InvalidError struct {
	// About is the object with the error if the object's file is unknown. An empty About means the document being read.
	About Ref    `json:"about,omitzero"`
	File  string `json:"file,omitempty"`  // path in the repository, "" if in no single file
	Line  int    `json:"line,omitempty"`  // line of Field, 0 if unknown
	Field string `json:"field,omitempty"` // such as spec.strategy.canary.steps[1].setWeight, or ""
	Msg   string `json:"message"`         // the problem, with the value
	Fix   string `json:"fix,omitempty"`   // "" if Msg has the fix

	Reason HeldReason `json:"reason,omitempty"` // default HeldInvalidInput

	Also string `json:"also,omitempty"` // further errors' texts, or ""
}

// ProblemOf returns an error's place, text and fix for "plan" and "validate".
func ProblemOf(err error) *InvalidError {
	if invalid, is := errors.AsType[*InvalidError](err); is {
		return &InvalidError{File: invalid.File, Line: invalid.Line, Field: invalid.Field, Msg: invalid.Msg, Fix: invalid.Fix,
			Also: invalid.Also}
	}
	return &InvalidError{Msg: err.Error()}
}

// IsInvalid reports whether an error is a mistake in the repository, so that a retry cannot help.
func IsInvalid(err error) bool {
	_, is := errors.AsType[*InvalidError](err)
	return is
}

// Error returns "file:line: object: field: message; fix" without empty parts, then Also.
func (e *InvalidError) Error() string {
	file, about := e.File, ""
	if e.Line > 0 {
		file = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.About != (Ref{}) {
		about = e.About.String()
	}
	parts := slices.DeleteFunc([]string{file, about, e.Field, e.Msg}, func(s string) bool { return s == "" })
	text := strings.Join(parts, ": ")
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text + e.Also
}

// mostAlso is in bytes.
const mostAlso, alsoText = 4000, "; also "

// And adds another error to e.Also. If either is nil, it returns the other.
func (e *InvalidError) And(more *InvalidError) *InvalidError {
	switch {
	case e == nil:
		return more
	case more != nil && len(e.Also) < mostAlso:
		e.Also += alsoText + more.Error()
	}
	return e
}

// Below puts a parent's path before Field and before the fields in Also.
func (e *InvalidError) Below(field string) {
	e.Field = strings.TrimSuffix(field+"."+e.Field, ".")
	e.Also = strings.ReplaceAll(e.Also, alsoText, alsoText+field+".")
}

// ReasonOf returns why an app with the error is not updated.
func ReasonOf(err error) HeldReason {
	if invalid, is := errors.AsType[*InvalidError](err); is && invalid.Reason != "" {
		return invalid.Reason
	}
	return HeldInvalidInput
}

// WithFix sets the fix.
func (e *InvalidError) WithFix(format string, args ...any) *InvalidError {
	e.Fix = fmt.Sprintf(format, args...)
	return e
}

// Invalidf returns an InvalidError without a fix.
func Invalidf(file, field, format string, args ...any) *InvalidError {
	return &InvalidError{File: file, Field: field, Msg: fmt.Sprintf(format, args...)}
}

type place struct{ file, field string }

func (p place) invalid(field, fix, format string, args ...any) error {
	return Invalidf(p.file, p.field+"."+field, format, args...).WithFix("%s", fix)
}

// ByRef returns Object.Told of each object; nil for a nil Render.
func (r *Render) ByRef() map[Ref]Object {
	if r = r.Unpacked(); r == nil {
		return nil
	}
	objects := make(map[Ref]Object, len(r.Objects))
	for _, o := range r.Objects {
		objects[o.Ref()] = o.Told()
	}
	return objects
}
