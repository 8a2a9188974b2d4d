# One command for each job. Every target makes .venv first where it is missing or older than what it is made from,
# so that a fresh clone needs Python 3.11 or newer, make and the package registries, and nothing else.

PYTHON ?= python3
ARGS ?=
STUDY ?= quick

REPORT = .report/$(STUDY)
# Enough for a roofline: in cache, in memory, another operation, another form.
KERNELS := dense-500x20 dense-2000x1000 dense-20000x1000 hessian-20000x1000 graph-100000

VENV := .venv
RUN := $(VENV)/bin/python
# A .venv that carries this mark was interrupted while it was being filled: it is made anew.
UNFINISHED := $(VENV)/.unfinished
RUNTIME := $(VENV)/.installed-runtime
ALL := $(VENV)/.installed-all
ALL_EXTRAS := [bench,cluster,docs,lint,peers,test]

# Cluster modules and user settings that would leak other packages into .venv, or send ours elsewhere.
unexport PYTHONPATH PYTHONHOME
export PIP_USER := 0

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help report test docs fuzz bench gate lint clean

help: ## list the targets (the default)
	@echo "make TARGET [ARGS='more arguments for its tool'] [PYTHON=the Python that a new $(VENV) is made with]"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' Makefile

report: $(RUNTIME) ## run a study and draw its page (STUDY=quick, paper, scaling, peers, inverse or full)
	@echo "report: the study $(STUDY), then some kernels, then the page (about five minutes the first time)"
	@$(RUN) -m quartbench compare --study $(STUDY) --out $(REPORT)/results $(ARGS)
	@$(RUN) -m quartbench kernels --rounds 2 $(KERNELS:%=--case %) --out $(REPORT)/results/_kernels >/dev/null
	@$(RUN) -m quartbench report $(REPORT)/results --out $(REPORT)/report.html

test: $(ALL) ## compile the kernels, then run the tests
	@echo "test: compiling the kernels, then pytest"
	@$(RUN) -m quartbench warmup
	@$(RUN) -m pytest $(ARGS)

docs: $(ALL) ## build the documentation, .docs/html/index.html; broken links and warnings are errors
	@echo "docs: running the gallery and building the pages (a minute or two)"
	@$(RUN) -m sphinx -W --keep-going -q -b html $(ARGS) docs .docs/html
	@echo "docs: the pages begin at .docs/html/index.html"

fuzz: $(ALL) ## solve hostile problems by the thousand, against exact truths (ARGS='--solves 100000'); goes on if stopped
	@$(RUN) -m tests.fuzz $(ARGS)

# What has a result is not measured again. The large tier has been skipped before, which counts as one, so it runs anew:
# classes that are all of it, and those of which some parameters are.
LARGE := Large|lewis.Sampled|PriceOfCertificates|TallInPasses
SKIP = $(if $(filter 1,$(QUARTBENCH_LARGE)),--bench '$(LARGE)',--skip-existing)

# asv looks for a Python of the running version on PATH: ours comes first, as a shim of that name may not run.
bench: $(ALL) ## measure the last commit with asv, and draw what all commits gave: .asv/history.html
	@git rev-parse -q --verify HEAD >/dev/null || { echo "bench: asv measures commits, there is none here" >&2; exit 1; }
	@echo "bench: measuring commit $$(git rev-parse --short HEAD) with asv (uncommitted changes are not measured)"
	@echo "bench: how long it takes: $$($(RUN) -m quartbench history --expect)"
	@[ -f "$$HOME/.asv-machine.json" ] || $(RUN) -m asv machine --yes >/dev/null
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(RUN) -m asv run $(SKIP) $(ARGS) 'HEAD^!'
	@$(RUN) -m quartbench history
	@echo "bench: asv's own pages, which need the internet: $(RUN) -m asv publish, then $(RUN) -m asv preview"

gate: $(ALL) ## compare the last commit with the merge base (ARGS='BASE HEAD' for others), and fail on a regression
	@$(VENV)/bin/quartbench gate $(ARGS)

lint: $(ALL) ## check the code and its format with ruff, and the types of the public API with mypy
	@echo "lint: ruff check, ruff format --check, mypy on calls of the public API and the rooms that are typed"
	@$(RUN) -m ruff check . $(ARGS)
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

clean: ## remove .venv, asv's files, pages of `make report` and `make docs`, solves of `make fuzz`, caches and build outputs
	@echo "clean: removing $(VENV), .asv, .docs, .report, .fuzz, caches and build outputs"
	@rm -rf $(VENV) .asv .docs docs/gallery .report .fuzz .hypothesis .pytest_cache .ruff_cache .mypy_cache build dist *.egg-info
	@rm -rf .coverage .coverage.* coverage.xml htmlcov
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml constraints.txt
	$(call install,[peers])
	@touch $@

$(ALL): pyproject.toml constraints.txt
	$(call install,$(ALL_EXTRAS))
	@touch $(RUNTIME) $@

# $(call install,EXTRAS): fill .venv, making it first where there is none that works. A failure leaves no half-made
# .venv, an interruption leaves the mark (hence the trap: pip ends an interruption like any other failure). The build
# backend comes first and isolation is off, as versions of pip differ in how constraints reach an isolated build.
define install
	@fresh=; trap 'exit 130' HUP INT TERM; \
	if [ -e $(UNFINISHED) ] || ! $(RUN) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    $(find_python); \
	    echo "quartbench: making $(VENV) with Python $$version"; \
	    fresh=1; \
	    rm -rf $(VENV); \
	    mkdir $(VENV) && touch $(UNFINISHED) && "$$base" -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
	fi; \
	echo "quartbench: installing the packages of constraints.txt into $(VENV) (a minute or two the first time)"; \
	touch $(UNFINISHED); rm -f $(RUNTIME) $(ALL); \
	pip="$(RUN) -m pip --disable-pip-version-check install --quiet --constraint constraints.txt"; \
	if $$pip hatchling editables && $$pip --no-build-isolation --editable '.$(1)'; then \
	    rm -f $(UNFINISHED); \
	else \
	    if [ -n "$$fresh" ]; then rm -rf $(VENV); else rm -f $(UNFINISHED); fi; \
	    echo "quartbench: the packages could not be installed, pip says why above" >&2; \
	    exit 1; \
	fi
endef

# Set $version and $base, the interpreter behind PYTHON: PYTHON itself may lie in the very .venv that is about to go.
define find_python
	version=$$($(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null); \
	if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "quartbench needs Python 3.11 or newer, and '$(PYTHON)' is $${version:-not there}. Install one" >&2; \
	    echo "(Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python; anywhere: python.org)," >&2; \
	    echo "or name one that you have: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "quartbench needs Python's venv and ensurepip, and '$(PYTHON)' ($$version) lacks one. Install them" >&2; \
	    echo "(Debian, Ubuntu: apt install python3-venv)," >&2; \
	    echo "or name another Python: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	base=$$($(PYTHON) -c 'import sys; print(sys._base_executable)')
endef
