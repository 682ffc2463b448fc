# Every target installs its dependencies. You need Python 3.11 or newer, make and pip.
#
#   make test ARGS="-k tape -x"    more arguments for pytest (likewise for demo, bench, parity and keras-suite)
#   make test WORKERS=8            more processes
#   make test OF=tf.nn.conv2d      the tests of one public function
#   make tf-suite TESTS=dir        dir has TensorFlow's repository, or its tensorflow/python
#   make demo PYTHON=python3.13    another interpreter, for a new environment

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
ARGS ?=
OF ?=
TESTS ?=

# The tests that `make quick` chooses from, and those that `make oldest` runs.
QUICK ?= tests/values tests/core tests/derivatives tests/diagnose tests/files tests/toplevel \
	tests/tools tests/namespaces tests/test_by_hand.py
OLDEST ?= tests/values tests/core tests/program tests/ops/test_rules.py \
	tests/keras/test_install.py tests/keras/test_nn.py tests/keras/test_trainer.py \
	tests/keras/test_variables.py

# The tests that `make accelerator` runs.
ACCELERATOR ?= tests/core/test_apply.py tests/core/test_backward.py tests/core/test_indexing.py \
	tests/core/test_tape.py tests/core/test_variable.py

# The first interpreter that runs and is new enough.
PYTHON ?= $(shell for name in python3.11 python3 python; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && \
	echo $$name && break; done)

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test quick accelerator oldest lint types format dist docs bench parity keras-suite tf-suite campaigns clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1|/' | \
		while IFS='|' read -r name text; do printf '  make %-11s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.demo  ## train a small classifier and plot the result
	$(BIN)/retrograde run examples/spirals.py $(ARGS)

test: $(VENV)/.dev  ## run the tests
	$(BIN)/python $(if $(OF),tools/tests_of.py $(OF),-m pytest -n $(WORKERS)) $(ARGS)

quick: $(VENV)/.dev  ## run the fast tests, in two minutes on two cores: before each commit
	$(BIN)/python -m pytest -n $(WORKERS) --durations=0 --durations-min=2 \
		-m "not slow and not keras and not xla" $(ARGS) $(QUICK)

accelerator: $(VENV)/.dev  ## run a part of the tests with JAX's second CPU device as a GPU
	RETROGRADE_DEVICE=CPU:1 $(BIN)/python -m pytest -n $(WORKERS) $(ARGS) $(ACCELERATOR)

oldest:  ## run a part of the tests with the oldest versions that pyproject.toml declares
	$(MAKE) VENV=.venv-oldest .venv-oldest/.oldest
	.venv-oldest/bin/python -m pytest -n $(WORKERS) $(ARGS) $(OLDEST)

lint: types  ## check code style, formatting, types and vocabulary
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_vocabulary.py

types: $(VENV)/.dev  ## check types with mypy
	$(BIN)/mypy

format: $(VENV)/.dev  ## fix code style and formatting
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(VENV)/.dev  ## run the examples in the documentation and build it into site/
	$(BIN)/python -m pytest --doctest-modules --doctest-glob='*.md' src/retrograde docs README.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: $(VENV)/.dev  ## build sdist and wheel of the last commit, and try them in new environments
	$(BIN)/python tools/try_dist.py

bench: $(VENV)/.demo  ## run benchmarks against TensorFlow, PyTorch, JAX and autograd
	$(BIN)/python benchmarks/run.py $(ARGS)

parity: $(VENV)/.dev  ## compare every function, example and guide with TensorFlow
	$(BIN)/python parity/run.py $(ARGS)

keras-suite: $(VENV)/.dev  ## run Keras's own tests on this backend (ARGS=--short for a subset)
	$(BIN)/python keras_suite/run.py $(ARGS)

tf-suite: $(VENV)/.dev  ## run TensorFlow's own tests on retrograde (TESTS=a copy of TensorFlow's repository)
	$(BIN)/python tensorflow_suite/run.py $(TESTS) $(ARGS)

campaigns: $(VENV)/.dev  ## run randomized robustness tests (ARGS="--minutes 10 --seed 7")
	$(BIN)/python campaigns/run.py $(ARGS)

clean:  ## remove the environment and all generated files
	rm -rf $(VENV) .venv-oldest site demo build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -type d -name __pycache__ -prune -exec rm -rf {} +

# Some systems ship venv without ensurepip. There, the interpreter's own pip installs into it.
$(VENV)/.python:
	@test -n "$(PYTHON)" || { \
		echo "Found no Python 3.11 or newer. Install one, or name it: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV) >/dev/null || { \
		$(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@touch $@

$(VENV)/.demo: $(VENV)/.python pyproject.toml
	$(PIP_INSTALL) --editable '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml
	$(PIP_INSTALL) --editable '.[dev]'
	@touch $@

$(VENV)/.oldest: $(VENV)/.python pyproject.toml tools/oldest_versions.py
	$(BIN)/python tools/oldest_versions.py > $(VENV)/oldest.txt
	$(PIP_INSTALL) --constraint $(VENV)/oldest.txt --editable '.[dev]'
	@touch $@
