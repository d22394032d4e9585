"""xacro: macros of URDF, expanded by the package xacrodoc."""

from __future__ import annotations

from pathlib import Path

from abd.errors import Problem, SceneError

INSTALL = "pip install xacrodoc"


def expanded(path: Path) -> bytes:
    """The URDF that a .xacro file stands for.

    Raises:
        SceneError: xacrodoc is not installed, or the macros are wrong.
    """
    try:
        from xacrodoc import XacroDoc
    except ImportError as error:
        message = "xacro files are expanded by the package xacrodoc, which is not installed"
        remedy = f"{INSTALL}; or run xacro and give its output"
        raise SceneError([Problem(message, file=str(path), remedy=remedy)]) from error
    try:
        document = XacroDoc.from_file(str(path), resolve_packages=False)
        return document.to_urdf_string().encode()
    except Exception as error:  # xacro evaluates expressions: whatever those raise comes out
        message = f"xacro: {type(error).__name__}: {' '.join(str(error).split())}"
        raise SceneError([Problem(message, file=str(path), remedy="mend the macros")]) from error
