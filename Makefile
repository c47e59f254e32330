# Every target sets up what it needs, on a machine with Python 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
# Homes with what was embedded for `make eval`; another folder for each model.
EVAL_HOMES ?= build/eval_homes
STAMP := $(VENV)/.installed
# Not empty: `make setup` builds the multilingual model, too.
MULTILINGUAL ?=
MULTILINGUAL_DIR := packages/multilingual
MULTILINGUAL_STAMP := $(VENV)/.multilingual
.DEFAULT_GOAL := help
# Tests start kb a thousand times; without bytecode on disk each start compiles it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup setup-st multilingual demo test test-crash test-postgres test-pooled test-caches test-access test-pages test-properties test-bombs campaigns histories check fix bench bench-sync bench-registry bench-crawl bench-serve bench-processes bench-stale bench-sizes bench-client bench-start bench-readd bench-growth bench-pdf bench-names bench-definitions bench-identifiers bench-install bench-formats bench-charsets compare-answers compare-eval calibrate fuzz-http screenshots reference docs clean eval bench-writes bench-embedding bench-dense bench-html bench-articles histories-postgres bench-postgres bench-warm

help:
	@echo "make setup       .venv/ with kb and what its tests need"
	@echo "make demo        add examples/, search them, show what is found"
	@echo "make test        every test but the long campaigns"
	@echo "make test-crash  kills, at every step and at random moments"
	@echo "make test-bombs  small files that would be huge, endless or deep, which take seconds each to refuse"
	@echo "make test-postgres  300 kills on a home in a database, and 20 of its server"
	@echo "make test-pooled  what a home in a database promises, through PgBouncer, which has to be installed"
	@echo "make test-caches  500 random histories, against caches made anew"
	@echo "make test-access  longer histories of docs that others may not see, in a folder and a database"
	@echo "make test-pages   pages of 20 random homes, joined"
	@echo "make test-properties  1,000 examples of what must hold of any text, path, record or job"
	@echo "make histories   STEPS=30,000 steps of what people do, against a dictionary"
	@echo "make histories-postgres STEPS=20000  the same on a home in a database"
	@echo "make campaigns   all of these and make fuzz-http, one after the other; hours"
	@echo "make check       format, lint, types, import contracts, documentation"
	@echo "make fix         mend what format and lint can mend"
	@echo "make bench       speed and memory, as ratios"
	@echo "make bench-sync  what keeping 5,000 notes current costs"
	@echo "make bench-registry  what pulling 1,000 entries costs"
	@echo "make bench-crawl  a site of 2,000 pages made of DATA, a folder, and 20 kills while it is taken in"
	@echo "make bench-serve what the server bears, with 100,000 passages"
	@echo "make bench-processes what a second process of the server brings, on both stores"
	@echo "make bench-stale how many of 10,000 reads after a write were stale, over two servers"
	@echo "make bench-sizes bytes of a passage in each store, in caches and in memory"
	@echo "make bench-client what a search gains by the socket of a server"
	@echo "make bench-postgres  what a home on PostgreSQL costs beside one on LMDB"
	@echo "make bench-formats how many words of the files in DATA, a folder, the readers keep"
	@echo "make bench-articles how well kb finds the articles of pages marked by hand, in DATA, a folder"
	@echo "make bench-html    which words of the web pages in DATA, a folder, kb keeps beside trafilatura"
	@echo "make bench-names   how often a file of DATA, a folder, is found by its name"
	@echo "make bench-definitions  how many definitions of the source code in DATA, folders, are headings, by both readers, beside ctags"
	@echo "make bench-identifiers  how often the name of a definition or of a file in CODE, a folder, is the first hit"
	@echo "make bench-install  what a default install takes on disk; fails over 400 MiB"
	@echo "make bench-charsets how much legacy text is decoded exactly, of the folders in DATA"
	@echo "make bench-growth how costs grow from 10,000 over 100,000 to a million passages; an hour"
	@echo "make bench-warm   what each stage of a warm search of GROWN, a home, costs beside BEFORE, a revision"
	@echo "make bench-writes  how many bytes a home writes for each passage"
	@echo "make bench-embedding  how many tokens the model reads, of how many that it must"
	@echo "make bench-dense  the exact scan against HNSW, up to a million vectors; half an hour"
	@echo "make bench-start a cold search beside that of BEFORE, a revision"
	@echo "make bench-readd adding an unchanged folder of 5,183 files beside recollindex; two minutes"
	@echo "make bench-pdf  what is read of the PDFs below DATA, beside pdftotext and pypdf"
	@echo "make compare-answers  the answers to 300 requests beside those of BEFORE, a revision; with GROWN=HOME searches of that"
	@echo "make compare-eval  how good answers are beside those of BEFORE, a revision, on the sets of make eval"
	@echo "make eval        how good answers are, on the sets in DATA and on more made of them; with CFG=\"--cfg search.rrf_k=60\""
	@echo "make calibrate   from which score on the guide answers, and a passage fits; with DATA=DIR"
	@echo "make fuzz-http   ask every operation of the server, a few minutes long"
	@echo "make docs        the documentation as a site, in build/site/"
	@echo "make reference   write docs/reference/ from the code"
	@echo "make screenshots  the pictures of the page and the terminal that the README shows"
	@echo "make setup-st    add torch and sentence-transformers"
	@echo "make multilingual  build the wheel of the multilingual model, and add it; also make setup MULTILINGUAL=1"
	@echo "make clean       remove what these made"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(STAMP)

setup: $(STAMP) $(if $(MULTILINGUAL),multilingual)

$(MULTILINGUAL_STAMP): $(STAMP) scripts/build_multilingual.py scripts/encoder_graph.py kb/intake/embed/pieces.py $(MULTILINGUAL_DIR)/pyproject.toml $(MULTILINGUAL_DIR)/src/kb_search_multilingual/model.json
	$(BIN)/python scripts/build_multilingual.py
	rm -f build/kb_search_multilingual-*.whl
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build $(MULTILINGUAL_DIR)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/kb_search_multilingual-*.whl
	@touch $(MULTILINGUAL_STAMP)

multilingual: $(MULTILINGUAL_STAMP)

setup-st: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,st]"

demo: $(STAMP)
	$(BIN)/python scripts/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-crash: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/crash

test-bombs: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/fault

test-postgres: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/crash/test_postgres_kills.py

# Not what is counted on the wire, nor a role that is made when the pooler has read its list of users.
test-pooled: $(STAMP)
	for mode in session transaction; do \
		KB_POOL_MODE=$$mode $(BIN)/python -m pytest tests/contract tests/e2e/test_cli_postgres.py \
			tests/e2e/test_two_nodes.py -k "postgres or nodes" --ignore tests/contract/test_round_trips.py \
			--deselect tests/e2e/test_cli_postgres.py::test_a_user_who_only_reads || exit 1; \
	done

test-caches: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/property/test_cache_histories.py

test-access: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/property/test_non_interference.py

test-pages: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/property/test_pages_join.py

test-properties: $(STAMP)
	KB_EXAMPLES=1000 $(BIN)/python -m pytest --timeout 3600 $(shell grep -rl "import.*given\|EXAMPLES = settings" tests --include="test_*.py")

STEPS ?= 30000

histories: $(STAMP)
	KB_HISTORY_STEPS=$(STEPS) $(BIN)/python -m pytest -m slow tests/property/test_histories_machine.py -k "not postgres"

histories-postgres: $(STAMP)
	KB_HISTORY_STEPS=$(STEPS) $(BIN)/python -m pytest -m slow tests/property/test_histories_machine.py -k postgres

campaigns: test-crash test-caches test-access test-pages test-properties test-bombs histories histories-postgres fuzz-http

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -m slow tests/e2e/test_library.py
	$(BIN)/lint-imports
	$(BIN)/python scripts/write_reference.py --check
	$(BIN)/python scripts/build_site.py
	$(BIN)/python -m pytest tests/unit/test_docs.py -k "links or named"

fix: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python tests/bench/run.py

bench-sync: $(STAMP)
	$(BIN)/python tests/bench/bench_sync.py

bench-registry: $(STAMP)
	$(BIN)/python tests/bench/bench_registry.py

bench-crawl: $(STAMP)
	PYTHONPATH=tests $(BIN)/python tests/bench/bench_crawl.py $(DATA)

bench-serve: $(STAMP)
	$(BIN)/python tests/bench/bench_serve.py

bench-processes: $(STAMP)
	PYTHONPATH=tests $(BIN)/python tests/bench/bench_serve.py --processes

bench-stale: $(STAMP)
	PYTHONPATH=tests $(BIN)/python tests/bench/bench_stale.py

bench-sizes: $(STAMP)
	PYTHONPATH=tests $(BIN)/python tests/bench/bench_sizes.py

bench-client: $(STAMP)
	$(BIN)/python tests/bench/bench_client.py

bench-postgres: $(STAMP)
	$(BIN)/python tests/bench/bench_postgres.py

bench-formats: $(STAMP)
	$(BIN)/python tests/bench/bench_formats.py $(DATA)

bench-articles: $(STAMP)
	$(BIN)/python tests/bench/bench_articles.py $(DATA)

bench-html: $(STAMP)
	$(BIN)/python tests/bench/bench_html.py $(DATA)

bench-names: $(STAMP)
	$(BIN)/python tests/bench/bench_names.py $(DATA)

bench-definitions: $(STAMP)
	$(BIN)/python tests/bench/bench_definitions.py $(DATA)

CODE ?= kb

bench-identifiers: $(STAMP)
	$(BIN)/python tests/bench/bench_identifiers.py $(CODE)

bench-install: $(STAMP)
	$(BIN)/python tests/bench/bench_install.py

bench-charsets: $(STAMP)
	$(BIN)/python tests/bench/bench_charsets.py $(DATA)

bench-start: $(STAMP)
	$(BIN)/python tests/bench/bench_start.py $(BEFORE)

bench-readd: $(STAMP)
	$(BIN)/python tests/bench/bench_readd.py

bench-growth: $(STAMP)
	$(BIN)/python tests/bench/bench_growth.py --data $(DATA)

bench-warm: $(STAMP)
	$(BIN)/python tests/bench/bench_warm.py --home $(GROWN) $(BEFORE)

bench-writes: $(STAMP)
	$(BIN)/python tests/bench/bench_writes.py

bench-dense: $(STAMP)
	$(BIN)/python tests/bench/bench_dense_crossover.py

bench-embedding: $(STAMP)
	$(BIN)/python tests/bench/bench_embedding.py

bench-pdf: $(STAMP)
	$(BIN)/python tests/bench/bench_pdf.py --old $(DATA)

compare-answers: $(STAMP)
	$(BIN)/python tests/bench/compare_answers.py $(if $(GROWN),--home $(GROWN) --data $(DATA)) $(BEFORE)

TEST_SETS = $(dir $(wildcard $(DATA)/*/queries.jsonl)) build/test_sets/* tests/data/chinese_paraphrases

eval: $(STAMP)
	$(BIN)/python scripts/make_test_sets.py $(DATA) build/test_sets
	$(BIN)/python scripts/eval_retrieval.py --home $(EVAL_HOMES) $(CFG) $(TEST_SETS)

compare-eval: $(STAMP)
	$(BIN)/python scripts/make_test_sets.py $(DATA) build/test_sets
	$(BIN)/python tests/bench/compare_eval.py $(BEFORE) --home $(EVAL_HOMES) $(TEST_SETS)

calibrate: $(STAMP)
	$(BIN)/python scripts/calibrate_guide.py
	$(BIN)/python scripts/calibrate_floor.py $(DATA)

fuzz-http: $(STAMP)
	KB_FUZZ_EXAMPLES=1000 $(BIN)/python -m pytest --timeout 1800 tests/e2e/test_http_contract.py

screenshots: $(STAMP)
	$(BIN)/python scripts/terminal_picture.py
	$(BIN)/python scripts/screenshots.py

reference: $(STAMP)
	$(BIN)/python scripts/write_reference.py

docs: $(STAMP)
	$(BIN)/python scripts/write_reference.py
	$(BIN)/python scripts/build_site.py

clean:
	rm -f $(addprefix $(MULTILINGUAL_DIR)/src/kb_search_multilingual/,model.onnx pieces.bin tokenizer.json)
	rm -rf $(VENV) build dist bench-out .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
