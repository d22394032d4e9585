"""Whether the way is free is looked at before a minimisation ends: when, with what outcome, and without a trace."""

from __future__ import annotations

import numpy as np
import pytest
from executors import pair

import abd
from abd.backends.answers import NotProven
from abd.step import ways
from abd.step.ways import looked_at


def test_looks_are_rare():
    assert [count for count in range(1, 101) if looked_at(count)] == [8, 16, 32, 64]


def heap() -> abd.Scene:
    """Boxes that fall upon one another, askew, and slide."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_material("default", mu=0.3)
    scene.add_body("ground", half_space={})
    for k in range(4):
        turn = {"axis": (1, k, 2), "degrees": 20 * k}
        place = {"position": (0.02 * k, 0, 0.07 + 0.18 * k), "axis_angle": turn}
        scene.add_body(f"box{k}", box=(0.1,) * 3, velocity=(1, 0, -1), **place)
    return scene


@pytest.mark.parametrize("driver", ["numpy", "direct", "recorded"])
def test_looking_leaves_no_trace(driver, monkeypatch):
    """At every iterate: lists are renewed, islands numbered anew, and Newton's method goes on as if nothing had been."""
    if driver == "numpy":
        plain, looking = (abd.Simulation(heap(), device="numpy") for _ in range(2))
    else:
        plain, looking = (pair(heap())[driver == "recorded"] for _ in range(2))
    looked = 0
    for _ in range(6 if driver == "numpy" else 14):
        one = plain.step()
        with monkeypatch.context() as patch:
            patch.setattr(ways, "FIRST_LOOK", 1)
            inner, free = looking.backend.iteration, looking.backend.iteration.free_way

            def count(h, free=free):
                nonlocal looked
                looked += 1
                free(h)
                return NotProven.nobody()

            patch.setattr(inner, "free_way", count)
            other = looking.step()
        np.testing.assert_allclose(looking.stepper.q, plain.stepper.q, atol=1e-9)
        np.testing.assert_allclose(looking.stepper.qd, plain.stepper.qd, atol=1e-7)
    assert one.contacts == other.contacts > 0
    assert looked >= 5


def test_a_way_that_is_not_free_ends_the_attempt(monkeypatch):
    """At the first look, and it is taken in pieces, which the report counts."""
    simulation = abd.Simulation(heap(), device="cpu")
    for _ in range(3):
        simulation.step()
    monkeypatch.setattr(ways, "FIRST_LOOK", 1)
    inner, free, looked = simulation.backend.iteration, simulation.backend.iteration.free_way, []

    def refuse_once(h):
        looked.append(h)
        free(h)
        return NotProven.nobody() if len(looked) > 1 else NotProven(np.array([0.25]), np.array([[1, 2]]))

    monkeypatch.setattr(inner, "free_way", refuse_once)
    report = simulation.step()
    assert looked[0] == 0.01 and looked[1] == pytest.approx(0.0025)
    assert report.refused_ways == 1 and report.substeps > 1
