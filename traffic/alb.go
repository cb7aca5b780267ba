package traffic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// alb is the AWS Load Balancer Controller. If the port name of an Ingress's backend is "use-annotation", the backend's
// name is the name of an action. An annotation defines the action: two Services with weights
// (https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/ingress/annotations/#actions). A weight
// from 0 to 999 is a share of the sum (ELBv2 TargetGroupTuple).
var alb = router{
	kind: "alb", title: "AWS Load Balancer Controller", since: "v2.0",
	features: features{
		splits: can, anyTotal: can, sticks: can,
		byHeader: exact | prefix, byCookie: exact | prefix, byQuery: exact | prefix,
		byPath: exact | prefix, byMethod: exact, bySource: exact | prefix,
	},
	config: func() editor { return &albConfig{} },
}

type albConfig struct {
	Ingress          string         `json:"ingress,omitempty" object:"Ingress"` // set either ingress or ingresses
	Ingresses        []string       `json:"ingresses,omitempty" object:"Ingress"`
	ServicePort      int64          `json:"servicePort"`                // port of the stable and the canary Service
	AnnotationPrefix string         `json:"annotationPrefix,omitempty"` // default alb.ingress.kubernetes.io
	StickinessConfig *albStickiness `json:"stickinessConfig,omitempty"` // applies during and between releases

	// RootService names the action (default: the stable Service).
	RootService string `json:"rootService,omitempty" object:"Service"`
}

type albStickiness struct {
	Enabled         bool  `json:"enabled"`
	DurationSeconds int64 `json:"durationSeconds"` // 1 to 604800 (7 days)
}

type albAction struct {
	Type          string
	ForwardConfig struct {
		TargetGroups                []albGroup
		TargetGroupStickinessConfig *albStick `json:",omitempty"`
	}
}

type albGroup struct {
	ServiceName, ServicePort string
	Weight                   int
}

type albStick struct {
	Enabled         bool
	DurationSeconds int64
}

func (c *albConfig) overlay(o *Objects, r Route) error {
	names, err := ingressNames("ingress", c.Ingress, "ingresses", c.Ingresses)
	if err != nil {
		return err
	}
	if err := c.valid(r); err != nil {
		return err
	}
	for _, named := range names {
		ref := ingressRef(r.Namespace, named.name)
		object, ok := o.Edit(ref)
		if !ok {
			return missing(named.field, ref)
		}
		if err := c.split(o, object, r); err != nil {
			return err
		}
	}
	return nil
}

func (c *albConfig) valid(r Route) error {
	if c.ServicePort < 1 || c.ServicePort > 65535 {
		return misfit("servicePort", "is not the port of a Service").
			WithFix("give the number of the port that the stable and the canary Service have")
	}
	if r.Max > 999 {
		return misfit("", "takes weights up to 999, and maxTrafficWeight is %d", r.Max).WithFix("give 999 or less")
	}
	if s := c.StickinessConfig; s != nil && s.Enabled && !albDuration(s.DurationSeconds) {
		return misfit("stickinessConfig.durationSeconds", "is %d", s.DurationSeconds).
			WithFix("give 1 to 604800 seconds (7 days)")
	}
	if r.Sticky != nil && !albDuration(int64(r.Sticky.MaxAge/time.Second)) {
		return misfit("", "keeps users for 1s to 168h, and sticky.maxAge is %s", r.Sticky.MaxAge).WithFix("give 168h or less")
	}
	return carried("alb", r.Managed)
}

func albDuration(seconds int64) bool { return seconds >= 1 && seconds <= 604800 }

func (c *albConfig) action(r Route) string { return cmp.Or(c.RootService, r.Stable) }

func (c *albConfig) key(what, action string) string {
	return cmp.Or(c.AnnotationPrefix, "alb.ingress.kubernetes.io") + "/" + what + "." + action
}

func (c *albConfig) split(o *Objects, object rollout.Object, r Route) error {
	ref, action := object.Ref(), c.action(r)
	paths := slices.DeleteFunc(ingressPaths(object), func(p ingressPath) bool { return p.service() != action })
	for _, p := range paths {
		if text(mapping(p.backend()["port"])["name"]) != "use-annotation" {
			return wrong(ref, p.place()+".backend.service.port",
				"of %s is not use-annotation, and the controller then splits no requests", action).
				WithFix("write port: {name: use-annotation}")
		}
	}
	if len(paths) == 0 {
		return wrong(ref, "spec.rules", "no path leads to %s", action).
			WithFix("make it the backend of each path that is to be split, with the port name use-annotation; " +
				"with pingPong, name a rootService")
	}
	key := c.key("actions", action)
	place := fmt.Sprintf("metadata.annotations[%s]", key)
	if err := o.Claim(ref, place, r); err != nil {
		return err
	}
	if other := albOther(object.Annotation(key), r); other != "" {
		return wrong(ref, place,
			"has a third target group (%s), so that the weights of stable and canary would not add up to all requests", other).
			WithFix("remove the annotation from Git: gitrollout writes it")
	}
	if err := c.match(o, object, r); err != nil {
		return err
	}
	value := c.forward(r,
		albGroup{ServiceName: r.Canary, Weight: r.Weight}, albGroup{ServiceName: r.Stable, Weight: r.rest()})
	set(object, value, "metadata", "annotations", key)
	return nil
}

func albOther(annotation string, r Route) string {
	var action struct {
		ForwardConfig struct {
			TargetGroups []struct {
				ServiceName, TargetGroupARN, TargetGroupName string
				Weight                                       *int
			}
		}
	}
	_ = json.Unmarshal([]byte(annotation), &action) // keys may have any case; the caller replaces invalid JSON
	for _, g := range action.ForwardConfig.TargetGroups {
		if g.ServiceName != r.Stable && g.ServiceName != r.Canary && (g.Weight == nil || *g.Weight != 0) {
			return cmp.Or(g.ServiceName, g.TargetGroupName, g.TargetGroupARN)
		}
	}
	return ""
}

func (c *albConfig) forward(r Route, groups ...albGroup) string {
	for i := range groups {
		groups[i].ServicePort = strconv.FormatInt(c.ServicePort, 10)
	}
	action := albAction{Type: "forward"}
	action.ForwardConfig.TargetGroups = groups
	if s := c.StickinessConfig; s != nil && s.Enabled {
		action.ForwardConfig.TargetGroupStickinessConfig = &albStick{true, s.DurationSeconds}
	}
	// The cookie is set only while both versions get requests, because a cookie keeps users even at a Service of weight
	// 0. With the cookie, the weight is the canary's share of new users.
	if r.keepsUsers() {
		action.ForwardConfig.TargetGroupStickinessConfig = &albStick{true, int64(r.Sticky.MaxAge / time.Second)}
	}
	data, _ := json.Marshal(action)
	return string(data)
}

// match adds paths for matched requests before each split path. The controller sorts Exact paths first, then Prefix
// paths from long to short, and then other paths.
func (c *albConfig) match(o *Objects, object rollout.Object, r Route) error {
	own, err := c.ownConditions(object, r)
	if err != nil {
		return err
	}
	added := map[[2]int][]any{} // by indices of rule and path
	for _, route := range r.Managed {
		for i, m := range route.Matches {
			name := route.Name
			if name == rollout.MatchRoute { // several Rollouts may use this route name
				name = r.Name + "-" + name
			}
			name = numbered(name, i)
			if err := c.free(o, object, name, r); err != nil {
				return err
			}
			conditions := append(slices.Clone(own), albConditions(m)...)
			if err := c.paths(object, r, m, name, conditions, added); err != nil {
				return err
			}
			action := c.forward(Route{}, albGroup{ServiceName: r.Canary, Weight: 100})
			set(object, action, "metadata", "annotations", c.key("actions", name))
			if len(conditions) > 0 {
				data, _ := json.Marshal(conditions) // cannot fail
				set(object, string(data), "metadata", "annotations", c.key("conditions", name))
			}
		}
	}
	for i, item := range list(object.Map("spec")["rules"]) {
		http := mapping(mapping(item)["http"])
		var paths []any
		for j, own := range list(http["paths"]) {
			paths = append(append(paths, added[[2]int{i, j}]...), own)
		}
		if len(paths) > 0 {
			http["paths"] = paths
		}
	}
	return nil
}

var albName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (c *albConfig) free(o *Objects, object rollout.Object, name string, r Route) error {
	if !albName.MatchString(name) {
		return misfit("", "the name of the steps' route %s becomes a backend's name, and is not a valid Service name", name).
			WithFix("give the route a name of at most 60 lower-case letters, digits and -; the first character must be a letter")
	}
	key := c.key("actions", name)
	if err := o.Claim(object.Ref(), fmt.Sprintf("metadata.annotations[%s]", key), r); err != nil {
		return err
	}
	isBackend := slices.ContainsFunc(ingressPaths(object), func(p ingressPath) bool { return p.service() == name })
	if isBackend || object.Annotation(key) != "" || object.Annotation(c.key("conditions", name)) != "" {
		return wrong(object.Ref(), "", "has a backend or an action %s, which is the name of a route of the steps", name).
			WithFix("rename one")
	}
	return nil
}

func (c *albConfig) ownConditions(object rollout.Object, r Route) (own []any, err error) {
	key := c.key("conditions", c.action(r))
	value := object.Annotation(key)
	if value == "" || len(r.Managed) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(value), &own); err != nil {
		return nil, wrong(object.Ref(), fmt.Sprintf("metadata.annotations[%s]", key),
			"%s", "is not a list of conditions: "+err.Error())
	}
	return own, nil
}
