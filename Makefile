# Each target sets up what it needs, and nothing twice. `make help` lists them.
#   STACK     the stack, a file stacks/Pulumi.<stack>.yaml (default: lab)
#   MACHINES  libvirt or simulated, for a lab stack (default: what the stack file says)
#   REPLACE   machines that `up` is to make anew, e.g. lab-worker-0,lab-bootstrap
#   FIGURES   what `make bench` measures, separated by commas (default: everything)
STACK ?= lab
MACHINES ?=
PYTHON ?= python3

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
READY_LAB := $(VENV)/.ready-lab
READY_DEV := $(VENV)/.ready-dev
TOOLS = $(PY) -m tools
WITH = --stack $(STACK) $(if $(MACHINES),--machines $(MACHINES))

.DEFAULT_GOAL := help
.PHONY: help up down preview refresh output setup test check lint bench clean

help:
	@echo 'make up | down | preview | refresh | output | setup   STACK=$(STACK) MACHINES=...'
	@echo 'make test | check | bench | clean'

# Only what runs in the lab needs the lab's packages; a preview needs neither.
up down refresh output: $(READY_LAB)
	@$(TOOLS) $@ $(WITH)

preview: $(READY)
	@$(TOOLS) $@ $(WITH)

setup: $(READY_LAB)
	@$(TOOLS) setup $(WITH)

# Everything. Machines that are emulated in software want the processors for themselves; the rest is run by two at once.
test: $(READY_DEV)
	@$(TOOLS) setup --stack lab $(if $(MACHINES),--machines $(MACHINES))
	@status=0; \
	$(PY) -m pytest -rs -m 'not libvirt' -n 2 --dist loadfile --no-loadscope-reorder || status=1; \
	$(PY) -m pytest -rs -m libvirt || status=1; \
	exit $$status

# What is quick: style, types, and the tests that start neither the lab nor the engine.
check: lint
	@$(PY) -m pytest -q -rs -m 'not lab and not libvirt and not engine'

lint: $(READY_DEV)
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m pyright

bench: $(READY_DEV)
	@$(TOOLS) setup --stack lab >&2
	@$(PY) -m tests.bench $(if $(FIGURES),--figures $(FIGURES))

# Caches below ~/.cache/metal-ipi stay; a stack or lab that is up must be taken down first.
clean:
	@if [ -e .state/lab ] || ls -d .state/stacks/*/ >/dev/null 2>&1; then \
	  echo 'clean: a stack or the lab is up; make down first' >&2; exit 1; fi
	@rm -rf $(VENV) .state .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.txt tools/venv.sh
	@sh tools/venv.sh '$(PYTHON)' '$(VENV)' requirements.txt '$@'

$(READY_LAB): requirements-lab.txt requirements.txt tools/venv.sh
	@sh tools/venv.sh '$(PYTHON)' '$(VENV)' requirements-lab.txt '$@'

$(READY_DEV): requirements-dev.txt requirements-lab.txt requirements.txt tools/venv.sh
	@sh tools/venv.sh '$(PYTHON)' '$(VENV)' requirements-dev.txt '$@'
