# Everything a user or a machine calls. `make demo` and `make test` are the two to know.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo build agents binary test fuzz mutants trust bench bench-peers fio man install release clean

BIN    := bin/plimsoll
VENDOR := internal/report/assets/vendor/uPlot.iife.min.js
GO     := CGO_ENABLED=0 go
# Stated in every run folder. Not left to the toolchain's own stamp, which some environments switch off.
REVISION := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
BUILD  := $(GO) build -trimpath -ldflags "-X plimsoll/internal/cli.revision=$(REVISION)" -o $(BIN) ./cmd/plimsoll

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: fio binary ## the shipped colocation scenario, scaled, with real fio on this machine: about two minutes
	./$(BIN) run db-colocation --target local --nodes 4 --time-scale 0.02 --size-scale 0.002

agents: ## bin/plimsoll-agent-linux-{amd64,arm64}, which --target ssh puts on hosts
	for arch in amd64 arm64; do \
	  GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags "-s -w" -o bin/plimsoll-agent-linux-$$arch ./cmd/plimsoll-agent; done

build: $(VENDOR) agents ## bin/plimsoll, complete (needs npm for the charts of the report)
	$(BUILD)

# The demo's binary: complete where npm is, else with the report's static drawings only.
binary:
	@if [ ! -f $(VENDOR) ] && ! command -v npm >/dev/null; then \
	  echo "npm is missing: the report will have still charts instead of interactive ones (make build says more)"; \
	else $(MAKE) --no-print-directory $(VENDOR); fi
	$(BUILD)

$(VENDOR): internal/report/package-lock.json internal/report/assets.sh
	@command -v npm >/dev/null || { echo "npm is missing, and the report's charts come from it: apt-get install npm, then make build again" >&2; exit 1; }
	sh internal/report/assets.sh
	touch $@

fio: # installs fio when it is not there
	@command -v fio >/dev/null && exit 0; \
	echo "fio is missing: installing it"; \
	if ! command -v apt-get >/dev/null; then echo "install fio 3.28 or later with your package manager and try again" >&2; exit 1; fi; \
	if [ "$$(id -u)" = 0 ]; then as=; elif command -v sudo >/dev/null; then as=sudo; \
	else echo "installing needs root: apt-get install fio, then try again" >&2; exit 1; fi; \
	$$as apt-get update -q && $$as apt-get install -qy --no-install-recommends fio

# Without the race detector, under which they take three to five times as long: whole commands (cmd/plimsoll), since what they
# are made of runs with it; what starts no goroutines: the reading of our own source (archtest), and statistics; and what the
# last line names.
PLAIN := /(cmd/plimsoll|internal/(archtest|analysis|analysis/.*|compare|trust))$$
test: ## everything: format, vet, unit, conformance, goldens, architecture, real fio, kill -9, screenshots
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w): $$unformatted" >&2; exit 1; fi
	go build ./...
	go vet ./...
	@if CGO_ENABLED=1 command -v $${CC:-gcc} >/dev/null; then race=-race; else race=; echo "no C compiler: testing without the race detector"; fi; \
	set -x; go test $$race -timeout 30m $$(go list ./... | grep -Ev '$(PLAIN)|/internal/run$$'); \
	go test -timeout 45m $$(go list ./... | grep -E '$(PLAIN)'); \
	go test $$race -short -timeout 30m ./internal/run; \
	go test -timeout 30m -run 'InEveryStep|OfScaleOne' ./internal/run ./internal/tproch # every step of every scenario cut short, and a gigabyte

fuzz: ## every fuzz target for two thousand inputs, the packages in an order left to chance
	@go list ./... | sort -R | while read -r pkg; do \
	  dir=$$(go list -f '{{.Dir}}' "$$pkg"); \
	  { grep -ho '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go 2>/dev/null || true; } | sed 's/^func //' | while read -r target; do \
	    echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime 2000x -fuzzminimizetime 10x "$$pkg"; done; done

mutants: ## what the tests do not notice: small changes to what data depend on (SEED=, SAMPLE=, ONLY=)
	go test -count 1 -run TestMutants -timeout 0 -v ./internal/mutants -args -mutants \
	  -seed $(or $(SEED),1) -sample $(or $(SAMPLE),0) -only '$(ONLY)'

trust: ## every rate that docs/analysis-statistics.md claims, measured anew: under 15 minutes (SEED=, ONLY=, SHARE=, UPDATE=1)
	go test -count 1 -run TestTrust -timeout 60m -v ./internal/trust -args -trust \
	  -seed $(or $(SEED),0) -share $(or $(SHARE),1) -only '$(ONLY)' $(if $(UPDATE),-page)

bench: ## the benchmarks behind docs/performance.md
	go test -run '^$$' -bench . -benchmem ./...

bench-peers: fio ## beside fio, and trace beside blkparse and btt, as tables (DIR=/dev/shm: bound by the processor)
	go test -count 1 -run TestCost -timeout 20m -p 1 -v ./internal/tprocc/postgres ./internal/tprocc/mariadb -args -peers
	go test -count 1 -run TestTraceBesideBlkparse -timeout 10m -v ./cmd/plimsoll -args -peers
	go test -count 1 -run TestBesidePgbench -timeout 20m -v ./internal/pgload -args -peers
	go test -count 1 -run 'TestBesidePlainFio|TestVioperfBesideFio' -timeout 40m -v ./cmd/plimsoll -args -peers $(if $(DIR),-peers-dir $(DIR))

man: binary ## bin/man/man1: the manual pages
	rm -rf bin/man && env -u PLIMSOLL_DIR -u PLIMSOLL_RUNS ./$(BIN) man --quiet bin/man/man1

install: build man ## bin/plimsoll to $(PREFIX)/bin, its manual to $(PREFIX)/share/man (PREFIX=/usr/local)
	install -D -m 0755 $(BIN) $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/plimsoll
	install -D -m 0644 -t $(DESTDIR)$(or $(PREFIX),/usr/local)/share/man/man1 bin/man/man1/*.1

# Static archives for Linux, and for macOS, where analysis and simulation work and the local target does not.
release: build man ## dist/: archives for amd64 and arm64 with completions and manual, and their checksums
	rm -rf dist && mkdir -p dist/completions
	for shell in bash zsh fish; do ./$(BIN) completion $$shell > dist/completions/plimsoll.$$shell; done
	for system in linux/amd64 linux/arm64 darwin/arm64; do \
	  dir=dist/plimsoll-$${system//\//-}; mkdir -p $$dir; \
	  GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) build -trimpath \
	    -ldflags "-s -w -X plimsoll/internal/cli.revision=$(REVISION)" -o $$dir/plimsoll ./cmd/plimsoll; \
	  cp -r LICENSE README.md CHANGELOG.md dist/completions bin/man $$dir/; \
	  tar -C dist --sort=name --owner=0 --group=0 --numeric-owner -czf $$dir.tar.gz $$(basename $$dir); rm -r $$dir; done
	rm -r dist/completions
	cd dist && sha256sum *.tar.gz > SHA256SUMS

clean: ## remove what was built; runs are kept
	rm -rf bin dist internal/report/node_modules
	find internal/report/assets/vendor -type f ! -name .gitkeep -delete
