"""The three lists of packages agree, and the packages that run are the pinned ones."""

import os
import re
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def environment():
    return yaml.safe_load((ROOT / "environment.yml").read_text())


def pip_lines():
    (listed,) = [part["pip"] for part in environment()["dependencies"] if isinstance(part, dict)]
    return listed


def by_name(lines):
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(item.name): item for item in requirements}


def direct():
    """Requirements of a learner: the course and the tools that check it."""
    return by_name(project()["dependencies"] + project()["optional-dependencies"]["dev"])


def pins():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    assert len(by_name(listed)) == len(listed), "a package is pinned twice"
    return by_name(listed)


def pinned_version(requirement):
    (pin,) = requirement.specifier
    assert pin.operator == "==" and "*" not in pin.version, f"{requirement} is not a pin"
    return Version(pin.version)


def test_conda_installs_what_pyproject_asks_for():
    listed = by_name(line for line in pip_lines() if not line.startswith("-"))
    assert {name: item.specifier for name, item in listed.items()} == {
        name: item.specifier for name, item in direct().items()
    }


def test_conda_brings_only_python_and_pip():
    file = environment()
    python, pip = [part for part in file["dependencies"] if isinstance(part, str)]
    assert pip == "pip" and file["name"] == "lockstep"
    assert Version(python.removeprefix("python=")) in SpecifierSet(project()["requires-python"])


def test_conda_takes_the_small_torch_the_pins_and_the_course():
    assert pip_lines()[:3] == [f"--extra-index-url {CPU_INDEX}", "-c constraints.txt", "-e ."]


def test_every_direct_dependency_is_pinned_within_its_range():
    optional = by_name(project()["optional-dependencies"]["instructor"])
    for name, requirement in {**direct(), **optional}.items():
        assert name in pins(), f"{name} has no pin in constraints.txt"
        assert pinned_version(pins()[name]) in requirement.specifier


@pytest.mark.parametrize("name", sorted(direct()))
def test_the_pinned_version_runs(name):
    installed = Version(metadata.version(name))
    assert installed.public == str(pinned_version(pins()[name]))


@pytest.mark.parametrize("index", ["", CPU_INDEX])
def test_make_asks_for_a_further_index_only_when_told(index):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    env = {key: text for key, text in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    env["TORCH_INDEX"] = index
    command = ["make", "--dry-run", "--always-make", "lab", "PYTHON=python3"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert re.findall(r"--torch-index (\S+)", done.stdout) == ([index] if index else [])
    assert "=/lab/tree/notebooks/00_start.ipynb" in done.stdout
