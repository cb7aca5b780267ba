package traffic

import (
	"errors"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Route is the current traffic setting of one Rollout.
type Route struct {
	Name      string `json:"name"` // of the Rollout document
	Namespace string `json:"namespace"`

	// The versions' current Services; "" only if not needed.
	Stable string `json:"stable,omitempty"`
	Canary string `json:"canary,omitempty"`

	// The values of PodLabel on each version's pods during a release, "" for all.
	StablePods string `json:"stablePods,omitempty"`
	CanaryPods string `json:"canaryPods,omitempty"`
	PodLabel   string `json:"podLabel,omitempty"` // "" for rollout.LabelPodHash

	Weight  int                    `json:"weight"`            // of Max, for the canary
	Max     int                    `json:"max"`               // the weight that is all traffic
	Managed []rollout.ManagedRoute `json:"managed,omitempty"` // in the order of their precedence
	Sticky  *rollout.Sticky        `json:"sticky,omitempty"`
	Active  bool                   `json:"active,omitempty"` // during a release: generated objects exist
}

// cookie returns the cookie that keeps users at the canary, different by a known pod hash.
func (r Route) cookie() string {
	if r.CanaryPods == "" {
		return r.Sticky.Cookie
	}
	return r.Sticky.Cookie + "-" + r.CanaryPods
}

// rest returns the stable version's weight.
func (r Route) rest() int { return r.Max - r.Weight }

// Parse reads one router's block of trafficRouting strictly. Rename, which may be nil, returns kustomize's name for
// an object. InvalidErrors have a Field below trafficRouting.
func Parse(kind string, raw any, rename func(kind, name string) string) (rollout.Router, error) {
	r, ok := find(kind)
	if !ok {
		return rollout.Router{}, misfit(kind, "is not a router that gitrollout knows").
			WithFix("use one of %s", strings.Join(Kinds(), ", "))
	}
	e, err := decode(r, raw)
	if err != nil {
		return rollout.Router{}, err
	}
	if rename != nil {
		e.names(func(kind string, name *string) {
			if *name != "" {
				*name = rename(kind, *name)
			}
		})
	}
	return rollout.Router{Kind: kind, Config: e}, nil
}

func decode(r router, raw any) (editor, error) {
	if _, isList := raw.([]any); r.list && !isList && raw != nil {
		raw = []any{raw}
	}
	e := r.config()
	if err := rollout.Read(r.kind, raw, e); err != nil {
		return nil, err
	}
	return e, nil
}

// Overlay applies a route to the objects for each router, or returns an InvalidError, as found by Stages before.
func Overlay(o *Objects, routers []rollout.Router, r Route) error {
	for _, service := range []string{r.Stable, r.Canary} {
		if service == "" {
			continue
		}
		ref := rollout.Ref{Kind: "Service", Namespace: r.Namespace, Name: service}
		if err := o.Claim(ref, "spec.selector", r); err != nil {
			return err
		}
	}
	for _, configured := range routers {
		e, ok := configured.Config.(editor)
		if !ok { // Parse has not made it
			return misfit(configured.Kind, "is not a router that gitrollout knows")
		}
		if err := e.overlay(o, r); err != nil {
			var invalid *rollout.InvalidError
			own := errors.As(err, &invalid) && invalid.About == (rollout.Ref{})
			if own && !strings.HasPrefix(invalid.Field, configured.Kind) {
				invalid.Field = strings.TrimSuffix(configured.Kind+"."+invalid.Field, ".")
			}
			return err
		}
	}
	return nil
}

// NeedsServices reports whether a router splits between two Services, not subsets.
func NeedsServices(r rollout.Router) bool {
	s, can := r.Config.(interface{ bySubset() bool })
	return !can || !s.bySubset()
}

// NeedsHundred returns why a router requires a total weight of 100, "" if not.
func NeedsHundred(kind string) string {
	if r, ok := find(kind); ok && r.features[anyTotal] == 0 {
		return fmt.Sprintf("%s takes percentages; routers that take weights of any size: %s", r.name(), able(anyTotal, can))
	}
	return ""
}

// Watched returns the objects whose status reports the routers' acceptance, in the Rollout's namespace.
func Watched(routers []rollout.Router, namespace string) []rollout.Ref {
	var refs []rollout.Ref
	for _, configured := range routers {
		if e, reports := configured.Config.(reporter); reports {
			refs = append(refs, e.watched(namespace)...)
		}
	}
	return refs
}

// Verdict is a router's status for one object.
type Verdict struct {
	Taken    bool   // it is in force, or the router does not report it
	Rejected bool   // the router rejects it, for the reason in Text
	Text     string // why it is not in force
}

// Verify returns the routers' verdict: the first object not in force, rejected before late.
func Verify(routers []rollout.Router, namespace string, seen map[rollout.Ref]rollout.ObservedRoute) Verdict {
	verdict := Verdict{Taken: true}
	for _, configured := range routers {
		e, reports := configured.Config.(reporter)
		if !reports {
			continue
		}
		for _, ref := range e.watched(namespace) {
			route, exists := seen[ref]
			if !exists || len(route.Status) == 0 {
				continue // it reports nothing, as some routers never do
			}
			v := e.verify(ref, route)
			v.Text = fmt.Sprintf("%s/%s %s", ref.Kind, ref.Name, v.Text)
			if v.Rejected {
				return v
			}
			if !v.Taken && verdict.Taken {
				verdict = v
			}
		}
	}
	return verdict
}

// wrong returns an error about an object.
func wrong(about rollout.Ref, field, format string, args ...any) *rollout.InvalidError {
	return &rollout.InvalidError{About: about, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// misfit returns an error about the configuration.
func misfit(field, format string, args ...any) *rollout.InvalidError {
	return wrong(rollout.Ref{}, field, format, args...)
}

// missing returns the error for a name that no object has.
func missing(field, kind, namespace, name string) error {
	if name == "" {
		return misfit(field, "is missing").WithFix("name the %s", kind)
	}
	return misfit(field, "%s/%s/%s is not in this app", kind, namespace, name).WithFix("add it to the kustomization")
}
