"""`abd.run`: create and run a simulation in one call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from abd.api.simulation import Simulation
from abd.api.step_report import StepReport
from abd.model import Model

if TYPE_CHECKING:
    from abd.scene.scene import Scene
    from abd.scene.schema.schema import SceneSpec


def run(
    scene: Scene | SceneSpec | Model | str | Path,
    duration: float | None = None,
    steps: int | None = None,
    device: str = "auto",
    record: str | Path | None = None,
    progress: bool = False,
    on_step: Callable[[StepReport], bool | None] | None = None,
    overwrite: bool = False,
) -> Simulation:
    """Create a simulation and run it, as `abd run` does; see `Simulation` and `Simulation.run` for the arguments.

    Returns:
        the simulation after its last step.
    """
    simulation = Simulation(scene, device)
    simulation.run(duration, steps, record, progress, on_step, overwrite)
    return simulation
