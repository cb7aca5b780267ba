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

// App is one folder of manifests for one cluster, and the unit of release.
type App struct {
	Name      string // a DNS label, unique in the cluster; see AppGlob.App
	Path      string // slash-separated folder of the kustomization, relative to the repository's root
	Namespace string // namespace for namespaced objects that set no namespace; never empty
	Formerly  string // earlier names of the app, in older commits; newest first, separated by spaces
	Limits    Limits // limits for rendering, from the newest configuration even for an older commit

	// Further allowed namespaces beside Namespace, and allowed cluster-scoped kinds, each separated by spaces.
	Namespaces, ClusterResources string
	ServiceAccount               string // the account that applies the objects, as namespace/name; "" for the default

	Plain     bool // the folder needs no kustomization; without one, Directory selects the manifests
	Directory Directory

	Helm        Helm   // options for rendering the chart in a folder without a kustomization
	Kubernetes  string // Kubernetes version for rendering charts; "": DefaultKubernetes
	APIVersions string // API versions for charts, in addition to Kubernetes' own; separated by spaces

	Workloads string // additional kinds of workloads with staged releases, encoded by PartitionedText

	Variables Variables // values for ${name} in the app's objects

	Links string // templates of addresses for the dashboard, as JSON; key: title

	Decryption string // name of a Secret in Namespace with keys for encrypted files; from the newest configuration
	Sealed     bool   // true: encrypted files stay encrypted, and their Secrets are not applied
}

// Variables are the values for ${name} in rendered objects. Zero turns substitution off.
type Variables struct {
	On     bool   // turns substitution on, even if no variable has a value
	Values string // values in the app's entry, as JSON; "" for none
	Files  string // paths of files with values, one per line; later files win, and the field Values wins over files
}

// NewVariables returns Variables with values and files, and with On set.
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

// Map returns the field Values as a map.
func (v Variables) Map() map[string]string {
	values := map[string]string{}
	if v.Values != "" {
		_ = json.Unmarshal([]byte(v.Values), &values)
	}
	return values
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether a text may name a variable.
func IsVariable(name string) bool { return variable.MatchString(name) }

// BadVariable is the fix for an invalid name of a variable.
const BadVariable = "use letters, digits and _, and no digit first"

// Helm has the options for a chart in an app's folder.
type Helm struct {
	ReleaseName string // Helm's release name; default: the app's name
	ValueFiles  string // paths of values files relative to the folder, one per line; later files win
	Values      string // values that win over the files, as JSON; "" for none
	SkipCRDs    bool   // leave out the objects in the chart's crds folders
}

// Files returns the paths in ValueFiles.
func (h Helm) Files() []string { return lines(h.ValueFiles) }

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// Directory selects manifests of a folder without a kustomization, with Argo CD's field names.
type Directory struct {
	Recurse bool   `json:"recurse"` // also read the folders below
	Include string `json:"include"` // files to read: one pattern, or several as in "{a.yaml,b/*}"; default: all
	Exclude string `json:"exclude"` // files to leave out, in the notation of Include
}

// Commit is one commit of the users' branch.
type Commit struct {
	ID      string    `json:"commit"`            // full hexadecimal id
	Author  string    `json:"author,omitempty"`  // "Ann Lee <ann@example.com>"
	Subject string    `json:"subject,omitempty"` // first line of the commit message
	When    time.Time `json:"when,omitzero"`     // time of the author, in UTC and whole seconds
}

// Short returns the first seven digits of the id.
func (c Commit) Short() string { return ShortID(c.ID) }

// ShortID returns at most seven characters of a commit's id or name.
func ShortID(id string) string { return id[:min(7, len(id))] }

// Render is one app rendered at one commit. It is immutable.
type Render struct {
	App       App
	Commit    Commit
	Objects   []Object          // objects to apply, in this order, and hooks; without Rollout documents
	Specs     []Spec            // one Spec for each staged workload, ordered by workload
	Templates map[Workload]Hash // the template hashes of all workloads, with or without a Rollout document
	Files     []string          // paths of all files that the render read, sorted
	Digest    string            // digest of Specs and Objects (see Object.Told); an equal digest means no change
	Content   Hash              // HashContent of the objects, with encrypted values as in Git; "" if there are Specs
	Hooked    bool              // Objects has hook Jobs, which run before or after releases
	Warnings  []string          // accepted values that are probably mistakes, one sentence each
	Unopened  []string          // paths of the encrypted files that were read without a key, sorted
	Generated []Ref             // objects that gitrollout generates for the routers during releases, sorted
}

// Spec returns the spec of a staged workload. A nil Render has none.
func (r *Render) Spec(w Workload) (Spec, bool) {
	if r == nil {
		return Spec{}, false
	}
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

// Release returns the hash of the staged templates. Without Specs, it is Content if there are hooks, else "".
func (r *Render) Release() Hash {
	if len(r.Specs) == 0 && r.Hooked {
		return r.Content
	}
	return ReleaseHash(r.Staged())
}

// InvalidError is an error in the users' repository. It stops the updates of one app or, in the configuration, of all.
// The text must stay equal while the error lasts, because each new text is committed.
type InvalidError struct {
	// About is the object with the error, if its file is unknown. It is empty for an error in the document being read.
	About Ref    `json:"about,omitzero"`
	File  string `json:"file,omitempty"`  // path in the repository, "" if the error belongs to no single file
	Line  int    `json:"line,omitempty"`  // line of the field in File, 0 if unknown
	Field string `json:"field,omitempty"` // such as spec.strategy.canary.steps[1].setWeight, "" without a field
	Msg   string `json:"message"`         // the problem, with the invalid value
	Fix   string `json:"fix,omitempty"`   // how to fix the error; "" if Msg says how

	Reason HeldReason `json:"reason,omitempty"` // why the app is not updated; default HeldInvalidInput

	Also string `json:"also,omitempty"` // the texts of further errors, "" for none
}

// ProblemOf returns an error's place, text and fix. The commands "plan" and "validate" print these as JSON.
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

// mostAlso bounds Also in bytes: And adds no error to a longer text.
const mostAlso, alsoText = 4000, "; also "

// And adds another error's text to e.Also, and returns e. If either is nil, it returns the other.
func (e *InvalidError) And(more *InvalidError) *InvalidError {
	switch {
	case e == nil:
		return more
	case more != nil && len(e.Also) < mostAlso:
		e.Also += alsoText + more.Error()
	}
	return e
}

// Below prefixes a parent's path to Field, and to each field in Also.
func (e *InvalidError) Below(field string) {
	e.Field = strings.TrimSuffix(field+"."+e.Field, ".")
	e.Also = strings.ReplaceAll(e.Also, alsoText, alsoText+field+".")
}

// ReasonOf returns why an app with this error is not updated.
func ReasonOf(err error) HeldReason {
	if invalid, is := errors.AsType[*InvalidError](err); is && invalid.Reason != "" {
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

// place is a field of a file, and the prefix of errors about nested fields.
type place struct{ file, field string }

func (p place) invalid(field, fix, format string, args ...any) error {
	return Invalidf(p.file, p.field+"."+field, format, args...).WithFix("%s", fix)
}

// ByRef returns the objects by reference, as Object.Told. For a nil Render, it is nil.
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
