"""A body of a smooth step that meets a contact takes implicit Euler from the first iterate that shows it, with the outcome of
a step that was begun so; what is joined is taken through it again."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from executors import pair

import abd
from abd.potentials.integrators import Mode
from abd.step import substep
from abd.step.watch import Struck, Watch


def dropped() -> abd.Scene:
    """A box that falls flat onto the ground in its fifth step, and one far above."""
    scene = abd.Scene(solver={"dt": 0.01, "tolerance": 1e-8})
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(0.1,) * 3, position=(0, 0, 0.062))
    scene.add_body("above", box=(0.1,) * 3, position=(1.0, 0, 5.0))
    return scene


class Blind(Watch):
    """Sees nothing before the end of a minimisation."""

    def strike(self):
        return None

    def look(self, iterates):
        pass


def watched(patch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Grows with the bodies that are found to be struck in minimisations."""
    found, strike = [], Watch.strike

    def striking(self):
        before = self.mode
        try:
            changed = strike(self)
        except Struck as struck:
            found.append(struck.bodies.copy())
            assert (before[struck.bodies] != Mode.DISSIPATIVE).all()
            raise
        if changed is not None:
            struck = self.mode != before
            assert (self.mode[struck] == Mode.DISSIPATIVE).all()
            assert np.array_equal(np.flatnonzero(changed), np.unique(self.backend.islands.host[struck]))
            found.append(struck)
        return changed

    patch.setattr(Watch, "strike", striking)
    return found


@pytest.mark.parametrize("driver", ["numpy", "direct", "recorded"])
def test_the_outcome_is_that_of_the_whole_step(driver, monkeypatch):
    if driver == "numpy":
        early, late = (abd.Simulation(dropped(), device="numpy") for _ in range(2))
    else:
        early, late = (pair(dropped())[driver == "recorded"] for _ in range(2))
    found, newton = watched(monkeypatch), [0, 0]
    for _ in range(8):
        for k, simulation in enumerate((early, late)):
            with patch.object(substep, "Watch", (Watch, Blind)[k]):
                newton[k] += simulation.step().newton_iterations
        np.testing.assert_allclose(early.stepper.q, late.stepper.q, atol=1e-9)
        np.testing.assert_allclose(early.stepper.qd, late.stepper.qd, atol=1e-7)
    assert early.stepper.touching.tolist() == [False, True, False]
    assert [bodies.tolist() for bodies in found] == [[False, True, False]]
    assert newton[0] <= newton[1]


def test_a_body_that_an_iterate_brings_to_another_is_found(monkeypatch):
    """The drive swings an arm into a box that rests in its way, which the start of the step does not foresee."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.02})
    scene.add_body("arm", box=(1, 0.1, 0.1), position=(0.5, 0, 0))
    drive = {"mode": "pd", "target": 0.5, "stiffness": 1e4, "damping": 10.0}
    scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 0, 1), coordinate={"theta": {"drive": drive}})
    scene.add_body("box", box=(0.1,) * 3, position=(0.8, 0.12, 0))
    simulation = abd.Simulation(scene, device="cpu")
    struck = watched(monkeypatch)
    simulation.step()
    assert np.any(struck, axis=0).tolist() == [True, True]
    assert simulation.bodies["box"].velocity[1, 3] > 0.0
