# The one door. `make up` starts the broker, `make test` proves it; `make help` lists the rest.

PYTHON ?= python3
SEEDS ?= 2000
FIRST ?= 1
EXAMPLES ?= 20000
KILLS ?= 30
INPUTS ?= 1000000
TRIALS ?= 20000
MINUTES ?= 5
DATA ?= ./data
# Further arguments: make up ARGS="--durability os", make test ARGS="-k journal".
ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(PY) -m pip
# DRAGOMAN_PURE=1 asks for plain Python; each flavour has its own stamp, so that switching rebuilds.
FLAVOUR := $(if $(filter 1,$(DRAGOMAN_PURE)),pure,native)
BROKER := $(VENV)/.broker-$(FLAVOUR)
TOOLS := $(VENV)/.tools
# The pipeline's packages are large: only the doors that need them install them. Java comes along, for machines without one.
SPARK := $(VENV)/.spark
JUDGES := $(VENV)/.spark-test
PACKAGING := pyproject.toml setup.py constraints.txt
SOURCES := $(PACKAGING) $(shell find src -name '*.py' -o -name py.typed -o -name '*.properties' -o -path '*/web/static/*' -o -path '*/web/templates/*')
# Run once per `make test`, on the installed build.
ONCE := alone or browser or eventmq or slow or spark
# Minutes each: `make longest` runs them, `make test` runs a shorter version of each.
LONGEST := soak
# Most tests wait for a process or a clock: four at a time take a third of the time, also on two cores.
# Spark's tests share a session, and two of these fill two cores.
SPREAD := --numprocesses 4 --dist worksteal --ignore tests/spark
# A test of Spark may take longer than the limit after which every thread's stack is printed.
SESSIONS := --numprocesses 2 --dist worksteal -o faulthandler_timeout=0
# The broker itself: what `make quick` runs.
QUICK := $(addprefix tests/,model wire dialects core journal runtime)
# What plain Python runs again, with the examples of `make quick`: the compiled modules and what drives them hardest. The rest is interpreted in both builds.
PURE := $(QUICK) $(addprefix tests/,fuzz lab otel/test_tracer.py test_layout.py)
INTERPRETED := $(addprefix --ignore tests/,dialects/example $(addprefix runtime/,admin children config process search))
# EventMQ's own programs go by the second and run one at a time, beside the browser's. Both mostly wait: plain Python runs beside them, with a lower priority.
BY_THE_SECOND := $(PY) -m pytest --ignore tests/spark --numprocesses 2 --dist loadgroup -m 'browser or eventmq'
FEWER := DRAGOMAN_TEST_EXAMPLES=15 $(PY) -m pytest --hypothesis-profile quick
# pytest ends with 5 where ARGS picks no test of a run: the other run may have some.
NONE := [ $$? -eq 5 ]

.DEFAULT_GOAL := help
.PHONY: help setup up demo pipeline quick test test-installed test-pure check format docs screenshot bench bench-pipeline
.PHONY: machines sim chaos fuzz damage siege longest soak clean
# One recipe at a time: several of them share .venv.
.NOTPARALLEL:

help: ## list the doors
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

setup: $(BROKER) $(TOOLS) ## make .venv with the broker and every tool in it

up: $(BROKER) ## start the broker in the foreground (data in ./data, listeners on 127.0.0.1)
	@echo "When it says ready, try in another terminal:"
	@echo "    $(VENV)/bin/dragoman send hello '\"world\"'        # kept"
	@echo "    $(VENV)/bin/dragoman queues                       # it waits"
	@echo "    $(VENV)/bin/dragoman explain queue:hello          # and this is why"
	@echo "and look at all of it in a browser: http://127.0.0.1:8484"
	@exec $(VENV)/bin/dragoman up --data $(DATA) $(ARGS)

demo: $(BROKER) $(SPARK) ## all five dialects, every crossing, a kill -9 in the middle, and a report of it: some two minutes
	@$(VENV)/bin/dragoman demo $(ARGS)

pipeline: $(BROKER) $(SPARK) ## take what ./data/journal and ./data/lake hold into tables on Spark, and write the report
	@if [ -d '$(DATA)/journal' ]; then $(VENV)/bin/dragoman seal --data '$(DATA)' || true; fi
	@$(VENV)/bin/dragoman pipeline run --data '$(DATA)' --report '$(DATA)/report.html' $(ARGS)

quick: setup ## test the broker itself on the installed build, a minute or two: no Spark, browser, EventMQ, nothing slow
	$(FEWER) $(SPREAD) --numprocesses 3 -m 'not ($(ONCE) or $(LONGEST) or long)' $(QUICK) $(ARGS)

test: test-installed test-pure ## run the whole suite on the installed build, then the compiled packages' tests on plain Python
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || \
		echo "The browser tests were skipped: they need chromium and chromedriver (apt-get install chromium chromium-driver)."

test-installed: setup $(SPARK) $(JUDGES)
	@$(PY) -c 'from dragoman.version import version_line; print("testing", version_line())'
	$(PY) -m pytest $(SPREAD) -m 'not (alone or browser or eventmq or $(LONGEST))' $(ARGS) || $(NONE)
	$(PY) -m pytest --ignore tests/spark -m alone $(ARGS) || $(NONE)
	$(PY) -m pytest $(SESSIONS) -m 'spark and not $(LONGEST)' tests/spark $(ARGS) || $(NONE)

test-pure: setup $(SPARK) $(JUDGES)
	@.ci/packages browser
	@if $(PY) -c 'import sys; from dragoman.version import build_flavour as f; sys.exit(f() != "compiled")'; then \
		echo "testing plain Python (without: $(ONCE)), and meanwhile the browser and EventMQ on the installed build"; \
		said=$$(mktemp); ended=0; trap 'exit 130' INT TERM; trap 'kill $$beside 2>/dev/null; rm -f "$$said"' EXIT; \
		$(BY_THE_SECOND) $(ARGS) >"$$said" 2>&1 & beside=$$!; \
		PYTHONPATH='$(CURDIR)/src' nice -n 3 env $(FEWER) $(SPREAD) $(INTERPRETED) -m 'not ($(ONCE) or $(LONGEST) or long)' $(PURE) $(ARGS) \
			|| $(NONE) || ended=1; \
		wait $$beside || $(NONE) || ended=1; \
		cat "$$said"; exit $$ended; \
	else echo "the installed build is plain Python already: no second run"; $(BY_THE_SECOND) $(ARGS) || $(NONE); fi

check: setup $(SPARK) ## ruff, mypy --strict, import-linter, retired words
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	PYTHONPATH=src $(VENV)/bin/lint-imports --no-logo
	$(PY) -m tests.retired_words

format: setup ## let ruff put the code in order
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs: setup $(SPARK) ## rewrite the generated reference pages and contrib/dragoman.toml
	PYTHONPATH=src $(PY) -m tests.docs.reference_pages docs/reference contrib/dragoman.toml
	PYTHONPATH=src $(PY) -m dragoman_spark.tables_page docs/reference/tables.md

screenshot: setup ## take the README's picture of the web page again (needs chromium and chromedriver)
	$(PY) -m tests.web.screenshot docs/images/overview.png

bench: setup ## measure each dialect against libzmq's proxy, the SDK against NATS, and the footprint
	$(PY) -m bench $(ARGS)

bench-pipeline: setup $(SPARK) $(JUDGES) ## measure the pipeline against DuckDB and Polars, the stream, and the lake
	$(PY) -m bench.pipeline $(ARGS)

machines: setup ## run each Hypothesis state machine over EXAMPLES (20000) examples; a failure prints how to repeat it
	DRAGOMAN_TEST_EXAMPLES=$(EXAMPLES) PYTHONPATH='$(CURDIR)/src' $(PY) -m pytest --numprocesses 2 --timeout 0 -o faulthandler_timeout=0 -k Machine tests/core $(ARGS)

sim: setup ## run the simulator, all five dialects, over SEEDS seeds (2000)
	$(PY) -m dragoman_lab.sim --seeds $(SEEDS) --first $(FIRST) $(ARGS)

chaos: setup ## kill -9 a loaded broker KILLS times (30) and count what was lost
	$(PY) -m tests.chaos --kills $(KILLS) $(ARGS)

fuzz: setup ## INPUTS (1000000) random and mutated inputs for the wire and for each dialect
	$(PY) -m tests.fuzz --inputs $(INPUTS) $(ARGS)

damage: setup ## damage journals of a loaded broker TRIALS times (20000): nothing forged, nothing lost without a word
	$(PY) -m tests.damage --trials $(TRIALS) $(ARGS)

siege: setup ## all floods at once against a real broker for MINUTES (5), while good clients and workers measure
	$(PY) -m tests.siege --minutes $(MINUTES) $(ARGS)

longest: setup $(SPARK) $(JUDGES) ## the tests that take minutes each: clusters of Spark, a Connect server, ten kills of a stream, the whole demo, a walk through all jobs
	$(PY) -m pytest -m $(LONGEST) -o faulthandler_timeout=0 $(ARGS)

# Hours. `make -k soak` goes on behind a part that failed; `make soak EXAMPLES=100 SEEDS=100 KILLS=2 INPUTS=10000 TRIALS=100 MINUTES=0.5` tries it.
soak: SEEDS = 10000
soak: FIRST = $(shell od -An -N3 -tu4 /dev/urandom)
soak: longest machines sim chaos fuzz damage siege ## the long run before a release: longest, machines, 10000 new seeds of the simulator, kills, fuzz, damages, siege

clean: ## remove what was built (never the data)
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -not -path './data/*' -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "dragoman needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
		     "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# A regular install: the compiled modules live in .venv, never in src. build/ is kept, so only what changed is compiled.
$(BROKER): $(VENV)/.made $(SOURCES)
	@echo "building dragoman: $$($(PY) setup.py probe)"
	@rm -rf $(VENV)/wheel
	@$(PIP) wheel --quiet --no-deps --wheel-dir $(VENV)/wheel . || { \
		echo "the compiled build failed; DRAGOMAN_PURE=1 make ... builds plain Python instead" >&2; exit 1; }
	@$(PIP) uninstall --quiet --yes dragoman
	@$(PIP) install --quiet $(VENV)/wheel/*.whl
	@case "$$($(PY) setup.py probe)" in \
		pure*) ;; \
		*) $(PY) -c 'import sys; from dragoman.version import build_flavour as f; sys.exit(f() != "compiled")' || { \
			echo "this machine can compile, but the installed dragoman is not compiled" >&2; exit 1; } ;; esac
	@$(PY) -c 'from dragoman.version import version_line; print("installed", version_line())'
	@rm -f $(VENV)/.broker-*; touch $@

$(TOOLS): $(VENV)/.made pyproject.toml constraints.txt | $(BROKER)
	@echo "installing the test, check and bench tools"
	@$(PIP) install --quiet "$$(ls $(VENV)/wheel/*.whl)[test,check,bench]"
	@touch $@

$(SPARK): $(VENV)/.made pyproject.toml constraints.txt | $(BROKER)
	@echo "installing the pipeline: PySpark, pyarrow, a Java (some minutes, once)"
	@$(PIP) install --quiet "$$(ls $(VENV)/wheel/*.whl)[lake,spark]"
	@touch $@

$(JUDGES): $(SPARK)
	@echo "installing DuckDB, Polars and Delta to check the pipeline with"
	@$(PIP) install --quiet "$$(ls $(VENV)/wheel/*.whl)[spark-test]"
	@touch $@
