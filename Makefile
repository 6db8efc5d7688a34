# The commands of the project; each works from any folder with make -C.
PYTHON ?= python3
BIN := .venv/bin

RECORDS ?= 1000000

.PHONY: setup develop locks programs demo test test-more test-slow test-cluster test-postgres test-deep
.PHONY: fuzz-check mutants check format docs dashboards bench bench-quick
.PHONY: dist image deploy-tools check-deploy test-release schemas

SEED := $(or $(SEED),$(shell date +%s))
SLACKWATER_EXAMPLES ?= 15000
WORKERS ?= 3
ROTATION := $(or $(ROTATION),$(shell date +%j))
PROCESSES = -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=40
MUTANTS_MINUTES ?= 30
ENGINE ?= docker
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

setup:  ## .venv with what the product needs, and caches; offline once they are full
	@$(PYTHON) deploy/setup.py

develop:  ## setup, and the tools of tests, checks and releases
	@$(PYTHON) deploy/setup.py develop

locks: develop  ## the lock files from pyproject.toml; UPGRADE=--upgrade takes newer versions
	@$(BIN)/python -m deploy.locks $(UPGRADE)

demo:  ## three replicas that collide, one hub, and a verdict
	@$(PYTHON) deploy/setup.py demo
	@$(BIN)/slackwater demo

programs: develop  ## what the tests need of Debian: prometheus, chromium, PostgreSQL; as root they are installed
	@$(BIN)/python -m deploy.programs

test: programs  ## what a change must pass first, in WORKERS processes
	$(BIN)/python -m pytest -m "not slow and not more" $(PROCESSES)

test-more: programs  ## the rest of what a change must pass; ROTATION repeats a day's stories and histories
	@echo "rotation $(ROTATION): make test-more ROTATION=$(ROTATION) repeats it"
	SLACKWATER_ROTATION=$(ROTATION) $(BIN)/python -m pytest -m "more and not slow" \
		--hypothesis-seed=$(ROTATION) $(PROCESSES)
	SLACKWATER_ROTATION=$(ROTATION) $(BIN)/python -m pytest tests/model/test_convergence.py \
		--hypothesis-seed=$(ROTATION) -n $(WORKERS)

test-slow: programs  ## what a run of test-more with this ROTATION leaves out, and further cases
	SLACKWATER_ROTATION=$(ROTATION) $(BIN)/python -m pytest -m slow $(PROCESSES)

test-cluster: develop  ## the hub on a Spark cluster whose processes are killed; SEED repeats the moments
	@$(BIN)/slackwater setup --bucket
	@$(BIN)/python -m tests.harness.s3_server
	SLACKWATER_SEED=$(SEED) $(BIN)/python -m pytest tests/cluster

test-postgres: programs  ## the agent of PostgreSQL with servers of other versions
	$(BIN)/python -m tests.harness.postgres_versions $(PROCESSES)

test-deep: develop  ## every property on many more random cases; SEED repeats a run, SLACKWATER_EXAMPLES sizes it
	@echo "seed $(SEED), $(SLACKWATER_EXAMPLES) examples"
	SLACKWATER_EXAMPLES=$(SLACKWATER_EXAMPLES) $(BIN)/python -m pytest -m hypothesis -n 2 \
		--dist worksteal --hypothesis-seed=$(SEED)

fuzz-check: develop  ## both checks, and the readers of quarantine, on RECORDS mutated records; SEED repeats
	$(BIN)/python -m tests.fuzz.check $(RECORDS) $(SEED)
	$(BIN)/python -m tests.fuzz.readers $(RECORDS) $(SEED)

mutants: develop  ## core and commit with one thing changed at a time, and the changes that no test finds
	-timeout --signal=INT $(MUTANTS_MINUTES)m $(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results | grep -v ': not checked' || true

check: develop  ## format, lint, types, dead code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/hadolint deploy/docker/Dockerfile

format: develop
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: develop  ## the pages that are made from the code
	$(BIN)/python -m streaming.metrics.page
	$(BIN)/python -m streaming.cli.config_page
	$(BIN)/python -m streaming.cli.commands_page
	$(BIN)/python -m checkpoints.tables_page
	$(BIN)/python -m tests.rooms

dashboards: develop  ## deploy/grafana from deploy/dashboards
	$(BIN)/python -m deploy.dashboards

bench: develop  ## all measures, for hours: one table, and benchmarks/latest.json
	$(BIN)/python -m tests.benchmarks.full

bench-quick: develop  ## some of them, small: the same table and file
	$(BIN)/python -m tests.benchmarks.quick

dist: develop  ## wheel, source archive and jars of this version, in dist/
	@$(BIN)/slackwater setup --bucket
	@$(BIN)/python deploy/dist.py dist

image: dist  ## the container image; ENGINE=podman for that
	$(ENGINE) build -f deploy/docker/Dockerfile -t slackwater:$(VERSION) .

deploy-tools: develop  ## what the tests of deploy/ and releases need: helm, podman, a base image, packages; then offline
	@$(BIN)/python -m deploy.tools

check-deploy: deploy-tools  ## image file, compose, chart, units: linted, rendered, validated; no check skips
	SLACKWATER_DEPLOY_TOOLS=required $(BIN)/python -m pytest tests/deploy

test-release: deploy-tools  ## the release, installed in an empty environment and built into an image, works
	SLACKWATER_DEPLOY_TOOLS=required $(BIN)/python -m pytest tests/release

schemas: develop  ## the schemas of tests/deploy/schemas, from the Go modules that define them
	$(BIN)/python -m tests.deploy.schemas.generate
