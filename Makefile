# Every target installs what it needs into .venv; python3 (3.11 or newer) and make are all a machine must have.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help reproduce test test-slow check format bench lock clean

help:
	@echo "make reproduce   plan the paper's two networks"
	@echo "make test        run the tests"
	@echo "make test-slow   run the tests that take minutes"
	@echo "make check       lint and type-check"
	@echo "make bench       measure speed"
	@echo "make lock        resolve requirements.lock anew from pyproject.toml"

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "murmurcast needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

reproduce: $(READY)
	@mkdir -p reproduction
	@for name in paper-1 paper-2; do \
	  $(BIN)/murmurcast plan --example $$name > reproduction/$$name.toml && \
	  $(BIN)/murmurcast plan reproduction/$$name.toml --figure reproduction/$$name.png || exit 1; \
	done
	@echo "Experiments and figures are in reproduction/."

test: $(READY)
	$(BIN)/python -m pytest

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks $(PART)

lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --group dev --no-emit-index-url --no-header pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache reproduction
