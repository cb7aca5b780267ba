package traffic

import (
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

const ingressGroup = "networking.k8s.io"

func ingressRef(namespace, name string) rollout.Ref {
	return rollout.Ref{Group: ingressGroup, Kind: "Ingress", Namespace: namespace, Name: name}
}

type namedIngress struct{ field, name string }

func ingressNames(one, name, many string, names []string) (all []namedIngress, err error) {
	switch {
	case name != "" && len(names) > 0:
		return nil, misfit(many, "conflicts with %s", one).WithFix("keep only one")
	case name != "":
		return []namedIngress{{one, name}}, nil
	case len(names) == 0:
		return nil, misfit("", "names no Ingress").WithFix("give %s: NAME, or %s", one, many)
	}
	for i, name := range names {
		all = append(all, namedIngress{fmt.Sprintf("%s[%d]", many, i), name})
	}
	return all, nil
}

type ingressPath struct {
	rule, index int
	host        string
	path        map[string]any // part of the object, not a copy
}

func ingressPaths(object rollout.Object) (all []ingressPath) {
	for i, item := range list(object.Map("spec")["rules"]) {
		rule := mapping(item)
		for j, p := range list(mapping(rule["http"])["paths"]) {
			all = append(all, ingressPath{i, j, text(rule["host"]), mapping(p)})
		}
	}
	return all
}

func (p ingressPath) backend() map[string]any { return mapping(mapping(p.path["backend"])["service"]) }

func (p ingressPath) service() string { return text(p.backend()["name"]) }

func (p ingressPath) place() string {
	return fmt.Sprintf("spec.rules[%d].http.paths[%d]", p.rule, p.index)
}

func (p ingressPath) kind() string { return text(p.path["pathType"]) }

func (p ingressPath) text() string { return text(p.path["path"]) }

func carried(kind string, routes []rollout.ManagedRoute) error {
	for _, route := range routes {
		if field, why := Unsupported(kind, route); why != "" {
			place := route.Name
			if field != "" {
				place += ", matches" + field
			}
			why, others, _ := strings.Cut(why, "; ")
			return misfit("", "the steps' route %s: %s", place, why).
				WithFix("%s", "change the step, or use another router; "+others)
		}
	}
	return nil
}
