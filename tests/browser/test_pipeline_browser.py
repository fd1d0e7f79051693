"""The pipeline explorer in a real browser: smooth, spoken, and moved by every control."""

import lab
import pytest

from course_lib.viz import explore_pipeline

pytestmark = lab.NEEDED

FIGURE, LESS, MORE = "figure.lockstep-live", "ArrowLeft", "ArrowRight"
CELLS = ["from course_lib.schedule import Op\nfrom course_lib.viz import explore_pipeline",
         "explore_pipeline('1f1b', p=4, m=8)",
         "explore_pipeline([[Op(0, 'F', 0), Op(0, 'B', 0)], [Op(1, 'B', 0), Op(1, 'F', 0)]])"]


def fits(page):
    return page.evaluate("""() => [...document.querySelectorAll(".lockstep-live")].every(
        (root) => root.scrollWidth <= root.clientWidth + 1)""")


def test_8_by_32_is_smooth(tmp_path, capsys):
    explore_pipeline("zb-h1", 8, 32, compare="1f1b").save_html(tmp_path / "big.html")
    with lab.chromium(1280, 1200) as page:
        page.goto((tmp_path / "big.html").as_uri())
        page.wait_for_selector(".ls-play")
        page.locator("input[name=messages]").check()
        page.locator(".ls-play").click()
        found = lab.frames_per_second(page, ".ls-hand", "d")
        lab.shot(page, "pipeline-8-32")
        with capsys.disabled():
            print(f"\npipelines of 8 x 32 above each other: {found:.0f} frames per second")
        assert found >= 20 and page.complaints == [] and page.outside == []


def test_an_op_tells_what_it_waits_for(tmp_path):
    explore_pipeline("1f1b", memory_cap=3).save_html(tmp_path / "one.html")
    with lab.chromium(1280, 900) as page:
        page.goto((tmp_path / "one.html").as_uri())
        figure = page.locator(FIGURE)
        op = figure.locator(".ls-label", has_text="B0").first.bounding_box()
        page.mouse.move(op["x"] + 4, op["y"] + 4)
        hint = figure.locator(".ls-sheet svg title").first
        assert "rank 0 runs 0B0" in hint.text_content()
        assert "it has waited 6 ms for 1B0 of rank 1" in hint.text_content()
        page.mouse.click(op["x"] + op["width"] / 2, op["y"] + 4)
        figure.focus()
        page.keyboard.press("ArrowRight")
        assert "runs" in figure.locator(".ls-say").inner_text()
        assert figure.locator(".ls-now").count() > 0
        assert "cap is 3" in figure.locator(".ls-error").inner_text()
        assert figure.locator(".ls-limit").count() == 4
        figure.locator("input[name=strips]").uncheck()
        assert figure.locator(".ls-limit").count() == 0
        figure.locator("input[name=messages]").check()
        assert figure.locator(".ls-arrows").count() == 1
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(250)
            assert fits(page)
        assert page.complaints == []


def widget(page, label):
    """The first control of that description."""
    return page.locator(".jupyter-widgets", has=page.get_by_text(label, exact=True)).locator(
        "visible=true").filter(has_not=page.locator(".jupyter-widgets")).first


@pytest.mark.soak
def test_every_control_moves_the_picture(tmp_path):
    lab.write_notebook(tmp_path / "pipeline.ipynb", CELLS)
    with lab.jupyterlab(tmp_path) as address, lab.chromium(1280, 1500) as page:
        lab.open_notebook(page, address, "pipeline.ipynb")
        lab.run_all(page)
        first = page.locator(FIGURE).first
        first.scroll_into_view_if_needed()
        assert "rank 1 runs 1B0 before 1F0" in page.locator(".ls-error").last.inner_text()
        page.get_by_text("More", exact=True).first.click()
        page.wait_for_timeout(600)
        changes = [("schedule", "ZB-H1"), ("compare", "GPipe"), ("p ranks", None),
                   ("m micro-batches", None), ("F, ms", "2"), ("I, ms", "3"), ("W, ms", "1.5"),
                   ("transfer, ms", "0.3"), ("cap (0: none)", "2"), ("kept for W", None),
                   ("schedule", "DualPipeV"), ("F&B, ms (0: sum)", "4"),
                   ("schedule", "interleaved 1F1B"), ("v stages", None),
                   ("machine", "laptop"), ("message, MiB", "3"), ("barrier at the end", None)]
        for label, value in changes:
            move(page, first, label, value)
        lab.shot(page, "pipeline-controls")
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 1500})
            page.wait_for_timeout(500)
            assert fits(page)
            lab.shot(page, f"pipeline-notebook-{width}")
        assert page.locator(".lockstep-still:visible").count() == 0
        assert page.complaints == [] and page.outside == []


def move(page, figure, label, value):
    """Move one control; the figure's picture or text changes."""
    state = "(f) => f.querySelector('svg').outerHTML + f.innerText + f.innerHTML.length"
    before, control = figure.evaluate(state), widget(page, label)
    if label.startswith("barrier"):
        control.locator("input").click()
    elif value is None:
        control.locator(".noUi-handle").press(LESS if label in ("p ranks", "kept for W") else MORE)
    elif control.locator("select").count():
        control.locator("select").select_option(value)
    else:
        control.locator("input").fill(value)
        control.locator("input").press("Enter")
    for _ in range(40):
        if figure.evaluate(state) != before:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{label} = {value} changes nothing")
