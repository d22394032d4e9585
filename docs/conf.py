"""Sphinx's configuration. Before it reads the pages it writes those that follow from the code into _generated."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from abd import __version__  # noqa: E402
from abd.cli import _parser  # noqa: E402
from abd.scene.schema.documentation import schema_markdown  # noqa: E402

project, author, copyright = "abd", "the authors of abd", "the authors of abd"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "examples"]
default_role = "code"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "__init__, __new__"}
napoleon_numpy_docstring = False
napoleon_use_ivar = True

# Names of attributes, such as `force`, are those of several classes; Sphinx would link each to one of them.
suppress_warnings = ["ref.python"]

html_theme = "pydata_sphinx_theme"
html_title = "abd"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}
html_show_sourcelink = False


def scene_keys() -> str:
    """Every key of a scene file, as `abd schema` tells them."""
    return schema_markdown()


def commands() -> str:
    """What every command says of itself with `--help`."""
    os.environ["COLUMNS"] = "100"
    parser = _parser()
    (sub,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parts = ["# Commands\n", f"```text\n{parser.format_help()}```\n"]
    parts += [f"## abd {name}\n\n```text\n{one.format_help()}```\n" for name, one in sub.choices.items()]
    return "\n".join(parts)


PAGES = {"scene_keys.md": scene_keys, "commands.md": commands}


def setup(app) -> None:
    """Write the generated pages, where they are not what they would be."""
    folder = HERE / "_generated"
    folder.mkdir(exist_ok=True)
    for name, text in PAGES.items():
        path, content = folder / name, text()
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
