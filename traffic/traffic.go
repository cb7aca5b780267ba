package traffic

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Route has the traffic settings of one Rollout.
type Route struct {
	Name      string `json:"name"` // name of the Rollout document
	Namespace string `json:"namespace"`

	// Stable and Canary are the versions' Services. They are "" only for routers without Services.
	Stable string `json:"stable,omitempty"`
	Canary string `json:"canary,omitempty"`

	// StablePods and CanaryPods are PodLabel's values. Between releases, "" means all pods.
	StablePods string `json:"stablePods,omitempty"`
	CanaryPods string `json:"canaryPods,omitempty"`
	PodLabel   string `json:"podLabel,omitempty"` // name of a label; default rollout.LabelPodHash

	Weight  int                     `json:"weight"`            // the canary's weight, out of Max
	Max     int                     `json:"max"`               // the weight of both versions together
	Managed []rollout.ManagedRoute  `json:"managed,omitempty"` // sorted by precedence
	Sticky  *rollout.Sticky         `json:"sticky,omitempty"`
	Headers *rollout.HeaderModifier `json:"headers,omitempty"` // for requests to the canary
	Shares  map[string]int          `json:"shares,omitempty"`  // weights of an experiment's Services
	Active  bool                    `json:"active,omitempty"`  // a release is in flight, so there are generated objects
}

func (r Route) cookie() string {
	if r.CanaryPods == "" {
		return r.Sticky.Cookie
	}
	return r.Sticky.Cookie + "-" + r.CanaryPods
}

func (r Route) keepsUsers() bool {
	return r.Sticky != nil && r.Active && r.Weight > 0 && r.Weight < r.Max
}

func (r Route) rest() int {
	rest := r.Max - r.Weight
	for _, weight := range r.Shares {
		rest -= weight
	}
	return max(0, rest)
}

// Parse reads the block of one router in trafficRouting. The function rename returns the name that kustomize gave an
// object. Errors are InvalidErrors with a Field below trafficRouting.
func Parse(kind string, raw any, rename func(kind, name string) string) (rollout.Router, error) {
	r, ok := find(kind)
	if !ok {
		return rollout.Router{}, misfit(kind, "is not a router that gitrollout knows").
			WithFix("use one of %s", strings.Join(Kinds(), ", "))
	}
	if _, isList := raw.([]any); r.list && !isList && raw != nil {
		raw = []any{raw}
	}
	e := r.config()
	if err := rollout.Read(kind, raw, e); err != nil {
		return rollout.Router{}, err
	}
	if c, is := e.(*objectConfig); is && rename != nil {
		c.rename(rename)
	} else if rename != nil {
		renameObjects(reflect.ValueOf(e), "", rename)
	}
	return rollout.Router{Kind: kind, Config: e}, nil
}

func renameObjects(v reflect.Value, kind string, rename func(kind, name string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			renameObjects(v.Elem(), kind, rename)
		}
	case reflect.Slice:
		for i := range v.Len() {
			renameObjects(v.Index(i), kind, rename)
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			renameObjects(value, cmp.Or(f.Tag.Get("object"), kind), rename)
		}
	case reflect.String:
		if kind != "" && v.String() != "" {
			v.SetString(rename(kind, v.String()))
		}
	}
}

// Overlay applies a Route to the routers' objects.
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
		if !ok {
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

// NeedsServices reports whether a router splits between Services instead of subsets.
func NeedsServices(r rollout.Router) bool {
	s, can := r.Config.(interface{ bySubset() bool })
	return !can || !s.bySubset()
}

// Watched returns the objects whose status Verify reads.
func Watched(routers []rollout.Router, namespace string) (refs []rollout.Ref) {
	for _, configured := range routers {
		if e, reports := configured.Config.(reporter); reports {
			refs = append(refs, e.watched(namespace)...)
		}
	}
	return refs
}

// Verdict tells, from an object's status, whether a router has accepted the routes.
type Verdict struct {
	Taken    bool // the routes are in force, or the object has no status
	Rejected bool
	Text     string // why the routes are not in force
}

// Verify returns the verdict of the first rejected object. If no object is rejected, it returns the verdict of the
// first object that is not in force yet.
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
				continue // some routers never write a status
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

func wrong(about rollout.Ref, field, format string, args ...any) *rollout.InvalidError {
	return &rollout.InvalidError{About: about, Field: field, Msg: fmt.Sprintf(format, args...)}
}

func misfit(field, format string, args ...any) *rollout.InvalidError {
	return wrong(rollout.Ref{}, field, format, args...)
}

func missing(field string, ref rollout.Ref) error {
	if ref.Name == "" {
		return misfit(field, "is missing").WithFix("name the %s", ref.Kind)
	}
	return misfit(field, "%s/%s/%s is not in this app", ref.Kind, ref.Namespace, ref.Name).
		WithFix("add it to the kustomization")
}

// Stages returns the Routes between releases and at each step. The pod hashes are placeholders.
func Stages(spec rollout.Spec) (routes []Route) {
	c := spec.Canary
	t := c.Traffic
	pairs := [][2]string{{c.StableService, c.CanaryService}}
	if p := c.PingPong; p != nil {
		pairs = [][2]string{{p.PingService, p.PongService}, {p.PongService, p.PingService}}
	}
	for _, pair := range pairs {
		rest := Route{
			Name: spec.Name, Namespace: spec.Workload.Namespace, Stable: pair[0], Canary: pair[1],
			Max: t.MaxWeight, Sticky: t.Sticky,
		}
		full := rest
		full.Weight, full.Active, full.StablePods, full.CanaryPods = t.MaxWeight, true, "stable", "canary"
		routes = append(routes, rest, full)
		for i, step := range c.Steps {
			at := full
			if step.SetWeight != nil {
				at.Weight = *step.SetWeight
			}
			if share := step.Experiment.Weight(""); share > 0 {
				at.Weight, at.Shares = t.MaxWeight-share, map[string]int{"experiment": share}
			}
			at.Managed, at.Headers = Managed(c.Steps[:i+1], t.ManagedRoutes), step.Headers
			routes = append(routes, at)
		}
	}
	return routes
}
