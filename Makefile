# `make demo` shows what the package does, `make test` checks everything; `make help` lists the rest.

PYTHON ?= python3
INSTALLER ?= uv
JOBS ?= 2
LOCKFLAGS ?=
DOCSFLAGS ?=

BIN := .venv/bin
RUFF_PATHS := $(wildcard src tests examples benchmarks scripts docs/conf.py docs/_ext docs/api/pictures)
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help install demo explore test kernels check format bench bench-quick bench-eigen torture mutants lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile
	@echo "Variables: PYTHON=python3.12 (3.11 to 3.14), INSTALLER=pip (instead of uv), JOBS=2 (test processes)"

install: ## make .venv with the locked dependencies and the package in editable mode
	@command -v "$(PYTHON)" > /dev/null || { \
	  echo "marginfold needs Python 3.11 to 3.14, but '$(PYTHON)' is not on PATH; try: make PYTHON=/path/to/python3 install" >&2; \
	  exit 1; \
	}
	@"$(PYTHON)" scripts/install.py --installer $(INSTALLER)

demo: install ## compare all methods on the bundled wine data and write demo/report.html
	@mkdir -p demo
	@$(BIN)/marginfold compare wine --repeats 1 --report demo/report.html --overwrite
	@echo "to look at the same data: make explore, or $(BIN)/marginfold explore wine"

explore: install ## open the explorer on the bundled wine data in the browser (Ctrl-C ends it)
	@$(BIN)/marginfold explore wine

test: check ## check, all tests, docstring examples and the documents' code, then `make kernels`
	@"$(PYTHON)" scripts/install.py browser
	@$(MAKE) --no-print-directory web-check
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal
	@$(BIN)/python scripts/kernels.py $(JOBS)

.PHONY: test-notebook
test-notebook: install ## the widget under a real JupyterLab, in an environment of its own
	@"$(PYTHON)" scripts/install.py notebook
	@.venv-notebook/bin/python -m pytest -q -m notebook tests/explorer

.PHONY: test-lowest
test-lowest: install ## all tests with the lowest versions that pyproject.toml allows, on the oldest Python here
	@"$(PYTHON)" scripts/install.py lowest
	@.venv-lowest/bin/python -m pytest -q -n $(JOBS) --dist worksteal

kernels: install ## the numerically sensitive tests as on other processors (AVX2, AVX-512, SSE)
	@$(BIN)/python scripts/kernels.py $(JOBS)

check: install ## lint, format, types and the order of imports
	$(BIN)/ruff check $(RUFF_PATHS)
	$(BIN)/ruff format --check $(RUFF_PATHS)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: install ## let ruff repair what it can
	$(BIN)/ruff check --fix $(RUFF_PATHS)
	$(BIN)/ruff format $(RUFF_PATHS)

.PHONY: try
try: install ## compare, keep, predict on 12 tables of statsmodels and R, beside logistic regression and SVC (about 6 minutes)
	@"$(PYTHON)" scripts/install.py try
	@.venv-try/bin/python scripts/try_tables.py

.PHONY: docs
docs: install ## the documentation site in docs/_build/html; a warning or a link that leads nowhere is an error
	@"$(PYTHON)" scripts/install.py docs
	@.venv-docs/bin/python -m sphinx -b html -q -W --keep-going $(DOCSFLAGS) docs docs/_build/html
	@$(BIN)/python scripts/check_site.py docs/_build/html

bench: install ## measure everything in benchmarks/ beside the other libraries of benchmarks/peers.txt (long)
	@"$(PYTHON)" scripts/install.py peers
	@.venv-bench/bin/python benchmarks/run.py

bench-quick: install ## the same on small problems
	@$(BIN)/python benchmarks/run.py --quick

bench-eigen: install ## kernel PCA, direct embeddings, planes and MarginMap beside their peers (about 10 minutes)
	@for script in kernel_pca embeddings planes margin_map; do \
	  $(BIN)/python benchmarks/$$script.py || exit 1; \
	done

torture: install ## long randomised tests, with fresh seeds and examples, and the whole attack with its score card (about 10 minutes)
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -m "attack or torture or hypothesis" --hypothesis-profile=torture --seed fresh --score-card tests

mutants: install ## change the numerical core in 300 small ways; do the tests notice? (about an hour)
	@$(BIN)/python scripts/mutants.py --jobs $(JOBS)

.PHONY: dist
dist: install ## build wheel and sdist into dist/, check them, try them in clean environments (about 5 minutes)
	@"$(PYTHON)" scripts/install.py dist
	@.venv-dist/bin/python scripts/dist.py $(DISTFLAGS)

.PHONY: web web-test web-check
web: ## build the explorer's page and widget from web/ (needs Node 20.19 or later; users need none)
	cd web && npm ci --no-audit --no-fund && npm run build

web-test: ## types and tests of the explorer's front end
	cd web && npm ci --no-audit --no-fund && npm run types && npm test

web-check: ## web-test, and whether the built page is that of web/; without Node it says so and ends
	@if command -v npm > /dev/null; then \
	  $(MAKE) --no-print-directory web-test && (cd web && npm run build) && \
	  { git diff --exit-code --stat -- src/marginfold/explorer/static || \
	    { echo "the built page is not that of web/: run make web and commit it" >&2; exit 1; }; }; \
	else \
	  echo "no Node here: the explorer's front end is not rebuilt, compared or tested"; \
	fi

lock: ## write requirements.lock anew (LOCKFLAGS=--upgrade for newer releases)
	@"$(PYTHON)" scripts/install.py lock $(LOCKFLAGS)

clean: ## remove .venv, caches and everything built
	rm -rf .venv .venv-bench .venv-dist .venv-docs .venv-lowest .venv-notebook .venv-try build dist demo docs/_build docs/api/generated docs/gallery \
	  .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache web/node_modules
	find src tests $(wildcard examples benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +
