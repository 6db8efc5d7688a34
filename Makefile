# The commands of the project; each works from any folder with make -C.
PYTHON ?= python3
BIN := .venv/bin

RECORDS ?= 1000000

.PHONY: setup programs demo test test-deep fuzz-check mutants check format docs dashboards
.PHONY: bench bench-quick

SEED := $(or $(SEED),$(shell date +%s))
SLACKWATER_EXAMPLES ?= 15000
MUTANTS_MINUTES ?= 30

setup:  ## .venv and caches; offline once they are full
	@$(PYTHON) deploy/setup.py

demo: setup  ## three replicas that collide, one hub, and a verdict
	@$(BIN)/slackwater demo

programs: setup  ## what the tests need of Debian: prometheus and chromium; as root they are installed
	@$(BIN)/python -m deploy.programs

test: programs  ## all tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-deep: setup  ## every property on many more random cases; SEED repeats a run, SLACKWATER_EXAMPLES sizes it
	@echo "seed $(SEED), $(SLACKWATER_EXAMPLES) examples"
	SLACKWATER_EXAMPLES=$(SLACKWATER_EXAMPLES) $(BIN)/python -m pytest -m hypothesis -n 2 \
		--dist worksteal --hypothesis-seed=$(SEED)

fuzz-check: setup  ## core's check and the columns' on RECORDS mutated records; SEED repeats a run
	$(BIN)/python -m tests.fuzz.check $(RECORDS) $(SEED)

mutants: setup  ## core and commit with one thing changed at a time, and the changes that no test finds
	-timeout --signal=INT $(MUTANTS_MINUTES)m $(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results | grep -v ': not checked' || true

check: setup  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup  ## the pages that are made from the code
	$(BIN)/python -m streaming.metrics.page
	$(BIN)/python -m streaming.cli.config_page

dashboards: setup  ## deploy/grafana from deploy/dashboards
	$(BIN)/python -m deploy.dashboards

bench: setup  ## all measures, for hours: one table, and benchmarks/latest.json
	$(BIN)/python -m tests.benchmarks.full

bench-quick: setup  ## some of them, small: the same table and file
	$(BIN)/python -m tests.benchmarks.quick
