"""xacro: macros of URDF, expanded by the package xacrodoc.

Macros are programs: they include files from anywhere and evaluate expressions. Expand those of people you trust only.
"""

from __future__ import annotations

import re
from pathlib import Path

from abd.errors import Problem, SceneError
from abd.optional import required
from abd.scene.importers.robots.xml_tree import read_bytes

CODE = re.compile(r"load_yaml|\$\((?:env|optenv|eval)\b|\*\*|__")
"""What reads other files or the environment, or may take any time and memory."""
INCLUDE = re.compile(r"""<xacro:include\s[^>]*filename\s*=\s*["']([^"'$]+)["']""")
MOST_FILES = 200


def expanded(path: Path, allow_code: bool = False) -> bytes:
    """The URDF that a .xacro file stands for.

    Args:
        allow_code: whether it may read YAML files and the environment, and evaluate programs and powers.

    Raises:
        MissingLibrary: xacrodoc is not installed.
        SceneError: the macros are wrong, or do what is not allowed.
    """
    if not allow_code:
        _refuse_code(path)
    xacrodoc = required("xacrodoc", "robots", "xacrodoc", "reading xacro")
    try:
        document = xacrodoc.XacroDoc.from_file(str(path), resolve_packages=False)
        return document.to_urdf_string().encode()
    except Exception as error:  # xacro evaluates expressions: whatever those raise comes out
        message = f"xacro: {type(error).__name__}: {' '.join(str(error).split())}"
        raise SceneError([Problem(message, file=str(path), remedy="mend the macros")]) from error


def _refuse_code(path: Path) -> None:
    """`SceneError` where a file, or one that it includes, does what needs the user's consent."""
    waiting, seen = [path.resolve()], set()
    while waiting and len(seen) < MOST_FILES:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        text = read_bytes(file).decode(errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if found := CODE.search(line):
                message = f"xacro: '{found[0]}' reads files or the environment, or may take any time and memory"
                remedy = "read the file, and if you trust it add --allow-code (in Python: allow_code=True)"
                raise SceneError([Problem(message, file=str(file), line=number, value=found[0], remedy=remedy)])
        waiting += [(file.parent / name).resolve() for name in INCLUDE.findall(text)]
