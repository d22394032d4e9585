"""Scripts of `tools` as modules, and files of `shared/fixtures`."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FIXTURES = Path(__file__).resolve().parents[2] / "shared" / "fixtures"
TOOLS = Path(__file__).resolve().parent.parent / "tools"


def load_tool(name: str) -> ModuleType:
    """Import `tools/NAME.py` once, as a module with the last part of its name."""
    path = TOOLS / f"{name}.py"
    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    return sys.modules[path.stem]


def fixture(name: str) -> Path:
    """Return the path of a file of `shared/fixtures` next to the checkout; skip the test if it does not exist."""
    path = FIXTURES / name
    if not path.is_file():
        pytest.skip("no folder shared/fixtures next to the checkout")
    return path
