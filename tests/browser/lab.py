"""A JupyterLab and a headless Chromium for tests: open a notebook, run it, look at it.

The notebook is copied into a folder of its own, so tests never change the course's files. The
server has no token, listens on a free port of this machine, keeps its settings and its trust
database in that folder, and shows no news pop-up.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "build" / "screenshots"
NEEDED = pytest.mark.skipif(
    not (CHROMIUM and importlib.util.find_spec("playwright")),
    reason="NO BROWSER: Chromium or playwright is not installed; no widget was looked at")
NEWS = '{"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}'


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def jupyterlab(folder: Path):
    """A JupyterLab that serves `folder`; gives its address."""
    home, port = folder / ".home", free_port()
    (home / "labconfig").mkdir(parents=True, exist_ok=True)
    (home / "labconfig" / "page_config.json").write_text(NEWS)
    env = os.environ | {"JUPYTER_CONFIG_DIR": str(home), "JUPYTER_DATA_DIR": str(home / "data"),
                        "JUPYTERLAB_SETTINGS_DIR": str(home / "lab"),
                        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
                        "LOCKSTEP_STATUS": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}",
               "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.password=",
               f"--ServerApp.root_dir={folder}", "--LabApp.expose_app_in_browser=True",
               "--ServerApp.disable_check_xsrf=True", "--LabApp.news_url="]
    with open(home / "server.log", "w") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(f"{address}/api/status", server)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def _wait_for(url: str, server) -> None:
    for _ in range(150):
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("JupyterLab did not start")


@contextmanager
def chromium(width: int = 1280, height: int = 900, **context):
    """A page of a headless Chromium. `page.complaints` collects console errors and page errors,
    `page.outside` the addresses asked for that are not on this machine."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height}, **context)
        page.complaints, page.outside = [], []
        page.on("console", lambda m: m.type == "error" and page.complaints.append(m.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: _note(page, request.url))
        yield page
        browser.close()


def _note(page, url: str) -> None:
    parts = urlsplit(url)
    here = parts.hostname in ("127.0.0.1", "localhost")
    if parts.scheme in ("http", "https", "ws", "wss") and not here:
        page.outside.append(url)


def write_notebook(path: Path, sources: list[str]) -> None:
    """A notebook of these code cells, not run."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in sources])
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, path)


def open_notebook(page, address: str, name: str) -> None:
    """Open a notebook in a Lab without side panels, and wait until its kernel is idle."""
    page.goto(f"{address}/lab/tree/{name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function("window.jupyterapp !== undefined", timeout=60_000)
    page.evaluate("window.jupyterapp.shell.collapseLeft()")
    page.wait_for_function("""() => {
        const kernel = window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel;
        return kernel && kernel.status === "idle"; }""", timeout=60_000)


def run_all(page, seconds: float = 60) -> None:
    """Run all cells, and wait until every code cell has its number and the kernel is idle again."""
    page.wait_for_timeout(1500)  # a call right after the kernel is idle can get lost
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function("""() => {
        const panel = window.jupyterapp.shell.currentWidget;
        const cells = [...panel.content.model.cells].filter(
            (c) => c.type === "code" && c.sharedModel.getSource().trim());
        return cells.every((c) => c.executionCount !== null)
            && panel.sessionContext.session.kernel.status === "idle"; }""", timeout=seconds * 1000)
    page.wait_for_timeout(800)


def forget_kernels(address: str) -> None:
    """End every kernel of the server, as a new morning does."""
    with urllib.request.urlopen(f"{address}/api/sessions") as answer:
        sessions = json.load(answer)
    for session in sessions:
        url = f"{address}/api/sessions/{session['id']}"
        urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).close()


def save(page) -> None:
    """Save the notebook on the page."""
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_timeout(800)


def frames_per_second(page, selector: str, attribute: str) -> float:
    """How often a second that attribute changes while a view plays: the best of three looks."""
    look = """([selector, attribute]) => new Promise((done) => {
        let count = 0, seen = "", begin = performance.now();
        const look = () => {
            const now = document.querySelector(selector)?.getAttribute(attribute);
            if (now !== seen) { seen = now; count++; }
            if (performance.now() - begin < 1500) requestAnimationFrame(look);
            else done(count / 1.5); };
        requestAnimationFrame(look); })"""
    return max(page.evaluate(look, [selector, attribute]) for _ in range(3))


def shot(page, name: str) -> Path:
    """A screenshot, in build/screenshots/."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png")
    return SHOTS / f"{name}.png"
