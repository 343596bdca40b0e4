# What can be done with this repository; `make help` lists it.  Everything happens inside $(VENV).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
# Some images set it; each of the many processes here would compile every source anew.
export PYTHONDONTWRITEBYTECODE :=

VARIABLES := PYTHON VENV BOOTSTRAP PYTEST_OPTIONS BENCH_OPTIONS SECONDS KILLS SEED SECURE COUNT MUTANTS_OPTIONS PYTHONS ROOM \
	FOREBAY_EXAMPLES FOREBAY_WITHOUT_KAFKA
$(foreach name,$(.VARIABLES),$(if $(findstring command line,$(origin $(name))),$(if $(filter $(name),$(VARIABLES)),,$(error \
	there is no variable $(name); there are $(VARIABLES)))))

BOOTSTRAP ?=
PYTEST_OPTIONS ?=
BENCH_OPTIONS ?=
SECONDS ?= 1800
KILLS ?= 60
COUNT ?= 100
MUTANTS_OPTIONS ?=
SEED ?=
SECURE ?=
# PYTHON=... has an environment of its own, beside that of the Python which is found.
ifeq ($(origin VENV), undefined)
ifeq ($(origin PYTHON), undefined)
VENV := .venv
else
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d%s" % (*sys.version_info[:2], sys.abiflags))' 2>/dev/null)
endif
endif
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3.15 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

PY := $(VENV)/bin/python
TOOLS := $(VENV)/.tools
DEMO := $(VENV)/.demo
STAMP := $(VENV)/.ready
# Compiled modules of several Pythons lie beside each other.
BUILT := $(VENV)/.built
# Compiled apart, with checks: see setup.py.
CHECKED := $(VENV)/.checked
SOURCES := $(shell find src/forebay -name '*.py' -o -name '*.pxd' -o -name '*.h')
TESTS_IN_BOTH_FORMS := tests/unit tests/conformance tests/scenario tests/property
TESTS_WITH_BROKERS := tests/integration tests/soak
TESTS_WITH_SPARK := tests/spark
TESTS_OF_THE_WHEEL := tests/package
# Tools of a release, and what users get beside forebay: environments of their own.
RELEASE := $(VENV)-release
RUNTIME := $(VENV)-runtime
PYTHONS ?= $(PYTHON)
ROOM ?=

# $(call look,MiB,java maven): all that this machine lacks, in one message, before anything is installed.
look = sh tools/look.sh '$(PYTHON)' $(VENV) $(1) $(2)
# pip and Spark's jars are on the disk twice for a while.
ROOM_OF_DEMO := 2500
LOOK_FOR_TESTS = $(call look,$(if $(wildcard $(STAMP)),0,4000),java $(if $(or $(filter 1,$(FOREBAY_WITHOUT_KAFKA)),$(wildcard .cache/kafka)),,maven))

# What `make test` takes of folders, and what it leaves to `make test-rest`: the tests that are marked so, and again,
# whole, those whose inputs are generated.  FOREBAY_EXAMPLES=... has another size.
define pytest_essential
	FOREBAY_EXAMPLES=$(or $(FOREBAY_EXAMPLES),small) $(PY) -m pytest $(PYTEST_OPTIONS) -m "not rest" $(1)
endef
define pytest_rest
	FOREBAY_EXAMPLES=$(or $(FOREBAY_EXAMPLES),whole) $(PY) -m pytest $(PYTEST_OPTIONS) -m "$(2)" $(1)
endef

.PHONY: help setup build rebuild check format generated docs test test-rest test-fast unit unit-rest interpreted checked integration integration-rest three-brokers spark spark-rest package package-rest jars demo road house kafka bench soak kill truth mutants sdist wheel wheel-test dependency-wheels sbom audit clean

help:  ## This list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'
	@echo "  Variables: PYTHON, VENV, BOOTSTRAP (demo), PYTEST_OPTIONS, BENCH_OPTIONS, SECONDS, SEED and SECURE=1 (soak), COUNT, SEED and MUTANTS_OPTIONS=--resume (mutants), PYTHONS and ROOM (wheel), FOREBAY_WITHOUT_KAFKA=1 (no real broker), FOREBAY_EXAMPLES=small|whole|long (generated inputs)"

# What compiles forebay; then what the demo needs, and everything: the rest is had when a command needs it.
$(TOOLS): pyproject.toml
	@$(call look,800)
	@$(PYTHON) tools/packages.py $(VENV) build
	@touch $@

$(DEMO): $(TOOLS)
	@$(PYTHON) tools/packages.py $(VENV) demo
	@touch $@

$(STAMP): $(TOOLS)
	@$(PYTHON) tools/packages.py $(VENV) dev
	@touch $@ $(DEMO)

# The editable installation above has no compiled modules; this compiles them beside their sources, those that changed.
# The stamp has the time at which the build began: a source that is edited meanwhile is compiled by the next one.
$(BUILT): $(TOOLS) setup.py $(SOURCES)
	@touch $@.begun
	@$(PYTHON) tools/times.py $(VENV) compile $(PY) setup.py --quiet build_ext --inplace
	@mv $@.begun $@

$(CHECKED): $(TOOLS) setup.py $(SOURCES)
	@touch $@.begun
	@find build/checked/lib -name '*.py' -delete 2>/dev/null || true  # what has moved since must not be found there
	@FOREBAY_BUILD_CHECKED=1 $(PY) setup.py --quiet build --build-lib build/checked/lib --build-temp build/checked/temp
	@mv $@.begun $@

setup: $(STAMP)  ## Make the virtual environment and install the package and its tools into it

build: $(BUILT)  ## Compile what changed, in place (needs a C compiler)

rebuild:  ## Compile everything anew
	find src/forebay \( -name '*.so' -o -name '*.c' \) -delete
	rm -rf build .venv*/.built $(BUILT) $(CHECKED)
	$(MAKE) build

check: $(STAMP)  ## Format, lint, types, layers, limits, waits, pages (no network, nothing compiled)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m tools.stubs --check
	$(PY) -m tools.option_types --check
	$(PY) -m tools.public_names --check
	$(PY) -m mypy
	$(VENV)/bin/lint-imports --no-logo
	$(PY) -m tools.check_layers
	$(PY) -m tools.house --check
	$(PY) -m tools.check_limits
	$(PY) -m tools.check_waits
	$(PY) -m tools.file_map --check
	$(PY) -m tools.check_pages

format: $(STAMP)  ## Format and mend what can be mended
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

generated: $(STAMP)  ## Write what is generated: stubs of compiled modules, types of options, public names, docs/map.md
	$(PY) -m tools.stubs
	$(PY) -m tools.option_types
	$(PY) -m tools.public_names
	$(PY) -m tools.file_map

# Docstrings come from the sources: nothing has to be compiled.  Every broken link inside the site is a warning, and a
# warning is an error.  Addresses elsewhere are not asked for.
docs: $(STAMP)  ## The documentation site, into build/site
	rm -rf build/site
	FOREBAY_INTERPRETED=1 $(PY) -m sphinx --fail-on-warning --nitpicky --quiet --fresh-env docs build/site
	FOREBAY_INTERPRETED=1 $(PY) -m tools.check_site
	@echo "build/site/index.html"

# Three at a time for two processors, the longest first: those with brokers mostly wait.  What needs the compiled modules
# waits for them, and the others begin meanwhile; fixtures fetch the jars where `jars` has not yet.
# tests/package/test_commands.py holds each test in one of the two commands.
TEST_PARTS := jars integration unit spark check package
REST_PARTS := spark-rest interpreted checked integration-rest unit-rest three-brokers package-rest docs
SIDE_BY_SIDE = FOREBAY_PACE=$${FOREBAY_PACE:-$$($(PYTHON) tests/support/pace.py)} $(MAKE) --no-print-directory -j3 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

unit unit-rest integration integration-rest three-brokers spark spark-rest bench soak kill: $(STAMP)

test:  ## What finds faults: checks, the compiled form, brokers, Spark, the package (10 minutes on 2 cores)
	@$(LOOK_FOR_TESTS)
	+@$(SIDE_BY_SIDE) $(TEST_PARTS)

test-rest:  ## The same again, or rare: the interpreted form, three brokers, Spark's own JVMs, the site (15 minutes more)
	@$(LOOK_FOR_TESTS)
	+@$(SIDE_BY_SIDE) $(REST_PARTS)

test-fast: check unit  ## Checks and the compiled form's tests without brokers

unit: $(BUILT)  ## Unit and conformance tests of the compiled form, with few generated inputs
	$(call pytest_essential,$(TESTS_IN_BOTH_FORMS))

unit-rest: $(BUILT)  ## Those of them that generate their inputs, with all of these; and the rare ones
	$(call pytest_rest,$(TESTS_IN_BOTH_FORMS),rest or sized)

interpreted: $(STAMP)  ## All of them again, of the same sources, run as Python
	FOREBAY_INTERPRETED=1 FOREBAY_EXAMPLES=$(or $(FOREBAY_EXAMPLES),whole) $(PY) -m pytest $(PYTEST_OPTIONS) $(TESTS_IN_BOTH_FORMS)

# What the compiled form would crash of, or worse: the same tests, with few generated inputs.
checked: $(STAMP) $(CHECKED)  ## All of them again, compiled so that an attribute of None is an error
	FOREBAY_BUILD_CHECKED=1 FOREBAY_EXAMPLES=$(or $(FOREBAY_EXAMPLES),small) $(PY) -m pytest $(PYTEST_OPTIONS) -o pythonpath="build/checked/lib ." $(TESTS_IN_BOTH_FORMS)

# By four processes, which share the files: these tests mostly wait.
integration: $(BUILT)  ## Against the embedded broker and a real Kafka
	$(call pytest_essential,-n 4 --dist loadfile $(TESTS_WITH_BROKERS))

integration-rest: $(BUILT)  ## Against a real Kafka in rarer ways: old ones, Kerberos, what takes long
	$(call pytest_rest,-n 3 --dist loadfile $(TESTS_WITH_BROKERS),(rest or sized) and not three_brokers)

three-brokers: $(BUILT)  ## Against three real brokers that are killed, frozen and moved, a minute of it at random
	$(call pytest_rest,$(TESTS_WITH_BROKERS),three_brokers)

spark: $(BUILT)  ## The data source in a local Spark session
	$(call pytest_essential,$(TESTS_WITH_SPARK))

spark-rest: $(BUILT)  ## The data source in jobs that start a JVM of their own: clusters, kills, the demo's jobs
	$(call pytest_rest,$(TESTS_WITH_SPARK),rest or sized)

package: $(STAMP)  ## The wheel in an environment of its own: what type checkers see of it
	$(call pytest_essential,$(TESTS_OF_THE_WHEEL))

package-rest: $(STAMP)  ## What else is built out of the sources, and with which bytes
	$(call pytest_rest,$(TESTS_OF_THE_WHEEL),rest or sized)

# What keeps the jars from being had is said here; the tests that need them then fail with the same reason.
jars: $(STAMP)
	@test "$${FOREBAY_WITHOUT_KAFKA:-}" = 1 || $(PY) -m tools.kafka fetch || true

# Packages are fetched while modules are compiled.
demo: BEGUN := $(shell date +%s)
demo:  ## The main job on real data, every row compared, in two minutes (BOOTSTRAP=host:port: your own cluster)
	@$(call look,$(if $(wildcard $(DEMO)),0,$(ROOM_OF_DEMO)),java)
	+@$(MAKE) --no-print-directory -j2 $(DEMO) $(BUILT)
	@$(PY) -m demo.run --begun $(BEGUN) --times $(VENV) $(if $(BOOTSTRAP),--bootstrap $(BOOTSTRAP))

road: $(STAMP)  ## The files that a record visits from send() to its callback
	$(PY) -m tools.road --files

house: $(STAMP)  ## The rooms, floors and arrows of the sources, the longest files, and files that import each other
	$(PY) -m tools.house

kafka: $(STAMP)  ## A real Kafka in the foreground, until Ctrl-C
	$(PY) -m tools.kafka

bench: $(BUILT) jars  ## Everything that is measured, peers beside, and the table of targets (BENCH_OPTIONS=--quick: 10 minutes)
	$(PY) -m bench $(BENCH_OPTIONS)

soak: $(BUILT)  ## Random faults under load on three real brokers, for SECONDS (SEED=... repeats a run, SECURE=1: over SASL_SSL)
	$(PY) -m tests.soak --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(SECURE),--secure)

kill: $(BUILT) jars  ## Kills in exactly-once Spark streams: workers, executors, drivers, broker; stages attempted again (KILLS=60, SEED=... repeats a run)
	$(PY) -m tests.kill --kills $(KILLS) $(if $(SEED),--seed $(SEED))

truth: $(BUILT) jars  ## Predictions of the tuner beside a real Kafka, thirteen loads, and eight wrong models (half an hour, a quiet machine)
	$(PY) -m tests.truth --wrong

# Status 1 says that the rest of the tests finds too much that `make test` does not.  Brokers start where tests need them.
mutants: $(STAMP) jars  ## Seeded mutants of the sources: what `make test` finds, and what only the rest does (COUNT, SEED; hours)
	$(PY) -m tools.mutants --count $(COUNT) $(if $(SEED),--seed $(SEED)) $(MUTANTS_OPTIONS)

$(RELEASE)/.ready: pyproject.toml
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --group release
	touch $@

sdist: $(RELEASE)/.ready  ## The source distribution, the same bytes for the same commit, in dist
	$(RELEASE)/bin/python -m tools.wheels.build --sdist

wheel: $(RELEASE)/.ready  ## It and a repaired wheel for each of PYTHONS, in dist (Linux; minutes each)
	$(RELEASE)/bin/python -m tools.wheels.build $(PYTHONS)

wheel-test:  ## The unit tests out of those wheels where no compiler is, in a chroot with ROOM=folder (root; minutes each)
	$(PYTHON) -m tools.wheels.room $(if $(ROOM),--room $(ROOM)) $(PYTHONS)

dependency-wheels: $(STAMP)  ## Whether each dependency has a wheel on each platform (asks the package index; a minute)
	$(PY) -m tools.wheels.platforms

# Cython is of the build alone, and so is not among what users get.
$(RUNTIME)/.ready: pyproject.toml setup.py
	rm -rf $(RUNTIME)
	$(PYTHON) -m venv $(RUNTIME)
	FOREBAY_INTERPRETED=1 $(RUNTIME)/bin/python -m pip install --quiet --disable-pip-version-check .
	$(RUNTIME)/bin/python -m pip uninstall --quiet --yes setuptools pip
	touch $@

sbom: $(RELEASE)/.ready $(RUNTIME)/.ready  ## The bill of materials of what an installation brings (CycloneDX), in dist
	mkdir -p dist
	$(RELEASE)/bin/cyclonedx-py environment --output-reproducible --of JSON -o dist/forebay.cdx.json $(RUNTIME)/bin/python

# Strict: what the service does not know has not been audited.  It cannot know forebay before its first release.
audit: $(RELEASE)/.ready $(RUNTIME)/.ready  ## Known vulnerabilities of what an installation brings (asks PyPI)
	$(RELEASE)/bin/python -m pip --disable-pip-version-check --python $(RUNTIME)/bin/python freeze --exclude forebay > $(RUNTIME)/audited.txt
	$(RELEASE)/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off --requirement $(RUNTIME)/audited.txt

clean:  ## Remove what was built and cached, but not $(VENV) and not the jars
	find src/forebay \( -name '*.so' -o -name '*.c' -o -name '*.html' \) -delete
	find . -name __pycache__ -not -path './.venv*/*' -not -path './$(VENV)/*' -prune -exec rm -rf {} +
	rm -rf build .venv*/.built .venv*/.checked $(BUILT) $(CHECKED) dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse
