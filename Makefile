# Run `make` for the list of targets. The targets use the network only for the Go module
# proxy, and need no cluster and no installed kubectl.

# Versions of programs that make builds or runs. go.mod and internal/{e2e,localcluster,gitea,traefik,helm,release}/go.mod
# have the versions of libraries.
KUBERNETES_VERSION := v1.36.3
GITEA_VERSION      := 1.26.0
TRAEFIK_VERSION    := 3.7.5
GOLANGCI_VERSION   := v2.15.0
VULN_VERSION       := v1.9.0
# The oldest and the newest supported minor of Kubernetes, at their newest releases: docs/compatibility.md.
SKEW_VERSIONS      := v1.30.14 v1.37.2

GO       ?= go
FUZZTIME ?= 30s
BENCH    ?= .
CONTEXT  ?=
HOSTILE  ?= 10m
SEEDS    ?= 1000
BASE     ?= HEAD~1
MUTANTS  ?= 20

ROOT := $(CURDIR)
NEST := internal/localcluster
MODULE := gitrollout.dev/gitrollout
# Every package is in exactly one of these two lists. make derives the lists from imports, so a new package is in one.
# Tests of SERVERS start a control plane, a forge or a proxy; tests of UNIT need only the test's process.
imports = $(GO) list -f '{{range $(1)}}{{$$.ImportPath}} {{.}}{{"\n"}}{{end}}' ./... | awk '$$2 ~ "$(2)" {print $$1}' | sort -u
SERVERS = $(shell { $(call imports,.TestImports,$(MODULE)/internal/(testcluster|giteatest|proxytest)$$); \
	$(call imports,.XTestImports,$(MODULE)/internal/(testcluster|giteatest|proxytest)$$); } | sort -u)
UNIT = $(filter-out $(SERVERS),$(shell $(GO) list ./...))
# RACE names each package with a lock or a goroutine; internal/archtest compares this list with the code. The race
# detector runs these packages with -short, because the long form repeats the same goroutines.
RACE := $(addprefix $(MODULE)/,git git/wire internal/gittest internal/mutate publish/metrics publish/notify/worker publish/serve \
	reconciler reconciler/adapters reconciler/measure reconciler/source render/worker render/worktree views/console views/dashboard)
# These packages mostly compute: make test runs only their concurrent tests with the race detector, make test-all all tests.
RACE_LONG := $(addprefix $(MODULE)/,render simulate)
# These packages also need a control plane or Gitea.
RACE_SERVERS := $(addprefix $(MODULE)/,cluster publish/forge)
RACE_ALL := $(MODULE)/cmd/gitrollout # only in make test-all
# Tests in which a process exceeds its memory bound. The race detector needs more address space than the bound allows.
BOUNDED := TestBombs|TestBrokenIsRemembered|TestWhatBreaksAWorker
# The tests of the whole program, a separate module.
E2E := internal/e2e
# TIER is -short in make test, and empty in make test-all.
TIER ?= -short
# make vet checks all packages, so go test need not. Debug information would take a quarter of the time to link.
TEST = $(GO) test -vet=off -ldflags=-w -exec $(ROOT)/.ci/measured
# A busy machine can stall tests that run programs or a control plane. Both tiers repeat such failed tests once, without others
# (.ci/again), and print at their end each test that then passed.
export FLAKY := $(ROOT)/bin/flaky
TEST_REAL = $(ROOT)/.ci/again $(TEST)
flaky = [ ! -s '$(FLAKY)' ] || { echo "flaky tests: failed once and then passed:"; cat '$(FLAKY)'; }
# The CPU seconds of each package: .ci/measured writes this file, and .ci/slowest prints it.
export TEST_TIMES ?= $(ROOT)/bin/test-times
# Tests that only compute have a lower priority than releases on a cluster: a quarter of a busy processor.
LOW := nice -n 5

.DEFAULT_GOAL := help
# Tests of the program run bin/gitrollout, instead of building the program again.
test test-all test-e2e test-race-program test-skew bench: export GITROLLOUT_TEST_BINARY = $(ROOT)/bin/gitrollout
.PHONY: help programs build release push plugin localcluster kubectl gitea traefik helm kruise demo demo-fleet test test-all tier test-peers test-skew race-list test-race-program test-unit test-race test-e2e test-plain test-servers test-program test-traffic test-demo test-localcluster vet fmt-check simulate bench hostile mutants fuzz lint vulncheck golden clean FORCE

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

programs: ## Install missing programs that the tests call, with apt-get if possible
	@.ci/programs

build: ## Build bin/gitrollout
	$(GO) build -o bin/gitrollout ./cmd/gitrollout

plugin: build ## Make bin/kubectl-gitrollout, so that kubectl gitrollout works with bin in the PATH, completions included
	ln -sf gitrollout bin/kubectl-gitrollout
	ln -sf gitrollout bin/kubectl_complete-gitrollout

# go build takes seconds if nothing has changed. The control plane requires the same versions of modules as the program,
# so that their common packages are compiled once.
localcluster: ## Build bin/localcluster, a Kubernetes control plane in one program (first time: 5 to 20 minutes)
	@[ -x bin/localcluster ] || echo "building Kubernetes $(KUBERNETES_VERSION) from source: 5 to 20 minutes the first time, seconds afterwards (bin/gitrollout simulate needs none)"
	cd $(NEST) && $(GO) build -o $(ROOT)/bin/localcluster .

kubectl: ## Build bin/kubectl, of the same version
	@[ -x bin/kubectl ] || echo "building kubectl $(KUBERNETES_VERSION) from source: about a minute"
	cd $(NEST) && $(GO) build -ldflags '-X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)' \
		-o $(ROOT)/bin/kubectl k8s.io/kubernetes/cmd/kubectl

gitea: ## Build bin/gitea, a forge for the tests (first time: about 6 minutes)
	@[ -x bin/gitea ] || echo "building Gitea $(GITEA_VERSION) from source: about 6 minutes the first time, seconds afterwards"
	cd internal/gitea && $(GO) build -tags 'sqlite sqlite_unlock_notify' -ldflags '-X main.Version=$(GITEA_VERSION)' \
		-o $(ROOT)/bin/gitea code.gitea.io/gitea

traefik: ## Build bin/traefik, a proxy for the tests (first time: about 4 minutes)
	@[ -x bin/traefik ] || echo "building Traefik $(TRAEFIK_VERSION) from source: about 4 minutes the first time, seconds afterwards"
	internal/traefik/build.sh $(ROOT)/bin/traefik $(TRAEFIK_VERSION)

helm: ## Build bin/helm, for comparisons of charts in the tests (first time: about 3 minutes)
	@[ -x bin/helm ] || echo "building helm from source: about 3 minutes the first time, seconds afterwards"
	cd internal/helm && $(GO) build -o $(ROOT)/bin/helm helm.sh/helm/v4/cmd/helm

demo: ## Show a release, a promotion, a rollback, a blue-green switch (CONTEXT=name for your own cluster)
	@GO='$(GO)' CONTEXT='$(CONTEXT)' examples/demo.sh --build

demo-fleet: ## Show one commit in dev, staging and two production clusters, and its revert
	@GO='$(GO)' examples/demo.sh --build --fleet

release: ## Make a release in dist (VERSION=v0.2.0; optional: IMAGE=registry/name, PLATFORMS=linux/amd64, DOWNLOADS=url, KEY=ssh-key)
	rm -rf dist
	cd internal/release && $(GO) run . build -source $(ROOT) -out $(ROOT)/dist -version '$(VERSION)' \
		$(if $(IMAGE),-image '$(IMAGE)') $(if $(DOWNLOADS),-downloads '$(DOWNLOADS)') $(if $(KEY),-key '$(KEY)') \
		$(if $(PLATFORMS),-platforms '$(PLATFORMS)')

push: ## Send the image of make release to a registry (VERSION=v0.2.0, IMAGE=registry/name)
	cd internal/release && $(GO) run . push $(ROOT)/dist/image-$(VERSION).tar '$(IMAGE):$(VERSION)'

test: programs vet fmt-check build localcluster kubectl traefik ## Run each behaviour once, and all packages with -short: 15 minutes; CI runs this target
	@$(MAKE) --no-print-directory tier TIER=-short
	@$(flaky)
	@echo "make test-all also runs: all rows of tables, whole seeds, Gitea, Helm's and Kruise's references, the oldest and newest Kubernetes, the hostile hour, each fuzz test for $(FUZZTIME), mutants of the diff"

test-all: programs vet fmt-check build localcluster kubectl gitea traefik helm ## Run all tests: two hours, and half an hour more the first time; before a release, or for a wide change
	@failed=; \
	$(MAKE) --no-print-directory tier TIER= BUDGETS=.ci/budgets || failed=1; \
	for part in test-race-program test-peers test-skew hostile fuzz mutants; do $(MAKE) --no-print-directory $$part || failed=1; done; \
	$(flaky); \
	[ -z "$$failed" ]

# Tests that only compute run beside tests with a cluster, in the time that these leave. The long form of test-traffic
# runs alone: on a busy machine a proxy learns of a change later than a release waits. A failed part stops no other
# part, so one run reports all failures.
tier:
	@failed=; mkdir -p bin; rm -f $(TEST_TIMES) $(FLAKY); \
	$(if $(TIER),,$(MAKE) --no-print-directory test-traffic || failed=1;) \
	$(MAKE) --no-print-directory -k test-plain test-race & beside=$$!; \
	$(if $(TIER),$(MAKE) --no-print-directory test-traffic || failed=1;) \
	.ci/with-cluster $(MAKE) --no-print-directory -k test-servers test-program test-demo test-localcluster || failed=1; \
	wait $$beside || failed=1; \
	.ci/slowest $(TEST_TIMES) $(BUDGETS) || failed=1; \
	[ -z "$$failed" ]

kruise: ## Build bin/kruise, OpenKruise's controllers for the tests (first time: about 6 minutes)
	cd internal/peers/kruise && $(GO) build -o $(ROOT)/bin/kruise .

# One package after the other: each runs the controllers for all namespaces.
test-peers: build localcluster kubectl kruise ## Run the tests of OpenKruise's kinds with OpenKruise's controllers
	KRUISE_TEST_BINARY=$(ROOT)/bin/kruise .ci/with-cluster $(GO) test -p 1 -parallel 1 -timeout 20m -run 'CloneSet|Advanced|KindThatCannot' ./cluster ./cmd/gitrollout
	cd $(E2E) && KRUISE_TEST_BINARY=$(ROOT)/bin/kruise $(ROOT)/.ci/with-cluster $(GO) test -parallel 1 -timeout 30m -run 'CloneSet|Advanced' .

test-skew: build kubectl traefik ## Run cluster tests with the oldest and the newest supported Kubernetes (builds both: 5 to 20 minutes each)
	@failed=; for version in $(SKEW_VERSIONS); do GO='$(GO)' .ci/skew $$version || failed=1; done; [ -z "$$failed" ]

test-unit: ## Run the tests that need no cluster, without the simulator's thousands of runs
	$(TEST) -short $(UNIT)
	cd $(E2E) && $(TEST) ./schemas ./tracing ./plain

test-race: ## Run packages with goroutines that need no cluster with the race detector
	$(LOW) env TEST_LABEL=race $(TEST_REAL) -race -short -skip '$(BOUNDED)' -timeout 60m $(RACE)
ifeq ($(TIER),-short)
	$(LOW) env TEST_LABEL=race $(TEST) -race -short -run TestConcurrentBuilds $(MODULE)/render
	$(LOW) env TEST_LABEL=race $(TEST) -race -short -run 'TestSeeds$$' $(MODULE)/simulate -seeds 26
else
	$(LOW) env TEST_LABEL=race $(TEST) -race -short -timeout 60m $(RACE_LONG)
endif

test-e2e: programs build localcluster kubectl gitea traefik helm ## Run only the tests with a real control plane (TIER=-short: the tests in make test)
	$(MAKE) --no-print-directory test-traffic
	.ci/with-cluster $(MAKE) --no-print-directory -j2 --output-sync test-program test-servers

# The parts of both tiers. Each part needs the programs that the tier builds.
test-plain:
ifeq ($(TIER),-short)
	$(LOW) $(TEST) -short -timeout 60m $(filter-out $(RACE),$(UNIT))
	$(LOW) $(TEST_REAL) -short -run '$(BOUNDED)' -timeout 60m $(MODULE)/render/worker
else
	$(LOW) $(TEST) -timeout 60m $(UNIT)
endif
	cd $(E2E) && $(LOW) $(TEST_REAL) $(TIER) ./schemas ./tracing ./plain $(if $(TIER),,./charts)

test-servers:
	TEST_LABEL=race $(TEST_REAL) -race -short -skip Gitea -parallel 8 -timeout 30m $(RACE_SERVERS)
	$(TEST_REAL) $(TIER) -p 2 -parallel 8 -timeout 30m $(if $(TIER),$(filter-out $(RACE_SERVERS),$(SERVERS)),$(SERVERS))

race-list:
	@echo $(RACE) $(RACE_LONG) $(RACE_SERVERS) $(RACE_ALL)

test-race-program: build localcluster
	TEST_LABEL=race .ci/with-cluster $(TEST_REAL) -race -short -parallel 8 -timeout 60m $(RACE_ALL)

test-program:
	cd $(E2E) && $(TEST_REAL) $(TIER) -p 2 -parallel 6 -timeout $(if $(TIER),45m,120m) . ./dashboard

test-traffic:
	cd $(E2E) && $(TEST_REAL) $(TIER) -timeout 20m ./traffic

test-demo:
	examples/demo.sh --fast
	$(if $(TIER),,examples/demo.sh --fast --fleet)

test-localcluster:
	cd $(NEST) && $(TEST_REAL) $(TIER) -timeout 20m ./...
	cd internal/release && $(TEST) $(TIER) ./...

mutants: build localcluster ## Run the tests on MUTANTS (20) mutants of the packages that differ from BASE (HEAD~1)
	@packages=$$(git diff --diff-filter=d --name-only '$(BASE)' -- analysis author call cluster cmd git publish reconciler render rollout strategies traffic views | \
		sed -n 's|/[^/]*\.go$$||p' | grep -v testdata | sort -u | sed 's|^|./|'); \
	[ -z "$$packages" ] || .ci/with-cluster $(GO) run ./internal/mutate -n $(MUTANTS) $$packages

vet:
	$(GO) vet ./...
	cd $(NEST) && $(GO) vet ./...
	cd $(E2E) && $(GO) vet ./...
	cd internal/release && $(GO) vet ./...

fmt-check:
	@out="$$(gofmt -l $$(git ls-files '*.go'))"; [ -z "$$out" ] || { echo "not formatted (run gofmt -w):"; echo "$$out"; exit 1; }

simulate: ## Run the reconciler through SEEDS (1000) random runs in simulated worlds; prints how to replay a failure
	$(GO) test ./simulate -run 'TestSeeds$$' -seeds $(SEEDS) -timeout 120m -v

bench: build localcluster kubectl ## Compare polls and pushes with git pull | kustomize | kubectl apply, a large repository with git, and fifty releases with one (BENCH=pattern, SIZES=flags of Restart)
	CGO_ENABLED=0 $(GO) build -o bin/gitrollout ./cmd/gitrollout # as in a release
	$(GO) test -run '^$$' -bench '$(BENCH)' -timeout 30m ./cmd/gitrollout ./git ./render/worker ./simulate
	cd $(E2E) && $(GO) test -run '^$$' -bench '$(BENCH)' -timeout 60m . $(SIZES)

hostile: build localcluster ## Release nine apps for HOSTILE (10m) while a tenth app pushes bombs; compare with releases without the tenth
	cd $(E2E) && GITROLLOUT_TEST_BINARY=$(ROOT)/bin/gitrollout $(GO) test -count=1 -v -run 'TestHostileHour$$' -hostile $(HOSTILE) -timeout 60m .

fuzz: ## Run each fuzz test for FUZZTIME (30s), one on each core
	@for pkg in $$($(GO) list ./...); do $(GO) test -list '^Fuzz' $$pkg | sed -n "s|^Fuzz|$$pkg &|p"; done | \
		xargs -P "$$(nproc)" -L 1 .ci/fuzz $(FUZZTIME)

lint: ## Run go vet and golangci-lint (built from the module proxy at the first run)
	$(GO) vet ./...
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) run ./...

vulncheck: ## Look for known vulnerabilities that the code reaches (needs https://vuln.go.dev, or GOVULNDB=file:///a/copy)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION) $(if $(GOVULNDB),-db $(GOVULNDB)) ./...

golden: ## Rewrite the tests' expected outputs; review the diff before you commit
	$(GO) test ./rollout/... ./strategies/... ./render/... ./author/... ./publish/metrics/... ./cmd/... -update
	cd internal/release && $(GO) test . -update

clean: ## Remove bin and dist
	rm -rf bin dist
