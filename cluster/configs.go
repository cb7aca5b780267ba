package cluster

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

type configRef struct{ kind, name string }

// configTypes lists the pod spec's types that name a ConfigMap or Secret, and the field that has the name. A
// LocalObjectReference names a Secret.
var configTypes = map[reflect.Type]struct{ kind, field string }{
	reflect.TypeFor[corev1.ConfigMapEnvSource]():    {"ConfigMap", "Name"},
	reflect.TypeFor[corev1.ConfigMapKeySelector]():  {"ConfigMap", "Name"},
	reflect.TypeFor[corev1.ConfigMapProjection]():   {"ConfigMap", "Name"},
	reflect.TypeFor[corev1.ConfigMapVolumeSource](): {"ConfigMap", "Name"},
	reflect.TypeFor[corev1.LocalObjectReference]():  {"Secret", "Name"},
	reflect.TypeFor[corev1.SecretEnvSource]():       {"Secret", "Name"},
	reflect.TypeFor[corev1.SecretKeySelector]():     {"Secret", "Name"},
	reflect.TypeFor[corev1.SecretProjection]():      {"Secret", "Name"},
	reflect.TypeFor[corev1.SecretVolumeSource]():    {"Secret", "SecretName"},
	reflect.TypeFor[corev1.AzureFileVolumeSource](): {"Secret", "SecretName"},
}

func configsOf(spec *corev1.PodSpec) []configRef {
	refs := appendConfigs(nil, reflect.ValueOf(spec))
	slices.SortFunc(refs, func(a, b configRef) int { return strings.Compare(a.kind+"/"+a.name, b.kind+"/"+b.name) })
	return slices.Clip(slices.Compact(refs))
}

func appendConfigs(refs []configRef, v reflect.Value) []configRef {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			refs = appendConfigs(refs, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			refs = appendConfigs(refs, v.Index(i))
		}
	case reflect.Struct:
		if is, refers := configTypes[v.Type()]; refers {
			if name := v.FieldByName(is.field).String(); name != "" {
				refs = append(refs, configRef{is.kind, name})
			}
			return refs
		}
		for _, field := range v.Fields() {
			refs = appendConfigs(refs, field)
		}
	}
	return refs
}
