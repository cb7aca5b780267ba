package traffic

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// anyObject is any other router, described by the paths of its weight fields. The object in Git must have these fields,
// because a release with a misspelt path would otherwise advance without requests. A third weighted backend is not
// detected.
var anyObject = router{
	kind: "object", title: "Any other, by paths", since: "any",
	features: features{splits: can, anyTotal: can, reports: can},
	list:     true,
	config:   func() editor { return &objectConfig{} },
}

type objectConfig []objectEntry

// objectEntry has the paths of an object's fields, in the syntax of the type path. In a path, {{.stable}} and
// {{.canary}} are the versions' current Services. {{.name}} and {{.namespace}} are from the Rollout.
type objectEntry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace,omitempty"` // default: the Rollout's

	CanaryWeight  string `json:"canaryWeight,omitempty"`  // path of the canary's weight
	StableWeight  string `json:"stableWeight,omitempty"`  // path of stable's weight, which is maxTrafficWeight minus the canary's weight
	Format        string `json:"format,omitempty"`        // of weights: int (default), string ("20") or percent
	CanaryHash    string `json:"canaryHash,omitempty"`    // path of the pod hash, which is removed between releases
	StableHash    string `json:"stableHash,omitempty"`    //
	CanaryService string `json:"canaryService,omitempty"` // path of the Service name, because pingPong swaps the names
	StableService string `json:"stableService,omitempty"`

	Verify *objectVerify `json:"verify,omitempty"` // if nil, the object's status is not checked
}

type objectVerify struct {
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (c *objectConfig) bySubset() bool {
	return len(*c) > 0 && !slices.ContainsFunc(*c, func(e objectEntry) bool { return e.CanaryHash == "" })
}

func (c *objectConfig) rename(to func(kind, name string) string) {
	for i, e := range *c {
		if e.Name != "" {
			(*c)[i].Name = to(e.Kind, e.Name)
		}
	}
}

func (e objectEntry) ref(namespace string) rollout.Ref {
	ref := rollout.Object{"apiVersion": e.APIVersion, "kind": e.Kind}.Ref()
	ref.Namespace, ref.Name = cmp.Or(e.Namespace, namespace), e.Name
	return ref
}

func (c *objectConfig) watched(namespace string) (refs []rollout.Ref) {
	for _, e := range *c {
		if e.Verify != nil {
			refs = append(refs, e.ref(namespace))
		}
	}
	return refs
}

func (c *objectConfig) overlay(o *Objects, r Route) error {
	if len(*c) == 0 {
		return misfit("object", "names no object").WithFix("give apiVersion, kind, name and canaryWeight")
	}
	for i, e := range *c {
		if err := e.overlay(o, fmt.Sprintf("object[%d]", i), r); err != nil {
			return err
		}
	}
	return nil
}

func (e objectEntry) overlay(o *Objects, field string, r Route) error {
	for _, required := range []struct{ field, value string }{
		{"apiVersion", e.APIVersion}, {"kind", e.Kind}, {"name", e.Name},
	} {
		if required.value == "" {
			return misfit(field+"."+required.field, "is missing").WithFix("give the object's")
		}
	}
	canary, err := e.weight(field, r.Weight, r.Max)
	if err != nil {
		return err
	}
	stable, _ := e.weight(field, r.rest(), r.Max)
	ref := e.ref(r.Namespace)
	edited, ok := o.Edit(ref)
	if !ok {
		return missing(field+".name", ref)
	}
	writes := 0
	for _, w := range []struct {
		field, path string
		value       any
		optional    bool // may be absent; the value "" removes the field
	}{
		{"canaryService", e.CanaryService, r.Canary, false}, {"stableService", e.StableService, r.Stable, false},
		{"canaryWeight", e.CanaryWeight, canary, false}, {"stableWeight", e.StableWeight, stable, false},
		{"canaryHash", e.CanaryHash, r.CanaryPods, true}, {"stableHash", e.StableHash, r.StablePods, true},
	} {
		if w.path == "" {
			continue
		}
		writes++
		if err := objectWrite(o, edited, field+"."+w.field, w.path, w.value, w.optional, r); err != nil {
			return err
		}
	}
	if writes == 0 {
		return misfit(field, "has neither canaryWeight nor stableWeight").WithFix("give one or both")
	}
	return e.Verify.check(field + ".verify")
}

func (v *objectVerify) check(field string) error {
	if v == nil {
		return nil
	}
	p, err := objectPath(field+".path", v.Path, Route{})
	switch {
	case objectVariable.MatchString(v.Path): // the route is unknown when the status is checked
		return misfit(field+".path", "%q has a variable", v.Path).WithFix("write a path without variables")
	case err != nil:
		return err
	case p[0].field != "status":
		return misfit(field+".path", "%q is not below status", v.Path).WithFix("write it as in status.currentStatus")
	case plain(v.Value) == "":
		return misfit(field+".value", "is missing").WithFix("give the value that the field has once the weights are in force")
	}
	return nil
}

func (e objectEntry) weight(field string, weight, all int) (any, error) {
	switch e.Format {
	case "", "int":
		return int64(weight), nil
	case "string":
		return strconv.Itoa(weight), nil
	case "percent":
		return strconv.FormatFloat(100*float64(weight)/float64(all), 'f', -1, 64) + "%", nil
	}
	return nil, misfit(field+".format", "is %q", e.Format).WithFix("use int, string or percent")
}

func objectWrite(o *Objects, object rollout.Object, field, written string, value any, optional bool, r Route) error {
	ref := object.Ref()
	p, err := objectPath(field, written, r)
	if err != nil {
		return err
	}
	parents, last, err := p.parents(map[string]any(object))
	if err != nil {
		return misfit(field, "in %s, %s", ref, err).WithFix("correct the path, or add the missing field to the object")
	}
	for _, parent := range parents {
		m := mapping(parent.value)
		if _, there := m[last.field]; !there && !optional {
			return misfit(field, "in %s, %s does not exist: there is no field %s", ref, p, last.field).
				WithFix("correct the path, or write the field in Git too, with 0 for the canary's weight")
		}
		if err := o.Claim(ref, strings.TrimPrefix(parent.path+last.text, "."), r); err != nil {
			return err
		}
		if value == "" && optional {
			delete(m, last.field)
		} else {
			m[last.field] = value
		}
	}
	return nil
}

var objectVariable = regexp.MustCompile(`\{\{\s*\.?(\w*)\s*\}\}`)

func objectPath(field, written string, r Route) (path, error) {
	names := map[string]string{"stable": r.Stable, "canary": r.Canary, "name": r.Name, "namespace": r.Namespace}
	unknown := ""
	filled := objectVariable.ReplaceAllStringFunc(written, func(s string) string {
		name := objectVariable.FindStringSubmatch(s)[1]
		value, ok := names[name]
		if !ok {
			unknown = s
		}
		return value
	})
	if unknown != "" {
		return nil, misfit(field, "%s is not known", unknown).
			WithFix("use {{.stable}}, {{.canary}}, {{.name}} or {{.namespace}}")
	}
	p, err := parsePath(filled)
	if err != nil {
		return nil, misfit(field, "%q is not a valid path: %s", written, err).
			WithFix(`write it as in spec.routes[?(@.name=="main")].backends[0].weight`)
	}
	return p, nil
}

// verify compares the status field at Verify.Path with Verify.Value. If the status or the field's parent has an
// observedGeneration, this generation must be current.
func (c *objectConfig) verify(ref rollout.Ref, route rollout.ObservedRoute) Verdict {
	for _, e := range *c {
		if e.Verify == nil || e.ref(ref.Namespace) != ref {
			continue
		}
		p, err := objectPath("verify.path", e.Verify.Path, Route{})
		if err != nil {
			return Verdict{Text: err.Error()}
		}
		status := map[string]any{"status": route.Status}
		places, err := p.find(status)
		if err != nil {
			return Verdict{Text: "does not yet report that the weights are in force: " + err.Error()}
		}
		parents, _ := p[:len(p)-1].find(status)
		for _, at := range append(parents, place{value: route.Status}) {
			if isOlder(mapping(at.value), route) {
				return Verdict{Text: "has a status of an older generation"}
			}
		}
		for _, at := range places {
			if want := plain(e.Verify.Value); plain(at.value) != want {
				return Verdict{Text: fmt.Sprintf("has %s %q and not %q", p, plain(at.value), want)}
			}
		}
	}
	return Verdict{Taken: true}
}
