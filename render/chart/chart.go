// Package chart renders Helm charts as "helm template" does, without cluster, environment, network or file system.
// Except with Drawn, the time and random values are constants, and Rendered.ByChance lists the objects that depend on
// them. Callers limit memory and time.
package chart

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"gitrollout.dev/gitrollout/rollout"
)

// Release holds the settings for rendering a chart.
type Release struct {
	Name, Namespace string
	Values          map[string]any // merged over the chart's values
	KubeVersion     string         // default rollout.DefaultKubernetes
	APIVersions     []string       // group/version or group/version/Kind, besides Kubernetes' own
	CRDs            bool           // include the crds folders
	Draw            Draw
}

// Draw selects the results of functions such as now and randAlphaNum. In Helm, the results differ at each call.
type Draw int

// Fixed and Other render objects that are never applied to a cluster.
const (
	Fixed Draw = iota // the constants of the first render
	Other             // other constants, to find objects that depend on them (Rendered.ByChance)
	Drawn             // random results as in Helm
)

// Document is one rendered object.
type Document struct {
	Source string // the template's path
	Text   string // YAML, without a separator
	Hook   string // Helm's hook events, comma-separated; "" if not a hook
}

// Rendered is a rendered chart.
type Rendered struct {
	Documents []Document // CRDs, then objects in Helm's install order, then hooks
	Warnings  []string
	ByChance  []Chance
}

// Chance is an object whose content differs at each render.
type Chance struct {
	Kind, Name string // "" if the text is not an object
	Hook       string
	Why        *rollout.InvalidError
}

// Render renders a chart. Its errors are InvalidErrors, with files relative to the chart's folder.
func Render(files []File, r Release) (*Rendered, error) {
	if chartutil.ValidateReleaseName(r.Name) != nil {
		return nil, &rollout.InvalidError{File: ".", Msg: fmt.Sprintf("the release name %q is not valid", r.Name),
			Fix: "use at most 53 lower-case letters, digits, - and ."}
	}
	c, err := load(files)
	if err != nil {
		return nil, err
	}
	warnings := localSchemas(c)
	caps, err := capabilities(r)
	if err != nil {
		return nil, err
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return nil, rollout.Invalidf(Main, "kubeVersion", "%s does not fit Kubernetes %s", want, caps.KubeVersion.Version).
			WithFix("set kubernetes.version in the cluster's config.yaml to the cluster's version")
	}
	if err := chartutil.ProcessDependencies(c, r.Values); err != nil {
		return nil, invalid(Main, err)
	}
	options := common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	run := func(f *functions) ([]Document, error) {
		// Templates may change the values, so each render gets a copy.
		values, err := util.ToRenderValues(c, r.Values, options, caps)
		if err != nil {
			return nil, &rollout.InvalidError{File: ".", Msg: text(err), Fix: "change the values"}
		}
		return documents(c, values, f)
	}
	first := &functions{called: map[string]bool{}, draw: r.Draw}
	docs, err := run(first)
	if err != nil {
		return nil, err
	}
	var chances []Chance
	if len(first.called) > 0 && r.Draw == Fixed {
		other, err := run(&functions{called: map[string]bool{}, draw: Other})
		if err != nil {
			return nil, err
		}
		if chances, err = first.differences(c, docs, other); err != nil {
			return nil, err
		}
	}
	if r.CRDs {
		crds := rollout.Mapped(c.CRDObjects(), func(crd helm.CRD) Document {
			return Document{Source: crd.Filename, Text: string(crd.File.Data)}
		})
		docs = append(crds, docs...)
	}
	return &Rendered{Documents: docs, Warnings: warnings, ByChance: chances}, nil
}

func capabilities(r Release) (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(cmp.Or(r.KubeVersion, rollout.DefaultKubernetes))
	if err != nil {
		return nil, &rollout.InvalidError{File: ".", Msg: fmt.Sprintf("%q is not a version of Kubernetes", r.KubeVersion),
			Fix: "write 1.36.3 or the like"}
	}
	caps := common.DefaultCapabilities.Copy()
	caps.KubeVersion = *version
	caps.APIVersions = slices.Concat(caps.APIVersions, r.APIVersions)
	return caps, nil
}

func documents(c *helm.Chart, values common.Values, f *functions) ([]Document, error) {
	files, err := engine.Engine{CustomTemplateFuncs: f.table()}.Render(c, values)
	if err != nil {
		return nil, invalid(".", err)
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return path.Base(name) == "NOTES.txt" })
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, invalid(".", err)
	}
	docs := rollout.Mapped(manifests, func(m releaseutil.Manifest) Document {
		return Document{Source: m.Name, Text: m.Content}
	})
	for _, h := range hooks {
		var events []string
		for _, e := range h.Events {
			events = append(events, e.String())
		}
		docs = append(docs, Document{Source: h.Path, Text: h.Manifest, Hook: strings.Join(events, ",")})
	}
	return docs, nil
}

func invalid(file string, err error) error {
	if known := new(rollout.InvalidError); errors.As(err, &known) {
		return known
	}
	return &rollout.InvalidError{File: file, Msg: "Helm: " + text(err)}
}

// Substitute begins a substitute of an encrypted value (sops.Seal). Substitutes stay in errors, because the errors of
// two builds tell whether the result depends on the value.
const Substitute = "Z2l0cm9sbG91dC1zZWFsZWQ6"

// value matches a chart's value in an error of a schema, of the function tpl, or of a parser of Go. violations matches
// the lines of a schema's error, which are in random order.
var (
	value = regexp.MustCompile(`'(?:[^'\\]|\\.)*'( does not match| is not valid)` + "|`.*`|" +
		`((?:parse|parse template|parsing|parsing time|execution for|constraint:|ParseAddr\() ?)"(?:[^"\\]|\\.)*"`)
	violations = regexp.MustCompile(`(?m)(?:^ *- .*\n)+`)
)

func text(err error) string {
	inOrder := violations.ReplaceAllStringFunc(err.Error(), func(lines string) string {
		return strings.Join(slices.Sorted(strings.Lines(lines)), "")
	})
	line := rollout.YAMLText(inOrder)
	if strings.Contains(line, Substitute) {
		return line
	}
	return value.ReplaceAllString(line, "$2…$1")
}

// ReleaseName renders a text as helm's --name-template does. A name with a random part is an error.
func ReleaseName(text string) (string, error) {
	const file = "templates/name"
	c := &helm.Chart{Metadata: &helm.Metadata{Name: "release"},
		Templates: []*common.File{{Name: file, Data: []byte(text)}}}
	f := &functions{called: map[string]bool{}}
	out, err := engine.Engine{CustomTemplateFuncs: f.table()}.Render(c, common.Values{})
	if err != nil {
		return "", invalid(".", err)
	}
	if len(f.called) > 0 {
		return "", errors.New("would differ at each render")
	}
	return out["release/"+file], nil
}
