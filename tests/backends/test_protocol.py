"""`abd.backends.protocol` is what both backends answer, and all that anybody asks of one."""

import ast
import importlib
import inspect
from pathlib import Path
from typing import get_type_hints

import pytest

import abd
from abd.backends import protocol
from abd.backends.protocol import Backend

ROOT = Path(abd.__file__).parent
PARTS = {name: part for name, part in get_type_hints(Backend).items() if part.__module__ == protocol.__name__}


def calls_of(part: type) -> dict[str, object]:
    """What a part is asked for, by name."""
    return {name: call for name, call in vars(part).items() if inspect.isfunction(call) and not name.startswith("_")}


CALLS = [(part, call) for part, group in PARTS.items() for call in calls_of(group)]


@pytest.fixture(scope="module", params=["numpy", "cpu"])
def backend(request):
    scene = abd.Scene()
    scene.add_body("box", box=(0.1, 0.1, 0.1), density=1000)
    return abd.Simulation(scene, device=request.param).backend


@pytest.mark.parametrize(("part", "name"), CALLS)
def test_calls_are_answered_as_they_are_written(backend, part, name):
    def taken(call) -> list[tuple]:
        own = [one for one in inspect.signature(call).parameters.values() if one.name != "self"]
        return [(one.name, one.default, one.kind) for one in own]

    assert taken(getattr(getattr(backend, part), name)) == taken(calls_of(PARTS[part])[name])


def test_parts_are_there(backend):
    assert all(hasattr(backend, name) for name in Backend.__annotations__)
    for name, part in PARTS.items():
        known = [*calls_of(part), *part.__annotations__]
        assert known and all(hasattr(getattr(backend, name), one) for one in known)


def test_parts_are_short():
    assert len(PARTS) == 16 and max(len(calls_of(part)) for part in PARTS.values()) <= 12


def asked_of_backends(tree: ast.Module) -> set[tuple[str, ...]]:
    """(part,) and (part, name) that a module reads of something called `backend`, under other names of it and of its parts
    too: those that a function gives them, and those that instances keep."""
    found: set[tuple[str, ...]] = set()

    def path_of(node: ast.expr, names: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
        """() of a backend, (part,) of its part, (part, name) of what that has; None of anything else."""
        if isinstance(node, ast.Name):
            return () if node.id == "backend" else names.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        if node.attr == "backend":
            return ()
        kept = names.get(ast.unparse(node))
        above = path_of(node.value, names)
        return kept if above is None or len(above) > 1 else (*above, node.attr)

    def read(scope: ast.AST, names: dict[str, tuple[str, ...]]) -> None:
        for node in ast.walk(scope):
            pairs = []
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, value = node.targets[0], node.value
                both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                pairs = list(zip(target.elts, value.elts, strict=False)) if both else [(target, value)]
            for target, value in pairs:
                if (path := path_of(value, names)) is not None and len(path) < 2:
                    names[ast.unparse(target)] = path
        found.update(path for node in ast.walk(scope) if isinstance(node, ast.Attribute) and (path := path_of(node, names)))

    for group in ast.walk(tree):
        if isinstance(group, ast.ClassDef):
            kept: dict[str, tuple[str, ...]] = {}
            read(group, kept)
            own = {name: path for name, path in kept.items() if name.startswith("self.")}
            for call in (one for one in group.body if isinstance(one, ast.FunctionDef)):
                read(call, dict(own))
    for call in (one for one in tree.body if isinstance(one, ast.FunctionDef)):
        read(call, {})
    return found


def test_other_names_of_parts_are_seen():
    asked = asked_of_backends(ast.parse("""
def f(backend):
    touch, law = backend.touch, backend.pair_law
    return touch.one(), law.two

class C:
    def __init__(self, sim):
        self.rows = sim.backend.rows

    def g(self):
        return self.rows.three()
"""))
    assert {("touch", "one"), ("pair_law", "two"), ("rows", "three")} <= asked


def test_nobody_asks_for_more():
    asked = set()
    for room in ("step", "api", "io", "commands", "newton"):
        for path in (ROOT / room).rglob("*.py"):
            asked |= asked_of_backends(ast.parse(path.read_text(encoding="utf-8")))
    assert {part for part, *_ in asked} <= set(Backend.__annotations__)
    known = {part: {*calls_of(PARTS[part]), *PARTS[part].__annotations__} for part in PARTS}
    own = {one for one in asked if len(one) == 2 and one[0] in PARTS}
    assert len(own) > 50 and {(part, name) for part, name in own if name not in known[part]} == set()


def test_methods_come_from_one_place():
    """No class has methods of more than one other: what several share is a part that they own."""
    names = [str(path.relative_to(ROOT.parent).with_suffix("")).replace("/", ".") for path in ROOT.rglob("*.py")]
    modules = [importlib.import_module(name) for name in names if not name.startswith("abd.newton")]
    classes = {one for module in modules for one in vars(module).values() if isinstance(one, type)}
    classes = {one for one in classes if one.__module__.startswith("abd.")}

    def givers(base: type) -> set[type]:
        """Who gives methods to those that inherit from a class."""
        return {one for one in base.__mro__ if any(callable(call) for name, call in vars(one).items() if name[:2] != "__")}

    assert len(classes) > 300
    for one in classes:
        given = [givers(base) for base in one.__bases__]
        assert len([some for some in given if some - set.intersection(*given)]) < 2, one
