# Run `make` for the list of targets. Nothing here needs the network beyond the
# Go module proxy, and nothing needs a cluster or kubectl on the machine.

# The versions of what is built or run besides the module's own libraries.
# Those of libraries are in go.mod and in internal/{e2e,localcluster,gitea,traefik}/go.mod.
KUBERNETES_VERSION := v1.36.3
GITEA_VERSION      := 1.26.0
TRAEFIK_VERSION    := 3.7.5
GOLANGCI_VERSION   := v2.15.0

GO       ?= go
FUZZTIME ?= 30s
BENCH    ?= .
CONTEXT  ?=
SEEDS    ?= 1000

ROOT := $(CURDIR)
NEST := internal/localcluster
MODULE := gitrollout.dev/gitrollout
# Every package is in exactly one of these lists, which the code itself makes: a new one is never left out.
# SERVERS start a control plane, a forge or a proxy for their tests; the others need nothing but the test's process.
imports = $(GO) list -f '{{range $(1)}}{{$$.ImportPath}} {{.}}{{"\n"}}{{end}}' ./... | awk '$$2 ~ "$(2)" {print $$1}' | sort -u
SERVERS = $(shell { $(call imports,.TestImports,$(MODULE)/internal/(testcluster|giteatest|proxytest)$$); \
	$(call imports,.XTestImports,$(MODULE)/internal/(testcluster|giteatest|proxytest)$$); } | sort -u)
UNIT = $(filter-out $(SERVERS),$(shell $(GO) list ./...))
# Packages that can have a race at all: they import sync or context. internal/archtest holds that the others start no goroutine.
RACE = $(filter $(UNIT),$(shell $(call imports,.Imports,^(sync|sync/atomic|context)$$)))
# The tests of the whole program, a module of its own.
E2E  := internal/e2e
# Users of a real proxy are counted here: a starved proxy fails requests, whoever routes them.
ALONE := ./traffic ./analysis

.DEFAULT_GOAL := help
.PHONY: help programs build plugin localcluster kubectl gitea traefik demo test test-unit test-race test-e2e vet fmt-check simulate bench fuzz lint golden clean FORCE

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

programs: ## Install what the tests call and is missing, with apt-get where that is possible
	@.ci/programs

build: ## Build bin/gitrollout
	$(GO) build -o bin/gitrollout ./cmd/gitrollout

plugin: build ## Make bin/kubectl-gitrollout, so that kubectl gitrollout works with bin in the PATH, completions included
	ln -sf gitrollout bin/kubectl-gitrollout
	ln -sf gitrollout bin/kubectl_complete-gitrollout

# go build finds out by itself whether anything has changed: seconds if not.
localcluster: ## Build bin/localcluster, a Kubernetes control plane in one program (first time: about 5 minutes)
	@[ -x bin/localcluster ] || echo "building Kubernetes $(KUBERNETES_VERSION) from source: about 5 minutes the first time, seconds afterwards"
	cd $(NEST) && $(GO) build -o $(ROOT)/bin/localcluster .

kubectl: ## Build bin/kubectl, of the same version
	@[ -x bin/kubectl ] || echo "building kubectl $(KUBERNETES_VERSION) from source: about a minute"
	cd $(NEST) && $(GO) build -ldflags '-X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)' \
		-o $(ROOT)/bin/kubectl k8s.io/kubernetes/cmd/kubectl

gitea: ## Build bin/gitea, a forge for the tests (first time: about 6 minutes)
	@[ -x bin/gitea ] || echo "building Gitea $(GITEA_VERSION) from source: about 6 minutes the first time, seconds afterwards"
	cd internal/gitea && $(GO) build -tags 'sqlite sqlite_unlock_notify' -ldflags '-X main.Version=$(GITEA_VERSION)' \
		-o $(ROOT)/bin/gitea code.gitea.io/gitea

traefik: ## Build bin/traefik, a proxy for the tests (first time: about 6 minutes)
	@[ -x bin/traefik ] || echo "building Traefik $(TRAEFIK_VERSION) from source: about 6 minutes the first time, seconds afterwards"
	cd internal/traefik && $(GO) build -ldflags '-s -w -X github.com/traefik/traefik/v3/pkg/version.Version=$(TRAEFIK_VERSION)' \
		-o $(ROOT)/bin/traefik github.com/traefik/traefik/v3/cmd/traefik

demo: build localcluster kubectl ## See it work: a release, a promotion, a rollback, a blue-green switch (CONTEXT=name for your own cluster)
	@CONTEXT='$(CONTEXT)' examples/demo.sh

test: programs vet fmt-check build localcluster kubectl gitea traefik ## Run everything that CI runs
	examples/demo.sh --fast
	$(MAKE) --no-print-directory test-unit test-race test-e2e
	cd $(NEST) && $(GO) test -timeout 20m ./...

test-unit: ## Run the tests that need no cluster (under a minute)
	$(GO) test $(UNIT)
	cd $(E2E) && $(GO) test ./schemas ./tracing

test-race: ## Run what has goroutines and needs no cluster under the race detector
	$(GO) test -race -short -timeout 20m $(RACE)

test-e2e: programs build localcluster kubectl gitea traefik ## Run the tests against a real control plane, and nothing else
	$(GO) test -p 2 -timeout 30m $(SERVERS)
	cd $(E2E) && export GITROLLOUT_TEST_BINARY=$(ROOT)/bin/gitrollout; $(GO) test -p 2 -timeout 30m . ./dashboard && $(GO) test -p 1 -timeout 20m $(ALONE)

vet:
	$(GO) vet ./...
	cd $(NEST) && $(GO) vet ./...
	cd $(E2E) && $(GO) vet ./...

fmt-check:
	@out="$$(gofmt -l $$(git ls-files '*.go'))"; [ -z "$$out" ] || { echo "not formatted (run gofmt -w):"; echo "$$out"; exit 1; }

simulate: ## Live SEEDS (1000) random lives of the real loop in simulated worlds; prints how to replay what fails
	$(GO) test ./simulate -run 'TestSeeds$$' -seeds $(SEEDS) -timeout 120m -v

bench: localcluster kubectl ## Measure polls and pushes beside git pull | kustomize | kubectl apply, a large repository beside git, and fifty releases at once beside one (BENCH=pattern)
	$(GO) test -run '^$$' -bench '$(BENCH)' -timeout 30m ./cmd/gitrollout ./git
	cd $(E2E) && $(GO) test -run '^$$' -bench '$(BENCH)' -timeout 30m .

fuzz: ## Run each fuzz test for FUZZTIME (30s)
	@for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

lint: ## Run go vet and golangci-lint (built from the module proxy at the first run)
	$(GO) vet ./...
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION) run ./...

golden: ## Write the expected outputs of the tests anew; look at the diff before committing
	$(GO) test ./rollout/... ./strategies/... ./render/... ./publish/metrics/... ./cmd/... -update

clean: ## Remove what was built
	rm -rf bin
