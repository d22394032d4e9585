"""A scene with iterations launched kernel by kernel, and recorded."""

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
    """A kinematic ram drives a loose box against a wall."""
    scene = abd.Scene(gravity=(0.0, 0.0, 0.0), solver={"kinematic_block": mode, **solver})
    scene.add_body("wall", kind="static", box=(0.1, 1.0, 1.0), position=(0.5, 0.0, 0.0))
    scene.add_body("box", box=(0.1, 0.1, 0.1), position=(0.3, 0.0, 0.0))
    scene.add_body("ram", kind="kinematic", box=(0.2, 0.2, 0.2), motion={"velocity": (1.0, 0.0, 0.0)})
    return scene


def simulation(scene, records: bool) -> abd.Simulation:
    """On the processor, launched kernel by kernel or recorded."""
    create = patch.object(backends, "create", lambda model, device: WarpBackend(model, "cpu", records))
    # records from the second time on, also where that does not pay
    with create, patch.object(graphs, "PATIENCE", 1), patch.object(small, "SMALL", small.SMALL if records else 0):
        return abd.Simulation(scene, device="cpu")


def pair(scene) -> tuple[abd.Simulation, abd.Simulation]:
    """Launched kernel by kernel, and recorded."""
    return simulation(scene, False), simulation(scene, True)


def assert_same_step(direct: abd.Simulation, recorded: abd.Simulation, within: float = 0.0, counts=COUNTS):
    """A step of each, with the same state to `within` of its largest entry, and the same counts; or with the same failure.

    Returns:
        the reports of both, or the failures.
    """
    outcome = [_step(each) for each in (direct, recorded)]
    if isinstance(outcome[0], StepFailure):
        assert isinstance(outcome[1], StepFailure), f"only the direct one failed: {outcome[0]}"
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
    """Positions and velocities to `within` of their largest entry, or of what gravity gives in a step."""
    fall = np.linalg.norm(direct.model.settings.gravity) * direct.model.settings.dt
    for name, least in (("q", 1e-300), ("qd", max(fall, 1e-300))):
        expected, found = getattr(direct.stepper, name), getattr(recorded.stepper, name)
        difference = np.abs(found - expected).max(initial=0.0)
        assert difference <= within * np.abs(expected).max(initial=least), (name, direct.frame, difference)


def assert_same_steps(scene, steps: int, within: float = 0.0, counts=COUNTS) -> tuple[abd.Simulation, abd.Simulation]:
    """Steps of both as `assert_same_step` wants them; returns both after them."""
    direct, recorded = pair(scene)
    for _ in range(steps):
        assert_same_step(direct, recorded, within, counts)
    return direct, recorded
