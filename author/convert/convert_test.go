package convert_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/convert"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestFile converts files in which OLD marks the versions to replace. All other bytes stay, and a second conversion changes nothing.
func TestFile(t *testing.T) {
	for name, c := range map[string]struct{ text, err string }{
		"comments and order": {"# kept: gitrollout.dev/v1alpha1\nkind: Config   # a comment\napiVersion: OLD # old\n\napps: [ {path: 'a'} ]\n", ""},
		"several documents": {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {labels: {v: gitrollout.dev/v1alpha1}}\n---\napiVersion: OLD\n" +
			"kind: Rollout\n---\n# empty\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\n---\napiVersion: \"OLD\"\nkind: AnalysisTemplate\n...\n", ""},
		"one line":               {"{ü: v1alpha1, metadata: {name: gitrollout.dev/v1alpha1}, 'apiVersion': 'OLD', kind: Rollout}\n", ""},
		"two in one line":        {"{kind: List, items: [{apiVersion: OLD, kind: Rollout}, {apiVersion: OLD, kind: Rollout}]}", ""},
		"line breaks of Windows": {"kind: Rollout\r\napiVersion: OLD\r\nmetadata: {name: a}\r\n", ""},
		"a text in other data":   {"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    apiVersion: gitrollout.dev/v1alpha1\n    kind: Rollout\n", ""},
		"patches": {"resources: [a.yaml]\npatches:\n- patch: |-\n    # gitrollout\n    apiVersion: OLD\n    kind: Rollout\n    metadata: {name: a}\n" +
			"- target: {group: gitrollout.dev, version: OLDVERSION, kind: Rollout}\n  path: p.yaml\n- target: {group: argoproj.io, version: v1alpha1}\n" +
			"patchesStrategicMerge:\n- \"apiVersion: OLD\\nkind: Rollout\\n\"\nconfigMapGenerator:\n- {name: a, literals: [x=gitrollout.dev/v1alpha1]}\n", ""},
		"a template of a chart": {"{{- if .Values.canary }}\napiVersion: OLD\nkind: Rollout\nmetadata:\n  {{- include \"labels\" . | nindent 2 }}\n" +
			"  apiVersion: gitrollout.dev/v1alpha1\n{{- end }}\n", ""},
		"a decision":               {"apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-0\nthrough: 2\n", "records a decision"},
		"a decision beside others": {"apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n---\napiVersion: OLD\nkind: Freeze\n", "records a decision"},
		"a record":                 {"apiVersion: gitrollout.dev/v1alpha1\nkind: RolloutState\n", "records a decision"},
		"an anchor":                {"apiVersion: &v gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {labels: {v: *v}}\n", "change it by hand"},
		"a text in two lines":      {"apiVersion: \"gitrollout.dev/\\\n  v1alpha1\"\nkind: Rollout\n", "change it by hand"},
		"no YAML":                  {"apiVersion: gitrollout.dev/v1alpha1\nkind: [", "is not valid YAML"},
		"signed": {"apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nsops:\n  lastmodified: \"2026-01-01T00:00:00Z\"\n  mac: ENC[AES256_GCM,data:x]\n",
			"is signed by SOPS"},
		"other files": {"a: b\n", ""},
	} {
		fill := func(version string) string {
			return strings.NewReplacer("OLDVERSION", version, "OLD", "gitrollout.dev/"+version).Replace(c.text)
		}
		got, err := convert.File([]byte(fill("v1alpha1")))
		compare.CheckNamed(t, name, fill("v1beta1"), string(got))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.err)
		}
		if again, _ := convert.File(got); string(again) != string(got) {
			t.Errorf("%s: converted again:\n%s", name, again)
		}
	}
}
