# Two commands: `make lab` opens the course, `make test` checks it. `make help` lists the rest.

# PYTHON       which Python builds .venv (3.11 or newer)
# TORCH_INDEX  a further package index, e.g. https://download.pytorch.org/whl/cpu
# LAB_ARGS     passed on to JupyterLab, e.g. --no-browser
# FILES        the notebooks that `make notebooks` rewrites (default: all)
# FRESH=1      `make notebooks` also renews the outputs that are not checked (timings)
PYTHON ?= python3
TORCH_INDEX ?=
LAB_ARGS ?=
FILES ?=
FRESH ?=
VENV := .venv

# The course's Python comes first on PATH, so that `!python` in a cell is the same one.
RUN := PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: help install lab test soak notebooks clean

help:
	@echo "make lab        open the course in JupyterLab (the first call installs it in $(VENV))"
	@echo "make test       check everything, within 10 minutes"
	@echo "make soak       the longer checks, within 30 minutes"
	@echo "make notebooks  run the notebooks again and store what they show"
	@echo "make install    build $(VENV) only"
	@echo "make clean      remove $(VENV) and build/ (your work/ stays)"
	@echo
	@echo "Linux without a GPU: make lab TORCH_INDEX=https://download.pytorch.org/whl/cpu"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) tools/make_env.py --venv $(VENV) $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))

install: $(STAMP)

lab: $(STAMP)
	$(RUN) -m jupyterlab notebooks/00_start.ipynb --ServerApp.root_dir="$(CURDIR)" $(LAB_ARGS)

test: $(STAMP)
	$(RUN) tools/run_checks.py test

soak: $(STAMP)
	$(RUN) tools/run_checks.py soak

notebooks: $(STAMP)
	$(RUN) tools/make_notebooks.py $(if $(FRESH),--fresh) $(FILES)

clean:
	rm -rf $(VENV) build
