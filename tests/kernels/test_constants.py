"""Constants of definitions and kernels are equal, since kernels do not import `abd`."""

from importlib import import_module

import numpy as np
import pytest

pytest.importorskip("warp")


PAIRS = (
    ("abd.backends.answers", "cuda_kernels.step.newton"),
    ("abd.backends.reference.regularisation", "cuda_kernels.step.newton"),
    ("abd.backends.reference.line_search", "cuda_kernels.step.line_search"),
    ("abd.contact.ccd", "cuda_kernels.contact.ccd"),
    ("abd.joints.measures.measures", "cuda_kernels.joints.special_measures"),
    ("abd.joints.rows.laws", "cuda_kernels.joints.laws"),
    ("abd.joints.rows.slots", "cuda_kernels.joints.slots"),
    ("abd.joints.rows.system", "cuda_kernels.joints.row_memory"),
    ("abd.potentials.arc_slip", "cuda_kernels.friction.arc_slip"),
    ("abd.potentials.curvature", "cuda_kernels.contact.contact"),
    ("abd.potentials.distance", "cuda_kernels.contact.distance"),
    ("abd.potentials.free_motion", "cuda_kernels.bodies.free_motion"),
    ("abd.potentials.gyration", "cuda_kernels.bodies.gyration"),
    ("abd.potentials.integrators", "cuda_kernels.bodies.integrators"),
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


@pytest.mark.parametrize(("definition", "kernels"), PAIRS)
def test_constants_are_equal(definition, kernels):
    ours, theirs = numbers(definition), numbers(kernels)
    shared = ours.keys() & theirs.keys()
    assert shared, f"{definition} and {kernels} share no number: they need not stand here"
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
