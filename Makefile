# Everything a developer does is one target; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
CODE := shared services tests benchmarks
SERVICES := alerts edge joiner registry
READY := .venv/.ready
JARS := .venv/.jars
KERNELS := .venv/.kernels
QUICK := .venv/.quick-tests
# All that a quick test may look at.
SOURCES := $(shell find $(CODE) deploy demo docs *.md *.toml *.lock Makefile -type f -not -path '*/__pycache__/*' -not -path 'benchmarks/results/*')

.PHONY: help setup check style types test demo bench soundness soak lock clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

# What doesn't wait for something else is done side by side: fetching and compiling, types and tests.
BESIDE := $(MAKE) --no-print-directory -j2

setup: $(READY) ## make .venv, fetch the jars of Spark's connector and the broker, compile the kernels
	@$(BESIDE) $(JARS) $(KERNELS)

# A venv that was half made by an interrupted run must not count as made: the stamp comes last.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tamis needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

$(JARS): $(READY) deploy/jars/ivy.xml deploy/jars/SHA256SUMS
	$(BIN)/python -m tamis.fleet.jars
	touch $@

# Compiled once here, not by each service in its first batch.
$(KERNELS): $(READY) $(wildcard shared/tamis/omission/*.py shared/tamis/predicates/*.py shared/tamis/predicates/*/*.py shared/tamis/evaluation/kernels.py shared/tamis/bounded/evaluate/*kernels.py shared/tamis/evaluation/standing/timeless/kernels.py shared/tamis/planning/common.py shared/tamis/expressions/libm.py)
	$(BIN)/python -m tamis.fleet.kernels
	touch $@

check: setup ## format, lint, types, doctests and quick tests
	@$(BESIDE) style types $(QUICK)

style: $(READY)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)

types: $(READY)
	$(BIN)/mypy $(CODE)

# They are run again when something has changed: `make test` right after `make check` needn't repeat them.
$(QUICK): $(READY) $(JARS) $(KERNELS) $(SOURCES)
	$(BIN)/pytest -n 2 --doctest-modules shared services tests/unit
	touch $@

# What computes has a core each, which takes one test after the other: some take half a minute. What starts a broker waits
# half of the time. A whole fleet has the cores to itself: beside others it takes twice as long, and its tests ask how long
# it takes to stop and to catch up.
test: setup $(QUICK) ## all tests but the long soundness search
	$(BIN)/pytest -n 2 --maxschedchunk 1 tests/oracle tests/model
	$(BIN)/pytest -n 3 --dist loadfile tests/integration
	$(BIN)/pytest tests/e2e

demo: setup ## the whole fleet on real sensor data, then a report
	$(BIN)/tamis demo

bench: setup ## measure throughput, latency and memory
	$(BIN)/python -m benchmarks

soundness: setup ## long randomised search for a missed or an extra alarm
	$(BIN)/pytest -n 2 --maxschedchunk 1 --durations 20 tests/oracle tests/integration -m soundness

soak: setup ## the whole fleet for TAMIS_SOAK_MINUTES (10): what does it hold, and does that grow?
	$(BIN)/pytest -s tests/e2e -m soak

# Addresses of package registries stay out of the locks: where packages come from is the machine's business.
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet
BUILD := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")

# The locks of the images have the versions of the whole lock, for one service each.
lock: ## resolve the dependencies of pyproject.toml anew (needs uv)
	$(COMPILE) --all-extras pyproject.toml -o requirements.lock
	for service in $(SERVICES); do \
	  $(COMPILE) --extra $$service -c requirements.lock pyproject.toml -o services/$$service/requirements.lock || exit; \
	done
	$(PYTHON) -c '$(BUILD)' | $(COMPILE) -c requirements.lock - -o deploy/build.lock

clean: ## remove the venv, the jars and all caches
	rm -rf .venv .jars build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis shared/*.egg-info
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
