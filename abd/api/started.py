"""What a simulation is made of: a scene, the model of its start, and the part of the model that the simulation may change."""

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
    """Return the scene, and what it compiles to with a start that is free of intersections."""
    from abd.scene.scene import Scene, load

    if isinstance(scene, str | Path):
        scene = load(scene)
    if not isinstance(scene, Scene):
        scene = Scene.from_spec(scene)
    return scene, scene.started()


def own(model: Model) -> Model:
    """Return the model with its own joints, loads, friction and gravity; the arrays are read-only for users, and change by the
    methods of the simulation."""
    bodies = replace(model.bodies, force=_read_only(model.bodies.force), torque=_read_only(model.bodies.torque))
    settings = replace(model.settings, gravity=_read_only(model.settings.gravity))
    materials = replace(model.materials, mu=_read_only(model.materials.mu))
    joints = JointList.of(model.joints).copy()
    own_parts = {"joints": joints, "couplings": list(model.couplings), "motions": dict(model.motions)}
    return replace(model, bodies=bodies, settings=settings, materials=materials, **own_parts)


def _read_only(values: np.ndarray) -> np.ndarray:
    """A read-only view of a copy, which is its base."""
    view = np.array(values, dtype=float).view()
    view.flags.writeable = False
    return view
