"""Points are kept, the best counts, and nothing that a learner's folder holds breaks the table."""

import json
import re
from importlib import import_module

import nbformat
import pytest

from course_lib.checks import TASKS, check_exchange_with_neighbour

module = import_module("course_lib.progress")  # `course_lib.progress` itself is the function


@pytest.fixture(autouse=True)
def own_file(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_PROGRESS", str(tmp_path / "deep" / "progress.json"))
    return tmp_path / "deep" / "progress.json"


def test_the_best_points_of_a_task_are_kept(own_file):
    module.note("data_parallel_step", 3)
    module.note("data_parallel_step", 1)
    module.note("exchange_with_neighbour", 4)
    assert module.read() == {"data_parallel_step": 3, "exchange_with_neighbour": 4}
    shown = module.progress()
    assert (shown.points, shown.max_points) == (7, sum(t.max_points for t in TASKS.values()))
    assert "0.2   data_parallel_step       3 of 6" in str(shown) and "7 of 11" in str(shown)
    assert "Next: task 0.0, anyone, in lecture 00" in str(shown)
    assert not list(own_file.parent.glob("tmp*"))
    module.note("anyone", 1)
    assert "Next: task 0.2, data_parallel_step, in work/00_start.ipynb" in str(module.progress())


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"tasks": 3}', '{"tasks": {"x": "much"}}', "\0"]
)
def test_a_damaged_file_counts_as_empty(own_file, content):
    own_file.parent.mkdir()
    own_file.write_text(content)
    assert module.read() == {}
    assert module.progress().points == 0
    module.note("data_parallel_step", 2)
    assert module.read() == {"data_parallel_step": 2}


def test_points_of_a_task_that_is_gone_do_not_count(own_file):
    own_file.parent.mkdir()
    own_file.write_text(json.dumps({"tasks": {"long_gone": 9, "data_parallel_step": 99}}))
    assert module.progress().points == TASKS["data_parallel_step"].max_points


def test_a_folder_that_cannot_be_written_is_no_failure(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOCKSTEP_PROGRESS", str(tmp_path / "file" / "progress.json"))
    module.note("data_parallel_step", 2)
    assert module.read() == {}


def test_solutions_note_nothing(tmp_path, monkeypatch):
    (tmp_path / "solutions").mkdir()
    monkeypatch.chdir(tmp_path / "solutions")
    module.note("data_parallel_step", 6)
    assert module.read() == {}


def test_a_check_notes_its_points():
    check_exchange_with_neighbour(lambda x, group: x.clone())
    assert module.read() == {"exchange_with_neighbour": 0}


def test_only_what_exists_is_a_link(tmp_path, monkeypatch):
    for file in ("notebooks/05_data_parallel", "exercises/00_start", "exercises/01_x", "work/01_x"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / f"{file}.ipynb").write_text("")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path / "notebooks")
    page, text = module.progress()._repr_html_(), str(module.progress())
    assert re.findall("<a href='(.*?)'>", page) == [
        "../exercises/00_start.ipynb",
        "../work/01_x.ipynb",
        "05_data_parallel.ipynb",
    ]
    assert text.count("(to come)") == len(module.LECTURES) - 1


def test_points_are_summed_by_lecture():
    module.note("anyone", 1)
    module.note("data_parallel_step", 5)
    shown = module.progress()
    most = sum(t.max_points for t in TASKS.values() if t.number.startswith("0."))
    assert shown.course()[0] == ("00", "Start", "30", "-", f"6 of {most:g}")
    assert shown.of_lecture(module.LECTURES[17]) == ""
    total = sum(float(row[4].split()[0]) for row in shown.course() if row[4])
    assert total == shown.points == 6
    assert "data_parallel_step" in str(shown) and "tree_broadcast" not in str(shown)


def test_when_all_is_solved_nothing_is_next():
    for task in TASKS.values():
        module.note(task.name, task.max_points)
    shown = module.progress()
    assert shown.next == "every task is solved" and shown.open_task is None
    assert "Where you are" not in str(shown) + shown._repr_html_()


@pytest.mark.parametrize("lecture", list(filter(module.notebook_of, module.LECTURES)),
                         ids=lambda lecture: lecture.tag)
def test_the_map_the_lecture_and_the_readme_say_the_same(lecture):
    path = module.notebook_of(lecture)
    first = nbformat.read(path, as_version=4).cells[0].source
    assert f"{lecture.minutes} minutes" in " ".join(first.split())
    row = f"| {lecture.tag} | [{lecture.title}](notebooks/{path.name}) | {lecture.minutes} |"
    assert row in (module.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_map_is_sound():
    numbers = [lecture.number for lecture in module.LECTURES]
    assert numbers == list(range(18))
    for lecture in module.LECTURES:
        assert all(need < lecture.number for need in lecture.needs) and 20 <= lecture.minutes <= 45
        for route in lecture.routes:
            chosen = {other.number for other in module.LECTURES if route in other.routes}
            assert set(lecture.needs) <= chosen, (
                f"{route} leaves out what lecture {lecture.tag} needs"
            )
    assert sum(lecture.minutes for lecture in module.LECTURES if "3 hours" in lecture.routes) <= 180


def test_the_text_is_the_same_each_time():
    assert str(module.progress()) == str(module.progress()) == repr(module.progress())
    assert "3 hours: lectures 00 01 05 08" in str(module.progress())
