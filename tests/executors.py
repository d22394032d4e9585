"""Comparisons of direct launches with replays of records."""

from unittest.mock import patch

import numpy as np

import abd
from abd import backends
from abd.backends.device import graphs
from abd.backends.recorded import small
from abd.backends.warp.on_warp import WarpBackend
from abd.errors import StepFailure

COUNTS = ("newton_iterations", "line_search_trials", "linear_iterations", "substeps", "contacts")


def pinched(mode: str, **solver) -> abd.Scene:
    """Create a kinematic ram that pushes a box against a wall."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"kinematic_block": mode, **solver})
    scene.add_body("wall", kind="static", box=(0.1, 1.0, 1.0), position=(0.5, 0.0, 0.0))
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.3, 0.0, 0.0))
    scene.add_body("ram", kind="kinematic", box=(0.2, 0.2, 0.2), motion={"velocity": (1.0, 0.0, 0.0)})
    return scene


def simulation(scene, records: bool) -> abd.Simulation:
    """Create a simulation on the processor with direct launches or records."""
    create = patch.object(backends, "create", lambda model, device: WarpBackend(model, "cpu", records))
    # record at the second execution, for any size
    with create, patch.object(graphs, "PATIENCE", 1), patch.object(small, "SMALL", small.SMALL if records else 0):
        return abd.Simulation(scene, device="cpu")


def pair(scene) -> tuple[abd.Simulation, abd.Simulation]:
    """Create simulations with direct launches and with records."""
    return simulation(scene, False), simulation(scene, True)


def assert_same_step(direct: abd.Simulation, recorded: abd.Simulation, within: float = 0.0, counts=COUNTS):
    """Advance both by a step; assert equal counts and states, to `within` of the largest entry, or the same failure.

    Returns:
        the reports of both, or the failures.
    """
    outcome = [_step(each) for each in (direct, recorded)]
    if isinstance(outcome[0], StepFailure):
        assert isinstance(outcome[1], StepFailure), f"only the direct step failed: {outcome[0]}"
        assert outcome[1].reason == outcome[0].reason
        assert outcome[1].bodies == outcome[0].bodies
    else:
        if isinstance(outcome[1], StepFailure):
            raise outcome[1]
        for name in counts:
            assert getattr(outcome[1], name) == getattr(outcome[0], name), (name, direct.frame)
    assert_same_state(direct, recorded, within)
    return outcome


def _step(simulation: abd.Simulation):
    try:
        return simulation.step()
    except StepFailure as failure:
        return failure


def assert_same_state(direct: abd.Simulation, recorded: abd.Simulation, within: float = 0.0) -> None:
    """Assert equal positions and velocities, to `within` of their largest entry and of the change by gravity in a step."""
    change = np.linalg.norm(direct.model.settings.gravity) * direct.model.settings.dt
    for name, least in (("q", 1e-300), ("qd", max(change, 1e-300))):
        expected, found = getattr(direct.stepper, name), getattr(recorded.stepper, name)
        difference = np.abs(found - expected).max(initial=0.0)
        assert difference <= within * np.abs(expected).max(initial=least), (name, direct.frame, difference)


def assert_same_steps(scene, steps: int, within: float = 0.0, counts=COUNTS) -> tuple[abd.Simulation, abd.Simulation]:
    """Advance both simulations by steps that satisfy `assert_same_step`; return them."""
    direct, recorded = pair(scene)
    for _ in range(steps):
        assert_same_step(direct, recorded, within, counts)
    return direct, recorded
