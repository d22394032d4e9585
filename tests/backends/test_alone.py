"""Atomic operations of the processor are none: what makes them is launched on one thread there."""

import ast
from collections.abc import Iterator

from tool import TOOLS

ROOT = TOOLS.parent


def functions() -> Iterator[tuple[str, set[str]]]:
    """Functions of the kernels, and what each of them calls."""
    for path in (ROOT / "cuda_kernels").rglob("*.py"):
        for one in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(one, ast.FunctionDef):
                calls = [node.func for node in ast.walk(one) if isinstance(node, ast.Call)]
                yield one.name, {getattr(call, "attr", getattr(call, "id", "")) for call in calls}


def launches() -> Iterator[tuple[str, ast.Call, str]]:
    """Names of kernels where they are launched, the calls, and their places."""
    for path in (ROOT / "abd" / "backends").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = getattr(node, "func", None)
            launched = getattr(called, "attr", getattr(called, "id", "")) in ("launch", "_share")
            if launched and node.args and isinstance(node.args[0], ast.Attribute):
                yield node.args[0].attr, node, f"{path.name}:{node.lineno}"


def test_kernels_with_atomic_operations_run_alone():
    calls = dict(functions())
    atomic = {name for name, called in calls.items() if any(one.startswith("atomic_") for one in called)}
    while more := {name for name, called in calls.items() if called & atomic} - atomic:
        atomic |= more
    assert {"fail", "fold_gaps", "unite"} <= atomic
    met = set()
    for name, call, place in launches():
        if name in atomic:
            alone = any(key.arg == "grain" and getattr(key.value, "id", "") == "ALONE" for key in call.keywords)
            once = len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and call.args[1].value == 1
            assert alone or once, f"{place}: {name} needs grain=ALONE"
            met.add(name)
    assert {"end_iteration", "judge_residuals", "find_closed"} <= met
