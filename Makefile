# Each target with a text behind ## appears in "make help".

VERSION     ?= 0.4.0
# Where the project's images are published: make generate writes it to all who name it.
REGISTRY    := registry.seang.org
DEFAULT_IMG := $(REGISTRY)/redis-operator:v$(VERSION)
IMG         ?= $(DEFAULT_IMG)
# The default Redis of config/manager, and what to deploy in its place: an embedded
# cluster runs an image that is built from Debian's packages.
DEFAULT_REDIS_IMG := $(shell sed -n 's/.*value: \(.*redis:.*\)/\1/p' config/manager/manager.yaml)
REDIS_IMG         ?= $(if $(KUBECONFIG),$(DEFAULT_REDIS_IMG),docker.io/library/redis:8.0)

# Installs go to the cluster of KUBECONFIG where it is given, else to an embedded one.
KUBECONFIG   ?=
CLUSTER_NAME ?= demo

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help

TOOL    := go tool -modfile=$(CURDIR)/tools/go.mod
STAGES  := go run ./test/stages
CLUSTER  = $(CURDIR)/bin/cluster --name $(CLUSTER_NAME)
IMAGES  := go run -C test/images .
GOTEST  := $(TOOL) gotestsum --format pkgname-and-test-fails --hide-summary=skipped -- -timeout 30m
LINT    := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/redis-operator/lint-$(shell cat tools/go.sum tools/lint/*.go | sha256sum | cut -c1-12)
SDK     := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/redis-operator/operator-sdk-$(shell sha256sum tools/olm/go.sum | cut -c1-12)

# Modules, as directories. Those in test/cluster/build only wrap programs of others:
# building them is their check, and to vet them would compile Kubernetes once more.
MODULES := $(patsubst %/,%,$(dir $(shell git ls-files -co --exclude-standard go.mod '*/go.mod')))
OWN     := $(filter-out tools tools/olm test/cluster/build/%,$(MODULES))
each     = for m in $(1); do echo "module $$(cd $$m; go list -m)"; (cd $$m; $(2)); done
each-module = $(call each,$(OWN) tools,$(1))

# Without KUBECONFIG: kubectl, images and addresses of the embedded cluster.
in-cluster = $(if $(KUBECONFIG),,$(CLUSTER) exec --)
kubectl    = $(in-cluster) kubectl

.NOTPARALLEL:

##@ Everyday

help: ## list the targets
	@awk -F ':.*## ' '/^##@/ {print "\n" substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the operator into bin/manager
	go build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=v$(VERSION)' -o bin/manager .

generate: manifests ## write all that is generated: deep copies, CRD, RBAC, reference, the name of the registry
	@sed -i 's#[^ "/]*/redis-operator-#$(REGISTRY)/redis-operator-#' $(filter %.yaml,$(NAME_REGISTRY))
	@sed -i 's#^const \(Host\|Registry\) = ".*"#const \1 = "$(REGISTRY)"#' $(filter %.go,$(NAME_REGISTRY))
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) crd-ref-docs --source-path=api --config=docs/reference/config.yaml --renderer=markdown --log-level=ERROR --output-path=docs/reference/api.md

manifests: ## write config/crd, config/rbac/role.yaml and the image in config/manager
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	$(TOOL) controller-gen rbac:roleName=manager-role paths=./controllers/... output:rbac:dir=config/rbac
	cd config/manager && $(TOOL) kustomize edit set image controller=$(DEFAULT_IMG)

fmt: $(LINT) ## format the code
	@$(call each,$(OWN),$(LINT) fmt -c $(CURDIR)/.golangci.yml ./...)

##@ Checks

verify: ## all checks: what is generated, config, go.mod, vet, lint, vulnerabilities
	@$(STAGES) generated bundle-fresh catalog-fresh config tidy vet lint vuln

# What names the registry, beside config/manager, the bundle and the catalog.
NAME_REGISTRY := config/scorecard/config.yaml catalog/install.yaml test/registry/registry.go test/images/reference/reference.go
GENERATED := $(NAME_REGISTRY) api/v1alpha1/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml config/manager/kustomization.yaml docs/reference/api.md

generated: ## fail if generating would change anything
	@before=$$(mktemp -d); trap 'rm -rf $$before' EXIT; stale=; \
	cp -r --parents $(GENERATED) $$before; $(MAKE) -s generate; \
	for f in $(GENERATED); do diff -ru $$before/$$f $$f || stale+=" $$f"; done; \
	[ -z "$$stale" ] || { echo "stale, and written anew:$$stale"; exit 1; }

config: ## build each kustomization in config
	@for f in config/*/kustomization.yaml; do $(TOOL) kustomize build $$(dirname $$f) >/dev/null; echo "built $$f"; done

tidy: ## fail if a go.mod or go.sum is not tidy
	@$(call each,$(MODULES),go mod tidy -diff)

vet: ## go vet in all modules
	@$(call each-module,go vet ./...)

lint: $(LINT) ## golangci-lint, with kube-api-linter on api/
	@$(call each,$(OWN),$(LINT) run -c $(CURDIR)/.golangci.yml ./...)

$(LINT): | tools/go.sum
	@echo 'building golangci-lint, once: takes some minutes'; go build -C tools -o $@ ./lint

vuln: ## govulncheck of the operator, where its database can be reached
	@test/vuln.sh $(TOOL) govulncheck ./...

##@ Tests

test: ## all tests: docs/testing.md
	@$(STAGES) test-unit test-simulation test-redis test-api test-cluster test-e2e

# Tests that need more than Go ask a package of internal/testkit for it, and skip
# where it is not named in the environment, or with -short. The stages find them by
# that import.
using = git grep -l --untracked 'internal/testkit/$(1)"' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,'

test-unit: ## tests that need nothing but Go
	@$(call each,$(OWN),env -u KUBECONFIG $(GOTEST) -short ./...)

test-simulation: ## the planner in 20,000 schedules of failures, and with each rule switched off
	@$(call each,.,$(GOTEST) ./internal/testkit/simulation)

# What needs an API server too is for test-api.
test-redis: ## tests against real Redis and Valkey servers
	@export REDIS_ROOTS=$$($(IMAGES) roots --print | paste -sd:); $(call each,.,$(GOTEST) $$(comm -23 <($(call using,redisserver)) <($(call using,apiserver))))

test-api: bin/cluster ## tests against a real API server, some with real Redis servers
	@export KUBEBUILDER_ASSETS=$$($(CLUSTER) build kubernetes) REDIS_ROOTS=$$($(IMAGES) roots --print | paste -sd:); $(call each,.,$(GOTEST) $$($(call using,apiserver)))

test-cert-manager: bin/cluster ## certificates of cert-manager's own controllers, which take some minutes to build
	@export KUBEBUILDER_ASSETS=$$($(CLUSTER) build kubernetes) REDIS_ROOTS=$$($(IMAGES) roots --print | paste -sd:) \
	  CERT_MANAGER=$$($(CLUSTER) build certmanager)/certmanager; $(GOTEST) -count 1 ./controllers -run TestCertManager

test-cluster: ## tests of the embedded Kubernetes and of the images
	@$(call each,test/cluster test/images,$(GOTEST) ./...)

# Those that wait for minutes are for test-e2e-all and chaos.
e2e-story = $(if $(KUBECONFIG),,trap '$(CLUSTER) down' EXIT;) $(MAKE) deploy CLUSTER_NAME=$(CLUSTER_NAME); \
	$(call each,.,$(GOTEST) -count 1 $(if $(in-cluster),-exec '$(in-cluster)') ./test/e2e -args -ginkgo.label-filter '$(1)')

test-e2e: CLUSTER_NAME := e2e
test-e2e: bin/cluster ## tests of the operator on a real Kubernetes, removed afterwards
	@$(call e2e-story,!long)

test-e2e-all: CLUSTER_NAME := e2e
test-e2e-all: bin/cluster ## all of them: with passwords, TLS, and that each permission is used
	@$(call e2e-story,)

# Of OLM's tests those that fit into the budget; the rest is for test-olm-all.
olm-story = trap '$(CLUSTER) down' EXIT; $(MAKE) olm-up olm-releases CLUSTER_NAME=$(CLUSTER_NAME); \
	$(call each,.,$(GOTEST) -count 1 -exec '$(CLUSTER) exec --' ./test/olm -args -next $(VERSION) -clusters $(1) -ginkgo.label-filter '$(2)' -ginkgo.v)

test-olm: CLUSTER_NAME := olm
test-olm: bin/cluster ## tests of installation and upgrades through OLM, on a cluster that is removed afterwards
	@$(call olm-story,3,!long)

test-olm-all: CLUSTER_NAME := olm
test-olm-all: bin/cluster ## all of them, with 20 RedisClusters
	@$(call olm-story,20,)

##@ Campaigns: hours, not minutes

N         ?= 10
SEED      ?= 1
SCHEDULES ?= 3000000
FIRST     ?= 1
REPORTS   ?= $(CURDIR)/reports

chaos: CLUSTER_NAME := chaos
chaos: bin/cluster ## all end-to-end tests N times, in another order each: N=10 SEED=1 REPORTS=directory
	@mkdir -p $(REPORTS); $(if $(KUBECONFIG),,trap '$(CLUSTER) down' EXIT;) $(MAKE) deploy CLUSTER_NAME=$(CLUSTER_NAME); failed=0; \
	for i in $$(seq $(N)); do seed=$$(( $(SEED) + i - 1 )); \
	  go test -timeout 0 -count 1 $(if $(in-cluster),-exec '$(in-cluster)') ./test/e2e -args -ginkgo.randomize-all -ginkgo.seed=$$seed \
	    -ginkgo.json-report=$(REPORTS)/chaos-$$seed.json || failed=$$(( failed + 1 )); \
	done; echo "$$failed of $(N) rounds failed; their reports, with a timeline of each test: $(REPORTS)"; [ $$failed = 0 ]

soak: bin/cluster ## the simulation SCHEDULES times, and a crash of the operator after each of its writes, without a sample
	@go test -count 1 -timeout 0 ./internal/testkit/simulation -run TestNoSchedule -first $(FIRST) -schedules $(SCHEDULES) -v
	@export CRASH_ALL=1 KUBEBUILDER_ASSETS=$$($(CLUSTER) build kubernetes) REDIS_ROOTS=$$($(IMAGES) roots --print | paste -sd:); \
	go test -count 1 -timeout 0 ./controllers

##@ Benchmarks

ONLY ?=
OUT  ?=

# noop-rate brings an API server of its own; alone it needs no cluster.
standalone = $(filter noop-rate,$(ONLY))
apiserver  = $(if $(ONLY),$(findstring noop-rate,$(ONLY)),all)

# Those of OLM want it, and the images of all releases; a cluster of KUBECONFIG must have them.
olm-wanted = $(if $(KUBECONFIG),,$(if $(ONLY),$(findstring olm-,$(ONLY)),all))

bench: $(if $(standalone),,deploy) $(if $(apiserver),bin/cluster) $(if $(olm-wanted),olm-up olm-releases) ## run benchmarks: ONLY=name,… OUT=file.json
	@$(if $(apiserver),export KUBEBUILDER_ASSETS=$$($(CLUSTER) build kubernetes);) \
	go run $(if $(standalone),,$(if $(in-cluster),-exec '$(in-cluster)')) ./test/bench -only '$(ONLY)' -out '$(OUT)' -version $(VERSION)

##@ Embedded Kubernetes

bin/cluster:
	@go build -C test/cluster -o $(CURDIR)/$@ .

cluster-up: bin/cluster ## start an embedded Kubernetes, or repair what does not run of it
	@$(CLUSTER) up

cluster-down: bin/cluster ## remove it without a trace
	@$(CLUSTER) down

cluster-status: bin/cluster ## show its processes and nodes, and how to reach it
	@$(CLUSTER) status

cluster-load: bin/cluster ## build the images and put them into its registry
	@$(CLUSTER) load $$($(MAKE) --no-print-directory images)

images: ## build the images of the operator, Redis and Valkey, and print REFERENCE=FILE of each
	@$(IMAGES) build
	@$(IMAGES) build operator --source $(CURDIR) --version v$(VERSION)

images-arm64: ## cross-build the operator's image for arm64, which nothing here runs
	@$(IMAGES) build operator --source $(CURDIR) --version v$(VERSION) --arch arm64

##@ The Operator Lifecycle Manager

CATALOG_IMG := $(REGISTRY)/redis-operator-catalog:latest
CSV_BASE    := config/manifests/bases/redis-operator.clusterserviceversion.yaml

# operator-sdk takes the time of the clock for createdAt: the base's is put back, so
# that the same sources give the same bytes.
bundle: manifests $(SDK) ## write bundle/ and bundle.Dockerfile of VERSION=x.y.z from config/manifests
	@$(SDK) generate kustomize manifests -q --interactive=false --apis-dir api --package redis-operator
	@$(TOOL) kustomize build config/manifests | $(SDK) generate bundle -q --overwrite --version $(VERSION) --package redis-operator --channels candidate,stable --default-channel stable
	@created=$$(sed -n 's/^    createdAt: //p' $(CSV_BASE)); sed -i "s/^    createdAt: .*/    createdAt: $$created/" bundle/manifests/*.clusterserviceversion.yaml
	@$(SDK) bundle validate ./bundle

bundle-fresh: ## fail if bundle/ is not what "make bundle" writes
	@before=$$(mktemp -d); trap 'rm -rf $$before' EXIT; cp -r --parents bundle bundle.Dockerfile $(CSV_BASE) $$before; \
	$(MAKE) -s bundle; for f in bundle bundle.Dockerfile $(CSV_BASE); do diff -ru $$before/$$f $$f || { echo "$$f was stale, and is written anew"; exit 1; }; done

$(SDK): | tools/olm/go.sum
	@echo 'building operator-sdk, once: takes some minutes'
	@CGO_ENABLED=0 go build -C tools/olm -trimpath -tags 'containers_image_openpgp exclude_graphdriver_btrfs' \
	  -ldflags "-s -w -X github.com/operator-framework/operator-sdk/internal/version.Version=$$(go list -C tools/olm -m -f '{{.Version}}' github.com/operator-framework/operator-sdk)" \
	  -o $@ github.com/operator-framework/operator-sdk/cmd/operator-sdk

# operator-sdk's own tests are a program of its module; an image with GNU tar is stood
# in for.
SCORECARD_PROGRAMS := $(CURDIR)/bin/scorecard
SCORECARD_TEST     := quay.io/operator-framework/scorecard-test:v1.42.3
UNTAR_IMG          := $(REGISTRY)/test/tar:v1

scorecard: deploy scorecard-load $(SDK) ## run operator-sdk's basic and olm tests, and our own of scorecard/, on the bundle
	@$(kubectl) apply --server-side -f scorecard/account.yaml >/dev/null
	@$(in-cluster) $(SDK) scorecard bundle --namespace redis-scorecard --service-account scorecard --pod-security restricted \
	  --untar-image $(UNTAR_IMG) --wait-time 8m --output json | go run ./test/scorecard

scorecard-broken: deploy ## show that each of our scorecard tests fails against a broken operator
	@go test -count 1 -v $(if $(in-cluster),-exec '$(in-cluster)') ./scorecard -run BrokenOperator

scorecard-load: bin/cluster
	@$(if $(KUBECONFIG),,$(CLUSTER) load $$($(MAKE) --no-print-directory scorecard-images) >/dev/null)

# Builds its images, and prints REFERENCE=FILE of each.
scorecard-images:
	@CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(SCORECARD_PROGRAMS)/ ./scorecard ./test/scorecard/tar
	@CGO_ENABLED=0 go build -C tools/olm -trimpath -tags 'containers_image_openpgp exclude_graphdriver_btrfs' -ldflags '-s -w' \
	  -o $(SCORECARD_PROGRAMS)/ github.com/operator-framework/operator-sdk/images/scorecard-test
	@$(IMAGES) program $(REGISTRY)/redis-operator-scorecard:v$(VERSION) $(SCORECARD_PROGRAMS)/scorecard
	@$(IMAGES) program $(SCORECARD_TEST) $(SCORECARD_PROGRAMS)/scorecard-test
	@$(IMAGES) program $(UNTAR_IMG) $(SCORECARD_PROGRAMS)/tar

OLM_MODULE := github.com/operator-framework/operator-lifecycle-manager

olm-up: $(if $(KUBECONFIG),,cluster-up olm-load) ## install OLM v0 from its own manifests
	@cd test/cluster/build/olm; go mod download $(OLM_MODULE)
	@dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT; \
	deploy=$$(go list -C test/cluster/build/olm -m -f '{{.Dir}}' $(OLM_MODULE))/deploy; \
	cp test/olm/install/*.yaml $$deploy/upstream/quickstart/olm.yaml $$dir; \
	$(kubectl) apply --server-side -f $$deploy/chart/crds >/dev/null; \
	$(kubectl) wait --for condition=Established -f $$deploy/chart/crds >/dev/null; \
	timeout 30 bash -c 'until $(kubectl) get olmconfigs,operatorgroups -A; do sleep 0.3; done' >/dev/null 2>&1; \
	$(TOOL) kustomize build $$dir | $(kubectl) apply --server-side -f -
	@for d in olm-operator catalog-operator; do $(kubectl) -n olm rollout status deployment/$$d --timeout 3m; done

RELEASES = go run ./test/olm/releases -opm $$($(CLUSTER) build olm)/opm

catalog: bin/cluster ## write and validate catalog/redis-operator from catalog/package.yaml and releases.yaml
	@$(RELEASES) render

catalog-fresh: ## fail if the catalog is not what "make catalog" writes
	@before=$$(mktemp -d); trap 'rm -rf $$before' EXIT; cp -r catalog/redis-operator $$before; \
	$(MAKE) -s catalog; diff -ru $$before/redis-operator catalog/redis-operator || { echo "the catalog was stale, and is written anew"; exit 1; }

catalog-image: bin/cluster ## build the image that serves the catalog, and print REFERENCE=FILE
	@$(IMAGES) build opm --programs $$($(CLUSTER) build olm) >/dev/null
	@$(IMAGES) catalog $(CATALOG_IMG) $(CURDIR)/catalog/redis-operator

# All releases, the working tree as the next one, and the catalogs of the tests.
olm-releases: bin/cluster
	@$(CLUSTER) load $$($(MAKE) --no-print-directory images catalog-image) $$($(RELEASES) -version $(VERSION) all) >/dev/null

# The working tree as the next release.
olm-next: cluster-load
	@$(CLUSTER) load $$($(RELEASES) -version $(VERSION) next) >/dev/null

olm-load: bin/cluster
	@$(CLUSTER) load $$($(IMAGES) build olm opm --programs $$($(CLUSTER) build olm)) >/dev/null

##@ The operator on a cluster

# One of OLM would put its own back: it gives way, and the RedisClusters stay.
own-namespace = $(kubectl) -n redis-operator-system
leave-olm = if [ -n "$$($(own-namespace) get clusterserviceversions.operators.coreos.com -o name 2>/dev/null)" ]; then \
	$(own-namespace) delete subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com --all; \
	$(own-namespace) wait --for delete deployment/redis-operator-controller-manager --timeout 1m; fi

deploy: $(if $(KUBECONFIG),,cluster-up cluster-load) ## install the operator from config/
	@$(leave-olm)
	@$(TOOL) kustomize build config/default | sed 's#$(DEFAULT_IMG)#$(IMG)#; s#$(DEFAULT_REDIS_IMG)#$(REDIS_IMG)#' | $(kubectl) apply --server-side -f -
	@$(kubectl) -n redis-operator-system rollout status deployment/redis-operator-controller-manager --timeout 2m

undeploy: ## remove the operator and, with its CRD, all RedisClusters
	@$(leave-olm)
	@$(TOOL) kustomize build config/default | $(kubectl) delete --ignore-not-found -f -

# To a cluster of KUBECONFIG from config/; through OLM, which it must have, where CATALOG
# names an image that it can pull.
CATALOG ?= $(if $(KUBECONFIG),,$(CATALOG_IMG:latest=v$(VERSION)))

demo: $(if $(KUBECONFIG),$(if $(CATALOG),,deploy),olm-up olm-next) ## install through OLM, and show a RedisCluster live through writes, the loss of its primary and scaling
	@CGO_ENABLED=0 go run $(if $(in-cluster),-exec '$(in-cluster)') ./test/demo $(if $(CATALOG),-catalog $(CATALOG))

demo-down: $(if $(KUBECONFIG),undeploy,cluster-down) ## remove what the demo made

# All targets are commands, bin/cluster included: go build knows what is up to date.
.PHONY: bin/cluster $(shell sed -n 's/^\([a-z0-9-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST)))
