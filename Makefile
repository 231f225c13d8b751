# Everything from a fresh clone: `make demo`, `make test`. Another interpreter: `make PYTHON=python3.12 demo`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: demo test test-slow check bench bench-accuracy clean help

demo: $(READY)  ## train LeNet-5
	@$(BIN)/ptrun train lenet

test: $(READY)  ## the default tests: no network, no real data, under three minutes
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

test-slow: $(READY)  ## the slow tests; those on real data need PTRUN_TEST_DATA=FOLDER
	@OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadgroup -m slow --timeout 900

check: $(READY)  ## formatting, lint, types, floors
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY)  ## speed, start-up and memory; on MNIST with PTRUN_DATA_DIR=FOLDER; wants a quiet machine
	@$(BIN)/python benchmarks/throughput.py
	@$(BIN)/python benchmarks/startup.py
	@$(BIN)/python benchmarks/memory.py

bench-accuracy: $(READY)  ## what the recipes reach over five seeds; about 15 minutes on two cores
	@$(BIN)/python benchmarks/accuracy.py

clean:  ## remove .venv and everything that tools left behind
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find ptrun recipes tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | awk -F '\t' '{ printf "  make %-16s%s\n", $$1, $$2 }'

# Install again only when pyproject.toml has changed.
$(READY): pyproject.toml | $(BIN)/python
	@echo "installing into .venv (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(BIN)/python:
	@$(PYTHON) -m venv .venv
