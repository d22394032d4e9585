"""A step that is taken whole is the one that the host takes, in scenes where materials rub, but nothing touches."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import NAME

import abd

pytestmark = pytest.mark.device


def scene() -> abd.Scene:
    """A chain and a pendulum above rough ground, to a tight tolerance."""
    out = abd.Scene(solver={"dt": 0.03, "tolerance": 1e-6, "friction_tolerance": 1e-6})
    out.add_material("default", mu=0.5)
    out.add_body("ground", half_space={"offset": -3.0})
    for k in range(3):
        out.add_body(f"bar{k}", box=(0.5, 0.1, 0.1), mass=1.0, position=(0.5 * k + 0.25, 0, 0))
        ends = {"anchor": (0.5 * k, 0, 0), "axis": (0, 1, 0), "enforcement": "exact"}
        out.add_hinge(f"h{k}", f"bar{k - 1}" if k else abd.WORLD, f"bar{k}", **ends)
    return out


def test_resumes_have_the_same_bits():
    simulation, saved, states = abd.Simulation(scene(), device=NAME), {}, []
    for k in range(30):
        if k % 5 == 0:
            saved[k] = simulation.checkpoint()
        simulation.step()
        states.append(simulation.stepper.q.copy())
    for k, checkpoint in saved.items():
        other = abd.Simulation(scene(), device=NAME)
        other.restore(checkpoint)
        for j in range(k, min(k + 6, 30)):
            other.step()
            np.testing.assert_array_equal(other.stepper.q, states[j])
