"""Compile a scene for a simulation, and copy the parts of the model that a simulation changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from abd.joint_list import JointList
from abd.model import Model

if TYPE_CHECKING:
    from abd.scene.scene import Scene
    from abd.scene.schema.schema import SceneSpec


def started(scene: Scene | SceneSpec | str | Path) -> tuple[Scene, Model]:
    """Return the scene, and its compiled model with an intersection-free initial state."""
    from abd.scene.scene import Scene, load

    if isinstance(scene, str | Path):
        scene = load(scene)
    if not isinstance(scene, Scene):
        scene = Scene.from_spec(scene)
    return scene, scene.started()


def own(model: Model) -> Model:
    """Return the model with copies of joints, loads, friction and gravity.

    The arrays are read-only; methods of the simulation write to their bases.
    """
    bodies = replace(model.bodies, force=_read_only(model.bodies.force), torque=_read_only(model.bodies.torque))
    settings = replace(model.settings, gravity=_read_only(model.settings.gravity))
    materials = replace(model.materials, mu=_read_only(model.materials.mu))
    joints = JointList.of(model.joints).copy()
    own_parts = {"joints": joints, "couplings": list(model.couplings), "motions": dict(model.motions)}
    return replace(model, bodies=bodies, settings=settings, materials=materials, **own_parts)


def _read_only(values: np.ndarray) -> np.ndarray:
    """Return a read-only view of a copy; the copy is its base."""
    view = np.array(values, dtype=float).view()
    view.flags.writeable = False
    return view
