# Everything a user or a machine calls. `make demo` and `make test` are the two to know.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo binary build agents assets check test test-all test-root test-times test-list draw format vet darwin lint \
  fuzz mutants trust bench bench-peers man install release image clean

BIN    := bin/plimsoll
GO     := CGO_ENABLED=0 go
# Stated in every run folder. Not left to the toolchain's own stamp, which some environments switch off. Without -trimpath
# and with the tests' own settings, so that both are compiled once; releases have it.
REVISION := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
BUILD  := $(GO) build -ldflags "-X plimsoll/internal/cli/console.revision=$(REVISION)" -o $(BIN) ./cmd/plimsoll

# The version of packages: the last tag and the commits since, or the date of the commit.
VERSION := $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//' | grep . || \
  git log -1 --format=0.0.%cd --date=format:%Y%m%d 2>/dev/null)
# Who makes packages answers for them: make release MAINTAINER='Name <address>', else by git's configuration.
MAINTAINER ?= $(shell git config user.name) <$(shell git config user.email)>
# What makes packages for Debian and for Red Hat, pinned; it is compiled when it is first used.
NFPM := go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.1

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: ## the shipped colocation scenario, scaled, with real fio on this machine: about two minutes
	@setup/install demo
	$(BUILD)
	./$(BIN) run db-colocation --target local --nodes 4 --time-scale 0.02 --size-scale 0.002

agents: ## bin/plimsoll-agent-linux-{amd64,arm64}, which --target ssh puts on hosts
	for arch in amd64 arm64; do \
	  GOOS=linux GOARCH=$$arch $(GO) build -ldflags "-s -w" -o bin/plimsoll-agent-linux-$$arch ./cmd/plimsoll-agent; done

binary: ## bin/plimsoll alone
	$(BUILD)

build: agents ## bin/plimsoll and its agents
	$(BUILD)

assets: ## renew the report's chart library, which is in the repository (needs npm)
	sh internal/report/assets.sh

TIER := go run ./internal/testkit/tier
check: format vet lint ## minutes: format, vet, lint, build, and the tests that are pure and quick
	$(GO) build ./...
	$(TIER) run -short

test: ## everything a user can break, with what that takes installed: a quarter of an hour on two processors
	@setup/install test
	@$(MAKE) --no-print-directory format vet darwin build
	$(TIER) run $(if $(AGAIN),-again)
	@if [ "$$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then $(MAKE) --no-print-directory test-root; fi

test-all: ## all of it, in any length: full sweeps, every guest, all under the race detector, fuzz, mutants, rates
	@setup/install test
	@$(MAKE) --no-print-directory format vet darwin build
	PLIMSOLL_CI=1 $(TIER) run -long -race
	$(MAKE) fuzz mutants trust

draw: ## a slice of what test-all has beyond test (MINUTES=15, SEED=: the number of commits)
	$(TIER) draw -minutes $(or $(MINUTES),15) $(if $(SEED),-seed $(SEED)) -record bin/drawn.json

test-times: ## the slowest 40 packages and tests of the last make test, and what compiling took
	@$(TIER) times

test-list: ## the tests that make test leaves to test-all, and how many there are
	@$(TIER) list

format:
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w): $$unformatted" >&2; exit 1; fi

vet:
	$(GO) vet ./...

darwin: ## whether a release for another system builds
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/plimsoll

# The linter is built once and kept in bin/. Where it cannot be had, that is said, and gofmt and vet are what was looked at.
LINT := bin/golangci-lint-2.15.0
lint: ## golangci-lint by .golangci.yml
	@if [ ! -x $(LINT) ]; then mkdir -p bin && echo "building golangci-lint 2.15.0: a minute or two, once" && \
	  if GOBIN=$(CURDIR)/bin GOFLAGS= CGO_ENABLED=0 timeout 600 \
	    go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0; \
	  then mv bin/golangci-lint $(LINT); else echo "no linter: golangci-lint 2.15.0 could not be built here" >&2; fi; fi
	@if [ -x $(LINT) ]; then CGO_ENABLED=0 $(LINT) run; fi

# Devices and network namespaces are root's: their tests, where make test is another user's and sudo asks for no password.
test-root:
	@root=$$(mktemp -d); trap 'rm -r "$$root"' EXIT; \
	for package in internal/storage/device/guard internal/targets/local internal/targets/ssh internal/targets/lab/cluster; do \
	  go test -c -o "$$root/tests" "./$$package"; run='Refus|Consent|Recheck|Gone|OpenRead|Raw|DeviceOnTheHost'; \
	  if [ $$package = internal/targets/lab/cluster ]; then run=.; fi; \
	  (cd "$$package" && sudo -n env PLIMSOLL_CI=$$PLIMSOLL_CI "$$root/tests" -test.run "$$run"); done

fuzz: ## every fuzz target for two thousand inputs, the packages in an order left to chance
	@go list ./... | sort -R | while read -r pkg; do \
	  dir=$$(go list -f '{{.Dir}}' "$$pkg"); \
	  { grep -ho '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go 2>/dev/null || true; } | sed 's/^func //' | while read -r target; do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime 2000x -fuzzminimizetime 10x "$$pkg"; done; done

mutants: ## what the tests do not notice: small changes to what data depend on (SEED=, SAMPLE=, ONLY=)
	go test -count 1 -run TestMutants -timeout 0 -v ./internal/testkit/mutants -args -mutants \
	  -seed $(or $(SEED),1) -sample $(or $(SAMPLE),0) -only '$(ONLY)'

trust: ## every rate that docs/analysis-statistics.md claims, measured anew: under 15 minutes (SEED=, ONLY=, SHARE=, UPDATE=1)
	go test -count 1 -run TestTrust -timeout 60m -v ./internal/testkit/trust -args -trust \
	  -seed $(or $(SEED),0) -share $(or $(SHARE),1) -only '$(ONLY)' $(if $(UPDATE),-page)

bench: ## the benchmarks behind docs/performance.md
	go test -run '^$$' -bench . -benchmem ./...

bench-peers: ## beside fio, and trace beside blkparse and btt, as tables (DIR=/dev/shm: bound by the processor)
	go test -count 1 -run TestCost -timeout 20m -p 1 -v ./internal/workloads/tprocc/driver/postgres ./internal/workloads/tprocc/driver/mariadb -args -peers
	go test -count 1 -run TestTraceBesideBlkparse -timeout 10m -v ./cmd/plimsoll -args -peers
	go test -count 1 -run TestBesidePgbench -timeout 20m -v ./internal/workloads/pg/pgload -args -peers
	go test -count 1 -run 'TestBesidePlainFio|TestVioperfBesideFio' -timeout 40m -v ./cmd/plimsoll -args -peers $(if $(DIR),-peers-dir $(DIR))

man: ## bin/man/man1: the manual pages
	$(BUILD)
	rm -rf bin/man && env -u PLIMSOLL_DIR -u PLIMSOLL_RUNS ./$(BIN) man --quiet bin/man/man1

install: build man ## plimsoll to $(PREFIX)/bin, agents to $(PREFIX)/libexec/plimsoll, manual to $(PREFIX)/share/man
	install -D -m 0755 $(BIN) $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/plimsoll
	install -D -m 0755 -t $(DESTDIR)$(or $(PREFIX),/usr/local)/libexec/plimsoll bin/plimsoll-agent-linux-*
	install -D -m 0644 -t $(DESTDIR)$(or $(PREFIX),/usr/local)/share/man/man1 bin/man/man1/*.1

# Static archives for Linux, and for macOS, where analysis and simulation work and the local target does not.
release: build man ## dist/: archives for amd64 and arm64 with completions and manual, and their checksums
	rm -rf dist && mkdir -p dist/completions
	for shell in bash zsh fish; do ./$(BIN) completion $$shell > dist/completions/plimsoll.$$shell; done
	for system in linux/amd64 linux/arm64 darwin/arm64; do \
	  dir=dist/plimsoll-$${system//\//-}; mkdir -p $$dir; \
	  GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) build -trimpath \
	    -ldflags "-s -w -X plimsoll/internal/cli/console.revision=$(REVISION)" -o $$dir/plimsoll ./cmd/plimsoll; \
	  cp -r LICENSE README.md CHANGELOG.md dist/completions bin/man bin/plimsoll-agent-linux-* $$dir/; \
	  if [ $${system%/*} = linux ]; then for kind in deb rpm; do ARCH=$${system#*/} VERSION=$(VERSION) DIR=$$dir MAINTAINER='$(MAINTAINER)' \
	    $(NFPM) package --config setup/nfpm.yaml --packager $$kind --target dist/; done; fi; \
	  tar -C dist --sort=name --owner=0 --group=0 --numeric-owner -czf $$dir.tar.gz $$(basename $$dir); rm -r $$dir; done
	rm -r dist/completions
	cd dist && sha256sum *.tar.gz *.deb *.rpm > SHA256SUMS

image: ## the container image, by what builds images without being root: buildah or podman; else docker
	@for tool in buildah podman docker; do if command -v $$tool >/dev/null; then \
	  exec $$tool build -f Containerfile -t plimsoll .; fi; done; \
	  echo "make image: there is no buildah, podman or docker: apt install buildah builds it without root" >&2; exit 1

clean: ## remove what was built; runs are kept
	rm -rf bin dist internal/report/node_modules
