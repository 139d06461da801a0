# Everything runs from .venv; `make test` on a machine with only Python makes it first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
CODE := $(wildcard adatkg_core trainer replay streams adatkg_cli tests benchmarks docs)

# Processes that share the tests: one more than there are cores, because many tests wait for something.
PROCESSES ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 7 ? n + 1 : 8)))

.PHONY: setup demo test lint format bench docs reference clean

setup: $(STAMP)

# Bytecode is compiled here because some machines forbid it at run time, where it costs seconds per process.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv -c constraints.txt
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[dev]' -c constraints.txt
	touch $@

# The whole system on this machine; Ctrl-C stops it. `.venv/bin/adatkg demo --help` has more.
demo: $(STAMP)
	$(BIN)/adatkg demo

test: lint
	$(BIN)/pytest -q -n $(PROCESSES)

lint: $(STAMP)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy --strict $(CODE)

format: $(STAMP)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# The site, into site/. The variable silences an advertisement of the theme's makers.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The pages of docs/reference, from the code.
reference: $(STAMP)
	$(BIN)/python -m docs.generator

# Run alone on an idle machine.
bench: $(STAMP)
	$(BIN)/adatkg bench

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache dist site
