# Two commands:  make demo   (set up, train the embedded default, sample, report)
#                make test   (set up, run the tests)
PYTHON ?= python3
VENV   ?= .venv
TORCH  ?= 2.13.0
CPU    := https://download.pytorch.org/whl/cpu
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip --disable-pip-version-check install -q

.PHONY: demo test test-all lint bench clean

demo: $(VENV)/.run
	$(BIN)/genodiff demo

test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --durations 12

test-all: $(VENV)/.test lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "not gpu"

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.run
	$(PIP) -e '.[bench]'
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed/run.py

$(VENV)/.torch:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 15) else f"genodiff needs Python 3.11 to 3.14, this is {v.major}.{v.minor}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@if command -v nvidia-smi >/dev/null 2>&1; then $(PIP) "torch==$(TORCH)"; else \
	  $(PIP) "torch==$(TORCH)+cpu" 2>/dev/null || $(PIP) "torch==$(TORCH)+cpu" --extra-index-url $(CPU) || $(PIP) "torch==$(TORCH)"; fi
	@touch $@

$(VENV)/.run: $(VENV)/.torch pyproject.toml setup.py $(wildcard genodiff/kernels/native/*)
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(PIP) -e '.[test]'
	@touch $@

clean:
	rm -rf $(VENV)
