# Sabot's verbs. Plain `make` lists them. Everything installs itself first, into .venv.

DATA ?= data
PYTHON ?= python3
SEEDS ?= 200
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help setup run test test-long lint format types protos protos-check protos-baseline \
  simulate bench lock clean

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(STAMP) ## install everything that is needed into .venv, by the hashes of the lock

$(STAMP): requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sabot needs Python 3.11 or newer")'
	@echo "installing into .venv (once; about a minute)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@$(BIN)/pip install -qq --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: setup ## run the demonstration fleet until Ctrl-C [DATA=data] [ROUNDS=20] [TABLES=1|all]
	@$(BIN)/sabot demo --data $(DATA) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(TABLES),--tables $(TABLES))

test: lint types protos-check ## run every check and test, in about fifteen minutes [ARGS='-k banker']
	$(BIN)/pytest -n auto --dist worksteal -m 'not long' $(ARGS)

test-long: setup ## run the long campaigns: kills, power cuts, many seeds [SEEDS=200]
	$(BIN)/pytest -m long $(ARGS)
	$(BIN)/sabot simulate --seeds $(SEEDS)

lint: setup ## check style, format and the layering of the tree
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache

format: setup ## put Python and protos into their format and mend what can be mended
	$(BIN)/ruff check --fix-only --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/buf format --write

types: setup ## check types: mypy strict on everything, pyright strict on the cores
	$(BIN)/mypy
	$(BIN)/pyright

protos: setup ## write the generated Python anew from the protos
	rm -rf protos/gen
	sh tools/generate_protos.sh

protos-check: setup ## check the protos: lint, format, compatibility, generated code up to date
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	$(BIN)/buf breaking --against protos/baseline.binpb
	sh tools/check_generated.sh

protos-baseline: setup ## accept the protos as they are as what later ones must stay compatible with
	$(BIN)/buf build --as-file-descriptor-set --exclude-source-info -o protos/baseline.binpb

simulate: setup ## run the fleet on a faulty log in memory [SEEDS=200]
	$(BIN)/sabot simulate --seeds $(SEEDS)

bench: setup ## measure the fleet against an echo and an SQL baseline
	$(BIN)/sabot bench

lock: setup ## write the locks anew from pyproject.toml [ARGS=--upgrade]
	sh tools/lock.sh $(ARGS)

clean: ## remove caches and the environment, but no data
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -not -path './.git/*' -exec rm -rf {} +
