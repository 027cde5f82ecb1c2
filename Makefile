.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# For pip: where torch comes from, such as TORCH_INDEX="--index-url https://download.pytorch.org/whl/cpu". See README.md.
TORCH_INDEX ?=
# A text that shows all three: what the small model drafts, where it asks, and what is undone.
DEMO_TEXT := Das Spiel kann allein oder im Netzwerk gespielt werden.
# Options of `make bench`, such as BENCH="--threads 1". See docs/PERFORMANCE.md.
BENCH ?=

# Where `make embedded` and `make study` find their texts, where the first trains and the second finds what was trained.
# See recipes/embedded_pair.sh and docs/STUDY.md.
DATA ?=
OUT ?= models/embedded
MODELS ?= models/study

.PHONY: install demo test bench bench-gpu study embedded lint format build clean help

# torch goes first and alone: its own index, if one is given, has no other package.
$(BIN)/bild-bench: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bild-bench needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(TORCH_INDEX) torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

install: $(BIN)/bild-bench ## create the environment in .venv and install

demo: install ## translate the sample with the embedded pair: a table, one text in colour, a plot, and Parquet in results/
	$(BIN)/bild-bench run --task iwslt17 --mode bild,speculative,small --alpha-fb 0.5 --alpha-rb 2 --out results/demo
	@echo
	$(BIN)/bild-bench generate "$(DEMO_TEXT)"
	@echo
	@$(BIN)/bild-bench report results/demo --format plot
	@echo
	@echo "A page with every text: $(BIN)/bild-bench report results/demo --html report.html"

test: install ## run the tests
	$(BIN)/python -m pytest -n auto

# CTranslate2 is a yardstick and nothing else: without it its rows are empty.
bench: install ## measure speed against other decoders, and memory (15 minutes, idle machine): results/bench, docs/PERFORMANCE.md
	-$(BIN)/python -m pip install --quiet --constraint constraints.txt ctranslate2
	$(BIN)/python -m bench.cpu $(BENCH)
	$(BIN)/python -m bench.table

bench-gpu: install ## measure exactness and speed on an NVIDIA GPU (10 minutes): results/reference, docs/PERFORMANCE.md
	$(BIN)/python -m bench.gpu $(BENCH)

study: install ## re-make the paper's tables: make study DATA=DIR MODELS=DIR (idle machine): results/study, docs/STUDY.md
	@test -n "$(DATA)" || { echo "DATA: not given: the folder of texts; see docs/STUDY.md" >&2; exit 2; }
	$(BIN)/python -m study.run --data "$(DATA)" --models "$(MODELS)"
	-$(BIN)/python -m study.agree results/study/study.parquet
	$(BIN)/python -m study.page results/study
	cp results/study/study.parquet results/study/study-operations.parquet results/reference/
	rm -f results/reference/study-again.parquet
	for trial in captions synopses early-exit calm nucleus peers; do \
	    $(BIN)/bild-bench report results/study/$$trial/test --plots results/study/plots/$$trial >/dev/null && \
	    cp results/study/plots/$$trial/01-custom-pareto.svg docs/images/study-$$trial.svg || exit 1; \
	done

embedded: install ## train the pair that comes with the package: make embedded DATA=DIR (two and a half hours)
	@test -n "$(DATA)" || { echo "DATA: not given: the folder of training texts; see recipes/embedded_pair.sh" >&2; exit 2; }
	BIN=$(BIN) sh recipes/embedded_pair.sh "$(DATA)" "$(OUT)"

lint: install ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## correct style where that can be done by machine
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

build: install ## build the wheel into dist/
	$(BIN)/python -m build --wheel --outdir dist .

clean: ## remove the environment and what tools left behind (results/ stays)
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
