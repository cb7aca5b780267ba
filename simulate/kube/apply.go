package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// VersionOf returns a pod template's field "version", which only this model has, or else the first image's tag.
func VersionOf(template string) string {
	var t struct {
		Version string `json:"version"`
		Spec    struct {
			Containers []struct {
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(template), &t); err != nil {
		return "?"
	}
	if t.Version != "" || len(t.Spec.Containers) == 0 {
		return t.Version
	}
	image := t.Spec.Containers[0].Image
	name := image[strings.LastIndex(image, "/")+1:] // an earlier ":" begins the registry's port
	if _, tag, found := strings.Cut(name, ":"); found {
		return tag
	}
	return image
}

// Apply models a forced server-side apply by one field manager.
func (k *Cluster) Apply(o rollout.Object) error {
	ref := o.Ref()
	switch _, isWorkload := k.WorkloadOf(ref); {
	case ref.Kind == "Service":
		pin, _ := o.Map("spec", "selector")[rollout.LabelPodHash].(string)
		if by, ok := o.Map("spec", "selector")[rollout.LabelRevision].(string); ok {
			pin = by
		}
		if was, ok := k.Pins[ref]; !ok || was != pin {
			k.Pins[ref] = pin
			k.OnChange(fmt.Sprintf("Service %s selects %q", ref.Name, pin))
		}
	case isWorkload:
		return k.applyDeployment(o)
	case ref.Kind == "HTTPRoute":
		if !reflect.DeepEqual(k.Routes[ref], o) {
			k.Routes[ref] = o
			k.OnChange(fmt.Sprintf("HTTPRoute %s splits %s", ref.Name, Split(o)))
		}
	}
	return nil
}

// Backend is a Service in an HTTPRoute's rule.
type Backend struct {
	Service string
	Weight  int64
}

// Backends returns an HTTPRoute's backends by rule. The default weight is 1.
func Backends(route rollout.Object) (all [][]Backend) {
	rules, _ := route.Map("spec")["rules"].([]any)
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		refs, _ := rule["backendRefs"].([]any)
		var some []Backend
		for _, b := range refs {
			ref, _ := b.(map[string]any)
			one := Backend{Weight: 1}
			one.Service, _ = ref["name"].(string)
			if w, given := ref["weight"].(int64); given {
				one.Weight = w
			}
			some = append(some, one)
		}
		all = append(all, some)
	}
	return all
}

// Split returns an HTTPRoute's weights, such as "web 80 web-canary 20".
func Split(route rollout.Object) string {
	share := func(b Backend) string { return fmt.Sprintf("%s %d", b.Service, b.Weight) }
	shares := func(rule []Backend) string { return strings.Join(rollout.Mapped(rule, share), " ") }
	return strings.Join(rollout.Mapped(Backends(route), shares), "; ")
}

func (k *Cluster) applyDeployment(o rollout.Object) error {
	w, _ := rollout.WorkloadOf(o.Ref())
	template, err := json.Marshal(o.Map("spec")["template"])
	if err != nil {
		return err
	}
	next := Deployment{Workload: w, Annotations: map[string]string{}}
	next.Template = string(template)
	for key, v := range o.Map("metadata", "annotations") {
		next.Annotations[key], _ = v.(string)
	}
	next.serial, _ = strconv.Atoi(o.Label(rollout.LabelSerial))
	was, exists := k.Deployments[w]
	by := k.partitioned(o)
	if w.Kind != "" {
		next.sets = ordinalsOf(o, by, &next.settings)
	}
	if next.Replicas = 1; next.IsByNode() {
		next.Replicas = k.Nodes
	}
	if exists {
		next.Replicas, next.paused = was.Replicas, was.paused
	}
	if paused, ok := o.Map("spec")["paused"].(bool); ok {
		next.paused = paused
	}
	if n, ok := o.Map("spec")["replicas"].(int64); ok {
		next.Replicas = int(n)
	}
	next.minReady = minReadyOf(o, by)
	next.recreate = o.Map("spec", "strategy")["type"] == "Recreate"
	next.surge, next.unavailable = amountOf(o.Map("spec", "strategy", "rollingUpdate")["maxSurge"]), unavailableOf(o)
	if err := validate(o, next); err != nil {
		return err
	}
	if !exists {
		next.Generation, next.Started = 1, map[string]int{}
		k.Deployments[w], k.sorted = &next, nil
		k.OnChange(o.Kind() + " " + w.Name + " created")
		return nil
	}
	changed := was.settings != next.settings
	if !changed && maps.Equal(was.Annotations, next.Annotations) && was.serial == next.serial {
		return nil
	}
	if changed {
		was.Generation++
	}
	was.settings, was.Annotations, was.serial, was.Rests = next.settings, next.Annotations, next.serial, false
	k.OnChange(fmt.Sprintf("%s %s is %s, minReady %d, surge %s, unavailable %s, paused %t, partition %d",
		o.Kind(), w.Name, VersionOf(was.Template), was.minReady, was.surge, was.unavailable, was.paused, was.Partition()))
	return nil
}

func minReadyOf(o rollout.Object, by *rollout.Partitioned) int {
	field := "spec.minReadySeconds"
	if by != nil {
		field = by.MinReady
	}
	n, _ := rollout.In(o, field).(int64)
	return int(n)
}

func amountOf(v any) rollout.Amount {
	a := rollout.Amount{Value: 25, Percent: true}
	text, isText := v.(string)
	if v != nil && (a.ReadValue(v) != nil || isText && !strings.HasSuffix(text, "%")) {
		return rollout.Amount{Value: -1}
	}
	return a
}

// validate follows ValidateDeploymentSpec (pkg/apis/apps/validation).
func validate(o rollout.Object, d Deployment) error {
	deadline := 600
	if n, ok := o.Map("spec")["progressDeadlineSeconds"].(int64); ok {
		deadline = int(n)
	}
	switch {
	case d.surge.Value < 0 || d.unavailable.Value < 0:
		return errors.New("maxSurge and maxUnavailable must be numbers or percentages")
	case !d.recreate && d.surge.Value == 0 && d.unavailable.Value == 0:
		return errors.New("maxUnavailable may not be 0 when maxSurge is 0")
	case d.unavailable.Percent && d.unavailable.Value > 100:
		return errors.New("maxUnavailable must not be greater than 100%")
	case d.Replicas < 0 || d.minReady < 0 || deadline <= d.minReady || deadline > 1<<31-1:
		return fmt.Errorf("replicas %d, minReadySeconds %d, progressDeadlineSeconds %d", d.Replicas, d.minReady, deadline)
	}
	return nil
}

// fenceposts follows util.ResolveFenceposts, then limits unavailable to Replicas, like util.MaxUnavailable.
func (d *Deployment) fenceposts() (surge, unavailable int) {
	if d.recreate {
		return 0, 0
	}
	surge, unavailable = d.surge.RoundUp(d.Replicas), d.unavailable.RoundDown(d.Replicas)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	if d.Replicas == 0 {
		return surge, 0
	}
	return surge, min(unavailable, d.Replicas)
}

// Check returns Apply's error in an empty cluster.
func (k *Cluster) Check(o rollout.Object) error {
	empty := New(nil, k.Now)
	empty.kinds = k.kinds
	return empty.Apply(o)
}
