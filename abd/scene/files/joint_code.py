"""Joint types that a scene file defines by Python code: `[[joint_type]]` names a file and a function in it.

The code runs with the rights of the user, so that it is loaded only where the user allows it (``--allow-code``).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from abd.errors import SceneError
from abd.joints.types import TYPES
from abd.scene.schema.findings import Finding


def define_types(data: dict[str, Any], directory: Path, allow_code: bool) -> list[Finding]:
    """Define the joint types of parsed scene tables, before the joints that use them are read; what is wrong with them.

    Args:
        data: parsed tables; entries that are no tables with a name, a file and a function are left to the schema.
        directory: where relative paths begin.
    """
    found, tables = [], data.get("joint_type")
    for k, table in enumerate(tables if isinstance(tables, list) else []):
        keys = ("name", "file", "function")
        if not isinstance(table, dict) or not all(isinstance(table.get(key), str) for key in keys):
            continue
        name, file, function = (table[key] for key in keys)
        if not allow_code:
            remedy = "read the file, and if you trust it add --allow-code (in Python: allow_code=True)"
            found.append(Finding(("joint_type", k, "file"), "is Python code, which runs only if you allow it", file, remedy))
            continue
        problem = _define(name, directory / file, function)
        if problem is not None:
            key, message, remedy = problem
            found.append(Finding(("joint_type", k, key), message, table[key], remedy))
    return found


def _define(name: str, path: Path, function: str) -> tuple[str, str, str] | None:
    """Call the function of a file with the name of the type; key, message and remedy of what went wrong."""
    if not path.is_file():
        return "file", "there is no such file", "paths begin at the scene's folder"
    described = importlib.util.spec_from_file_location(f"abd_joint_type_{path.stem}", path)
    if described is None or described.loader is None:
        return "file", "is no Python file", "its name should end in .py"
    module = importlib.util.module_from_spec(described)
    try:
        described.loader.exec_module(module)
    except Exception as error:  # whatever the user's code raises is the user's to mend
        return "file", f"stops with {type(error).__name__}: {error}", "mend the file"
    call = getattr(module, function, None)
    if not callable(call):
        return "function", f"'{path.name}' has no such function", "name one that calls abd.joint_type(name, ...)"
    before = TYPES.get(name)
    try:
        call(name)
    except SceneError as error:
        return "function", "; ".join(problem.message for problem in error.problems), "mend the definition"
    except Exception as error:
        return "function", f"stops with {type(error).__name__}: {error}", "it is called with the name of the type"
    if TYPES.get(name) is before:
        return "name", f"{function} defines no joint type of this name", "call abd.joint_type(name, ...) in it"
    return None
