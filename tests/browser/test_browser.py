"""Every notebook with widgets, in a real JupyterLab and a real browser: run, use, reopen."""

import json
import re
import shutil
from urllib.parse import unquote

import lab
import pytest

from course_lib.trace import Event, Trace
from course_lib.viz import show

pytestmark = lab.NEEDED

WIDGET = "application/vnd.jupyter.widget-view+json"
FIGURE = "figure.lockstep-live"
SAMPLE = [
    "import torch\nfrom course_lib import run_ranks\n"
    "from course_lib.collectives import ring_all_reduce\n"
    "from course_lib.machine import dgx_h100, unit\n"
    "from course_lib.viz import machine_picker, predict, show, wait_for",
    "guess = predict('How many bytes does rank 0 send?', 72)",
    "def work(group):\n    ring_all_reduce(torch.arange(12.0), group)\n\n"
    "run = run_ranks(work, 4)\nview = show(run)\nview",
    "machine_picker(run, {'unit': unit(), 'DGX H100': dgx_h100()})",
    "wait_for({'world_size': 2, 'edges': [(0, 1, 'recv from rank 1'), (1, 0, 'recv from rank 0')],"
    " 'notes': {}})",
]


# Stored notebooks keep a view's static picture, not the widget that takes its place.
LECTURES = [pytest.param(path.name, marks=() if path.name == "00_start.ipynb" else pytest.mark.soak)
            for path in sorted((lab.ROOT / "notebooks").glob("*.ipynb"))
            if "lockstep-still" in path.read_text(encoding="utf-8")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A Lab whose folder holds copies of the lectures, and of a small notebook of our own."""
    folder = tmp_path_factory.mktemp("lab")
    for path in (lab.ROOT / "notebooks" / lecture.values[0] for lecture in LECTURES):
        shutil.copy(path, folder)
    for name in ("sample", "morning"):
        lab.write_notebook(folder / f"{name}.ipynb", SAMPLE)
    with lab.jupyterlab(folder) as address:
        yield address, folder


def text_of(figure, part):
    return figure.locator(part).inner_text()


def use_controls(figure, page):
    """Each control of a figure changes its text or its picture, forward and back again."""
    say, sheet = figure.locator(".ls-say"), figure.locator(".ls-sheet")
    figure.scroll_into_view_if_needed()
    start = say.inner_text()
    figure.locator(".ls-forward").click()
    assert say.inner_text() != start and "Step 1 of" in say.inner_text()
    page.keyboard.press("ArrowRight")  # a button in focus leaves the keys of the player alone
    assert "Step 2 of" in say.inner_text()
    figure.locator(".ls-scrub").press("ArrowLeft")
    figure.locator(".ls-back").click()
    assert say.inner_text() == start
    figure.locator(".ls-scrub").press("End")
    assert "the last rank has finished" in say.inner_text()
    figure.focus()
    page.keyboard.press("Home")
    assert say.inner_text() == start
    page.keyboard.press("ArrowRight")
    assert "Step 1 of" in say.inner_text()
    box = sheet.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + 20)
    assert "Step 1 of" not in say.inner_text()
    width = sheet.bounding_box()["width"]
    figure.locator(".ls-in").click()
    assert sheet.bounding_box()["width"] > 1.3 * width
    figure.locator(".ls-out").click()
    assert abs(sheet.bounding_box()["width"] - width) < 2
    figure.locator("input[name=messages]").uncheck()
    assert figure.locator(".ls-arrows").count() == 0
    figure.locator("input[name=messages]").check()
    if figure.locator("input[name=strips]").count():
        figure.locator("input[name=strips]").check()
        assert sheet.bounding_box()["height"] > box["height"] + 20
        figure.locator("input[name=strips]").uncheck()


def play(figure, page):
    """Play moves the clock; twice the speed moves it about twice as far; Pause stops it."""
    moved = []
    for speed in ("1", "2"):
        figure.locator(".ls-speed").select_option(speed)
        figure.focus()
        page.keyboard.press("Home")
        figure.locator(".ls-play").click()
        page.wait_for_timeout(700)
        figure.locator(".ls-play").click()
        moved.append(float(re.match(r"[\d.]+", text_of(figure, ".ls-time"))[0]))
    assert 0 < moved[0] < moved[1]
    page.wait_for_timeout(200)
    assert text_of(figure, ".ls-time").startswith(f"{moved[1]:.4f}"[:3])


def fits(page):
    """No view is wider than the column that holds it, and none pushes its own content out."""
    return page.evaluate("""() => [...document.querySelectorAll(".lockstep-live")].every((root) => {
        const column = root.closest(".jp-OutputArea-output").getBoundingClientRect();
        const own = root.getBoundingClientRect();
        return own.width > 200 && own.right <= column.right + 1 && own.left >= column.left - 1
            && root.scrollWidth <= root.clientWidth + 1; })""")


@pytest.fixture(scope="module")
def stored(server):
    """The notebook "morning", run and saved in the Lab (which trusts it), its kernel gone."""
    address, folder = server
    with lab.chromium() as page:
        lab.open_notebook(page, address, "morning.ipynb")
        lab.run_all(page)
        lab.save(page)
    lab.forget_kernels(address)
    return json.loads((folder / "morning.ipynb").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", LECTURES)
def test_lecture_lives(server, name):
    """Run All: every view is alive, inside its column, without complaint or outside request."""
    address, folder = server
    with lab.chromium(1280, 1000) as page:
        lab.open_notebook(page, address, name)
        lab.run_all(page)
        for cell in page.locator(".jp-Cell").all():
            cell.scroll_into_view_if_needed()
        assert page.locator(".lockstep-live").count() > 0
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 1000})
            page.wait_for_timeout(500)
            assert fits(page), f"a view is wider than its column at {width} px"
            lab.shot(page, f"{name[:-6]}-{width}")
        assert page.complaints == [] and page.outside == []


@pytest.mark.parametrize("name", ["sample.ipynb"])
def test_notebook_lives(server, name):
    address, folder = server
    with lab.chromium(1280, 1000) as page:
        lab.open_notebook(page, address, name)
        lab.run_all(page)
        # Lab draws cells that come into view: wind through the notebook once
        for cell in page.locator(".jp-Cell").all():
            cell.scroll_into_view_if_needed()
        figures = page.locator(FIGURE)
        lab.shot(page, f"{name[:-6]}-1280")
        assert page.locator(".lockstep-live").count() > 0
        for i in range(figures.count()):
            use_controls(figures.nth(i), page)
            play(figures.nth(i), page)
        for width in (1280, 700):
            page.set_viewport_size({"width": width, "height": 1000})
            page.wait_for_timeout(500)
            assert fits(page), f"a view is wider than its column at {width} px"
            lab.shot(page, f"{name[:-6]}-{width}")
        assert page.locator(".lockstep-still:visible").count() == 0
        assert page.complaints == [] and page.outside == []
        if name == "sample.ipynb":
            ask_and_pick(page)


def ask_and_pick(page):
    """The prediction takes one guess by keyboard; the picker replays on another machine."""
    asked = page.locator(".ls-predict")
    asked.locator("input").fill("forty")
    asked.locator("input").press("Enter")
    asked.get_by_text("is not a number").wait_for()
    asked.locator("input").fill("48")
    asked.locator("input").press("Enter")
    asked.get_by_text("You say 48, the answer is 72: 24 too low.").wait_for()
    page.locator(".widget-dropdown select").select_option("DGX H100")
    page.get_by_text("4 ranks on DGX H100").wait_for()
    page.locator(FIGURE).first.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(600)
    told = page.evaluate("""async () => {
        const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        const ask = kernel.requestExecute({code: "pass", user_expressions: {text: "repr(view)"}});
        const reply = await ask.done;
        return reply.content.user_expressions.text.data["text/plain"]; }""")
    assert "step 1 of 25" in told, f"the kernel has not heard of the step: {told}"


def visible_pictures(page):
    """Number of static pictures on the page that are loaded and have a size."""
    return page.evaluate("""() => [...document.querySelectorAll("img[alt^=Time], img[alt^=Who]")]
        .filter((i) => i.complete && i.naturalWidth > 99 && i.getClientRects().length).length""")


@pytest.mark.soak
def test_morning_after_trusted_and_untrusted(server, stored):
    """Reopened without running: pictures, no "model not found", whether it is trusted or not."""
    address, folder = server
    assert any(WIDGET in o.get("data", {}) for c in stored["cells"] for o in c["outputs"])
    for cell in stored["cells"]:  # a fresh clone: nobody here has signed these outputs
        cell["source"] = [*cell["source"], "\n# cloned"]
    (folder / "clone.ipynb").write_text(json.dumps(stored), encoding="utf-8")
    for name, trusted in (("morning", True), ("clone", False)):
        with lab.chromium(1000, 1800) as page:
            lab.open_notebook(page, address, f"{name}.ipynb")
            page.wait_for_timeout(2500)
            lab.shot(page, f"morning-{'trusted' if trusted else 'fresh-clone'}")
            assert trusted == page.evaluate(
                "window.jupyterapp.shell.currentWidget.content.model.cells.get(2).trusted")
            assert visible_pictures(page) == 3
            assert page.get_by_text("model not found").locator("visible=true").count() == 0
            assert page.get_by_text("How many bytes does rank 0 send?").first.is_visible()
            assert page.outside == []


def test_morning_after_export_without_a_kernel(server, stored, tmp_path):
    from nbconvert import HTMLExporter

    _, folder = server
    page_text, _ = HTMLExporter().from_filename(str(folder / "morning.ipynb"))
    (tmp_path / "export.html").write_text(page_text, encoding="utf-8")
    with lab.chromium(1000, 1800) as page:
        page.route(re.compile("^https?://"), lambda route: route.abort())
        page.goto((tmp_path / "export.html").as_uri())
        page.wait_for_timeout(800)
        lab.shot(page, "morning-export")
        assert visible_pictures(page) == 3
        assert page.get_by_text("model not found").count() == 0


def test_page_of_two_thousand_bars_is_smooth(tmp_path, capsys):
    operation = [Event("compute", label=f"{'FB'[k % 2]}{k}", seconds=1.0) for k in range(126)]
    trace = Trace(16, {(rank, "main"): operation for rank in range(16)})
    view = show(trace)
    assert len(view.data["panels"][0]["bars"]) == 2016
    view.save_html(tmp_path / "many.html")
    with lab.chromium(1280, 900) as page:
        page.goto(unquote((tmp_path / "many.html").as_uri()))
        page.wait_for_selector(".ls-play")
        page.locator(".ls-play").click()
        frames = lab.frames_per_second(page, ".ls-hand", "d")
        lab.shot(page, "two-thousand-bars")
        size = (tmp_path / "many.html").stat().st_size / 1024
        with capsys.disabled():
            print(f"\n2,016 bars: {frames:.0f} frames per second, page of {size:.0f} KiB")
        assert frames >= 20 and page.complaints == [] and page.outside == []


def test_reduced_motion_steps_from_event_to_event(tmp_path):
    operation = [Event("compute", label=f"F{k}", seconds=1.0) for k in range(5)]
    show(Trace(1, {(0, "main"): operation})).save_html(tmp_path / "calm.html")
    with lab.chromium(800, 500, reduced_motion="reduce") as page:
        page.goto((tmp_path / "calm.html").as_uri())
        figure = page.locator(FIGURE)
        figure.locator(".ls-speed").select_option("4")
        figure.locator(".ls-play").click()
        seen = set()
        for _ in range(20):
            seen.add(text_of(figure, ".ls-time").split(" ")[0])
            page.wait_for_timeout(50)
        assert len(seen) >= 3 and all(float(t) == int(float(t)) for t in seen)
