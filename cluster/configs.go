package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// configRef names a ConfigMap or Secret in its pod's namespace.
type configRef struct{ kind, name string }

// configsOf returns the ConfigMaps and Secrets that a pod uses, sorted and without duplicates.
func configsOf(spec *corev1.PodSpec) []configRef {
	var refs []configRef
	add := func(kind, name string) {
		if name != "" {
			refs = append(refs, configRef{kind, name})
		}
	}
	for _, s := range spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	for i := range spec.Volumes {
		volumeConfigs(&spec.Volumes[i].VolumeSource, add)
	}
	for i := range spec.InitContainers {
		environmentConfigs(spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom, add)
	}
	for i := range spec.Containers {
		environmentConfigs(spec.Containers[i].Env, spec.Containers[i].EnvFrom, add)
	}
	for i := range spec.EphemeralContainers {
		environmentConfigs(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom, add)
	}
	slices.SortFunc(refs, func(a, b configRef) int { return strings.Compare(a.kind+"/"+a.name, b.kind+"/"+b.name) })
	return slices.Clip(slices.Compact(refs))
}

func environmentConfigs(env []corev1.EnvVar, from []corev1.EnvFromSource, add func(kind, name string)) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			add("ConfigMap", r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			add("Secret", r.Name)
		}
	}
	for _, f := range from {
		if f.ConfigMapRef != nil {
			add("ConfigMap", f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			add("Secret", f.SecretRef.Name)
		}
	}
}

func volumeConfigs(v *corev1.VolumeSource, add func(kind, name string)) {
	if v.ConfigMap != nil {
		add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		add("Secret", v.Secret.SecretName)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add("ConfigMap", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add("Secret", s.Secret.Name)
			}
		}
	}
	local := func(r *corev1.LocalObjectReference) {
		if r != nil {
			add("Secret", r.Name)
		}
	}
	switch {
	case v.CSI != nil:
		local(v.CSI.NodePublishSecretRef)
	case v.CephFS != nil:
		local(v.CephFS.SecretRef)
	case v.RBD != nil:
		local(v.RBD.SecretRef)
	case v.ISCSI != nil:
		local(v.ISCSI.SecretRef)
	case v.FlexVolume != nil:
		local(v.FlexVolume.SecretRef)
	case v.ScaleIO != nil:
		local(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		local(v.StorageOS.SecretRef)
	case v.Cinder != nil:
		local(v.Cinder.SecretRef)
	case v.AzureFile != nil:
		add("Secret", v.AzureFile.SecretName)
	}
}
