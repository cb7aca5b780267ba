package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// maxDocument is in bytes. A state with 2,000 objects has about 150 kB.
const maxDocument = 4 << 20

func decode[T any](file, kind string, data []byte) (*T, error) {
	if len(data) > maxDocument {
		return nil, Invalidf(file, "", "is %d bytes, more than the %d that a %s may have", len(data), maxDocument, kind)
	}
	raw, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, Invalidf(file, "", "is not valid YAML: %s", oneLine(err))
	}
	if manyDocuments(data) {
		return nil, Invalidf(file, "", "has more than one document").WithFix("keep one")
	}
	document, err := FromJSON[any](raw)
	if err != nil {
		return nil, Invalidf(file, "", "%s", oneLine(err))
	}
	head, isMapping := document.(map[string]any)
	if !isMapping && document != nil {
		return nil, Invalidf(file, "", "is not a mapping with apiVersion and kind")
	}
	if err := CheckVersion(file, kind, Object(head).APIVersion()); err != nil {
		return nil, err
	}
	if got := Object(head).Kind(); got != kind {
		return nil, Invalidf(file, "kind", "%q is not %s", got, kind)
	}
	r, into := Reader{Hide: kind == "Config"}, new(T)
	if r.Read("", document, into); r.Err != nil {
		r.Err.File = file
		return nil, r.Err
	}
	return into, nil
}

// manyDocuments finds a second document, which the YAML parser would ignore.
func manyDocuments(data []byte) bool {
	content, split := false, false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "---" || line == "..." || strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "---\t") {
			line, split = line[3:], split || content
		}
		line = strings.TrimLeft(line, " \t")
		if line == "" || line[0] == '#' || (line[0] == '%' && !content) {
			continue
		}
		if split {
			return true
		}
		content = true
	}
	return false
}

func oneLine(err error) string {
	return YAMLText(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
}

func encode(v any) ([]byte, error) {
	out, err := yaml.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return out, nil
}

// StatePath returns the path of an app's state file. State files are spread over 256 folders, because each commit
// stores a changed folder's whole file list.
func StatePath(app string) string {
	return "apps/" + Digest([]byte(app), 1) + "/" + app + ".yaml"
}

// ClusterPath is the file that identifies the state branch's cluster.
const ClusterPath = "cluster.yaml"

// Cluster is cluster.yaml.
type Cluster struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`    // ClusterState
	Cluster    string `json:"cluster"` // folder below .gitrollout/
	UID        string `json:"uid"`     // uid of the namespace kube-system, or NAMESPACE/UID of another namespace
	Source     Source `json:"source"`
	Writer     Writer `json:"writer"`
}

// Writer is the process that commits to the state branch. Each new writer increments Epoch.
type Writer struct {
	ID    string `json:"id"` // host or pod
	Epoch int    `json:"epoch"`
}

// Source names the users' repository and branch.
type Source struct {
	Repo   string `json:"repo"` // URL without credentials
	Branch string `json:"branch"`
}

// ParseCluster reads cluster.yaml.
func ParseCluster(data []byte) (*Cluster, error) {
	return decode[Cluster](ClusterPath, "ClusterState", data)
}

// Encode returns the bytes of cluster.yaml.
func (c Cluster) Encode() ([]byte, error) {
	c.APIVersion, c.Kind = cmp.Or(c.APIVersion, AlphaVersion), "ClusterState"
	return encode(c)
}

// ParseState reads a state file strictly. An edit by hand is an InvalidError.
func ParseState(file string, data []byte) (*State, error) {
	s, err := ParseEditedState(file, data)
	if err != nil {
		return nil, err
	}
	seal := s.Seal
	s.Seal = ""
	if want, err := s.seal(); err != nil || seal != want {
		return nil, Invalidf(file, "seal", "does not match the rest: the file was edited by hand").
			WithFix("revert that commit on the state branch, or accept the edit with gitrollout state repair %s", s.App)
	}
	return s, nil
}

// ParseEditedState is like ParseState, but does not check the seal.
func ParseEditedState(file string, data []byte) (*State, error) {
	s, err := decode[State](file, "RolloutState", data)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(Phases(), s.Phase) {
		return nil, Invalidf(file, "phase", "%q is not a phase", s.Phase)
	}
	inFlight := s.Phase != Healthy && s.Phase != Degraded && s.Phase != Pending
	switch {
	case s.App == "":
		return nil, Invalidf(file, "app", "is missing")
	case s.Serial < 0:
		return nil, Invalidf(file, "serial", "%d is negative", s.Serial)
	case s.Written < 0 || s.Written > s.Serial:
		return nil, Invalidf(file, "written", "%d is not within 0..%d", s.Written, s.Serial)
	case inFlight && s.Release == nil:
		return nil, Invalidf(file, "release", "is missing while the phase is %s", s.Phase)
	case s.Phase == Aborting && (s.Rollback == nil || s.Stable == nil):
		return nil, Invalidf(file, "retreat", "must be set together with stable while the phase is %s", s.Phase)
	case s.Draining != nil && (s.Stable == nil || s.Release != nil):
		return nil, Invalidf(file, "former", "is set without stable, or together with release")
	case s.Watch != nil && (s.Phase != Healthy || s.Stable == nil || s.Release != nil):
		return nil, Invalidf(file, "watch", "is allowed only with stable, without release and in phase Healthy: "+
			"the phase is %s", s.Phase)
	case s.Phase == Degraded && s.Stable == nil:
		return nil, Invalidf(file, "stable", "is missing while the phase is %s", s.Phase)
	}
	for i, p := range s.Progress {
		if p.Step < 0 || p.Step > p.Of {
			return nil, Invalidf(file, fmt.Sprintf("progress[%d].step", i), "%d is not within 0..%d", p.Step, p.Of)
		}
	}
	return s, nil
}

// Encode returns the state file with its seal. Equal states have equal bytes: keys are sorted, and times are in UTC and
// whole seconds, except a wait's start (NextTenth).
func (s State) Encode() ([]byte, error) {
	seal, err := s.seal()
	if err != nil {
		return nil, err
	}
	s.APIVersion, s.Kind, s.Seal = cmp.Or(s.APIVersion, AlphaVersion), "RolloutState", seal
	return encode(s)
}

// seal returns a digest that detects edits by hand. Only signed commits prevent forgery.
func (s State) seal() (string, error) {
	s.APIVersion, s.Kind, s.Seal = cmp.Or(s.APIVersion, AlphaVersion), "RolloutState", ""
	data, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode the state of %s: %w", s.App, err)
	}
	return "s1-" + Digest(append([]byte("gitrollout state\n"), data...), 8), nil
}

// Second returns a time in UTC and whole seconds, as in Git and Kubernetes.
func Second(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// NextTenth rounds a wait's start up to a tenth of a second. Whole seconds would lengthen short pauses.
func NextTenth(t time.Time) time.Time {
	const tenth = 100 * time.Millisecond
	return t.UTC().Add(tenth - 1).Truncate(tenth)
}

// Soonest returns the earlier time; zero means none.
func Soonest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Later returns the later time.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
