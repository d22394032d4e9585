"""Numbers that a definition and its kernels both have are the same: kernels know nothing of `abd`, so that they stand twice."""

import ast
from importlib import import_module

import numpy as np
import pytest
from tool import TOOLS

pytest.importorskip("warp")

ROOT = TOOLS.parent
SLOTS = "abd.joints.rows.slots", "cuda_kernels.joints.slots"
LAWS = "abd/joints/rows", "abd/backends", "abd/step", "cuda_kernels/joints", "tests/kernels"
"""Rooms that hold parameters of laws, in arrays `p`."""

TWINS = (
    ("abd.backends.answers", "cuda_kernels.step.newton"),
    ("abd.backends.reference.caution", "cuda_kernels.step.newton"),
    ("abd.backends.reference.line_search", "cuda_kernels.step.line_search"),
    ("abd.contact.ccd", "cuda_kernels.contact.ccd"),
    ("abd.joints.measures.measures", "cuda_kernels.joints.special_measures"),
    ("abd.joints.rows.gains", "cuda_kernels.joints.row_gains"),
    ("abd.joints.rows.laws", "cuda_kernels.joints.laws"),
    ("abd.joints.rows.slots", "cuda_kernels.joints.slots"),
    ("abd.joints.rows.system", "cuda_kernels.joints.row_memory"),
    ("abd.potentials.arc_slip", "cuda_kernels.friction.arc_slip"),
    ("abd.potentials.conservation", "cuda_kernels.step.conservation"),
    ("abd.potentials.curvature", "cuda_kernels.contact.contact"),
    ("abd.potentials.distance", "cuda_kernels.contact.distance"),
    ("abd.potentials.free_motion", "cuda_kernels.bodies.free_motion"),
    ("abd.potentials.gyration", "cuda_kernels.bodies.gyration"),
    ("abd.potentials.integrators", "cuda_kernels.bodies.integrators"),
    ("abd.potentials.integrators", "cuda_kernels.bodies.momenta"),
    ("abd.potentials.sticking", "cuda_kernels.friction.sticking"),
)


def numbers(module: str) -> dict[str, float]:
    """Constants of a module that are numbers."""
    found = {}
    for name, value in vars(import_module(module)).items():
        if name.isupper():
            value = getattr(value, "val", value)
            value = getattr(value, "value", value)
            if isinstance(value, int | float | np.number) and not isinstance(value, bool):
                found[name] = float(value)
    return found


@pytest.mark.parametrize(("definition", "kernels"), TWINS)
def test_constants_are_equal(definition, kernels):
    ours, theirs = numbers(definition), numbers(kernels)
    shared = ours.keys() & theirs.keys()
    assert shared, f"{definition} and {kernels} share no number: they need not stand here"
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


def test_slots_of_laws_have_equal_names():
    ours, theirs = (numbers(module) for module in SLOTS)
    assert ours == theirs
    assert set(ours.values()) - {ours["COUNT"]} == set(range(int(ours["COUNT"])))


@pytest.mark.parametrize("room", LAWS)
def test_slots_of_laws_are_read_by_name(room):
    """A parameter is ``p[STRENGTH]`` or ``rows.p[e, STRENGTH]``, never ``p[0]``."""
    bare = []
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and "p" in (getattr(node.value, "id", ""), getattr(node.value, "attr", "")):
                index = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
                bare += [f"{path}:{node.lineno}"] if isinstance(index, ast.Constant) else []
    assert not bare
