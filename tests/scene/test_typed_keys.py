"""Typed keys of bodies and joints equal the schema, and the code of a user passes mypy."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tool import load_tool

typed_keys = load_tool("make/typed_keys")
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
if importlib.util.find_spec("torch") is None:
    EXAMPLES = [one for one in EXAMPLES if "import torch" not in one.read_text()]
USER = ROOT / "tests" / "typed" / "user.py"


def test_the_types_are_those_of_the_schema():
    """`python tools/make/typed_keys.py` writes them."""
    assert typed_keys.FILE.read_text(encoding="utf-8") == typed_keys.text()


def test_mypy():
    pytest.importorskip("mypy")
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", "--allow-untyped-calls"]
    command = [sys.executable, "-m", "mypy", *options, *map(str, [*EXAMPLES, USER])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ | {"MYPYPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
