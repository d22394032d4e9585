"""The documentation: every snippet runs, every command is one, every link leads somewhere, and Sphinx builds it silently."""

import json
import re
import shlex
import subprocess
import sys

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


@pytest.mark.parametrize("notebook", sorted(DOCS.glob("*.ipynb")), ids=name)
def test_the_cells_of_a_notebook_run_one_after_the_other(notebook, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {"__name__": "notebook"}
    for k, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "outputs are not stored"
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {k}", "exec"), names)
    assert names["force"].max() > 1.0, "the arm pushes the box"


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


def test_sphinx_builds_without_warnings(tmp_path):
    for module in ("sphinx", "pydata_sphinx_theme", "myst_parser"):
        pytest.importorskip(module, reason="needs Sphinx: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")
    assert "abd.Simulation" in text and "apply_force" in text
    assert "rounding" in (tmp_path / "_generated" / "scene_keys.html").read_text(encoding="utf-8")
