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

.PHONY: help install lab work test soak notebooks picture clean

help:
	@echo "make lab        open the course in JupyterLab (the first call installs it in $(VENV))"
	@echo "make work       copy new exercises to work/, where you answer them (lab does it too)"
	@echo "make test       check everything, within 10 minutes"
	@echo "make soak       the longer checks, about 40 minutes (30 is the aim)"
	@echo "make notebooks  link the notebooks, run them, store what they show, derive exercises"
	@echo "make picture    draw the pictures of README.md again"
	@echo "make install    build $(VENV) only"
	@echo "make clean      remove $(VENV) and build/ (your work/ stays)"
	@echo
	@echo "Linux without a GPU: make lab TORCH_INDEX=https://download.pytorch.org/whl/cpu"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) tools/make_env.py --venv $(VENV) $(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))

install: $(STAMP)

work: $(STAMP)
	@$(RUN) tools/make_work.py

lab: work
	$(RUN) -m jupyterlab --ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/notebooks/00_start.ipynb $(LAB_ARGS)

test: $(STAMP)
	$(RUN) tools/run_checks.py test

soak: $(STAMP)
	$(RUN) tools/run_checks.py soak

notebooks: $(STAMP)
	$(RUN) tools/make_links.py
	$(RUN) tools/make_notebooks.py $(if $(FRESH),--fresh) $(FILES)
	$(RUN) tools/make_exercises.py

picture: $(STAMP)
	$(RUN) tools/make_picture.py

clean:
	rm -rf $(VENV) build
