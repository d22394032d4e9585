"""Configuration of Sphinx. Writes the pages that are generated from the code into _generated first."""

from __future__ import annotations

import argparse
import json
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

# Several classes have attributes of the same name, such as `force`; Sphinx cannot decide which one to link.
suppress_warnings = ["ref.python"]

html_theme = "pydata_sphinx_theme"
html_title = "abd"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "show_nav_level": 2,
}
html_show_sourcelink = False


def scene_keys() -> str:
    """Page of all keys of a scene file, the output of `abd schema`."""
    return schema_markdown()


def commands() -> str:
    """Page of the `--help` output of all commands."""
    os.environ["COLUMNS"] = "100"
    parser = _parser()
    (sub,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parts = ["# Commands\n", f"```text\n{parser.format_help()}```\n"]
    parts += [f"## abd {name}\n\n```text\n{one.format_help()}```\n" for name, one in sub.choices.items()]
    return "\n".join(parts)


def notebook() -> str:
    """Page of the cells of `mechanism.ipynb`, which are stored without outputs."""
    cells = json.loads((HERE / "mechanism.ipynb").read_text(encoding="utf-8"))["cells"]
    texts = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    parts = [f"```python\n{text}\n```" if kind == "code" else text for kind, text in texts]
    return "\n\n".join([*parts, "{download}`Download the notebook <../mechanism.ipynb>`\n"])


PAGES = {"scene_keys.md": scene_keys, "commands.md": commands, "mechanism.md": notebook}


def setup(app) -> None:
    """Write the generated pages that have changed."""
    folder = HERE / "_generated"
    folder.mkdir(exist_ok=True)
    for name, text in PAGES.items():
        path, content = folder / name, text()
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
