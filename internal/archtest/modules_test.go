package archtest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostRequirements limits the direct requirements in go.mod. The aim is 24. Exceptions are kstatus (the health of each kind), Helm (equal
// output), Flux's envsubst (equal output), age (cryptography), MCP's SDK (the protocol changes often), and CBOR. CBOR saves 420 lines, and
// client-go requires CBOR anyway.
const mostRequirements = 28

// banned has the modules that go.mod must not require directly, each with the reason.
var banned = map[string]string{
	"github.com/argoproj/argo-rollouts":     "its documents are read by our own reader, which names unsupported fields",
	"github.com/go-logr/logr":               "log/slog is the program's logger; klog's is silenced with klog's own type",
	"github.com/google/go-cmp":              "only tests need it: internal/compare says what differs",
	"github.com/google/go-github":           "a forge needs only a handful of requests",
	"github.com/onsi/ginkgo":                "tests use the testing package",
	"github.com/onsi/gomega":                "tests use the testing package and internal/compare",
	"github.com/pkg/errors":                 "errors are wrapped by fmt.Errorf",
	"github.com/sirupsen/logrus":            "log/slog is the program's logger",
	"github.com/spf13/pflag":                "cobra's commands have their flags: no type of it needs a name",
	"github.com/spf13/viper":                "a setting is a flag or is in config.yaml, not both and an environment variable",
	"github.com/stretchr/testify":           "tests use the testing package and internal/compare",
	"go.uber.org/zap":                       "log/slog is the program's logger",
	"gopkg.in/yaml.v2":                      "sigs.k8s.io/yaml sorts keys, and reads YAML as Kubernetes does",
	"gopkg.in/yaml.v3":                      "sigs.k8s.io/yaml sorts keys, and reads YAML as Kubernetes does",
	"k8s.io/kubernetes":                     "the tests' control plane is made of it, in a separate module",
	"sigs.k8s.io/controller-runtime":        "there is one loop, over Git, and no kind of our own to reconcile",
	"gitlab.com/gitlab-org/api/client-go":   "a forge needs only a handful of requests",
	"github.com/containrrr/shoutrrr":        "a service's message is one request, with keys, colours and links",
	"github.com/chromedp/chromedp":          "only tests need it: internal/e2e requires it",
	"github.com/santhosh-tekuri/jsonschema": "only tests need it: internal/e2e requires it",
	"google.golang.org/grpc":                "traces are sent by OTLP over HTTP",

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": "it brings gRPC along, and spans are a small JSON document",
}

// require is one requirement of a go.mod.
type require struct {
	module, version string
	indirect        bool
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+([a-z0-9.-]+\.[a-z]+(?:/\S+)?) (v\S+)( // indirect)?$`)

func requirements(t *testing.T, file string) []require {
	t.Helper()
	var all []require
	for _, m := range requirement.FindAllStringSubmatch(read(t, file), -1) {
		all = append(all, require{m[1], m[2], m[3] != ""})
	}
	if len(all) < 10 {
		t.Fatalf("found %d requirements in %s: is it read right?", len(all), file)
	}
	return all
}

func TestDependencies(t *testing.T) {
	documented, direct := read(t, "docs/dependencies.md"), 0
	documented, _, _ = strings.Cut(documented, "\n## ")
	all := requirements(t, "go.mod")
	for _, r := range all {
		if strings.HasPrefix(r.module, "k8s.io/kubernetes") || strings.HasPrefix(r.module, "go.etcd.io/") {
			t.Errorf("go.mod requires %s: that is for the local cluster's own module", r.module)
		}
		if r.indirect {
			continue
		}
		direct++
		for module, reason := range banned {
			if hasPrefix(r.module, []string{module}) {
				t.Errorf("go.mod requires %s, and must not: %s", r.module, reason)
			}
		}
		if !strings.Contains(documented, "| `"+r.module+"` |") {
			t.Errorf("docs/dependencies.md has no row for %s", r.module)
		}
		if !importedIn(t, "", r.module) {
			t.Errorf("go.mod requires %s, which only tests import: internal/e2e is a module for that", r.module)
		}
	}
	if direct > mostRequirements {
		t.Errorf("go.mod requires %d modules by itself, more than %d: write the code if it is a few lines", direct, mostRequirements)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(documented, -1) {
		if !slices.ContainsFunc(all, func(r require) bool { return r.module == m[1] && !r.indirect }) {
			t.Errorf("docs/dependencies.md has a row for %s, which go.mod does not require", m[1])
		}
		for user := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return strings.ContainsRune("`, ", r) }) {
			if user != "tests" && !importedIn(t, user, m[1]) {
				t.Errorf("docs/dependencies.md says that %s uses %s, which it does not import", user, m[1])
			}
		}
	}
}

// importedIn reports whether product code below a folder imports a module.
func importedIn(t *testing.T, folder, module string) bool {
	isOf := func(p string) bool { return hasPrefix(p, []string{module}) }
	return slices.ContainsFunc(product(t), func(s source) bool {
		return (folder == "" || hasPrefix(s.dir(), []string{folder})) && slices.ContainsFunc(s.imports(), isOf)
	})
}

// TestTheProgramIsTestedWithItsOwnLibraries checks that the module internal/e2e requires the same versions of libraries as the program.
func TestTheProgramIsTestedWithItsOwnLibraries(t *testing.T) {
	versions := map[string]string{}
	for _, r := range requirements(t, "go.mod") {
		versions[r.module] = r.version
	}
	for _, r := range requirements(t, "internal/e2e/go.mod") {
		if want, known := versions[r.module]; known && r.version != want {
			t.Errorf("internal/e2e/go.mod requires %s %s, and the program %s", r.module, r.version, want)
		}
	}
}
