"""`abd.backends.protocol` is what both backends answer, and all that anybody asks of one."""

import inspect
import re
from pathlib import Path
from typing import Protocol

import pytest

import abd
from abd.backends import protocol
from abd.backends.protocol import Backend

ROOT = Path(abd.__file__).parent
GROUPS = [one for one in Backend.__mro__ if one.__module__ == protocol.__name__ and one is not Backend]
CALLS = {name: (group, call) for group in GROUPS for name, call in vars(group).items() if inspect.isfunction(call)}
CALLS = {name: both for name, both in CALLS.items() if not name.startswith("_")}
OF_DEVICES = {"rubbing", "row_memory", "linear", "step", "velocity"}
"""Asked where only a device has it, or behind a look whether it has."""


@pytest.fixture(scope="module", params=["numpy", "cpu"])
def backend(request):
    scene = abd.Scene()
    scene.add_body("box", box=(0.1, 0.1, 0.1), density=1000)
    return abd.Simulation(scene, device=request.param).backend


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_answered_as_they_are_written(backend, name):
    def taken(call) -> list[tuple]:
        return [(one.name, one.default, one.kind) for one in inspect.signature(call).parameters.values()]

    assert taken(getattr(type(backend), name)) == taken(CALLS[name][1])


def test_parts_are_there(backend):
    assert all(hasattr(backend, name) for name in Backend.__annotations__)
    parts = {"iteration": protocol.Iteration, "start": protocol.Start, "friction": protocol.FrictionPart}
    for name, part in {**parts, "islands": protocol.IslandsPart}.items():
        known = [one for one in vars(part) if not one.startswith("_")] + list(part.__annotations__)
        assert known and all(hasattr(getattr(backend, name), one) for one in known)


def test_groups_are_short():
    own = [one for one in GROUPS if Protocol in one.__bases__]
    assert len(own) == 7 and max(sum(group is one for group, _ in CALLS.values()) for one in own) <= 12


def test_nobody_asks_for_more():
    asked = set()
    for room in ("step", "api", "io", "commands", "newton"):
        for path in (ROOT / room).rglob("*.py"):
            asked |= set(re.findall(r"\bbackend\.([a-z_]+)\b", path.read_text(encoding="utf-8")))
    assert asked <= set(CALLS) | set(Backend.__annotations__) | OF_DEVICES
