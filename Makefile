# The commands of the project; each works from any folder with make -C.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test check format bench-quick

setup:  ## .venv and caches; offline once they are full
	@$(PYTHON) deploy/setup.py

demo: setup  ## three replicas that collide, one hub, and a verdict
	@$(BIN)/slackwater demo

test: setup  ## all tests
	$(BIN)/python -m pytest

check: setup  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-quick: setup  ## one table, and benchmarks/latest.json
	$(BIN)/python -m tests.benchmarks.quick
