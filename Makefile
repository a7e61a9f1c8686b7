# Every target installs what it needs into .venv; python3 (3.11 or newer) and make are all a machine must have.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help reproduce choose test test-slow test-browser test-torch test-ray check format bench lock clean

help:
	@echo "make reproduce   the paper's figures, its theory and the honest picture, in reproduction/"
	@echo "make choose      choose the certified setting's schedule anew, on public images only"
	@echo "make test        run the tests"
	@echo "make test-slow   run the tests that take long"
	@echo "make test-browser  open the pages in Chromium"
	@echo "make test-torch  test models of PyTorch; installs it, which is large"
	@echo "make test-ray    test sweeps on Ray; installs it, which is large"
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
	$(BIN)/murmurcast reproduce

choose: $(READY)
	$(BIN)/python -m murmurcast.reproduction.tune_schedule

# Several processes share the cores: BLAS with threads of its own would wait for the others by spinning. What pytest
# makes of the tests is kept, because every process needs all of it.
APART := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# Most tests spend their time compiling programs that then run for a moment. Where bits are compared, or a clip to its last
# digits, or programs run for longer, they are compiled as for users; so are those of the slow tests.
QUICKLY := XLA_FLAGS="--xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0"
AS_USERS := tests/engine tests/problems/test_per_example.py tests/runs/test_run.py tests/runs/test_variants.py tests/recorded

test: $(READY)
	$(QUICKLY) $(APART) $(AS_USERS:%=--ignore=%)
	$(APART) $(AS_USERS)

test-slow: $(READY)
	$(APART) -m slow

# Any of these browsers will do; where there is none, Debian's is installed.
CHROMIUM = command -v chromium || command -v chromium-browser || command -v google-chrome

test-browser: $(READY)
	@{ $(CHROMIUM); } > /dev/null || { \
	  if ! command -v apt-get > /dev/null; then \
	    echo "no Chromium was found, and there is no apt-get to install it: install it by hand"; exit 1; fi; \
	  if [ "$$(id -u)" = 0 ]; then as=; elif command -v sudo > /dev/null; then as=sudo; else \
	    echo "no Chromium was found: install it as root with apt-get install chromium"; exit 1; fi; \
	  $$as apt-get update --quiet && $$as apt-get install --yes --no-install-recommends chromium; }
	$(BIN)/python -m pytest -m browser

# Large, so it is installed only for what needs it, and is not in requirements.lock.
TORCH := torch==2.13.0 "torchax>=0.0.14.dev20260801"

test-torch: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pytest tests/problems/modules/test_from_torch.py tests/test_examples.py -k torch

# Large too.
test-ray: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ray==2.55.1
	$(BIN)/python -m pytest tests/experiments/test_sweep_ray.py

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(if $(filter-out models,$(or $(PART),models)),,$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH) opacus)
	$(BIN)/python -m benchmarks $(PART)

lock: $(READY)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --group dev --no-emit-index-url --no-header pyproject.toml --output-file requirements.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache reproduction
