package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule lists the allowed imports of a package besides the standard library.
type rule struct {
	own    []string // packages of this module
	others []string // prefixes of the import paths of other modules' packages
	pure   bool     // no context, clock, logger, file, process, network or randomness
}

// kubernetes lists the libraries of a Kubernetes client.
var kubernetes = []string{"k8s.io/api/", "k8s.io/apimachinery/", "k8s.io/client-go/"}

// table lists the allowed imports of each package. All imports lead towards package rollout. git, render and cluster
// never import each other, and each is the only user of a big library. cmd/gitrollout connects the packages.
var table = map[string]rule{
	"rollout/schedule": {others: []string{"github.com/robfig/cron/v3"}, pure: true},
	"rollout": {own: []string{"rollout/schedule"}, others: []string{
		"k8s.io/apimachinery/pkg/conversion", "k8s.io/apimachinery/pkg/util/json", "sigs.k8s.io/yaml"}, pure: true},
	"traffic":            {own: []string{"rollout"}, pure: true},
	"analysis":           {own: []string{"rollout"}, others: []string{"github.com/expr-lang/expr"}, pure: true},
	"rollout/hook":       {own: []string{"rollout"}, pure: true},
	"rollout/experiment": {own: []string{"rollout"}, pure: true},
	"strategies": {own: []string{"analysis", "rollout/experiment", "rollout/hook", "rollout", "strategies/cohort", "strategies/plan",
		"strategies/routes", "strategies/workloads", "traffic"},
		pure: true},
	"strategies/cohort":    {own: []string{"rollout"}, pure: true},
	"strategies/fleet":     {own: []string{"rollout"}, pure: true},
	"strategies/workloads": {own: []string{"rollout", "strategies/plan", "traffic"}, pure: true},
	"strategies/routes":    {own: []string{"rollout", "rollout/experiment", "strategies/plan", "strategies/workloads", "traffic"}, pure: true},
	"strategies/plan":      {own: []string{"rollout", "rollout/schedule", "traffic"}, pure: true},
	"views/status":         {own: []string{"analysis", "reconciler/propose", "rollout", "strategies", "strategies/fleet"}, pure: true},
	"author/plan": {own: []string{"reconciler/source", "render", "render/policy", "rollout", "rollout/hook", "strategies",
		"strategies/cohort"},
		others: []string{"github.com/rogpeppe/go-internal/diff", "sigs.k8s.io/yaml"}, pure: true},
	"views/doctor": {own: []string{"author/plan", "git", "publish/forge", "reconciler/source", "render", "render/policy",
		"render/sops", "rollout", "rollout/hook", "strategies", "views/status"}, others: kubernetes},
	"views/terminal": {own: []string{"rollout", "views/doctor", "author/plan", "views/status"},
		others: []string{"golang.org/x/text/width"}},
	"render/worktree": {own: []string{"rollout"}},
	"render/worker": {own: []string{"render", "render/sops", "rollout", "traffic"},
		others: []string{"github.com/fxamacker/cbor/v2"}},
	"render/sops": {others: []string{
		"filippo.io/age", "github.com/ProtonMail/go-crypto/openpgp", "sigs.k8s.io/kustomize/kyaml/yaml",
	}},
	"render/policy":  {own: []string{"render", "rollout"}, pure: true},
	"render/convert": {own: []string{"render/sops", "rollout"}, others: []string{"sigs.k8s.io/kustomize/kyaml/yaml"}, pure: true},
	"author/images": {own: []string{"author/scaffold", "reconciler/source", "render/sops", "rollout"},
		others: []string{"sigs.k8s.io/kustomize/kyaml/yaml"}, pure: true},
	"author/scaffold": {own: []string{"render", "render/chart", "rollout"}, others: []string{
		"helm.sh/helm/v4/pkg/strvals", "sigs.k8s.io/yaml",
	}},
	"author/vendoring": {own: []string{"rollout"}, others: []string{
		"github.com/ProtonMail/go-crypto/openpgp", "helm.sh/helm/v4/pkg/chart/v2/util", "helm.sh/helm/v4/pkg/provenance",
		"k8s.io/apimachinery/pkg/util/version", "sigs.k8s.io/kustomize/kyaml/yaml", "sigs.k8s.io/yaml",
	}},
	"render/schema": {own: []string{"analysis", "analysis/provider", "render", "rollout", "traffic"}, pure: true},
	"git":           {own: []string{"git/sign", "git/wire", "rollout"}, others: []string{"github.com/go-git/go-git/v5/"}},
	"git/wire":      {own: []string{"call", "rollout"}, others: []string{"github.com/go-git/go-git/v5/", "golang.org/x/crypto/ssh"}},
	"git/program":   {own: []string{"git/wire"}},
	"git/sign":      {others: []string{"github.com/ProtonMail/go-crypto/openpgp", "golang.org/x/crypto/ssh"}, pure: true},
	"render/chart": {own: []string{"rollout"}, others: []string{
		"helm.sh/helm/v4/pkg/chart", "helm.sh/helm/v4/pkg/engine", "helm.sh/helm/v4/pkg/ignore", "helm.sh/helm/v4/pkg/release/v1/util",
		"sigs.k8s.io/yaml",
	}},
	"render": {own: []string{"analysis", "render/chart", "render/convert", "render/sops", "rollout/experiment", "rollout/hook",
		"rollout", "rollout/schedule", "traffic"}, others: []string{
		"github.com/fluxcd/pkg/envsubst",
		"k8s.io/apimachinery/pkg/api/validate/content", "k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/version", "k8s.io/client-go/kubernetes/scheme",
		"sigs.k8s.io/kustomize/", "sigs.k8s.io/yaml",
	}},
	"cluster": {own: []string{"rollout"}, others: append([]string{
		"github.com/fluxcd/cli-utils/pkg/kstatus/status", "k8s.io/klog/v2",
	}, kubernetes...)},
	"call":               {own: []string{"rollout"}},
	"analysis/provider":  {own: []string{"analysis", "call", "rollout"}, others: []string{"k8s.io/client-go/util/jsonpath"}},
	"reconciler/measure": {own: []string{"analysis", "analysis/provider", "rollout", "strategies"}},
	"reconciler/propose": {own: []string{"rollout", "strategies"}, pure: true},
	"reconciler/report":  {own: []string{"rollout", "strategies"}},
	"reconciler": {own: []string{"reconciler/propose", "reconciler/report", "reconciler/source", "render", "rollout", "rollout/hook",
		"strategies", "strategies/cohort", "strategies/fleet"}, others: []string{"k8s.io/client-go/util/workqueue"}},
	"reconciler/adapters": {own: []string{
		"cluster", "git", "git/sign", "reconciler", "reconciler/report", "reconciler/source", "render", "render/sops",
		"rollout",
	}},
	"reconciler/source": {own: []string{"render", "render/policy", "rollout", "rollout/hook", "strategies",
		"strategies/cohort", "strategies/fleet", "strategies/workloads"}, others: []string{"k8s.io/client-go/util/workqueue"}},
	"publish/forge": {own: []string{"call", "rollout"}},
	"views/dashboard": {own: []string{"reconciler/propose", "reconciler/report", "rollout", "views/status"},
		others: []string{"github.com/coreos/go-oidc/v3/", "golang.org/x/oauth2", "sigs.k8s.io/yaml"}},
	"views/console": {own: []string{
		"cluster", "git", "publish/forge", "reconciler/propose", "reconciler/source", "render", "rollout", "strategies",
		"views/dashboard", "author/images", "author/plan", "views/status", "views/terminal",
	}},
	"publish/metrics": {own: []string{"reconciler/report", "rollout", "strategies"},
		others: []string{"github.com/prometheus/client_golang/prometheus", "sigs.k8s.io/yaml"}},
	"publish/tracing": {own: []string{"call", "reconciler/report", "rollout"}, others: []string{"go.opentelemetry.io/otel"}},
	"publish/serve":   {},
	"publish/notify":  {own: []string{"rollout"}, pure: true},
	"publish/notify/service": {own: []string{"call", "publish/notify", "rollout"},
		others: []string{"github.com/wneessen/go-mail", "sigs.k8s.io/yaml"}},
	"publish/notify/gitstore": {own: []string{"git", "publish/notify/worker", "rollout"}},
	"publish/notify/worker":   {own: []string{"call", "publish/notify", "rollout"}},
	"cmd/gitrollout": {
		own: []string{
			"analysis", "analysis/provider", "cluster", "git", "git/program", "git/sign", "git/wire",
			"call", "publish/forge", "publish/metrics", "publish/serve", "publish/tracing",
			"publish/notify", "publish/notify/gitstore", "publish/notify/service", "publish/notify/worker",
			"reconciler", "reconciler/adapters", "reconciler/measure", "reconciler/propose", "reconciler/report", "reconciler/source",
			"render", "render/policy", "render/convert", "author/scaffold", "render/schema", "render/sops", "author/vendoring",
			"render/worker", "render/worktree", "rollout", "simulate", "strategies",
			"views/console", "views/dashboard", "views/doctor", "author/images", "author/plan", "views/status",
			"views/terminal",
		},
		others: append([]string{
			"github.com/modelcontextprotocol/go-sdk/jsonrpc", "github.com/modelcontextprotocol/go-sdk/mcp",
			"github.com/rogpeppe/go-internal/diff", "github.com/spf13/cobra",
			"golang.org/x/term", "sigs.k8s.io/yaml",
		}, kubernetes...),
	},
	// simulate/kube models a cluster, and simulate/memgit a Git server. A model imports no package whose tests use the model.
	"simulate/kube":   {own: []string{"rollout"}},
	"simulate/memgit": {own: []string{"reconciler/source", "rollout"}},
	"internal/guard":  {own: []string{"rollout", "simulate/kube", "traffic"}},
	"simulate": {own: []string{"reconciler", "reconciler/propose", "reconciler/source", "render", "rollout", "rollout/hook",
		"simulate/kube", "simulate/memgit", "strategies"}, others: []string{"github.com/rogpeppe/go-internal/txtar"}},
	"internal/archtest":    {},
	"internal/attacks":     {},
	"internal/contract":    {own: []string{"reconciler", "rollout"}},
	"internal/e2e":         {},
	"internal/e2e/charts":  {},
	"internal/e2e/plain":   {},
	"internal/e2e/schemas": {},
	"internal/e2e/tracing": {others: []string{
		"go.opentelemetry.io/proto/otlp/collector/trace/v1", "google.golang.org/protobuf/encoding/protojson",
	}},
	"internal/e2e/traffic":   {},
	"internal/crds":          {own: []string{"internal/testbin"}, others: kubernetes},
	"internal/fields":        {},
	"internal/mutate":        {own: []string{"internal/mutate/on"}, others: []string{"k8s.io/client-go/util/workqueue"}},
	"internal/mutate/on":     {},
	"internal/giteatest":     {own: []string{"internal/testbin"}},
	"internal/gittest":       {own: []string{"internal/testbin"}, others: []string{"golang.org/x/crypto/ssh"}},
	"internal/proxytest":     {own: []string{"internal/crds", "internal/testbin", "internal/testcluster"}, others: kubernetes},
	"internal/kruisetest":    {own: []string{"internal/crds", "internal/testcluster", "rollout"}, others: kubernetes},
	"internal/testbin":       {},
	"internal/tier":          {},
	"internal/testcluster":   {own: []string{"internal/testbin"}, others: kubernetes},
	"internal/e2e/dashboard": {},
	"internal/compare":       {others: []string{"github.com/rogpeppe/go-internal/diff"}},
	"internal/docpage":       {own: []string{"internal/compare"}},
	"internal/oidctest":      {others: []string{"github.com/coreos/go-oidc/v3/oidc/oidctest"}},
	"internal/sopstest": {others: []string{
		"filippo.io/age", "github.com/ProtonMail/go-crypto/openpgp", "sigs.k8s.io/kustomize/kyaml/yaml",
	}},
}

// nested lists the modules that do not use the product, and whose libraries the product does not use. It omits
// internal/e2e, which uses the product.
var nested = []string{"internal/localcluster", "internal/peers/kruise", "internal/release", "internal/traefik"}

// impure lists the standard packages that a pure package must not import.
var impure = []string{
	"context", "crypto/rand", "io/fs", "io/ioutil", "log", "log/slog", "math/rand",
	"net", "net/http", "os", "os/exec", "os/signal", "path/filepath", "sync", "sync/atomic", "syscall", "testing",
}

// testLibraries lists libraries that no package may import. Package testing and package internal/compare replace them.
var testLibraries = []string{
	"github.com/stretchr/testify", "github.com/onsi/gomega", "github.com/onsi/ginkgo", "go.uber.org/mock", "github.com/golang/mock",
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		for _, p := range s.imports() {
			if hasPrefix(p, testLibraries) {
				t.Errorf("%s imports %s: tests use the testing package and internal/compare", s.path, p)
			}
		}
		dir := s.dir()
		if i := slices.IndexFunc(nested, func(m string) bool { return hasPrefix(dir, []string{m}) }); i >= 0 {
			checkNested(t, s, nested[i])
			continue
		}
		seen[dir] = true
		r, ok := table[dir]
		if !ok {
			t.Errorf("%s: package %s has no row in the table of imports", s.path, dir)
			continue
		}
		if !s.isTest() {
			checkImports(t, s, r)
		}
	}
	for dir := range table {
		if !seen[dir] {
			t.Errorf("the table of imports has a row for %s, which has no Go files", dir)
		}
	}
}

// TestRandomNumbersHaveSeeds checks that pure packages get random numbers only from generators with a seed.
func TestRandomNumbersHaveSeeds(t *testing.T) {
	for _, s := range product(t) {
		if !table[s.dir()].pure || !slices.Contains(s.imports(), "math/rand/v2") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if use, is := n.(*ast.SelectorExpr); is {
				name, _ := use.X.(*ast.Ident)
				if name != nil && name.Name == "rand" && !slices.Contains([]string{"New", "NewPCG", "Rand"}, use.Sel.Name) {
					t.Errorf("%s:%d uses rand.%s, which has no seed", s.path, s.line(n.Pos()), use.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestTopFoldersHaveNoCircle checks that the imports between top-level folders have no cycle.
func TestTopFoldersHaveNoCircle(t *testing.T) {
	imports := map[string]map[string]bool{}
	for _, s := range product(t) {
		from, _, _ := strings.Cut(s.dir(), "/")
		for _, p := range s.imports() {
			own, isOwn := strings.CutPrefix(p, module+"/")
			if to, _, _ := strings.Cut(own, "/"); isOwn && to != from {
				if imports[from] == nil {
					imports[from] = map[string]bool{}
				}
				imports[from][to] = true
			}
		}
	}
	if !imports["cmd"]["reconciler"] {
		t.Fatal("cmd does not import reconciler: are the imports read right?")
	}
	// Repeatedly remove folders that import no remaining folder. The rest is in a cycle, or imports a cycle.
	for {
		isLeaf := func(_ string, to map[string]bool) bool {
			return !slices.ContainsFunc(slices.Collect(maps.Keys(to)), func(f string) bool { return imports[f] != nil })
		}
		before := len(imports)
		maps.DeleteFunc(imports, isLeaf)
		if len(imports) == before {
			break
		}
	}
	if len(imports) > 0 {
		t.Errorf("folders import each other in a circle: %v", slices.Sorted(maps.Keys(imports)))
	}
}

// tooBig lists packages that are too big for the product to import, each with the reason.
var tooBig = map[string]string{
	"k8s.io/client-go/kubernetes": "the clients of all groups are 8 MB of the program; those that are needed are in typed/",
}

func checkImports(t *testing.T, s source, r rule) {
	t.Helper()
	for _, p := range s.imports() {
		if reason := tooBig[p]; reason != "" && s.isProduct() {
			t.Errorf("%s imports %s: %s", s.path, p, reason)
		}
		own, isOwn := strings.CutPrefix(p, module+"/")
		switch {
		case isOwn && slices.Contains(r.own, own):
		case isOwn:
			t.Errorf("%s imports %s, which is not among %s's allowed imports: %v", s.path, own, s.dir(), r.own)
		case isStandard(p) && r.pure && slices.Contains(impure, p):
			t.Errorf("%s imports %s: package %s is pure", s.path, p, s.dir())
		case isStandard(p) || hasPrefix(p, r.others):
		default:
			t.Errorf("%s imports %s, which is not among %s's allowed imports: %v", s.path, p, s.dir(), r.others)
		}
	}
}

// TestRendersReachNoNetwork checks that the packages for rendering do not depend on Helm's code for registries, repositories and clusters.
func TestRendersReachNoNetwork(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "./reconciler/...", "./render", "./render/worker", "./render/chart", "./simulate")
	list.Dir = root
	out, err := list.Output()
	must(t, err)
	helm := 0
	for _, p := range strings.Fields(string(out)) {
		rest, is := strings.CutPrefix(p, "helm.sh/helm/v4/pkg/")
		if p == module+"/author/vendoring" || strings.HasPrefix(p, "oras.land/") {
			t.Errorf("the render packages reach %s", p)
		}
		if first, _, _ := strings.Cut(rest, "/"); is && !slices.Contains([]string{"chart", "engine", "ignore", "release", "strvals"}, first) {
			t.Errorf("the render packages reach %s", p)
		}
		if is {
			helm++
		}
	}
	if helm == 0 {
		t.Error("found no package of Helm's: is the list read right?")
	}
}

// checkNested checks that a file of a nested module does not import the product.
func checkNested(t *testing.T, s source, nested string) {
	t.Helper()
	for _, p := range s.imports() {
		if own, isOwn := strings.CutPrefix(p, module+"/"); isOwn && own != nested && !strings.HasPrefix(own, nested+"/") {
			t.Errorf("%s imports %s: %s is not part of the product and does not use it", s.path, own, nested)
		}
	}
}

// isStandard reports whether an import path is in the standard library: the path's first element has no dot.
func isStandard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".")
}

func hasPrefix(p string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return p == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(p, strings.TrimSuffix(prefix, "/")+"/")
	})
}

// TestNamesInGit checks that only package rollout contains names of branches and commit trailers. Other versions of
// gitrollout read these names, so they must not change.
func TestNamesInGit(t *testing.T) {
	seen := 0
	for _, s := range product(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			branch := strings.HasPrefix(text.Value[1:], "gitrollout/") && text.Value != `"gitrollout/1"` // the value of HTTP's header User-Agent
			trailer := strings.Contains(strings.ReplaceAll(text.Value, "X-Gitrollout-", ""), "Gitrollout-")
			switch {
			case !branch && !trailer:
			case s.dir() == "rollout":
				seen++
			default:
				t.Errorf("%s:%d: %s: names of branches and trailers are rollout's", s.path, s.line(text.Pos()), text.Value)
			}
			return true
		})
	}
	if seen < 5 {
		t.Errorf("found %d names in package rollout: are they read right?", seen)
	}
}
