// Package experiment builds a canary experiment's Deployments and Services.
package experiment

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

const maxName = 63

// Template is a template of an experiment at a step.
type Template struct {
	rollout.ExperimentTemplate

	Spec    rollout.Spec
	Release rollout.Hash
	Step    int              // index of the step
	From    rollout.Object   // Deployment of the pods' version
	Others  []rollout.Object // both versions' objects; their selectors must not match the pods
}

// Name returns <workload>-<release>-<step>-<template>, with steps counted from 1. A name that is long or has dots ends
// in a digest.
func Name(w rollout.Workload, release rollout.Hash, step int, template string) string {
	digits := strings.TrimPrefix(string(release), rollout.HashVersion+"-")
	name := fmt.Sprintf("%s-%s-%d-%s", w.Name, digits, step+1, template)
	if len(name) <= maxName && !strings.Contains(name, ".") {
		return name
	}
	digest := rollout.Digest([]byte(name), 5)
	name = strings.ReplaceAll(name, ".", "-")
	return strings.TrimRight(name[:min(len(name), maxName-11)], "-") + "-" + digest
}

// Name returns the Deployment's name.
func (t Template) Name() string {
	return Name(t.Spec.Workload, t.Release, t.Step, t.ExperimentTemplate.Name)
}

// ServiceName returns the Service's name, or "".
func (t Template) ServiceName() string {
	switch {
	case t.Service == nil:
		return ""
	case *t.Service == "":
		return t.Name()
	}
	return *t.Service
}

// Objects returns the Deployment and, if requested, the Service.
func (t Template) Objects() []rollout.Object {
	objects := []rollout.Object{t.deployment()}
	if name := t.ServiceName(); name != "" {
		objects = append(objects, rollout.Object{
			"apiVersion": "v1", "kind": "Service", "metadata": t.metadata(name),
			"spec": map[string]any{
				"selector": map[string]any{rollout.LabelExperiment: t.Name()}, "ports": t.Ports(),
			},
		})
	}
	return objects
}

func (t Template) deployment() rollout.Object {
	from, selector := t.From.Copy(), rollout.Object(t.Selector).Copy()
	selector.Set(t.Name(), "matchLabels", rollout.LabelExperiment)
	from.Set(withTexts(t.PodLabels()), "spec", "template", "metadata", "labels")
	for key, text := range t.Annotations {
		from.Set(text, "spec", "template", "metadata", "annotations", key)
	}
	return rollout.Object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": t.metadata(t.Name()),
		"spec": map[string]any{
			"replicas": int64(t.Replicas), "selector": map[string]any(selector), "template": from.Map("spec", "template"),
			"minReadySeconds": int64(t.Spec.MinReadySeconds), "progressDeadlineSeconds": int64(t.Spec.ProgressDeadlineSeconds),
			"revisionHistoryLimit": int64(0),
		},
	}
}

func (t Template) metadata(name string) map[string]any {
	labels := withTexts(t.Labels)
	labels[rollout.LabelExperiment] = t.Name()
	return map[string]any{
		"name": name, "namespace": t.Spec.Workload.Namespace, "labels": labels,
		"annotations": map[string]any{rollout.AnnotationGenerated: t.Spec.Name},
	}
}

// PodLabels returns the version's and the template's labels. If a Service, PodDisruptionBudget or autoscaler of the app
// would select the pods, PodLabels omits the version's labels that this selector uses.
func (t Template) PodLabels() map[string]string {
	labels := map[string]string{}
	for key, v := range t.From.Map("spec", "template", "metadata", "labels") {
		if text, ok := v.(string); ok {
			labels[key] = text
		}
	}
	whole := maps.Clone(labels)
	for _, selector := range t.selectors() {
		if Matches(selector, whole) {
			for _, key := range keysOf(selector) {
				delete(labels, key)
			}
		}
	}
	maps.Copy(labels, t.Labels)
	labels[rollout.LabelExperiment] = t.Name()
	return labels
}

// Caught returns the app's objects that select the pods by the template's own labels.
func (t Template) Caught() (by []rollout.Ref) {
	labels := t.PodLabels()
	for ref, selector := range t.selectors() {
		if Matches(selector, labels) && !slices.Contains(by, ref) {
			by = append(by, ref)
		}
	}
	return by
}

// Uses returns where the app uses a key in a field ("labels" or "annotations"), or "".
func (t Template) Uses(field, key string) (where string) {
	if _, has := t.From.Map("spec", "template", "metadata", field)[key]; has {
		where = "the pod template"
	}
	for ref, selector := range t.selectors() {
		if field == "labels" && slices.Contains(keysOf(selector), key) {
			return "the selector of " + ref.Title()
		}
	}
	return where
}

func (t Template) selectors() iter.Seq2[rollout.Ref, map[string]any] {
	return func(yield func(rollout.Ref, map[string]any) bool) {
		more := yield(t.From.Ref(), t.From.Map("spec", "selector"))
		for _, o := range t.Others {
			more = more && yield(o.Ref(), selectorOf(o, t.Spec.Workload.Namespace))
		}
	}
}

func selectorOf(o rollout.Object, namespace string) map[string]any {
	ref := o.Ref()
	if ref.Namespace != namespace {
		return nil
	}
	switch {
	case ref.Group == "" && ref.Kind == "Service":
		if labels := o.Map("spec", "selector"); len(labels) > 0 {
			return map[string]any{"matchLabels": labels}
		}
	case ref.Group == "policy" && ref.Kind == "PodDisruptionBudget":
		if selector := o.Map("spec", "selector"); len(selector) > 0 {
			return selector
		}
	}
	return nil
}

func withTexts(texts map[string]string) map[string]any {
	out := make(map[string]any, len(texts))
	for key, text := range texts {
		out[key] = text
	}
	return out
}

// Matches reports whether a selector selects labels. Unlike in Kubernetes, an empty selector selects none.
func Matches(selector map[string]any, labels map[string]string) bool {
	return len(keysOf(selector)) > 0 && Mismatch(selector, withTexts(labels)) == ""
}

// Mismatch returns why a selector does not select a pod template's labels.
func Mismatch(selector, labels map[string]any) string {
	wanted, _ := selector["matchLabels"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		switch got, has := labels[key]; {
		case !has:
			return fmt.Sprintf("%s=%v is selected, and the template has no label %s", key, wanted[key], key)
		case !reflect.DeepEqual(got, wanted[key]): // == cannot compare maps and lists
			return fmt.Sprintf("%s=%v is selected, and the template has %s=%v", key, wanted[key], key, got)
		}
	}
	for _, e := range expressionsOf(selector) {
		if why := e.mismatch(labels); why != "" {
			return why
		}
	}
	return ""
}

func keysOf(selector map[string]any) []string {
	wanted, _ := selector["matchLabels"].(map[string]any)
	inExpressions := rollout.Mapped(expressionsOf(selector), func(e expression) string { return e.key })
	return slices.AppendSeq(inExpressions, maps.Keys(wanted))
}

type expression struct {
	key, operator string
	values        []any
}

func expressionsOf(selector map[string]any) []expression {
	list, _ := selector["matchExpressions"].([]any)
	return rollout.Mapped(list, func(raw any) (e expression) {
		m, _ := raw.(map[string]any)
		e.key, _ = m["key"].(string)
		e.operator, _ = m["operator"].(string)
		e.values, _ = m["values"].([]any)
		return e
	})
}

func (e expression) mismatch(labels map[string]any) string {
	got, has := labels[e.key]
	in := has && slices.ContainsFunc(e.values, func(v any) bool { return reflect.DeepEqual(v, got) })
	matches, known := map[string]bool{"In": in, "NotIn": !in, "Exists": has, "DoesNotExist": !has}[e.operator]
	switch {
	case !known:
		return fmt.Sprintf("%v is not an operator", e.operator)
	case !matches:
		return fmt.Sprintf("%s %s %v is selected, and the template does not match it", e.key, e.operator, e.values)
	}
	return ""
}

// Ports returns the stable Service's ports, without node ports. Without a stable Service, it returns the containers'
// ports.
func (t Template) Ports() (ports []any) {
	if c := t.Spec.Canary; c != nil && (c.StableService != "" || c.PingPong != nil) {
		ref := rollout.Ref{Kind: "Service", Namespace: t.Spec.Workload.Namespace, Name: c.StableService}
		if c.PingPong != nil {
			ref.Name = c.PingPong.PingService
		}
		for _, o := range t.Others {
			spec := rollout.Object(o.Copy().Map("spec"))
			if ports, _ := spec["ports"].([]any); o.Ref() == ref && len(ports) > 0 {
				for _, port := range spec.Maps("ports") {
					delete(port, "nodePort")
				}
				return ports
			}
		}
	}
	seen := map[string]bool{}
	for _, container := range t.From.Maps("spec", "template", "spec", "containers") {
		for _, port := range rollout.Object(container).Maps("ports") {
			number, ok := port["containerPort"].(int64)
			if !ok {
				continue
			}
			protocol, _ := port["protocol"].(string)
			protocol = cmp.Or(protocol, "TCP")
			name, _ := port["name"].(string)
			if name == "" || seen[name] {
				name = fmt.Sprintf("port-%d", number)
			}
			if key := fmt.Sprint(protocol, number); !seen[key] {
				seen[key], seen[name] = true, true
				ports = append(ports, map[string]any{"name": name, "port": number, "targetPort": number, "protocol": protocol})
			}
		}
	}
	return ports
}
