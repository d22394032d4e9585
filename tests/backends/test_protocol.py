"""`abd.backends.protocol` is what both backends answer, and all that anybody asks of one."""

import importlib
import inspect
import re
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


def test_nobody_asks_for_more():
    asked = set()
    for room in ("step", "api", "io", "commands", "newton"):
        for path in (ROOT / room).rglob("*.py"):
            asked |= set(re.findall(r"\bbackend\.([a-z_]+)(?:\.([a-z_]+)\b(?=\())?", path.read_text(encoding="utf-8")))
    assert {part for part, _ in asked} <= set(Backend.__annotations__)
    own = {(part, call) for part, call in asked if call and part in PARTS}
    assert own and own <= set(CALLS)


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
