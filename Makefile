# `make demo` and `make test` install everything that they need. They require Python 3.11 to 3.14, make and access to a
# package index. .ci/make_venv chooses among the installed interpreters, or takes PYTHON: python3.12, 3.12, or a path.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
APT := apt-get --quiet --quiet --option Acquire::Retries=3
# The demo downloads its distributions with pip. Modules are compiled when they are first imported.
INSTALL := $(BIN)/python .ci/install.py pip
# All workers of the tests start together, and would each compile all modules.
INSTALL_COMPILED := $(BIN)/python .ci/install.py --compile pip

# Tests start hundreds of processes. Without bytecode, each would compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo ui stop check style types test tests nightly histories fuzz test-pythons dist release rebuild-release workflows lock sbom redis nginx prometheus compose kubectl wheels test-deploy test-faults test-browser docs clean

demo: $(VENV)/.installed
	@$(BIN)/python demo/run.py

ui: $(VENV)/.installed-stack
	@$(BIN)/python demo/ui.py

# ends the pages that `make demo` serves in the background
stop: $(VENV)/.installed
	@$(BIN)/python demo/pages.py stop

check: style types

style: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

# types are checked while the first tests run, since mypy uses only one core
test: style
	@$(MAKE) --no-print-directory --jobs=2 types tests

# Randomized tests draw fewer examples than with `pytest` alone. Each run includes another share of the slow tests.
tests: $(VENV)/.installed-test
	EXAMPLES_TIMES=$${EXAMPLES_TIMES:-0.3} $(BIN)/pytest -n auto --dist worksteal --tier=quick

# everything, in some hours: all tests, long histories, real installers, fuzzing, deployments, browsers
nightly: redis nginx prometheus compose kubectl wheels
	@.ci/nightly $(VENV)

redis:
	@command -v redis-server > /dev/null || \
		{ [ "$$(id -u)" = 0 ] && $(APT) update && $(APT) install --yes redis-server; } || \
		{ echo "redis-server is needed: install it from your system's packages" >&2; exit 1; }

nginx:
	@command -v nginx > /dev/null || \
		{ [ "$$(id -u)" = 0 ] && $(APT) update && $(APT) install --yes nginx; } || \
		{ echo "nginx is needed: install it from your system's packages" >&2; exit 1; }

# `docker-compose config` and `kubectl kustomize`, which need no engine and no cluster; without them, their tests in deploy/ are skipped
compose:
	@command -v docker-compose > /dev/null || \
		{ [ "$$(id -u)" = 0 ] && $(APT) update && $(APT) install --yes --no-install-recommends docker-compose; } || \
		{ echo "docker-compose is needed: install it from your system's packages" >&2; exit 1; }

kubectl:
	@command -v kubectl > /dev/null || \
		{ [ "$$(id -u)" = 0 ] && $(APT) update && $(APT) install --yes --no-install-recommends kubernetes-client; } || \
		{ echo "kubectl is needed: install it from your system's packages (kubernetes-client)" >&2; exit 1; }

# with promtool, for the alerts in deploy/monitoring; without it, their tests are skipped
prometheus:
	@command -v promtool > /dev/null || \
		{ [ "$$(id -u)" = 0 ] && $(APT) update && $(APT) install --yes --no-install-recommends prometheus; } || \
		{ echo "prometheus is needed: install it from your system's packages" >&2; exit 1; }

histories: $(VENV)/.installed-test
	$(BIN)/python -m pypi_assets_tests.crawl.model_run --histories 20000
	$(BIN)/python -m pypi_assets_tests.crawl.model_scopes --graphs 5000
	$(BIN)/python -m pypi_assets_tests.crawl.observed_run --histories 5000
	EXAMPLES_TIMES=20 $(BIN)/pytest -n auto --dist worksteal $(shell grep -rlE --include='test_*.py' '@given|examples\(' pypi_assets_tests)

# each parser of data from an index or a file, in its own process, for 20 minutes
FUZZ_MINUTES ?= 20
fuzz: $(VENV)/.installed-test
	$(BIN)/python -m pypi_assets_tests.fuzz --apart --minutes $(FUZZ_MINUTES)

test-pythons: $(VENV)/.installed-test
	@TIER=$(TIER) .ci/test_pythons $(VENV)

dist: $(VENV)/.installed-test
	@rm -rf build dist
	@$(BIN)/python -m build --no-isolation > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log >&2; exit 1; }
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python .ci/try_wheel.py dist/*.whl
	@ls dist/*

# The versions that the image installs on each Python, with the hashes of all files of each release. They come from the
# index in uv's configuration, and the file does not name it.
lock: $(VENV)/.installed-image
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-header --no-annotate --constraint constraints.txt $(LOCKED:%=--extra %) $(FOREIGN:%=--no-emit-package %) \
		--output-file deploy/requirements.lock pyproject.toml deploy/requirements.in
LOCKED := celery journal kafka kubernetes mcp notify parquet tables views
# requirements for Windows and for browsers
FOREIGN := colorama httpx2-jsfetch psutil pyreadline3 pywin32

# the bill of materials of the image: CycloneDX in JSON, validated against its schema
sbom: $(VENV)/.installed-image
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --output-reproducible \
		--output-format JSON --spec-version 1.6 --validate --output-file dist/sbom.json deploy/requirements.lock

# builds and checks a release, and tags it in this repository; DRY_RUN=1 leaves only the files in dist/
release: $(VENV)/.installed-release
	@$(BIN)/python .ci/release.py $(if $(DRY_RUN),--dry-run)

# builds the files of a tag again, for publishing
rebuild-release: $(VENV)/.installed-release
	@$(BIN)/python .ci/release.py --build-only

# checks the security of the workflows in .github/
workflows: $(VENV)/.installed-test-deploy
	@$(BIN)/zizmor --offline --quiet .github

wheels: $(VENV)/.installed-test-deploy
	$(BIN)/python -m benchmarks.corpora.download --wheels

# quick: only a share of the tests that are marked nightly
TIER ?= all
test-deploy: redis nginx compose kubectl wheels
	$(BIN)/pytest -n 2 -m deploy --tier=$(TIER) pypi_assets_tests/deploy

test-browser: $(VENV)/.installed-test-deploy
	$(BIN)/pytest -m browser pypi_assets_tests/deploy

test-faults: redis $(VENV)/.installed-test-deploy
	$(BIN)/pytest -s -m faults pypi_assets_tests/deploy

# Builds the site of docs/ in site/. A broken link or anchor is an error. `.venv/bin/mkdocs serve` shows it while you write.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# checked each time, and created again only if it is not usable
$(VENV)/pyvenv.cfg: FORCE
	@.ci/make_venv $(VENV) $(PYTHON)

# Each of these environments includes the environments before it.
$(VENV)/.installed: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing pypi-assets and its requirements into $(VENV) ..."
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed-stack: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing the requirements of the whole stack into $(VENV) ..."
	@$(INSTALL) --editable '.[stack]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-test: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing pypi-assets and the requirements of its tests into $(VENV) ..."
	@$(INSTALL_COMPILED) --editable '.[test]'
	@touch $(VENV)/.installed $(VENV)/.installed-stack $@

# for the tests that `make test-pythons` runs on further Pythons
$(VENV)/.installed-test-python: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@$(INSTALL_COMPILED) --editable '.[test-python]'
	@touch $(VENV)/.installed $@

$(VENV)/.installed-test-deploy: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing pypi-assets and the requirements of all its tests into $(VENV) ..."
	@$(INSTALL_COMPILED) --editable '.[test,test-deploy]'
	@touch $(VENV)/.installed $(VENV)/.installed-stack $(VENV)/.installed-test $@

$(VENV)/.installed-release: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@$(INSTALL) --editable '.[release]'
	@touch $(VENV)/.installed $(VENV)/.installed-image $@

$(VENV)/.installed-image: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@$(INSTALL) --editable '.[image]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/pyvenv.cfg pyproject.toml constraints.txt
	@echo "installing MkDocs into $(VENV) ..."
	@$(INSTALL) --editable '.[docs]'
	@touch $(VENV)/.installed $@

FORCE:

clean:
	rm -rf $(VENV) $(VENV)-3.* .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site *.egg-info
