# make demo   from a fresh checkout to figures, and to a part of a published table; make test   the tests; make test-long   the longer ones. All prepare .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(wildcard native/*)
# The engine and BLAS choose their own threads; more test processes than cores only slow each other down.
WORKERS ?= 2

# Dependency groups of pyproject.toml, each installed when a target first needs it.
READY := $(VENV)/laboratory $(VENV)/editions/ready
WITH := $(VENV)/with-
EVERY := $(addprefix $(WITH),test lint browser networks kernels)

.PHONY: setup everything demo test test-slow test-long test-editions soak slurm sanitize arm web docs gallery notebooks lint bench resolve wheel clean
setup: $(READY)
everything: $(EVERY)

$(VENV)/made:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/laboratory: $(VENV)/made pyproject.toml constraints.txt $(NATIVE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

# The editions stand in a folder of their own, so that the laboratory's tests can do without: PARITYLAB_ALONE=1.
SEEN := import os, site; "PARITYLAB_ALONE" in os.environ or site.addsitedir("$(CURDIR)/$(VENV)/editions")
$(VENV)/editions/ready: $(VENV)/made $(wildcard editions/*/pyproject.toml)
	rm -rf $(@D)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --target $(@D) \
	    $(foreach edition,$(wildcard editions/*/pyproject.toml),--editable $(dir $(edition)))
	echo '$(SEEN)' > $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/editions.pth
	touch $@

$(WITH)%: $(VENV)/made pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group $*
	touch $@

demo: $(READY)
	$(BIN)/python -m paritylab demo --out out/demo
	$(BIN)/python -m paritylab barak2022 figure7 --out out/figure7

# Compiling is most of what tests cost, so XLA makes few passes and none by MLIR, which halves it; the longer comparisons
# with the oracle and of last bits have the passes that users have, and so have the slow tests. Each worker takes a half
# of the tests in order, then the other's rest: tests of one file share fixtures and programs.
FEWER := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
ALONE := PARITYLAB_ALONE=1
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 15
ENGINES := tests/test_oracle_agreement.py tests/test_c_interface.py
test: $(READY) $(WITH)test
	$(ALONE) $(FEWER) $(PYTEST)

test-slow: $(READY) $(WITH)test
	$(ALONE) $(PYTEST) -m slow tests
	$(PYTEST) -m slow editions

test-long: $(READY) $(WITH)test
	$(ALONE) $(FEWER) $(PYTEST) -m "long and not slow" $(addprefix --ignore=,$(ENGINES)) tests
	$(ALONE) $(PYTEST) -m "long and not slow" $(ENGINES)
	$(FEWER) $(PYTEST) -m "long and not slow" editions

# Each edition's own tests, and those of what all editions have in common.
test-editions: $(READY) $(WITH)test
	$(FEWER) $(PYTEST) editions

# Faults of every kind for an hour; docs/explanation/reliability.md shows the counts.
SECONDS ?= 3600
SEED ?= 0
soak: $(READY) $(WITH)test
	PYTHONPATH=tests:editions/barak2022/tests $(BIN)/python -m faults.soak --more campaign_faults \
	    --seconds $(SECONDS) --seed $(SEED) --json docs/data/reliability.json
	PYTHONPATH=tests $(BIN)/python -m faults.soak --markdown
	PARITYLAB_SOAK=1 $(ALONE) $(BIN)/python -m pytest -s -m "" tests/faults/test_fuzz.py
	PARITYLAB_SOAK=1 $(BIN)/python -m pytest -s -m slow editions/tests/test_commands.py
	$(BIN)/python benchmarks/memory.py --json

# A sweep in jobs of a private Slurm cluster on loopback, one of them cancelled. It needs Debian's slurm-wlm and munge.
slurm: $(READY) $(WITH)test
	PYTHONPATH=tests $(BIN)/python -m slurm.check

# The native kernel with address and undefined-behaviour sanitizers, under the tests of the engines.
sanitize: $(READY) $(WITH)test
	tests/faults/sanitize.sh

# The native kernel for ARM, under qemu-aarch64, against the one of this machine: whole records, bit for bit.
arm: $(READY) $(WITH)test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt ziglang
	PYTHONPATH=tests $(BIN)/python -m arm.compare

# The native engine as WebAssembly, for the site: both modules that the package ships.
web: $(READY) $(WITH)test
	$(BIN)/python -m pip install --quiet --constraint constraints.txt ziglang zopfli
	$(BIN)/python tools/web.py

# The site with all docs, in build/docs/site: files, and pages that are made from the code and the shipped evidence.
docs: $(READY)
	$(BIN)/python -m paritylab report --out build/docs

# The figures of docs/how-to/figures.md, by the commands of the page.
gallery: $(READY)
	$(BIN)/python tools/gallery.py

# The notebooks of examples/, each executed in a clean kernel, with what they show.
notebooks: $(READY) $(WITH)test
	$(BIN)/python tools/notebooks.py

lint: $(READY) $(EVERY)
	$(BIN)/ruff check .
	$(BIN)/pyright

bench: $(READY) $(WITH)test
	$(BIN)/python benchmarks/engines.py

# Do the pins agree with each other where only the package index is known? Installs nothing.
resolve: $(READY)
	$(BIN)/python tests/packaging/resolve.py

# sdist and wheel in dist/, and what the wheel does in an empty environment, away from this folder.
wheel:
	$(PYTHON) tests/packaging/wheel.py

clean:
	rm -rf $(VENV) build dist out
