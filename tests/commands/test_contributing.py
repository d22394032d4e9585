"""CONTRIBUTING.md: whoever follows its recipes gets what they promise, and the files that it names are there."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from tool import TOOLS

ROOT = TOOLS.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
(WALKS,) = re.findall(r"^## Walks\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
RECIPES = dict(re.findall(r"^### (Add .*?)\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE))


def blocks(recipe: str) -> list[tuple[str, str]]:
    """(first line without its sign, the rest) of the code blocks of a recipe."""
    found = re.findall(r"^```python\n# ([^\n]+)\n(.*?)^```", RECIPES[recipe], re.DOTALL | re.MULTILINE)
    assert len(found) == RECIPES[recipe].count("```python"), "every block says where it goes"
    return found


def follow(recipe: str, root) -> list[str]:
    """Do in a tree what a recipe says; the programs that it then runs."""
    programs = []
    for where, text in blocks(recipe):
        if where == "run":
            programs.append(text)
            continue
        name, place = where.split(": ", 1)
        path = root / name
        if place == "new":
            assert not path.exists(), f"{name} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            continue
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        anchors = [k for k, line in enumerate(lines) if line.strip() == place.removeprefix("behind ")]
        assert len(anchors) == 1, f"{name} has one line {place.removeprefix('behind ')!r}"
        lines.insert(anchors[0] + 1, text)
        path.write_text("".join(lines), encoding="utf-8")
    return programs


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_gives_what_it_promises(recipe, tmp_path):
    for package in ("abd", "cuda_kernels"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    programs = follow(recipe, tmp_path)
    assert programs, "a recipe ends with something that runs"
    (tmp_path / "away").mkdir()
    for text in programs:
        ended = subprocess.run(
            [sys.executable, "-c", text], cwd=tmp_path / "away", env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr


def test_there_are_recipes():
    things = ("joint", "potential", "barrier", "law of joints", "linear solver")
    assert {"Add an importer", *(f"Add a {thing}" for thing in things)} == set(RECIPES)


def test_the_files_that_the_page_names_are_there():
    named = set(re.findall(r"`((?:abd|cuda_kernels|tests|tools|scenes|docs)/[\w./]+)`", PAGE))
    assert len(named) > 30
    for name in named:
        assert (ROOT / name).exists(), name


def test_the_table_of_rooms_has_every_room():
    """A folder stands in a row that begins with it or, from there on, with a folder above it; so do modules beside the rooms."""
    (rooms,) = re.findall(r"^## Where things are\n(.*?)^Where a room", PAGE, re.DOTALL | re.MULTILINE)
    told = set()
    for row in rooms.splitlines():
        names = re.findall(r"`([^`]+)`", row)
        told |= {*names, *(f"{above}/{name}" for above in names for name in names)}
        told |= {f"abd/{name}" for name in names if name.endswith(".py")}
    paths = [path for package in ("abd", "cuda_kernels") for path in (ROOT / package).rglob("*.py")]
    modules = [path for path in paths if path.name != "__init__.py"]
    there = {path if path.parent == ROOT / "abd" else path.parent for path in modules}
    assert len(there) > 50
    assert not {path.relative_to(ROOT).as_posix() for path in there} - told


def test_walks_have_at_most_a_dozen_stations():
    stations = [int(number) for number in re.findall(r"^(\d+)\. `", WALKS, re.MULTILINE)]
    assert stations.count(1) == 6 and max(stations) <= 12


def test_stations_of_walks_know_what_is_said_of_them():
    """Names behind a file stand in it."""
    file = r"`(?:abd|cuda_kernels)/[\w/]+\.py`"
    told = re.findall(rf"({file}): ((?:(?!{file}|^\d+\.).)*)", WALKS, re.DOTALL | re.MULTILINE)
    names = [(path.strip("`"), name) for path, text in told for name in re.findall(r"(?<!`)`([\w.]+)`", text)]
    assert len(names) > 15
    for path, name in names:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(re.search(rf"\b{part}\b", text) for part in name.split(".")), (path, name)


def test_a_word_has_one_meaning():
    (words,) = re.findall(r"^## Words\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    entries = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", words, re.MULTILINE)[1:]
    assert 35 <= len(entries) <= 55 and len(set(entries)) == len(entries)
