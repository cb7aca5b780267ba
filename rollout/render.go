package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// App is one folder of manifests for one cluster, usually a kustomization. It is the unit of release.
type App struct {
	Name      string // a DNS label, unique in the cluster; see AppGlob.App
	Path      string // slash-separated folder of the kustomization, relative to the repository's root
	Namespace string // namespace for namespaced objects that set no namespace; never empty
	Formerly  string // former names of the app in older commits; newest first, separated by spaces
	Limits    Limits // limits for rendering, from the newest configuration even for an older commit

	// Namespaces and kinds that the app may write in addition to the field Namespace, separated by spaces.
	Namespaces, ClusterResources string
	ServiceAccount               string // the account that applies the objects, as namespace/name; "" for the default

	Plain     bool // the folder may have no kustomization; then Directory selects the manifests
	Directory Directory

	Helm        Helm   // options for the chart in a folder without a kustomization
	Kubernetes  string // Kubernetes version for charts; "" for DefaultKubernetes
	APIVersions string // API versions for charts, in addition to Kubernetes' own; separated by spaces

	Workloads string // additional kinds with staged releases, encoded by PartitionedText

	Variables Variables // values for the app's objects

	Decryption string // name of a Secret in Namespace: its keys open encrypted files; from the newest configuration
	Sealed     bool   // encrypted files are not decrypted, and their Secrets are not applied
}

// Variables are the values for ${name} in rendered objects. The zero value changes nothing.
type Variables struct {
	On     bool   // objects are searched for variables, even if none is defined
	Values string // values of the app's entry, as JSON; "" for none
	Files  string // paths of files with values, one per line; a later file wins; the field Values wins over all files
}

// NewVariables returns variables with values and files.
func NewVariables(values map[string]string, files []string) Variables {
	v := Variables{On: true, Files: strings.Join(files, "\n")}
	if len(values) > 0 {
		data, _ := json.Marshal(values) // texts can always be encoded
		v.Values = string(data)
	}
	return v
}

// From returns the paths in Files.
func (v Variables) From() []string { return lines(v.Files) }

// Map returns the field Values as a map.
func (v Variables) Map() map[string]string {
	values := map[string]string{}
	if v.Values != "" {
		_ = json.Unmarshal([]byte(v.Values), &values) // NewVariables has encoded the values
	}
	return values
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether a text is the name of a variable.
func IsVariable(name string) bool { return variable.MatchString(name) }

// BadVariable is the fix for an invalid name of a variable.
const BadVariable = "use letters, digits and _, and no digit first"

// Helm configures the rendering of the chart in an app's folder.
type Helm struct {
	ReleaseName string // default: the app's name
	ValueFiles  string // paths relative to the folder, one per line; the last file wins
	Values      string // values that win over the files, as JSON; "" for none
	SkipCRDs    bool   // leave out the objects in crds folders
}

// Files returns the paths in ValueFiles.
func (h Helm) Files() []string { return lines(h.ValueFiles) }

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// Directory selects the manifests of a folder without a kustomization. Its fields have Argo CD's names.
type Directory struct {
	Recurse bool   `json:"recurse"` // also read the folders below
	Include string `json:"include"` // files to read: one pattern, or several as in "{a.yaml,b/*}"; default: all
	Exclude string `json:"exclude"` // files to leave out, as a pattern like Include
}

// Commit is one commit of the users' branch.
type Commit struct {
	ID      string    `json:"commit"`            // full hexadecimal id
	Author  string    `json:"author,omitempty"`  // "Ann Lee <ann@example.com>"
	Subject string    `json:"subject,omitempty"` // first line of the message
	When    time.Time `json:"when,omitzero"`     // author time, UTC, whole seconds
}

// Short returns the first seven digits of the id.
func (c Commit) Short() string { return ShortID(c.ID) }

// ShortID returns a commit id's first seven digits.
func ShortID(id string) string { return id[:min(7, len(id))] }

// Render is the result of rendering one app at one commit. It is immutable.
type Render struct {
	App       App
	Commit    Commit
	Objects   []Object          // without Rollout documents, in the order to apply
	Specs     []Spec            // one for each staged workload, ordered by workload
	Templates map[Workload]Hash // the template hash of every workload, staged or not
	Files     []string          // sorted paths of every file that the render read
	Digest    string            // digest of Specs and Objects (see Object.Told); an equal digest means nothing to apply
	Content   Hash              // HashContent of the objects, with encrypted values as in Git; "" if there are Specs
	Hooked    bool              // Objects has Jobs that run before or after releases
	Warnings  []string          // accepted values that are probably mistakes, one sentence each
	Unopened  []string          // sorted paths of the encrypted files that were read without a key
	Generated []Ref             // sorted objects that the routers of the app's releases generate
}

// Spec returns the spec of a staged workload.
func (r *Render) Spec(w Workload) (Spec, bool) {
	return Find(r.Specs, func(s Spec) bool { return s.Workload == w })
}

// Staged returns the template hashes of the staged workloads.
func (r *Render) Staged() map[Workload]Hash {
	staged := make(map[Workload]Hash, len(r.Specs))
	for _, s := range r.Specs {
		staged[s.Workload] = r.Templates[s.Workload]
	}
	return staged
}

// Release returns the hash of the staged templates. Without Specs, it returns Content if there are hooks, else "".
func (r *Render) Release() Hash {
	if len(r.Specs) == 0 && r.Hooked {
		return r.Content
	}
	return ReleaseHash(r.Staged())
}

// InvalidError is an error in the users' repository, with its place and fix. It stops updates of one app, or of all
// apps if the configuration is invalid. The text must not change while the error lasts: each change is committed.
type InvalidError struct {
	// About is the invalid object if its file is unknown. It is empty if the error is in the document being read.
	About Ref    `json:"about,omitzero"`
	File  string `json:"file,omitempty"`  // path in the repository, "" without a single file
	Line  int    `json:"line,omitempty"`  // line of the field in File, 0 if unknown
	Field string `json:"field,omitempty"` // such as spec.strategy.canary.steps[1].setWeight, "" if none
	Msg   string `json:"message"`         // the problem, with the value
	Fix   string `json:"fix,omitempty"`   // how to fix the error; "" if the message says how

	Reason HeldReason `json:"reason,omitempty"` // why the app is not updated; default HeldInvalidInput

	Also string `json:"also,omitempty"` // further errors as text, "" for none
}

// ProblemOf returns the place, message and fix of an error. The commands "plan" and "validate" print them as JSON.
func ProblemOf(err error) *InvalidError {
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return &InvalidError{File: invalid.File, Line: invalid.Line, Field: invalid.Field, Msg: invalid.Msg, Fix: invalid.Fix,
			Also: invalid.Also}
	}
	return &InvalidError{Msg: err.Error()}
}

// IsInvalid reports whether an error is in the users' repository. A retry cannot repair such an error.
func IsInvalid(err error) bool {
	var invalid *InvalidError
	return errors.As(err, &invalid)
}

// Error returns "file:line: object: field: message; fix" without empty parts, then the further errors in Also.
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

// mostAlso limits the field Also in bytes: beyond it, the method And adds no error. alsoText precedes each error.
const mostAlso, alsoText = 4000, "; also "

// And adds the text of another error to e.Also, and returns e. If one of them is nil, it returns the other error.
func (e *InvalidError) And(more *InvalidError) *InvalidError {
	switch {
	case e == nil:
		return more
	case more != nil && len(e.Also) < mostAlso:
		e.Also += alsoText + more.Error()
	}
	return e
}

// Below puts a parent field before the error's Field and before each field in Also.
func (e *InvalidError) Below(field string) {
	e.Field = strings.TrimSuffix(field+"."+e.Field, ".")
	e.Also = strings.ReplaceAll(e.Also, alsoText, alsoText+field+".")
}

// ReasonOf returns the reason why an app with this error is not updated.
func ReasonOf(err error) HeldReason {
	var invalid *InvalidError
	if errors.As(err, &invalid) && invalid.Reason != "" {
		return invalid.Reason
	}
	return HeldInvalidInput
}

// WithFix sets the fix and returns the error.
func (e *InvalidError) WithFix(format string, args ...any) *InvalidError {
	e.Fix = fmt.Sprintf(format, args...)
	return e
}

// Invalidf returns an InvalidError without a fix.
func Invalidf(file, field, format string, args ...any) *InvalidError {
	return &InvalidError{File: file, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// place is a field of a file, for errors about the fields below this field.
type place struct{ file, field string }

func (p place) invalid(field, fix, format string, args ...any) error {
	return Invalidf(p.file, p.field+"."+field, format, args...).WithFix("%s", fix)
}

// ByRef returns a map from references to objects (as Object.Told returns them). It returns nil for a nil Render.
func (r *Render) ByRef() map[Ref]Object {
	if r == nil {
		return nil
	}
	objects := make(map[Ref]Object, len(r.Objects))
	for _, o := range r.Objects {
		objects[o.Ref()] = o.Told()
	}
	return objects
}
