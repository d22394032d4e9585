"""xacro: macros of URDF, expanded by the package xacrodoc.

Macros are programs: they include files from anywhere and evaluate expressions. Expand those of people you trust only.
"""

from __future__ import annotations

from pathlib import Path

from abd.errors import Problem, SceneError
from abd.optional import required


def expanded(path: Path) -> bytes:
    """The URDF that a .xacro file stands for.

    Raises:
        MissingLibrary: xacrodoc is not installed.
        SceneError: the macros are wrong.
    """
    xacrodoc = required("xacrodoc", "robots", "xacrodoc", "reading xacro")
    try:
        document = xacrodoc.XacroDoc.from_file(str(path), resolve_packages=False)
        return document.to_urdf_string().encode()
    except Exception as error:  # xacro evaluates expressions: whatever those raise comes out
        message = f"xacro: {type(error).__name__}: {' '.join(str(error).split())}"
        raise SceneError([Problem(message, file=str(path), remedy="mend the macros")]) from error
