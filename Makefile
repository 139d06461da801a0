# Everything runs from .venv; `make test` on a machine with only Python makes it first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
CODE := $(wildcard adatkg_core trainer replay streams adatkg tests benchmarks docs)

# Processes that share the tests: two more than there are cores, because many tests wait for something; the fast do not.
CORES := $(shell getconf _NPROCESSORS_ONLN)
PROCESSES ?= $(shell echo $$(($(CORES) < 7 ? $(CORES) + 2 : 8)))

# The build of torch: cpu is small, cuda is large, auto takes cpu where there is no NVIDIA driver and it can be had.
TORCH ?= auto

.PHONY: setup demo chaos test test-fast lint format bench docs reference check-bounds release clean

setup: $(STAMP)

# Tells what it installs, how large that is, and how far it has come.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv -c constraints.txt
	$(BIN)/python tests/packaging/install.py --torch $(TORCH)
	touch $@

# The whole system on this machine; Ctrl-C stops it. `.venv/bin/adatkg demo --help` has more.
demo: $(STAMP)
	$(BIN)/adatkg demo

# The whole system under random faults, then a check of every answer: `make chaos MINUTES=60 SEED=7`.
MINUTES ?= 5
SEED ?=
chaos: $(STAMP)
	$(BIN)/adatkg chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Also where bytecode is forbidden: a run has hundreds of processes, and each would compile the same modules again.
test test-fast: export PYTHONDONTWRITEBYTECODE =

# The linters run beside the tests, which leave them time by waiting. What fails is told at once, and fails the whole.
# A process that dies ends the run, which would else wait for it. In the end the longest tests are told: whatever the
# whole shall win has to be won there.
test: $(STAMP)
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	{ $(MAKE) --no-print-directory lint >"$$said" 2>&1 || { cat "$$said"; exit 1; }; } & lint=$$!; \
	$(BIN)/pytest -q -n $(PROCESSES) --max-worker-restart=0 --durations=20; tests=$$?; \
	wait $$lint || { echo "make lint failed, see above; alone it takes a minute"; exit 1; }; \
	tail -n 1 "$$said"; exit $$tests

# What can be run between two edits: no linters, and no test that wants a broker, a container or a browser, or trains for
# long; tests/support/slow_tests.py says how these are known. Logs that are made up are fewer than in `make test`.
test-fast: $(STAMP)
	ADATKG_EXAMPLES=1 $(BIN)/pytest -q -n $(CORES) -m "not slow"

lint: $(STAMP)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy --strict $(CODE)
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python -m tests.lint.structure

format: $(STAMP)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# The site, into site/. The variable silences an advertisement of the theme's makers.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The pages of docs/reference, from the code.
reference: $(STAMP)
	$(BIN)/python -m docs.generator

# The oldest and the newest dependencies that pyproject.toml allows, each in an environment of its own: gigabytes.
check-bounds: $(STAMP)
	$(BIN)/python -m tests.packaging.bounds

# Wheel and sdist into dist/, checked and tried out; nothing is published.
release: $(STAMP)
	$(BIN)/python -m tests.packaging.release

# Run alone on an idle machine.
bench: $(STAMP)
	$(BIN)/adatkg bench

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache dist site
