# Two commands matter on a fresh machine: `make demo` and `make test`. Both set up .venv first.
# They need Python >= 3.11 with its venv module, and a package index that pip can reach.

BIN  := .venv/bin
PATHS := journal cache replay analytics tools tests src

.PHONY: help setup demo test browser gate-cpu format bench trace soak nightly mutants incidents
.DEFAULT_GOAL := help

help:
	@echo 'make demo              serve a small workload, journal it, verify it, find a planted double free'
	@echo 'make test              every check: format, lint, types, layers, tests, the examples of the docs'
	@echo 'make browser           the pages that commands write, in a Chromium (CHROMIUM=/path/to/it)'
	@echo 'make gate-cpu          the correctness gate: what tests/manifest.toml lists, with evidence in runs/'
	@echo 'make bench             measure the bars of the design on this machine'
	@echo 'make trace TRACE=FILE  drive a request trace (Mooncake format) through the cache and verify the journal'
	@echo 'make incidents         reduce every incident to a fixture, try it, and write docs/reduced.md'
	@echo 'make mutants           run each test under the seeded fault that it has to notice'
	@echo 'make nightly           the machine on every route for an hour, with seeds that no test run plays'
	@echo 'make soak              the long test campaigns (hours)'
	@echo 'make format            let ruff format and fix what it can'
	@echo 'make setup             only create or refresh .venv'

setup: .venv/ready

# Rebuilt when pyproject.toml changes. pip is brought up to date first: dependency groups need 25.1.
.venv/ready: pyproject.toml
	@begun=$$(date +%s); \
	python=; \
	for each in "$(PYTHON)" python3 python3.13 python3.12 python3.11 python; do \
	  if [ -n "$$each" ] && "$$each" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	  then python=$$each; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "radixledger needs Python 3.11 or later with its venv module; python3 here is: $$(python3 --version 2>&1)"; \
	  echo 'Install one (on Debian and Ubuntu: apt install python3-venv), or name it: make setup PYTHON=/path/to/python3.12'; \
	  exit 2; \
	fi; \
	step() { echo "setup: $$1"; shift; "$$@" >>.venv/setup.log 2>&1 || { tail -n 30 .venv/setup.log; echo "setup failed; the whole log is .venv/setup.log"; exit 1; }; }; \
	[ -x $(BIN)/python ] || { echo "setup: .venv from $$($$python --version)"; $$python -m venv .venv || exit 1; }; \
	: >.venv/setup.log; \
	step 'pip' $(BIN)/python -m pip install --disable-pip-version-check --upgrade 'pip>=25.1'; \
	step 'radixledger with its engine (numpy, msgspec, duckdb, click, rich, fsspec; jax, safetensors; pyzmq) and the checkers' \
	  $(BIN)/python -m pip install --disable-pip-version-check --editable '.[serve,export]' --group dev; \
	touch $@; \
	echo "setup: done in $$(( $$(date +%s) - begun )) s"

demo: setup
	@$(BIN)/radixledger demo --force

# One step after the other, each with its name and its seconds; the first failure ends it.
test: setup
	@begun=$$(date +%s); \
	step() { \
	  name=$$1; shift; started=$$(date +%s); echo "== $$name: $$*"; \
	  "$$@" || { echo "== FAILED at $$name, after $$(( $$(date +%s) - begun )) s"; exit 1; }; \
	  echo "== $$name: ok, $$(( $$(date +%s) - started )) s"; \
	}; \
	step format $(BIN)/ruff format --check $(PATHS); \
	step lint   $(BIN)/ruff check $(PATHS); \
	step types  $(BIN)/mypy; \
	step layers $(BIN)/lint-imports --no-logo; \
	step tests  $(BIN)/pytest -q -n 2 --dist loadfile --durations 10; \
	echo "== all checks passed in $$(( $$(date +%s) - begun )) s"

# Apart, because a developer's machine need not have a browser; continuous integration does both.
browser: setup
	$(BIN)/pytest -q -m browser --durations 5 tests/browser

format: setup
	$(BIN)/ruff check --fix-only $(PATHS)
	$(BIN)/ruff format $(PATHS)

# Evidence of a run is never written over: each lands in a folder of its own.
gate-cpu: setup
	@mkdir -p runs; $(BIN)/python -m tests.gate_cpu --out runs/gate-cpu-$$(date +%Y%m%d-%H%M%S)

bench: setup
	@$(BIN)/radixledger bench

# The journal lands in runs/, under a name of its own: a run is never written over.
trace: setup
	@[ -n "$(TRACE)" ] || { echo 'usage: make trace TRACE=FILE.jsonl'; exit 2; }
	@run=runs/trace-$$(date +%Y%m%d-%H%M%S); mkdir -p runs; \
	echo "drive $(TRACE) into $$run"; \
	$(BIN)/radixledger drive "$(TRACE)" --journal "$$run" --enable-unified-radix-tree || [ $$? -eq 1 ] && \
	echo "verify $$run" && \
	$(BIN)/radixledger replay verify "$$run"

incidents: setup
	$(BIN)/python -m tests.incidents.reductions

mutants: setup
	$(BIN)/python -m tests.mutants.kills

nightly: setup
	$(BIN)/python -m tests.nightly

soak: setup
	$(BIN)/pytest -q -n 2 --dist loadfile --durations 20 --hypothesis-profile nightly -m 'not browser'
