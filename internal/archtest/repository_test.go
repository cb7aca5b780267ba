package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestKubernetesVersions compares the table of docs/compatibility.md with the versions that the Makefile tests. It also checks that the
// chart and gitrollout doctor require the Makefile's oldest version, and that .ci/skew names only existing tests.
func TestKubernetesVersions(t *testing.T) {
	makefile := read(t, "Makefile")
	variable := func(name string) []string {
		m := regexp.MustCompile(`(?m)^` + name + ` +:= (.*)$`).FindStringSubmatch(makefile)
		if m == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return strings.Fields(m[1])
	}
	skew := variable("SKEW_VERSIONS")
	if len(skew) != 2 {
		t.Fatalf("SKEW_VERSIONS is %v, want the oldest and the newest version", skew)
	}
	tested := []string{skew[0], variable("KUBERNETES_VERSION")[0], skew[1]}
	var documented []string
	row := regexp.MustCompile(`(?m)^\| (1\.[0-9]+) \| (v(1\.[0-9]+)\.[0-9]+) \|`)
	for _, m := range row.FindAllStringSubmatch(read(t, "docs/compatibility.md"), -1) {
		documented = append(documented, m[2])
		if m[1] != m[3] {
			t.Errorf("docs/compatibility.md: %s is no release of %s", m[2], m[1])
		}
	}
	if !slices.Equal(tested, documented) {
		t.Errorf("docs/compatibility.md has %v, and the Makefile %v", documented, tested)
	}
	oldest := strings.Split(skew[0], ".")[1]
	for file, text := range map[string]string{
		"deploy/chart/Chart.yaml":       `kubeVersion: ">=1.` + oldest + `.0-0"`,
		"views/doctor/cluster.go":       "const oldestKubernetes = " + oldest + "\n",
		"docs/doctor.md":                "(1." + oldest + " or later)",
		"docs/compatibility.md":         "The oldest minor is 1." + oldest + ",",
		"internal/localcluster/main.go": `"` + tested[1] + `"`,
	} {
		if !strings.Contains(read(t, file), text) {
			t.Errorf("%s does not have %q", file, text)
		}
	}
	exists, named := testNames(t), 0
	_, list, _ := strings.Cut(read(t, ".ci/skew"), "\ntests='\n")
	list, _, _ = strings.Cut(list, "\n'\n")
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		for _, name := range words[1:] {
			if named++; !exists[words[0]+":"+name] {
				t.Errorf(".ci/skew: %s has no %s", words[0], name)
			}
		}
	}
	if named < 10 {
		t.Errorf("found %d tests in .ci/skew: are they read right?", named)
	}
}

// TestSecurityInsights checks that each address below the project's page in SECURITY-INSIGHTS.yml names a file.
func TestSecurityInsights(t *testing.T) {
	const page = "https://" + module + "/"
	addresses := regexp.MustCompile(regexp.QuoteMeta(page)+`(\S+)`).FindAllStringSubmatch(read(t, "SECURITY-INSIGHTS.yml"), -1)
	if len(addresses) < 10 {
		t.Errorf("found %d addresses: are they read right?", len(addresses))
	}
	for _, m := range addresses {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("SECURITY-INSIGHTS.yml: %s: %v", m[0], err)
		}
	}
}
