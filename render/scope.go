package render

import (
	"cmp"
	"slices"

	runtime "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// clusterScoped lists, by API group, the cluster-scoped kinds that kustomize's older schema lacks. Other unknown kinds
// count as namespaced.
var clusterScoped = map[string][]string{
	"networking.k8s.io":   {"ServiceCIDR", "IPAddress"},
	"resource.k8s.io":     {"DeviceClass", "ResourceSlice"},
	"storage.k8s.io":      {"VolumeAttributesClass"},
	"certificates.k8s.io": {"ClusterTrustBundle"},
	"admissionregistration.k8s.io": {
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	},
	"gateway.networking.k8s.io":    {"GatewayClass"},
	"policy.networking.k8s.io":     {"AdminNetworkPolicy", "BaselineAdminNetworkPolicy"},
	"snapshot.storage.k8s.io":      {"VolumeSnapshotClass"},
	"cert-manager.io":              {"ClusterIssuer"},
	"external-secrets.io":          {"ClusterSecretStore", "ClusterExternalSecret"},
	"kyverno.io":                   {"ClusterPolicy"},
	"keda.sh":                      {"ClusterTriggerAuthentication"},
	"karpenter.sh":                 {"NodePool"},
	"argoproj.io":                  {"ClusterAnalysisTemplate"},
	"cilium.io":                    {"CiliumClusterwideNetworkPolicy"},
	"crd.projectcalico.org":        {"GlobalNetworkPolicy"},
	"apiextensions.crossplane.io":  {"CompositeResourceDefinition", "Composition"},
	"templates.gatekeeper.sh":      {"ConstraintTemplate"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"authentication.k8s.io":        {"TokenReview", "SelfSubjectReview"},
	"authorization.k8s.io":         {"SubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview"},
}

func definitions(objects []rollout.Object) map[runtime.GroupKind]bool {
	inBuild := map[runtime.GroupKind]bool{}
	for _, object := range objects {
		if ref := object.Ref(); ref.Group == "apiextensions.k8s.io" && ref.Kind == "CustomResourceDefinition" {
			inBuild[defined(object)] = object.Map("spec")["scope"] != "Cluster"
		}
	}
	return inBuild
}

func defined(crd rollout.Object) runtime.GroupKind {
	group, _ := crd.Map("spec")["group"].(string)
	kind, _ := crd.Map("spec", "names")["kind"].(string)
	return runtime.GroupKind{Group: group, Kind: kind}
}

func defaultNamespaces(objects []rollout.Object, namespace string) {
	inBuild := definitions(objects)
	for _, object := range objects {
		of := cmp.Or(takeNote(object, noteNamespace), namespace)
		if object.Namespace() == "" && isNamespaced(object, inBuild) {
			object.Map("metadata")["namespace"] = of
		}
	}
}

func isNamespaced(object rollout.Object, inBuild map[runtime.GroupKind]bool) bool {
	ref := object.Ref()
	kind := runtime.GroupKind{Group: ref.Group, Kind: ref.Kind}
	if slices.Contains(clusterScoped[ref.Group], ref.Kind) {
		return false
	}
	of := kyaml.TypeMeta{APIVersion: object.APIVersion(), Kind: ref.Kind}
	if namespaced, known := openapi.IsNamespaceScoped(of); known {
		return namespaced
	}
	for _, v := range scheme.Scheme.VersionsForGroupKind(kind) {
		of.APIVersion = v.String()
		if namespaced, known := openapi.IsNamespaceScoped(of); known {
			return namespaced
		}
	}
	namespaced, defined := inBuild[kind]
	return namespaced || !defined
}

var applyOrder = []string{
	"Namespace", "CustomResourceDefinition",
	"PriorityClass", "RuntimeClass", "StorageClass", "VolumeAttributesClass", "IngressClass", "GatewayClass",
	"ResourceQuota", "LimitRange", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
	"NetworkPolicy", "ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim",
	"Service", "Endpoints", "EndpointSlice",
	"Gateway", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "ReferenceGrant", "Ingress",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "Job", "CronJob",
	"HorizontalPodAutoscaler", "PodDisruptionBudget",
}

// webhooks are applied last, because a webhook rejects all matching objects until its server runs.
var webhooks = []string{"APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}

func rank(object rollout.Object) int {
	if i := slices.Index(applyOrder, object.Kind()); i >= 0 {
		return i
	}
	if slices.Contains(webhooks, object.Kind()) {
		return len(applyOrder) + 1
	}
	return len(applyOrder)
}
