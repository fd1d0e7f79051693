"""What a lesson puts around its runs: predictions, sources, and differences of sources."""

import inspect
import re

import pytest

from course_lib.viz import predict, show_diff, show_source
from course_lib.viz.timeline_view import timeline_data


def test_prediction_keeps_its_answer_until_the_commit():
    asked = predict("How many bytes does rank 0 send?", 4321)
    state = str({name: getattr(asked, name) for name in asked.keys if not name.startswith("_")})
    assert "4321" not in repr(asked) and "4321" not in state
    asked.attempt = [1, "many"]
    assert asked.error == "'many' is not a number, such as 24, 1.5 or 3/4" and not asked.closed
    asked.attempt = [2, "4,300"]
    assert asked.closed and asked.error == ""
    assert asked.verdict == "You say 4,300, the answer is 4,321: 21 too low."
    asked.attempt = [3, "4321"]
    assert asked.error == "a guess is committed once" and asked.guess == "4,300"


def test_prediction_judges_after_the_run():
    asked = predict("How many?")
    with pytest.raises(ValueError, match="answer=None"):
        asked.reveal()
    asked.commit("3/4")
    assert asked.verdict == "You say 3/4. The run will tell."
    assert repr(asked.result(0.75)) == "You say 3/4, the answer is 0.75: right."
    assert repr(predict("How many?", 2).reveal()) == "The answer is 2."


def test_prediction_with_choices():
    with pytest.raises(ValueError, match="answer='x': must be one of choices"):
        predict("Which?", "x", choices=["a", "b"])
    asked = predict("Which?", "b", choices=["a", "b"])
    asked.attempt = [1, ""]
    assert asked.error == "choose one of the answers first"
    asked.attempt = [2, "b"]
    assert asked.verdict == "You say b, the answer is b: right."


def test_source_is_the_source_with_numbers_and_file():
    shown = show_source(timeline_data)
    assert repr(shown) == inspect.getsource(timeline_data).rstrip("\n")
    page = shown._repr_html_()
    assert "course_lib/viz/timeline_view.py, lines " in page and page == show_source(
        timeline_data)._repr_html_()
    plain = re.sub(r"<[^>]+>", "", page.replace("</div>", "\n"))
    assert len([line for line in plain.split("\n") if re.match(r" *\d+ ", line)]) == len(
        repr(shown).split("\n"))
    with pytest.raises(ValueError, match="has no Python source to show"):
        show_source(len)


def test_diff_marks_lines():
    def plain(x):
        y = x + 1
        return y

    def parallel(x, group):
        y = x + 1
        y = y * group.size
        return y

    shown = show_diff(plain, parallel)
    assert repr(shown).split("\n") == [
        "- def plain(x):", "+ def parallel(x, group):", "      y = x + 1",
        "+     y = y * group.size", "      return y"]
    assert shown._repr_html_().count("background:rgba(0,158,115") == 2


def test_a_guess_survives_when_its_cell_runs_again_before_the_result_does():
    predict("How many steps?").commit("7")
    again = predict("How many steps?")
    assert again.verdict == "You say 7. The run will tell."
    assert repr(again.result(6)) == "You say 7, the answer is 6: 1 too high."
    assert repr(predict("How many steps?")).endswith("No guess yet.")
