# Two commands do everything on a fresh machine with Python 3.11 or later: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo app test quick contract-on-spark test-oldest coverage mutants lint docs examples fuzz bench clean

help:
	@echo "make demo   set up, mask the demo table, print where the masked file and its report are"
	@echo "make app    set up, and open the page in the browser on the demo table"
	@echo "make test   set up and run the whole test suite"
	@echo "make quick  run only the fast tests (no servers, clusters or long searches)"
	@echo "make lint   set up, then run ruff, mypy, import-linter and the checks of names and prose"
	@echo "make docs   set up and build the site into site/; warnings and broken links are errors"
	@echo "make examples     set up and run the examples; write their pages and pictures to demo/examples"
	@echo "make test-oldest  run the tests with the oldest versions of all dependencies, in a separate environment"
	@echo "make coverage     run the tests with branch coverage; privacy-critical modules must reach 100 %"
	@echo "make mutants      change the recount and the promises in a thousand places; list the changes that no test notices"
	@echo "make fuzz   set up and mask N random tables, N damaged files and N odd inputs, N/20 with little memory (make fuzz N=100000)"
	@echo "make bench  set up and print the benchmark tables (an hour or more)"
	@echo "make clean  remove what the other targets made"

.venv/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "shoal needs Python 3.11 or later; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

# What more the other targets need: .venv/app, .venv/dev, .venv/docs, .venv/publish, .venv/mutants, .venv/bench.
.venv/%: .venv/ready
	$(BIN)/python -m pip install --quiet -e '.[$*]'
	@touch $@

demo: .venv/ready
	$(BIN)/shoal demo --out demo

app: .venv/app
	$(BIN)/shoal demo --out demo
	$(BIN)/shoal app demo/firms.csv

test: .venv/dev
	$(BIN)/python -m pytest -n auto

contract-on-spark: .venv/dev
	SHOAL_ENGINES=spark $(BIN)/python -m pytest -W default tests/test_contract.py tests/test_spark.py  # PySpark warns about pandas

# Without what starts servers, clusters and processes, searches long, reads large tables or compiles for long.
LONG := app app_parts assessment auto blocks bounds cli closeness_bound comparison confidential contract dask \
	dask_files dates engines faults files fuzz guide joint kernels kinds methods missing_codes models orderings outputs \
	package persons pool promise publish_definition publish_ledger publish_noise publish_reference publish_unit report \
	rounding search site small spark sparse_bounds sums two_swap units univariate zeros
quick: .venv/dev
	$(BIN)/python -m pytest -n auto $(LONG:%=--ignore=tests/test_%.py)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/names.py
	$(BIN)/python tests/prose.py

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open site/index.html"

examples: .venv/publish
	$(BIN)/python docs/render_examples.py demo/examples

test-oldest:
	$(PYTHON) -m venv build/oldest
	$(PYTHON) tests/floors.py > build/oldest/floors.txt
	build/oldest/bin/python -m pip install --quiet -e '.[dev]' -c build/oldest/floors.txt
	build/oldest/bin/python -m pytest -n auto -W ignore::DeprecationWarning  # old ones use what newer ones give up

# Modules that decide whether a release is safe, and what is said of it.
CRITICAL := src/shoal/promises/dominance.py,$\
	src/shoal/masking/verification.py,$\
	src/shoal/promises/rule_enforcement.py,src/shoal/promises/group_merge.py,src/shoal/promises/promise.py,$\
	src/shoal/promises/closeness.py,src/shoal/promises/diversity.py,src/shoal/promises/promise_registry.py,$\
	src/shoal/promises/rules.py,src/shoal/promises/distinct_units.py,$\
	src/shoal/privacy/budgets.py,src/shoal/privacy/guarantee.py,$\
	src/shoal/privacy/ledger.py,src/shoal/report/withheld_figures.py
coverage: .venv/dev
	$(BIN)/python -m pytest -n auto --cov
	$(BIN)/python -m coverage report --include='$(CRITICAL)' --fail-under=100

mutants: .venv/dev .venv/mutants
	$(BIN)/python tests/mutate.py run
	$(BIN)/python tests/mutate.py results

N ?= 5000
FIRST ?= 0
fuzz: .venv/dev
	cd tests && ../$(BIN)/python -m fuzz.running $(FIRST) $(N)
	cd tests && ../$(BIN)/python -m fuzz.damage $(FIRST) $(N)
	cd tests && ../$(BIN)/python -m fuzz.inputs $(FIRST) $(N)
	cd tests && ../$(BIN)/python -m fuzz.memory $(FIRST) $$(($(N) / 20))

bench: .venv/dev .venv/bench
	$(BIN)/python benchmarks/hansen_mukherjee.py
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/laszlo_mukherjee.py
	$(BIN)/python benchmarks/soria_comas.py demo/figures
	$(BIN)/python benchmarks/best_known.py
	$(BIN)/python benchmarks/castro.py
	$(BIN)/python benchmarks/solanas.py
	$(BIN)/python benchmarks/large.py

clean:
	rm -rf .venv demo build dist site mutants .coverage* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
