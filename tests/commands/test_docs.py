"""The documentation: every snippet runs, every command is one, every link leads somewhere, and Sphinx builds it silently."""

import re
import shlex
import subprocess
import sys
import tomllib

import pytest
from tool import TOOLS

from abd.cli import _parser

ROOT = TOOLS.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).parts[0].startswith("_"))


def blocks(path, language: str) -> list[str]:
    """Code blocks of a language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def name(path) -> str:
    """Of a page, for the lists of tests."""
    return str(path.relative_to(DOCS))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_the_snippets_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "snippets"}
    for k, text in enumerate(blocks(page, "python")):
        exec(compile(text, f"{name(page)}, block {k}", "exec"), names)
    assert len(names) > 2, "they made something"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_the_command_lines_are_understood(page):
    for text in blocks(page, "sh"):
        for line in re.findall(r"(?:^|&& )(?:\.venv/bin/)?abd ([^&\n]+)", text, re.MULTILINE):
            assert callable(_parser().parse_args(shlex.split(line, comments=True)).command)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_pictures_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"\]\(([^)#\s]+)", text)
    found += re.findall(r"^```\{(?:image|literalinclude|include)\} (\S+)", text, re.MULTILINE)
    for target in found:
        # pages that follow from the code are written when the documentation is built, which tells of links that lead nowhere
        made = target.startswith("http") or "_generated/" in target
        assert made or (page.parent / target).is_file(), target


def test_the_tests_that_the_rows_of_joints_name_are_there():
    rows = re.findall(r"^\| [A-E].*$", (DOCS / "reference" / "joint_rows.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 40
    for row in rows:
        number, feature, here, tests = (cell.strip() for cell in row.strip().strip("|").split("|"))
        assert feature and here
        for file, function in re.findall(r"`(\w+)::(\w+)`", tests):
            (path,) = (ROOT / "tests").rglob(f"{file}.py")
            assert f"def {function}(" in path.read_text(encoding="utf-8"), (number, file, function)
        assert tests == "" or re.fullmatch(r"`test_\w+::test_\w+`(, `test_\w+::test_\w+`)*", tests), number


def test_pages_that_the_code_names_are_there():
    named = {
        (str(path.relative_to(ROOT)), page)
        for room in ("abd", "cuda_kernels") for path in (ROOT / room).rglob("*.py")
        for page in re.findall(r"[\w/]+\.md\b", path.read_text(encoding="utf-8"))
    }  # fmt: skip
    assert named and not [one for one in named if not (ROOT / one[1]).is_file()]


def test_every_page_is_in_the_index():
    listed = set(re.findall(r"^([a-z_]+(?:/[a-z_]+)?)$", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES} - {"index"}
    assert pages == {one for one in listed if not one.startswith("_")}


def test_extras_that_messages_name_are_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    places = [*(ROOT / "abd").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {extra for path in places for extra in re.findall(r"abd-solver\[(\w+)\]", path.read_text(encoding="utf-8"))}
    assert named and named <= set(extras)


def test_nothing_calls_the_distribution_by_the_name_of_another():
    for path in [*(ROOT / "abd").rglob("*.py"), *DOCS.rglob("*.md"), ROOT / "README.md"]:
        assert not re.search(r"pip install '?abd(\[|'|\s|$)", path.read_text(encoding="utf-8"), re.MULTILINE), path


def test_sphinx_builds_without_warnings(tmp_path):
    for module in ("sphinx", "pydata_sphinx_theme", "myst_parser"):
        pytest.importorskip(module, reason="needs Sphinx: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")
    assert "abd.Simulation" in text and "apply_force" in text
    assert "rounding" in (tmp_path / "_generated" / "scene_keys.html").read_text(encoding="utf-8")
