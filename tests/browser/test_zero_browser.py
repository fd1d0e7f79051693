"""The ZeRO player in a real browser: it plays, its controls run other stages, it fits."""

import lab
import pytest

from course_lib.viz import explore_zero

pytestmark = lab.NEEDED

FIGURE = "figure.lockstep-live"
FITS = """() => [...document.querySelectorAll(".lockstep-live")].every((root) => {
    const svg = root.querySelector(".ls-cells > svg"), box = svg.getBoundingClientRect();
    return root.scrollWidth <= root.clientWidth + 1
        && [...svg.querySelectorAll(".ls-place, .ls-name, .ls-panel, .ls-value")].every((one) => {
            const own = one.getBoundingClientRect();
            return own.left >= box.left - 1 && own.right <= box.right + 1; }); })"""


@pytest.fixture
def page_of(tmp_path):
    """Opens the page that a player of these settings saves."""
    def open_in(page, *settings):
        explore_zero(*settings).view.save_html(tmp_path / "zero.html")
        page.goto((tmp_path / "zero.html").as_uri())
        page.wait_for_selector(".ls-held g")
        return page.locator(FIGURE)

    return open_in


def cells(figure):
    """How many slots hold something, and how many cells are on their way."""
    return figure.locator(".ls-held > g").count(), figure.locator(".ls-air > g").count()


def test_it_plays_steps_and_fits(page_of):
    with lab.chromium(1280, 1000) as page:
        figure = page_of(page, 2, 2)
        assert cells(figure) == (2 * (12 + 3 * 6), 0)  # parameters; a half of master, m and v
        figure.locator(".ls-play").click()
        page.wait_for_selector(".ls-air > g")
        figure.locator(".ls-play").click()
        figure.focus()
        page.keyboard.press("Home")
        while "reduce-scatter" not in figure.locator(".ls-say").inner_text():
            page.keyboard.press("ArrowRight")
        assert "reduce_scatter(" in figure.locator(".ls-code").inner_text()
        assert cells(figure)[1] == 4  # two elements each way
        page.keyboard.press("End")
        assert cells(figure) == (60, 0)
        assert set(figure.locator(".ls-held text").all_text_contents()) == {"2"}
        assert figure.locator(".ls-still text", has_text="sent 24 B").count() == 2
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 1000})
            page.wait_for_timeout(250)
            assert page.evaluate(FITS), f"does not fit {width} px"
            lab.shot(page, f"zero-2-{width}")
        assert page.complaints == [] and page.outside == []


@pytest.mark.soak
@pytest.mark.parametrize("settings", [(3, 4), (0, 3), ("3 prefetch", 4, None, "GPT"), (1, 3, 3),
                                      ("1 all-reduce", 4, 2), (2, 4, 3, "GPT")])
def test_every_stage_fits(page_of, settings):
    with lab.chromium(1280, 1000, color_scheme="dark") as page:
        figure = page_of(page, *settings)
        for _ in range(12):
            figure.locator(".ls-forward").click()
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 1000})
            page.wait_for_timeout(250)
            assert page.evaluate(FITS), f"does not fit {width} px"
            lab.shot(page, f"zero-{'-'.join(map(str, settings))}-{width}".replace(" ", "_"))
        assert page.complaints == []


@pytest.mark.soak
def test_controls_in_a_notebook(tmp_path):
    text = "from course_lib.viz import explore_zero\nexplore_zero(stage=1, ranks=3)"
    lab.write_notebook(tmp_path / "zero.ipynb", [text])
    with lab.jupyterlab(tmp_path) as address, lab.chromium(1280, 1400) as page:
        lab.open_notebook(page, address, "zero.ipynb")
        lab.run_all(page)
        title = page.locator(FIGURE).locator(".ls-title")
        assert title.inner_text() == "ZeRO-1: 12 parameters in 3 units on 3 ranks"
        for label, choice, words in (
                ("stage", "ZeRO-3", "ZeRO-3: 12 parameters in 3 units on 3 ranks"),
                ("W ranks", "2", "ZeRO-3: 12 parameters in 3 units on 2 ranks"),
                ("beside it", "DDP", "ZeRO-3 beside DDP: 12 parameters in 3 units on 2 ranks"),
                ("model", "GPT", "ZeRO-3 beside DDP: 7,744 parameters in 4 units on 2 ranks")):
            row = page.locator(".widget-dropdown", has_text=label).first
            row.locator("select").select_option(choice)
            page.get_by_text(words, exact=True).wait_for()
        lab.shot(page, "zero-notebook")
        assert page.locator(".lockstep-still:visible").count() == 0
        assert page.complaints == [] and page.outside == []
