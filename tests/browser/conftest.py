"""Says loudly when the browser tests could not run."""

import importlib.util

import lab


def pytest_terminal_summary(terminalreporter):
    found = {"Chromium": lab.CHROMIUM, "playwright": importlib.util.find_spec("playwright")}
    missing = [name for name, there in found.items() if not there]
    if missing:
        terminalreporter.section("BROWSER TESTS DID NOT RUN", "!")
        terminalreporter.line(f"Not installed: {', '.join(missing)}. No widget was looked at.")
