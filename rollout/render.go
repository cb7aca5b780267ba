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

// App is one kustomization for one cluster: the unit of release.
type App struct {
	Name      string // unique in the cluster; a DNS label: what the glob's wildcards matched, joined by "-"
	Path      string // slash-separated folder of the kustomization, relative to the repository's root
	Namespace string // for namespaced objects that name none; never empty
	Formerly  string // names that it had before, the last one first, with spaces between: older commits have it by them
	Limits    Limits // of rendering it; those of now, also for older commits

	// What of the cluster it may touch besides its Namespace, with spaces between; see MayWriteIn and MayHave.
	Namespaces, ClusterResources string
	ServiceAccount               string // namespace/name, as which its objects are written; "" for the default

	Plain     bool // without a kustomization it is the manifests in its folder, as Directory says
	Directory Directory

	Helm        Helm   // of the chart in its folder, if that has one and no kustomization
	Kubernetes  string // the version that charts are told; "" for DefaultKubernetes
	APIVersions string // that charts are told besides those that Kubernetes has by itself, with spaces between

	Workloads string // kinds that can be moved in stages besides those that are built in, as PartitionedText has them

	Variables Variables // of its objects

	Decryption string // the Secret in its Namespace with the keys of its files; those of now, also for older commits
	Sealed     bool   // encrypted files are not opened, and the Secrets that are made of them stay as they are
}

// Variables are what ${name} stands for in the objects that an app was built to. The zero value leaves them as they
// are.
type Variables struct {
	On     bool   // objects are read for variables, be there one or not
	Values string // those of the app's entry, as JSON; "" for none
	Files  string // with more of them, from the repository's root, with line ends between; later ones win, Values most
}

// NewVariables are these values, and those in files.
func NewVariables(values map[string]string, files []string) Variables {
	v := Variables{On: true, Files: strings.Join(files, "\n")}
	if len(values) > 0 {
		data, _ := json.Marshal(values) // texts always encode
		v.Values = string(data)
	}
	return v
}

// From are the Files.
func (v Variables) From() []string { return lines(v.Files) }

// Map are the Values.
func (v Variables) Map() map[string]string {
	values := map[string]string{}
	if v.Values != "" {
		_ = json.Unmarshal([]byte(v.Values), &values) // NewVariables has made it
	}
	return values
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// IsVariable reports whether a text is the name of a variable.
func IsVariable(name string) bool { return variable.MatchString(name) }

// BadVariable is what to do about a name that is none.
const BadVariable = "use letters, digits and _, and no digit first"

// Helm says how the chart in an app's folder is rendered.
type Helm struct {
	ReleaseName string // default: the app's name
	ValueFiles  string // relative to the folder, the last one wins, with line ends between
	Values      string // over those, as JSON; "" for none
	SkipCRDs    bool   // leave out the objects in crds folders
}

// Files are the ValueFiles.
func (h Helm) Files() []string { return lines(h.ValueFiles) }

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// Directory says which manifests of a folder without a kustomization are an app. The names are Argo CD's.
type Directory struct {
	Recurse bool   `json:"recurse"` // those in folders below, too
	Include string `json:"include"` // only what this matches: a pattern, or several as in {a.yaml,b/*}; default: all
	Exclude string `json:"exclude"` // nothing that this matches
}

// Commit is one commit of the users' branch, as far as releases need it.
type Commit struct {
	ID      string    `json:"commit"`            // full hexadecimal id
	Author  string    `json:"author,omitempty"`  // "Ann Lee <ann@example.com>"
	Subject string    `json:"subject,omitempty"` // first line of the message
	When    time.Time `json:"when,omitzero"`     // author time, UTC, whole seconds
}

// Short returns the first seven digits, as git prints them.
func (c Commit) Short() string { return ShortID(c.ID) }

// ShortID returns the first seven digits of a commit id.
func ShortID(id string) string { return id[:min(7, len(id))] }

// Render is one app as of one commit, and it is immutable.
type Render struct {
	App       App
	Commit    Commit
	Objects   []Object          // without Rollout documents, in the order in which to apply them
	Specs     []Spec            // one for each staged workload, ordered by workload
	Templates map[Workload]Hash // the template hash of every workload, staged or not
	Files     []string          // sorted paths of every file that the build read
	Digest    string            // of Objects as they are told and Specs: equal digests have nothing to apply
	Content   Hash              // without Specs, of all objects, with encrypted values as Git has them; otherwise ""
	Hooked    bool              // Jobs that run around releases are among Objects
	Warnings  []string          // what is accepted but unlikely to be meant, one sentence each
	Unopened  []string          // sorted paths of the encrypted files that were read without a key
}

// Spec returns the spec of a staged workload.
func (r *Render) Spec(w Workload) (Spec, bool) {
	return Find(r.Specs, func(s Spec) bool { return s.Workload == w })
}

// Staged returns the template hash of each staged workload.
func (r *Render) Staged() map[Workload]Hash {
	staged := make(map[Workload]Hash, len(r.Specs))
	for _, s := range r.Specs {
		staged[s.Workload] = r.Templates[s.Workload]
	}
	return staged
}

// Release returns the identity of the release that this render is: of what is staged, or of all that it has if nothing
// is and Jobs run around releases, and "" otherwise.
func (r *Render) Release() Hash {
	if len(r.Specs) == 0 && r.Hooked {
		return r.Content
	}
	return ReleaseHash(r.Staged())
}

// InvalidError says what in the users' repository is wrong, where, and what to do about it. It holds one app (or, for
// the configuration, the cluster) as it is, and its text is part of the app's state, so it contains nothing that
// changes from pass to pass.
type InvalidError struct {
	// About is the object, until somebody has said which file it is in; none: the document that is read.
	About Ref    `json:"about,omitzero"`
	File  string `json:"file,omitempty"`  // path in the repository, "" if no single file is to blame
	Field string `json:"field,omitempty"` // such as spec.strategy.canary.steps[1].setWeight, "" if none
	Msg   string `json:"message"`         // what is wrong, with the value
	Fix   string `json:"fix,omitempty"`   // what to do, "" if the message says it

	Reason HeldReason `json:"reason,omitempty"` // why it holds an app; default HeldInvalidInput

	Also string `json:"also,omitempty"` // the same of further fields that cannot be there, "" for none
}

// ProblemOf is an error about a user's repository as what plan and validate find: data, to which fields are only ever
// added, and of which they tell where it is, what is wrong and what to do.
func ProblemOf(err error) *InvalidError {
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return &InvalidError{File: invalid.File, Field: invalid.Field, Msg: invalid.Msg, Fix: invalid.Fix, Also: invalid.Also}
	}
	return &InvalidError{Msg: err.Error()}
}

// IsInvalid reports whether an error is about what is in a user's repository, of which trying again makes nothing else.
func IsInvalid(err error) bool {
	var invalid *InvalidError
	return errors.As(err, &invalid)
}

// Error returns "file: field: message; fix", and the same of further fields.
func (e *InvalidError) Error() string {
	var about string
	if e.About != (Ref{}) {
		about = e.About.String()
	}
	parts := slices.DeleteFunc([]string{e.File, about, e.Field, e.Msg}, func(s string) bool { return s == "" })
	text := strings.Join(parts, ": ")
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text + e.Also
}

// ReasonOf is why an error about Git holds an app.
func ReasonOf(err error) HeldReason {
	var invalid *InvalidError
	if errors.As(err, &invalid) && invalid.Reason != "" {
		return invalid.Reason
	}
	return HeldInvalidInput
}

// WithFix adds what to do about it.
func (e *InvalidError) WithFix(format string, args ...any) *InvalidError {
	e.Fix = fmt.Sprintf(format, args...)
	return e
}

// Invalidf makes an InvalidError without a fix.
func Invalidf(file, field, format string, args ...any) *InvalidError {
	return &InvalidError{File: file, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// place is a field of a file that has others below it.
type place struct{ file, field string }

func (p place) invalid(field, fix, format string, args ...any) error {
	return Invalidf(p.file, p.field+"."+field, format, args...).WithFix("%s", fix)
}

// ByRef are the objects by what they are, as they are told; of a nil Render none.
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
