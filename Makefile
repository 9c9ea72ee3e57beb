# Each target sets up what it needs, and nothing twice. `make help` lists them.
#   STACK     the stack, a file stacks/Pulumi.<stack>.yaml (default: lab)
#   MACHINES  libvirt or simulated, for a lab stack (default: what the stack file says)
#   INSTALLER stand-in or real, for a lab stack: which openshift-install (default: what the stack file says)
#   REPLACE   machines that `up` is to make anew, e.g. lab-worker-0,lab-bootstrap
#   OUT       the file that `topology` or `timeline` draws to (default: .state/pictures/STACK-...svg)
#   ENGINE_LOG  1: the engine keeps a log of all that it does, which takes a quarter of its processor time
#   POOLS     all: `up` and `preview` work also on pools of which nothing has changed since their last `up`
#   POOLS_AT_ONCE  how many pools are worked on in parallel at most (default: as many as the memory allows)
#   KEEP_LAB  1: `down` leaves the lab running, for the next `up`
#   BASE      the commit that `make preview-report` compares the work tree with (default: main)
#   PICTURES  the URL that the report of `make preview-report` has its pictures from (default: beside it)
#   HUBS      the hubs that `make fleet` asks: NAME=KUBECONFIG of each, separated by spaces
#   POLICY    off: `up` and `preview` ask no policies
#   SWEEP     delete: `make sweep` deletes what it lists of the stack OF, once CONFIRM says so; AGE (2h) chooses
#   INSTALL_CONFIG, AGENT_CONFIG   the installer's files that `import` reads; OVERWRITE=1: over a stack file that is there
#   FIGURES   what `make bench` measures, separated by commas (default: everything)
STACK ?= lab
MACHINES ?=
INSTALLER ?=
PYTHON ?= python3

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
READY_LAB := $(VENV)/.ready-lab
READY_DEV := $(VENV)/.ready-dev
READY_DOCS := $(VENV)/.ready-docs
SITE := .state/site
TOOLS = $(PY) -m tools
WITH = --stack $(STACK) $(if $(MACHINES),--machines $(MACHINES)) $(if $(INSTALLER),--installer $(INSTALLER))

.DEFAULT_GOAL := help
.PHONY: help up down hub hub-down import preview preview-report fleet topology timeline preflight sweep refresh output kubeconfig setup test test-all conformance check quick lint bench docs clean

help:
	@echo 'make up | down | preview | preflight | sweep | refresh | output | kubeconfig | setup   STACK=$(STACK) MACHINES=...'
	@echo 'make hub | hub-down   STACK=$(STACK)'
	@echo 'make import   INSTALL_CONFIG=... AGENT_CONFIG=... STACK=...'
	@echo 'make topology | timeline   STACK=$(STACK) OUT=...'
	@echo 'make preview-report   BASE=main'
	@echo 'make fleet   HUBS="NAME=KUBECONFIG ..."'
	@echo 'make test | test-all | conformance | check | bench | docs | clean'

# Only what runs in the lab needs the lab's packages; a preview needs neither.
up down hub hub-down refresh output kubeconfig preflight sweep: $(READY_LAB)
	@$(TOOLS) $@ $(WITH)

preview topology timeline: $(READY)
	@$(TOOLS) $@ $(WITH)

# The stack is called as the cluster is, unless STACK was given.
import: $(READY)
	@$(TOOLS) $@ --install-config '$(INSTALL_CONFIG)' $(if $(AGENT_CONFIG),--agent-config '$(AGENT_CONFIG)') \
	  $(if $(filter file,$(origin STACK)),,--stack $(STACK)) $(if $(filter-out 0,$(OVERWRITE)),--overwrite)

# One Markdown file about every facility that a change touches, and pictures.
preview-report: $(READY)
	@$(TOOLS) preview-report $(if $(BASE),--base $(BASE)) $(if $(PICTURES),--pictures $(PICTURES))

# One page and one picture of all clusters. Hubs are asked with what the Cluster API providers need.
fleet: $(READY_LAB)
	@$(TOOLS) fleet $(foreach hub,$(HUBS),--hub $(hub))

setup: $(READY_LAB)
	@$(TOOLS) setup $(WITH)

# What every change must pass; test-all: the tests of the night, too, which take an hour and a half more.
test test-all: $(READY_DEV)
	@$(TOOLS) setup --stack lab $(if $(MACHINES),--machines $(MACHINES))
	@$(PY) -m tests $(if $(filter test-all,$@),--all)

# The program and the lab's stand-in against OpenShift's own programs, which are built first (a quarter of an hour, once).
conformance: $(READY_DEV)
	@$(PY) -m tests.conformance

# What is quick: style, types, and the tests that start neither the lab nor the engine nor programs nor servers.
# Types are checked while the tests run.
check: $(READY_DEV)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint quick

quick: $(READY_DEV)
	@$(PY) -m tests --quick

lint: $(READY_DEV)
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m pyright

bench: $(READY_DEV)
	@$(TOOLS) setup --stack lab >&2
	@$(PY) -m tests.bench $(if $(FIGURES),--figures $(FIGURES))

# The site; an error for every warning. Its search wants a web server: python3 -m http.server -d .state/site
docs: $(READY_DOCS)
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict --site-dir $(SITE)
	@echo 'the site: $(SITE)/index.html'

# Caches below ~/.cache/metal-ipi stay; a stack or lab that is up must be taken down first.
clean:
	@if [ -e .state/lab ] || ls -d .state/stacks/*/ >/dev/null 2>&1; then \
	  echo 'clean: a stack or the lab is up; make down first' >&2; exit 1; fi
	@rm -rf $(VENV) .state .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.txt tools/venv.sh
	@sh tools/venv.sh '$(PYTHON)' '$(VENV)' requirements.txt '$@'

$(READY_LAB): requirements-lab.txt requirements-cluster-api.txt requirements.txt tools/venv.sh
	@sh tools/venv.sh '$(PYTHON)' '$(VENV)' requirements-lab.txt '$@'

$(READY_DEV): requirements-dev.txt requirements-lab.txt requirements-cluster-api.txt requirements.txt tools/venv.sh
	@sh tools/venv.sh '$(PYTHON)' '$(VENV)' requirements-dev.txt '$@'

$(READY_DOCS): requirements-docs.txt tools/venv.sh
	@sh tools/venv.sh '$(PYTHON)' '$(VENV)' requirements-docs.txt '$@'
