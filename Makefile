# Each target with a text behind ## appears in "make help".

VERSION ?= 0.1.0
IMG     ?= registry.seang.org/redis-operator:v$(VERSION)

# Installs go to the cluster of KUBECONFIG where it is given, else to an embedded one.
export KUBECONFIG
CLUSTER_NAME ?= demo

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help

# No C compiler is needed, and all targets share one build cache.
export CGO_ENABLED := 0

TOOL    := go tool -modfile=$(CURDIR)/tools/go.mod
STAGES  := go run ./test/stages
CLUSTER := go run -C test/cluster . --name $(CLUSTER_NAME)
IMAGES  := go run -C test/images .
GOTEST  := $(TOOL) gotestsum --format pkgname-and-test-fails --hide-summary=skipped -- -timeout 30m
LINT    := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/redis-operator/lint-$(shell cat tools/go.sum tools/lint/*.go | sha256sum | cut -c1-12)

# Modules, as directories. Those in test/cluster/build wrap a program of others:
# they have no tests, and are compiled with the flags of test/cluster to do it once.
# The one of containerd has no code at all.
MODULES := $(patsubst %/,%,$(dir $(shell git ls-files -co --exclude-standard go.mod '*/go.mod')))
WRAPPED := $(filter test/cluster/build/%,$(MODULES))
OWN     := $(filter-out $(WRAPPED),$(MODULES))
each     = for m in $(1); do echo "module $$(cd $$m; go list -m)"; (cd $$m; $(2)); done
each-module = $(call each,$(OWN),$(1)); export GOFLAGS="$${GOFLAGS:-} -trimpath"; \
	$(call each,$(filter-out %/containerd,$(WRAPPED)),$(1))

##@ Everyday

help: ## list the targets
	@awk -F ':.*## ' '/^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the operator into bin/manager
	go build -trimpath -ldflags '-s -w' -o bin/manager .

generate: manifests ## write all that is generated: deep copies, CRD, RBAC, reference
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) crd-ref-docs --source-path=api --config=docs/reference/config.yaml --renderer=markdown --output-path=docs/reference/api.md

manifests: ## write config/crd, config/rbac/role.yaml and the image in config/manager
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	$(TOOL) controller-gen rbac:roleName=manager-role paths=./controllers/... output:rbac:dir=config/rbac
	cd config/manager && $(TOOL) kustomize edit set image controller=registry.seang.org/redis-operator:v$(VERSION)

fmt: $(LINT) ## format the code
	@$(call each,$(OWN),$(LINT) fmt -c $(CURDIR)/.golangci.yml ./...)

##@ Checks

verify: ## all checks: what is generated, config, go.mod, vet, lint, vulnerabilities
	@$(STAGES) generated config tidy vet lint vuln

GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml config/manager/kustomization.yaml docs/reference/api.md

generated: ## fail if generating would change anything
	@before=$$(mktemp -d); trap 'rm -rf $$before' EXIT; \
	cp -r --parents $(GENERATED) $$before; $(MAKE) -s generate; \
	for f in $(GENERATED); do diff -ru $$before/$$f $$f; done || { echo 'generated files were stale: commit the result of make generate'; exit 1; }

config: ## build each kustomization in config
	@for f in config/*/kustomization.yaml; do $(TOOL) kustomize build $$(dirname $$f) >/dev/null && echo "built $$f"; done

tidy: ## fail if a go.mod or go.sum is not tidy
	@$(call each,$(MODULES),go mod tidy -diff)

vet: ## go vet in all modules
	@$(call each-module,go vet ./...)

lint: $(LINT) ## golangci-lint in all modules, kube-api-linter on api/
	@$(call each-module,$(LINT) run -c $(CURDIR)/.golangci.yml ./...)

$(LINT): | tools/go.sum
	@echo 'building golangci-lint, once: takes some minutes'; go build -C tools -o $@ ./lint

vuln: ## govulncheck of the operator, where its database can be reached
	@test/vuln.sh $(TOOL) govulncheck ./...

##@ Tests

test: ## all tests
	@$(STAGES) test-unit test-redis test-api test-cluster test-e2e

# Tests of one layer read an environment variable and skip without it. Go caches
# the result of those that do not read it, so that a stage runs its own tests only.
unit := env -u KUBECONFIG -u KUBEBUILDER_ASSETS -u REDIS_ROOTS

test-unit: ## tests that need nothing but Go
	@$(call each,$(OWN),$(unit) $(GOTEST) -short ./...)

test-redis: ## tests against real Redis and Valkey servers
	@roots=$$($(IMAGES) roots); REDIS_ROOTS=$$roots $(GOTEST) ./internal/...

test-api: ## tests against a real API server
	@assets=$$($(CLUSTER) build kubernetes); KUBEBUILDER_ASSETS=$$assets $(GOTEST) ./api/... ./controllers/... ./internal/... ./config/...

test-cluster: ## tests of the embedded Kubernetes and of the images
	@$(call each,test/cluster test/images,$(GOTEST) ./...)
