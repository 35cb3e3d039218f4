# `make demo` shows what the package does, `make test` checks everything; `make help` lists the rest.

PYTHON ?= python3
INSTALLER ?= uv
JOBS ?= 2
LOCKFLAGS ?=

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
RUFF_PATHS := $(wildcard src tests examples benchmarks scripts)

# An environment knows the folder it was made in. A copied or moved one is made again, and so is one
# whose Python is gone.
HERE := $(shell pwd | cksum | cut -d ' ' -f 1)
MADE := $(VENV)/made-$(HERE)
READY := $(VENV)/ready-$(HERE)
REMAKE := $(shell test -x $(BIN)/python || echo remake)

# uv reads neither pip's certificates nor pip's index: it gets the system's certificates here, and the
# index of the user's pip configuration in `with_index`.
export UV_SYSTEM_CERTS := 1
export UV_NATIVE_TLS := 1
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_USER := 0

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo tour test kernels check format bench bench-quick bench-eigen torture lock clean remake

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile
	@echo "Variables: PYTHON=python3.12 (3.11 to 3.14), INSTALLER=pip (instead of uv), JOBS=2 (test processes)"

install: $(READY) ## make .venv with the locked dependencies and the package in editable mode

demo: $(READY) ## compare all methods on the bundled wine data and write demo/report.html
	@mkdir -p demo
	@$(BIN)/marginfold compare wine --repeats 1 --report demo/report.html --overwrite

tour: $(READY) ## embeddings, planes, curves and maps on scikit-learn's data, with pictures
	@$(BIN)/python examples/demo.py

test: check ## check, all tests, docstring examples and the documents' code, then `make kernels`
	$(BIN)/python -m pytest -q -n $(JOBS)
	@$(BIN)/python scripts/kernels.py $(JOBS)

kernels: $(READY) ## the numerically sensitive tests as on other processors (AVX2, AVX-512, SSE)
	@$(BIN)/python scripts/kernels.py $(JOBS)

check: $(READY) ## lint, format, types and the order of imports
	$(BIN)/ruff check $(RUFF_PATHS)
	$(BIN)/ruff format --check $(RUFF_PATHS)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(READY) ## let ruff repair what it can
	$(BIN)/ruff check --fix $(RUFF_PATHS)
	$(BIN)/ruff format $(RUFF_PATHS)

bench: $(READY) ## measure everything in benchmarks/ beside the other libraries of benchmarks/peers.txt (long)
	@$(with_peers)
	@.venv-bench/bin/python benchmarks/run.py

bench-quick: $(READY) ## the same on small problems
	@$(BIN)/python benchmarks/run.py --quick

bench-eigen: $(READY) ## kernel PCA, direct embeddings, planes and MarginMap beside their peers (about 10 minutes)
	@for script in kernel_pca embeddings planes margin_map; do \
	  $(BIN)/python benchmarks/$$script.py || exit 1; \
	done

torture: $(READY) ## the long randomised tests that `make test` leaves out
	$(BIN)/python -m pytest -q -n $(JOBS) -m torture --hypothesis-profile=torture tests

lock: $(MADE) ## write requirements.lock anew (LOCKFLAGS=--upgrade for newer releases)
	@[ -x $(BIN)/uv ] || $(BIN)/python -m pip install --quiet uv
	@$(with_index); $(BIN)/uv pip compile --quiet $(LOCKFLAGS) pyproject.toml \
	  --all-extras --group test --group check --group build \
	  --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --output-file requirements.lock
	@if grep -n '://' requirements.lock; then \
	  echo "requirements.lock: the lines above hold an address; remove it from the configuration" >&2; \
	  exit 1; \
	fi

clean: ## remove .venv, caches and everything built
	rm -rf $(VENV) .venv-bench build dist demo .benchmarks .hypothesis .import_linter_cache .mypy_cache \
	  .pytest_cache .ruff_cache
	find src tests $(wildcard examples benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +

# Installation ------------------------------------------------------------------------------------

$(READY): $(MADE) requirements.lock pyproject.toml src/marginfold/_version.py
	@if [ "$(INSTALLER)" = uv ] && $(may_use_uv) && { $(install_with_uv); }; then :; else \
	  echo "installing with pip, which takes a few minutes"; \
	  $(install_with_pip); \
	fi
	@touch $@

$(MADE): $(REMAKE)
	@command -v "$(PYTHON)" > /dev/null || { \
	  echo "marginfold needs Python 3.11 to 3.14, but '$(PYTHON)' is not on PATH; try: make PYTHON=/path/to/python3 install" >&2; \
	  exit 1; \
	}
	@"$(PYTHON)" -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 14) else "marginfold needs Python 3.11 to 3.14, but $(PYTHON) is %d.%d; try: make PYTHON=python3.12 install" % v)'
	@rm -rf $(VENV)
	@$(make_venv)
	@touch $@

# A Python without ensurepip (Debian without python3-venv) gets its environment from virtualenv: the
# one that is there, or one that pip puts aside for this purpose.
define make_venv
"$(PYTHON)" -m venv $(VENV) > /dev/null 2>&1 || { \
  rm -rf $(VENV); \
  "$(PYTHON)" -m virtualenv --quiet $(VENV) 2> /dev/null; \
} || { \
  rm -rf $(VENV) build/virtualenv; \
  "$(PYTHON)" -m pip install --quiet --target build/virtualenv virtualenv \
    && PYTHONPATH=build/virtualenv "$(PYTHON)" -m virtualenv --quiet $(VENV); \
} || { \
  rm -rf $(VENV); \
  echo "cannot make $(VENV): neither '$(PYTHON) -m venv' nor virtualenv works; install python3-venv (or free disk space)" >&2; \
  exit 1; \
}
endef

# The other libraries go into an environment of their own that sees the packages of the first; those
# that cannot be installed here are left out of the table.
define with_peers
if [ ! -f .venv-bench/peers ] || [ benchmarks/peers.txt -nt .venv-bench/peers ]; then \
  rm -rf .venv-bench; \
  "$(PYTHON)" -m venv .venv-bench \
    && site=$$(.venv-bench/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
    && $(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $$site/first.pth \
    && echo "$(CURDIR)/src" >> $$site/first.pth \
    && while read -r peer; do \
      .venv-bench/bin/python -m pip install --quiet "$$peer" || echo "$$peer is left out" >&2; \
    done < benchmarks/peers.txt \
    && touch .venv-bench/peers; \
fi
endef

# Where pip is told to use no index at all, uv must not look for one.
define may_use_uv
! $(BIN)/python -m pip config list 2> /dev/null | grep -qi "no-index='*\(1\|true\|yes\|on\)"
endef

# `pip config get` reads one file only; `list` is what holds after all files and variables.
define with_index
if [ -z "$$UV_DEFAULT_INDEX$$UV_INDEX_URL" ]; then \
  index=$$(for section in :env: install global; do \
    $(BIN)/python -m pip config list | sed -n "s/^$$section\.index-url='\(.*\)'$$/\1/p"; \
  done | sed 1q); \
  if [ -n "$$index" ]; then UV_DEFAULT_INDEX=$$index; export UV_DEFAULT_INDEX; fi; \
fi
endef

# uv itself comes from the lock, with its hashes.
define install_with_uv
sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.txt \
  && $(BIN)/python -m pip install --quiet --require-hashes --no-deps -r $(VENV)/uv.txt \
  && { $(with_index); } \
  && $(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock \
  && $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
endef

define install_with_pip
$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock \
  && $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
endef
