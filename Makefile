# Targets for developers; `make` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# For images: `make images REGISTRY=registry.example.com/tamis` pushes them, too. DOCKER_OPTIONS are further options of the build.
DOCKER ?= docker
REGISTRY ?=
BASE ?= python:3.11-slim
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
CODE := shared services tests benchmarks deploy
SERVICES := alerts edge joiner registry
READY := .venv/.ready
JARS := .venv/.jars
KERNELS := .venv/.kernels
EDGE_KERNELS := .venv/.edge-kernels
CLASSES := .venv/.classes
QUICK := .venv/.quick-tests
FAULT_TOOLS := .venv/.faults
KERNEL_SOURCES := $(shell grep -rlE "import .*\b(njit|numba)\b" shared/tamis --include=*.py) shared/tamis/compile_kernels.py
# All files that quick tests may read.
SOURCES := $(shell find $(CODE) demo docs helm .ci *.md *.toml *.lock *.yml .env.example .dockerignore Makefile -type f -not -path '*/__pycache__/*' -not -path '*/node_modules/*' -not -path 'benchmarks/results/*')

.PHONY: help setup check style types contracts docs pictures test brokers oracles tutorial notebooks upgrade recovery faults spark cluster console console-test console-pictures test-containers images pins demo bench soundness soak lock clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

# Tests start hundreds of processes of Tamis and import all tests in several: they keep the bytecode of the first one.
unexport PYTHONDONTWRITEBYTECODE

# Independent steps run in parallel: fetching and compiling, types and tests.
BESIDE := $(MAKE) --no-print-directory -j2

setup: $(READY) ## make .venv, fetch the jars of Spark's connector and the broker, compile the kernels, archive Java's classes
	@$(BESIDE) $(JARS) $(KERNELS) $(EDGE_KERNELS) $(CLASSES)

# An interrupted run must not leave a venv that counts as complete: the stamp is written last.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tamis needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	@echo 'The packages are installed into .venv. That takes some minutes, in which nothing is shown.'
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

$(JARS): $(READY) deploy/jars/ivy.xml deploy/jars/SHA256SUMS
	$(BIN)/python -m tamis.java.jars
	touch $@

# The kernels are compiled once here, not by each service in its first batch.
$(KERNELS): $(READY) $(KERNEL_SOURCES)
	$(BIN)/python -m tamis.compile_kernels
	touch $@

# Edges use these instead, and so do without numba in memory.
$(EDGE_KERNELS): $(READY) $(KERNEL_SOURCES)
	$(BIN)/python -m tamis.precompile_kernels
	touch $@

# Java starts the broker and Spark from these. They are of a run with the kernels, so that it isn't the first one.
$(CLASSES): $(JARS) $(KERNELS)
	$(BIN)/python -m tamis.archive_classes
	touch $@

check: setup ## format, lint, types, import contracts, documentation, doctests and quick tests
	@$(BESIDE) style types contracts docs $(QUICK)

style: $(READY)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)

types: $(READY)
	$(BIN)/mypy $(CODE)

contracts: $(READY)
	$(BIN)/lint-imports

# The variable silences a notice about other site generators.
docs: $(READY) ## build the documentation as a site in build/site; a dead link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

pictures: $(READY) ## draw the pictures of the explanations in docs/images anew
	$(BIN)/python -m deploy.pictures

# Quick tests run again only after a change: `make test` right after `make check` does not repeat them.
$(QUICK): $(READY) $(JARS) $(KERNELS) $(SOURCES)
	$(BIN)/pytest -n 2 --durations 10 --doctest-modules shared services tests/unit
	touch $@

BROKERS := tests/e2e tests/integration tests/faults

# A test with a broker that fails beside others is run once more, alone: waits are too short on some busy machine. The
# first failure stays in the output, and is a bug of the test or of the product all the same.
define with_brokers
	$(BIN)/pytest $(1) || { echo "Once more, alone, what failed:"; $(BIN)/pytest --last-failed --last-failed-no-failures none $(2); }
endef

# Tests with a broker often wait. What they leave of two cores goes to the oracles.
test: setup $(QUICK) ## all tests but the long soundness search
	@$(BESIDE) brokers oracles

# Fleets wait for their triggers: two of them run beside other tests with a broker. Their order is that of
# tests/longest_first.py.
brokers: setup
	$(call with_brokers,-n 3 --dist loadfile --no-loadscope-reorder --durations 30 $(BROKERS),$(BROKERS))

# They only compute, so they run at the lowest priority, each test for as long as it takes, and one at a time, because
# some take half a minute. They are printed in one piece, and don't share the list of what failed.
oracles: setup
	@echo "Oracles and the model run beside the tests with a broker, and are shown when they have ended."
	@output=$$(nice -n 19 $(BIN)/pytest -n 2 --maxschedchunk 1 --durations 15 -o timeout=1800 -o cache_dir=.pytest_cache/oracles \
	  tests/oracle tests/model 2>&1); status=$$?; echo "$$output"; exit $$status

# Not a part of `make test`: it needs a Docker engine, or root on Debian to start one. Exit code 3 says that neither is there.
test-containers: setup ## build the images and test them in containers
	$(BIN)/python -m tests.containers.run

# The tag `latest` is for Compose, the version for the chart.
images: $(SERVICES:%=image-%) ## build the images of the services; push them and print their digests with REGISTRY=registry.example.com/tamis

PREFIX = $(if $(REGISTRY),$(REGISTRY:%/=%)/)

image-%:
	DOCKER_BUILDKIT=1 $(DOCKER) build $(DOCKER_OPTIONS) --file services/$*/Dockerfile --build-arg BASE=$(BASE) \
	  --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null || echo unknown) \
	  --tag $(PREFIX)tamis-$*:$(VERSION) --tag $(PREFIX)tamis-$*:latest .
	$(if $(REGISTRY),$(DOCKER) push --quiet $(PREFIX)tamis-$*:$(VERSION) && $(DOCKER) push --quiet $(PREFIX)tamis-$*:latest)
	$(if $(REGISTRY),@$(DOCKER) image inspect --format 'pushed {{index .RepoDigests 0}}' $(PREFIX)tamis-$*:$(VERSION))

pins: ## print the digests of all images of others, as lines of the file .env of Compose
	@$(PYTHON) deploy/compose/pin_images.py

demo: setup ## the whole fleet on real sensor data, then a report
	$(BIN)/tamis demo

bench: setup ## measure throughput, latency and memory (python -m benchmarks --write-docs also fills the pages)
	$(BIN)/python -m benchmarks

soundness: setup ## long randomised search for a missed or an extra alarm
	$(BIN)/pytest -n 2 --maxschedchunk 1 --durations 20 tests/oracle tests/integration -m soundness

tutorial: setup ## run the tutorial's commands in a fleet, with MQTT, Kafka and a webhook
	$(call with_brokers,-n 0 tests/e2e/test_tutorial.py -m tutorial,tests/e2e/test_tutorial.py -m tutorial)

notebooks: setup ## run the notebooks of demo/ in a Jupyter kernel
	$(BIN)/pytest -n 0 tests/notebooks -m notebooks

upgrade: setup ## upgrade a running fleet of earlier commits service by service, and go back
	$(call with_brokers,tests/e2e -m upgrade,tests/e2e -m upgrade)

recovery: setup ## take data and rights away from running fleets, and give them back
	$(call with_brokers,-n 2 --dist loadfile tests/e2e -m recovery,tests/e2e -m recovery)

# One test at a time: most have a whole fleet, and measure waits.
faults: setup $(FAULT_TOOLS) ## break processes, disks, clocks, inputs and networks under load (TAMIS_FAULTS_READINGS: 100000)
	$(BIN)/pytest -s --durations 0 tests/faults -m faults

# Large tools of a few of these tests. They are not among the packages of the set-up, which are found first.
$(FAULT_TOOLS): $(READY) tests/faults/requirements.lock
	rm -rf $@
	$(BIN)/pip install --quiet --require-hashes --target $@ -r tests/faults/requirements.lock
	touch $@

spark: setup ## tamis.spark in a session of Spark: static frames, and streams with restarts
	$(BIN)/pytest -n 0 --durations 5 tests/unit/spark tests/oracle/spark tests/integration/spark

cluster: setup ## the joiner on a Spark cluster and HDFS, whose processes are killed (needs Linux, fetches 56 MB for HDFS)
	$(BIN)/pytest --durations 20 tests/cluster -m cluster

CONSOLE := services/registry/console

console: ## build the page of the registry from its sources (needs Node 20.19 or newer)
	cd $(CONSOLE) && npm ci --no-audit --no-fund && npm run check && npm test && npm run build

console-test: setup ## try the page of the registry in the Chromium of this machine
	$(call with_brokers,-n 2 --dist loadfile tests/console -m console,tests/console -m console)

console-pictures: setup ## take the pictures of the console in docs/images/console from a running fleet
	$(BIN)/python -m tests.console.pictures

soak: setup ## run the whole fleet for TAMIS_SOAK_MINUTES (10) at TAMIS_SOAK_SPEED (20) times real time, and check that its memory and its files do not grow
	$(BIN)/pytest -s tests/e2e -m soak

# Addresses of package registries stay out of the locks, since each machine configures its own.
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet
BUILD := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], "cyclonedx-bom==7.*", sep="\n")
# The image of an edge has its kernels compiled ahead of time.
LEFT_OUT := --no-emit-package numba --no-emit-package llvmlite

# The lock of each image has the packages of one service, in the versions of the lock of everything.
lock: ## resolve the dependencies of pyproject.toml again (needs uv)
	$(COMPILE) --all-extras pyproject.toml -o requirements.lock
	for service in $(SERVICES); do \
	  $(COMPILE) --extra $$service -c requirements.lock pyproject.toml $$([ $$service = edge ] && echo $(LEFT_OUT)) \
	    -o services/$$service/requirements.lock || exit; \
	done
	$(COMPILE) -c requirements.lock tests/faults/requirements.in -o tests/faults/requirements.lock
	$(PYTHON) -c '$(BUILD)' | $(COMPILE) --extra prover -c requirements.lock pyproject.toml - -o deploy/build.lock

clean: ## remove the venv, the jars and all caches
	rm -rf .venv .jars build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis shared/*.egg-info
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
