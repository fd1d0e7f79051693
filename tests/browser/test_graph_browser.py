"""A machine's graph in a real browser: wires light up, carry numbers, and fit their column."""

import lab
import pytest

from course_lib import dry_run, replay
from course_lib.machine import dgx_h100, pcie_server, tpu_v4
from course_lib.viz.explore import collective_run
from course_lib.viz.graph import topology

pytestmark = lab.NEEDED

MACHINES = {"pcie": (pcie_server, 4), "dgx": (lambda: dgx_h100(2), 16),
            "torus": (lambda: tpu_v4((4, 4)), 16)}
NAMES = [pytest.param(name, marks=() if name == "torus" else pytest.mark.soak) for name in MACHINES]


def open_graph(page, folder, name):
    """The page of a ring all-reduce on that machine."""
    make, ranks = MACHINES[name]
    run = dry_run(collective_run, ranks, "ring_all_reduce", 64 * ranks, 0)
    topology(make(), replay(run, make())).save_html(folder / f"{name}.html")
    page.goto((folder / f"{name}.html").as_uri())
    page.wait_for_selector(".ls-boxes rect")
    return page.locator("figure.lockstep-live")


def fits(page):
    return page.evaluate("""() => [...document.querySelectorAll(".lockstep-live")].every((root) => {
        const svg = root.querySelector(".ls-graph > svg"), box = svg.getBoundingClientRect();
        return root.scrollWidth <= root.clientWidth + 1
            && [...svg.querySelectorAll("rect")].every((node) => {
                const own = node.getBoundingClientRect();
                return own.left >= box.left - 1 && own.right <= box.right + 1; }); })""")


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_lights_the_wires_up(tmp_path, name):
    with lab.chromium(1280, 900) as page:
        figure = open_graph(page, tmp_path, name)
        assert figure.locator(".ls-busy").count() == 0
        figure.locator(".ls-forward").click()
        assert figure.locator(".ls-way.ls-busy").count() > 0
        assert "Step 1 of" in figure.locator(".ls-say").inner_text()
        start = figure.locator(".ls-time").inner_text()
        figure.locator(".ls-play").click()
        page.wait_for_function("(was) => document.querySelector('.ls-time').textContent !== was",
                               arg=start)
        figure.locator(".ls-scrub").press("End")
        widths = figure.locator(".ls-way").evaluate_all(
            "(all) => all.map((one) => Number(one.getAttribute('stroke-width')))")
        assert figure.locator(".ls-busy").count() == 0 and max(widths) > 1.5
        figure.focus()
        page.keyboard.press("Home")
        assert "Step 0 of" in figure.locator(".ls-say").inner_text()
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(250)
            assert fits(page), f"{name} does not fit {width} px"
            figure.locator(".ls-scrub").press("End")
            lab.shot(page, f"graph-{name}-{width}")
        assert page.complaints == [] and page.outside == []


def test_numbers_on_wires_can_be_hidden(tmp_path):
    with lab.chromium(1280, 900) as page:
        figure = open_graph(page, tmp_path, "pcie")
        figure.locator(".ls-scrub").press("End")
        told = figure.locator(".ls-words .ls-quiet")
        assert any(told.all_text_contents())
        figure.locator("input[name=numbers]").uncheck()
        assert not any(told.all_text_contents())
