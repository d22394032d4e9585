"""A smooth step that meets a contact is begun again at the first iterate that shows it, with the same outcome."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from executors import pair

import abd
from abd.potentials.integrators import Mode
from abd.step.step import Stepper
from abd.step.substep import Struck


def dropped() -> abd.Scene:
    """A box that falls flat onto the ground in its fifth step, and one far above."""
    scene = abd.Scene(solver={"dt": 0.01})
    scene.add_body("ground", half_space={})
    scene.add_body("box", box=(0.1,) * 3, position=(0, 0, 0.062))
    scene.add_body("above", box=(0.1,) * 3, position=(1.0, 0, 5.0))
    return scene


def watched(stepper: Stepper) -> list[np.ndarray]:
    """Grows with the bodies of every minimisation of a stepper that is ended."""
    ended, make = [], stepper.substeps._watch

    def making(mode, h):
        watch = make(mode, h)

        def watching(iterates):
            try:
                watch(iterates)
            except Struck as struck:
                ended.append(struck.bodies.copy())
                assert (mode[struck.bodies] != Mode.DISSIPATIVE).all()
                raise

        return watching

    stepper.substeps._watch = making
    return ended


@pytest.mark.parametrize("driver", ["numpy", "direct", "recorded"])
def test_the_outcome_is_that_of_the_whole_step(driver):
    if driver == "numpy":
        early, late = (abd.Simulation(dropped(), device="numpy") for _ in range(2))
    else:
        early, late = (pair(dropped())[driver == "recorded"] for _ in range(2))
    ended, newton = watched(early.stepper), [0, 0]
    with patch.object(late.stepper.substeps, "_watch", lambda mode, h: None):
        for _ in range(8):
            for k, simulation in enumerate((early, late)):
                newton[k] += simulation.step().newton_iterations
            np.testing.assert_allclose(early.stepper.q, late.stepper.q, atol=1e-9)
            np.testing.assert_allclose(early.stepper.qd, late.stepper.qd, atol=1e-7)
    assert early.stepper.touching.tolist() == [False, True, False]
    assert [bodies.tolist() for bodies in ended] in ([], [[False, True, False]])
    assert newton[0] <= newton[1]


def test_a_body_that_an_iterate_brings_to_another_is_found():
    """The drive swings an arm into a box that rests in its way, which the start of the step does not foresee."""
    scene = abd.Scene(gravity=(0, 0, 0), solver={"dt": 0.02})
    scene.add_body("arm", box=(1, 0.1, 0.1), position=(0.5, 0, 0))
    drive = {"mode": "pd", "target": 0.5, "stiffness": 1e4, "damping": 10.0}
    scene.add_hinge("pivot", abd.WORLD, "arm", anchor=(0, 0, 0), axis=(0, 0, 1), coordinate={"theta": {"drive": drive}})
    scene.add_body("box", box=(0.1,) * 3, position=(0.8, 0.12, 0))
    simulation = abd.Simulation(scene, device="cpu")
    struck = watched(simulation.stepper)
    simulation.step()
    ended = [bodies.tolist() for bodies in struck]
    assert [True, True] in ended or ([True, False] in ended and [False, True] in ended)
    assert simulation.bodies["box"].velocity[1, 3] > 0.0
