package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// value is a setting of the chart. values.yaml, its JSON schema and the documentation's table are generated from the
// settings.
type value struct {
	path    string // "image.tag"
	kind    string // type in the JSON Schema
	initial any    // the default; nil means the zero value of the type
	meaning string
	pattern string // pattern of a string, or ""
}

// dnsName matches the name of an object, or "".
const dnsName = `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`

// needed lists the settings that the JSON schema requires, so that a user cannot remove their defaults.
var needed = []string{"image.repository", "git.existingSecret", "rbac.apps", "admissionPolicy.actions"}

// values returns the settings in the order of the generated files. base has the defaults that deploy/kubernetes sets.
func values(base manifests) []value {
	return []value{
		{"image.repository", "string", placeholder, "the image, without its tag", `^[^\s@]+$`},
		{"image.tag", "string", nil, "the image's tag (default: the chart's appVersion)", `^[\w.-]*$`},
		{"image.digest", "string", nil, "`sha256:…`, instead of a tag", `^(sha256:[0-9a-f]{64})?$`},
		{"image.pullPolicy", "string", nil, "`IfNotPresent`, `Always` or `Never` (default: Kubernetes')", `^(IfNotPresent|Always|Never)?$`},
		{"replicas", "integer", 1, "the number of replicas; with 2 or more, a Lease elects the active replica", ""},
		{"repo", "string", nil, "the Git repository's URL, without credentials (default: the key `repo` of the Secret)", ""},
		{"branch", "string", nil, "the branch that users push to (default: `main`)", ""},
		{"cluster", "string", nil, "the folder below `.gitrollout/` (default: the key `cluster` of the Secret, or the only folder)", `^([A-Za-z0-9][\w.-]*)?$`},
		{"clusters", "array", nil, "several clusters instead of `cluster`, with a Deployment for each: `name`, and `kubeconfigSecret`, a Secret with the key `kubeconfig`", ""},
		{"namespaces", "array", nil, "the only namespaces to watch and to change, with Roles instead of ClusterRoles (default: the whole cluster)", ""},
		{"git.existingSecret", "string", "gitrollout", "the Secret with the key `token`, and `repo` and `cluster` if these values are empty", `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`},
		{"forge.existingSecret", "string", nil, "a Secret with the key `token` for the forge's API (default: Git's token)", dnsName},
		{"rbac.create", "boolean", true, "whether the chart creates the account's roles and bindings", ""},
		{"rbac.apps", "array", base.rules("apps-role.yaml"), "rules of the ClusterRole or Roles, for the kinds of your apps' objects", ""},
		{"rbac.secrets", "boolean", false, "rights on Secrets and ServiceAccounts, for all apps", ""},
		{"rbac.evict", "boolean", false, "the right to delete pods: needed to restart apps, to release a DaemonSet in stages, " +
			"and to roll back a StatefulSet whose pods never become ready", ""},
		{"rbac.hooks", "boolean", false, "the right to create and delete Jobs, for hooks around releases", ""},
		{"serviceAccount.create", "boolean", true, "whether the chart creates the account", ""},
		{"serviceAccount.name", "string", nil, "the account's name (default: the Helm release's name, with `-gitrollout` unless it contains `gitrollout`)", dnsName},
		{"serviceAccount.annotations", "object", nil, "annotations of the account", ""},
		{"signing.existingSecret", "string", nil, "a Secret with the key `key`: an SSH key that signs commits", dnsName},
		{"policy.existingConfigMap", "string", nil, "a ConfigMap with the key `policy.yaml`, which limits each team's apps; see docs/policy.md", dnsName},
		{"dashboard.enabled", "boolean", false, "whether users reach the dashboard by an Ingress; see docs/dashboard.md", ""},
		{"dashboard.ingress.host", "string", nil, "the host of the dashboard's Ingress and URL", ""},
		{"dashboard.ingress.className", "string", nil, "the Ingress' class", dnsName},
		{"dashboard.ingress.tlsSecret", "string", nil, "the Secret with the Ingress' certificate", dnsName},
		{"dashboard.ingress.annotations", "object", nil, "annotations of the Ingress", ""},
		{"webhook.enabled", "boolean", false, "whether gitrollout accepts the forge's webhooks, at `/webhook`", ""},
		{"webhook.existingSecret", "string", nil, "the Secret whose key `secret` the forge signs webhooks with", dnsName},
		{"webhook.ingress.host", "string", nil, "the host of the webhooks' Ingress", ""},
		{"webhook.ingress.className", "string", nil, "the Ingress' class", dnsName},
		{"webhook.ingress.tlsSecret", "string", nil, "the Secret with the Ingress' certificate", dnsName},
		{"webhook.ingress.annotations", "object", nil, "annotations of the Ingress", ""},
		{"metrics.podMonitor", "boolean", false, "a PodMonitor for the Prometheus operator", ""},
		{"metrics.serviceMonitor", "boolean", false, "a ServiceMonitor, for the same operator", ""},
		{"admissionPolicy.enabled", "boolean", false, "whether the API server refuses other accounts' writes to a Deployment during a release (Kubernetes 1.30 or newer); several installations in a cluster need `cluster`", ""},
		{"admissionPolicy.actions", "array", []any{"Deny"}, "the policy's actions; for a trial `[Warn, Audit]`", ""},
		{"admissionPolicy.writers", "array", nil, "more subjects that may write during a release, such as a group for emergencies", ""},
		{"resources", "object", base.container("resources"), "resources of the container", ""},
		{"securityContext", "object", base.container("securityContext"), "security context of the container", ""},
		{"podSecurityContext", "object", base.at("deployment.yaml", "spec", "template", "spec", "securityContext"), "security context of the pod", ""},
		{"networkPolicy.enabled", "boolean", true, "whether the chart creates a NetworkPolicy", ""},
		{"networkPolicy.egress", "array", base.at("networkpolicy.yaml", "spec", "egress"), "the egress rules of the NetworkPolicy", ""},
		{"extraArgs", "array", nil, "more arguments of `gitrollout run`", ""},
		{"extraVolumes", "array", nil, "more volumes of the pod", ""},
		{"extraVolumeMounts", "array", nil, "mounts of these volumes", ""},
	}
}

// manifests are the parsed files of deploy/kubernetes.
type manifests map[string]map[string]any

func readManifests(source string) (manifests, error) {
	m := manifests{}
	for _, name := range []string{"apps-role.yaml", "loop-role.yaml", "secrets/role.yaml", "evict/role.yaml", "hooks/role.yaml", "deployment.yaml", "networkpolicy.yaml", "admission/policy.yaml"} {
		data, err := os.ReadFile(filepath.Join(source, "deploy", "kubernetes", name))
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(string(data), "\n---\n")
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(first), &object); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m[name] = object
	}
	return m, nil
}

// at returns a manifest's value at a path of keys.
func (m manifests) at(name string, path ...string) any {
	var v any = m[name]
	for _, key := range path {
		v = v.(map[string]any)[key]
	}
	return v
}

func (m manifests) rules(name string) any { return m.at(name, "rules") }

func (m manifests) container(key string) any {
	all := m.at("deployment.yaml", "spec", "template", "spec", "containers").([]any)
	return all[0].(map[string]any)[key]
}

// or returns the default of a setting.
func (v value) or() any {
	if v.initial != nil {
		return v.initial
	}
	return map[string]any{"string": "", "array": []any{}, "object": map[string]any{}}[v.kind]
}

// chartFiles returns the generated files of deploy/chart: path and content.
func chartFiles(source string) (map[string]string, error) {
	base, err := readManifests(source)
	if err != nil {
		return nil, err
	}
	files, all := map[string]string{}, values(base)
	schema, err := json.MarshalIndent(chartSchema(all), "", "  ")
	if err != nil {
		return nil, err
	}
	files["values.schema.json"] = string(schema) + "\n"
	if files["values.yaml"], err = valuesFile(all); err != nil {
		return nil, err
	}
	files["README.md"] = valuesTable(all)
	for name, part := range map[string]any{
		"rules/loop.yaml": base.rules("loop-role.yaml"), "rules/secrets.yaml": base.rules("secrets/role.yaml"),
		"rules/evict.yaml": base.rules("evict/role.yaml"), "rules/hooks.yaml": base.rules("hooks/role.yaml"),
		"rules/held.yaml": base.at("admission/policy.yaml", "spec"),
	} {
		text, err := yaml.Marshal(part)
		if err != nil {
			return nil, err
		}
		files[name] = "# Generated from deploy/kubernetes.\n" + string(text)
	}
	return files, nil
}

// valuesFile returns values.yaml, with each setting's description above it.
func valuesFile(all []value) (string, error) {
	var b strings.Builder
	b.WriteString("# Generated from internal/release/values.go. README.md has these values as a table.\n")
	var open []string
	for _, v := range all {
		keys := strings.Split(v.path, ".")
		same := 0
		for same < len(open) && same < len(keys)-1 && open[same] == keys[same] {
			same++
		}
		for i := same; i < len(keys)-1; i++ {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), keys[i])
		}
		open = keys[:len(keys)-1]
		indent := strings.Repeat("  ", len(keys)-1)
		text, err := yaml.Marshal(map[string]any{keys[len(keys)-1]: v.or()})
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s# %s\n", indent, v.meaning)
		for line := range strings.Lines(string(text)) {
			b.WriteString(indent + line)
		}
	}
	return b.String(), nil
}

// chartSchema returns values.schema.json, which refuses unknown settings.
func chartSchema(all []value) object {
	top := object{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false, "properties": object{
		"global": object{"type": "object", "description": "values that Helm passes to each chart"}}}
	for _, v := range all {
		at := top["properties"].(object)
		keys := strings.Split(v.path, ".")
		for _, key := range keys[:len(keys)-1] {
			inner, ok := at[key].(object)
			if !ok {
				inner = object{"type": "object", "additionalProperties": false, "properties": object{}}
				at[key] = inner
			}
			if slices.Contains(needed, v.path) {
				inner["required"] = []string{keys[len(keys)-1]}
			}
			at = inner["properties"].(object)
		}
		leaf := object{"type": v.kind, "description": v.meaning, "default": v.or()}
		if v.pattern != "" {
			leaf["pattern"] = v.pattern
		}
		if v.path == "replicas" {
			leaf["minimum"] = 0
		}
		if v.path == "clusters" {
			leaf["items"] = object{"type": "object", "additionalProperties": false, "required": []string{"name"}, "properties": object{
				"name": object{"type": "string", "pattern": dnsName}, "kubeconfigSecret": object{"type": "string", "pattern": dnsName}}}
		}
		if v.path == "extraArgs" {
			leaf["items"] = object{"type": "string"}
		}
		if v.path == "admissionPolicy.actions" {
			leaf["items"], leaf["minItems"] = object{"type": "string", "enum": []string{"Deny", "Warn", "Audit"}}, 1
		}
		at[keys[len(keys)-1]] = leaf
	}
	return top
}

// valuesTable returns the chart's README.md.
func valuesTable(all []value) string {
	var b strings.Builder
	b.WriteString(`# gitrollout

    helm install gitrollout gitrollout-0.2.0.tgz --namespace gitrollout --create-namespace \
      --set repo=https://git.example.com/shop.git,cluster=prod
    kubectl -n gitrollout create secret generic gitrollout --from-file=token

The chart creates the objects of [deploy/kubernetes](../kubernetes), except for the
Namespace. [Installing gitrollout](../../docs/install.md) has the steps.

| value | default | meaning |
|---|---|---|
`)
	for _, v := range all {
		initial, _ := json.Marshal(v.or())
		text := "`" + string(initial) + "`"
		if len(text) > 40 {
			text = "as in deploy/kubernetes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.path, text, v.meaning)
	}
	return b.String()
}
