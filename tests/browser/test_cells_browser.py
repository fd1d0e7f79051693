"""Cells that travel, in a real browser: Play moves them, the controls change what they show."""

import lab
import pytest

from course_lib import dry_run
from course_lib.viz import show_collective
from course_lib.viz.explore import collective_run

pytestmark = lab.NEEDED

FIGURE = "figure.lockstep-live"
CELLS = ["import torch\nfrom course_lib import run_ranks\n"
         "from course_lib.collectives import naive_all_reduce\n"
         "from course_lib.viz import explore_collectives, show_collective",
         "def work(group):\n    naive_all_reduce(torch.arange(8.0), group)\n\n"
         "show_collective(run_ranks(work, 4))",
         "explore_collectives('ring_all_reduce', ranks=4, size=8)"]


@pytest.fixture
def page_of(tmp_path):
    """Opens the page that a view of `op` on `ranks` ranks saves."""
    def open_in(page, op, ranks):
        path = tmp_path / f"{op}-{ranks}.html"
        show_collective(dry_run(collective_run, ranks, op, 2 * ranks, 0)).save_html(path)
        page.goto(path.as_uri())
        page.wait_for_selector(".ls-held g")
        return page.locator(FIGURE)

    return open_in


def fits(page):
    return page.evaluate("""() => [...document.querySelectorAll(".lockstep-live")].every((root) => {
        const svg = root.querySelector(".ls-cells > svg"), box = svg.getBoundingClientRect();
        return root.scrollWidth <= root.clientWidth + 1
            && [...svg.querySelectorAll(".ls-place")].every((place) => {
                const own = place.getBoundingClientRect();
                return own.left >= box.left - 1 && own.right <= box.right + 1; }); })""")


def written(figure):
    """Texts of the cells in their slots, in order."""
    return figure.locator(".ls-held text").all_text_contents()


def test_play_moves_cells_and_fills_the_sums(page_of):
    with lab.chromium(1280, 900) as page:
        figure = page_of(page, "ring_all_reduce", 4)
        assert len(written(figure)) == 16 and figure.locator(".ls-afloat").count() == 0
        figure.locator(".ls-play").click()
        page.wait_for_selector(".ls-air > g")
        cell = page.locator(".ls-air > g").first
        places = set()
        for _ in range(6):
            places.add(cell.get_attribute("transform"))
            page.wait_for_timeout(60)
        assert len(places) >= 3, "the cell does not move"
        figure.locator(".ls-scrub").press("End")
        assert len(written(figure)) == 64 and figure.locator(".ls-afloat").count() == 0
        assert "the last rank has finished" in figure.locator(".ls-say").inner_text()
        assert figure.locator(".ls-still text", has_text="sent 48 B").count() == 4
        assert page.complaints == [] and page.outside == []


def test_keyboard_steps_and_the_clock_is_one(page_of):
    with lab.chromium(1280, 900) as page:
        figure = page_of(page, "naive_all_reduce", 4)
        figure.focus()
        for step, text in ((1, "waiting: ranks 2, 3"), (2, "waiting: ranks 1, 3")):
            page.keyboard.press("ArrowRight")
            assert text in figure.locator(".ls-say").inner_text()
            assert figure.locator(".ls-air > g").count() == 1
            assert figure.locator(".ls-time").inner_text().startswith(f"{step - 1}.0000")
        states = figure.locator(".ls-still .ls-value").all_text_contents()
        assert "waits for 0" in states and "← 2" in states
        sheet = figure.locator(".ls-sheet").bounding_box()
        page.mouse.click(sheet["x"] + sheet["width"] - 2, sheet["y"] + 20)
        assert written(figure).count("3") == 4
        page.keyboard.press("Home")
        assert written(figure) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("op, ranks", [("ring_all_reduce", 8), ("all_to_all", 4), ("gather", 3)])
def test_fits_and_has_two_arrangements(page_of, op, ranks):
    with lab.chromium(1280, 900, color_scheme="dark") as page:
        figure = page_of(page, op, ranks)
        figure.locator(".ls-scrub").press("End")
        figure.locator(".ls-back").click()
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 900})
            for _ in range(2):
                page.wait_for_timeout(250)
                assert fits(page), f"{op} does not fit {width} px"
                lab.shot(page, f"cells-{op}-{width}")
                figure.locator("input[name=ring]").click()
        assert page.complaints == []


def test_frames_per_second(page_of, capsys):
    with lab.chromium(1280, 900) as page:
        page_of(page, "ring_all_reduce", 8).locator(".ls-play").click()
        page.wait_for_selector(".ls-air > g")
        frames = lab.frames_per_second(page, ".ls-air > g", "transform")
        with capsys.disabled():
            print(f"\ncells of 8 ranks: {frames:.0f} frames per second")
        assert frames >= 12 and page.complaints == []


def test_reduced_motion_jumps_from_step_to_step(page_of):
    with lab.chromium(1000, 800, reduced_motion="reduce") as page:
        figure = page_of(page, "ring_all_reduce", 3)
        figure.locator(".ls-speed").select_option("4")
        figure.locator(".ls-play").click()
        for _ in range(10):
            page.wait_for_timeout(60)
            moved = page.locator(".ls-air > g").evaluate_all(
                "(all) => all.map((one) => one.getAttribute('transform'))")
            assert set(moved) <= {"translate(0.0 0.0)"}


@pytest.mark.soak
def test_controls_in_a_notebook(tmp_path):
    lab.write_notebook(tmp_path / "cells.ipynb", CELLS)
    with lab.jupyterlab(tmp_path) as address, lab.chromium(1280, 1400) as page:
        lab.open_notebook(page, address, "cells.ipynb")
        lab.run_all(page)
        page.locator(FIGURE).last.scroll_into_view_if_needed()
        title = page.locator(FIGURE).last.locator(".ls-title")
        assert title.inner_text() == "ring_all_reduce of 8 elements on 4 ranks"
        for label, key in (("W ranks", "ranks"), ("n elements", "elements")):
            before = title.inner_text()
            row = page.locator(".widget-slider", has_text=label)
            row.locator(".noUi-handle").press("ArrowRight")
            page.wait_for_function("(was) => [...document.querySelectorAll('.ls-title')].at(-1)"
                                   ".textContent !== was", arg=before)
            assert key in title.inner_text()
        page.locator(".widget-dropdown select").select_option("broadcast")
        page.get_by_text("broadcast of 9 elements on 5 ranks, root 0", exact=True).wait_for()
        page.locator(".widget-slider", has_text="root").locator(".noUi-handle").press("ArrowRight")
        page.get_by_text("broadcast of 9 elements on 5 ranks, root 1", exact=True).wait_for()
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 1400})
            page.wait_for_timeout(500)
            assert fits(page)
            lab.shot(page, f"cells-notebook-{width}")
        assert page.locator(".lockstep-still:visible").count() == 0
        assert page.complaints == [] and page.outside == []
