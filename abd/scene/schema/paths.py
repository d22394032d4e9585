"""Paths of a scene, made absolute."""

from __future__ import annotations

import os
from pathlib import Path

from abd.scene.schema.schema import BodySpec, SceneSpec


def with_absolute_paths(spec: SceneSpec, directory: Path) -> SceneSpec:
    """The scene with the same paths resolved; what needs no change is shared with `spec`, which stays as it is."""
    bodies = list(spec.body)
    for k, body in enumerate(bodies):
        if body.mesh is not None or (body.motion is not None and body.motion.file is not None):
            bodies[k] = body.model_copy(deep=True)
            make_body_paths_absolute(bodies[k], directory)
    return spec.model_copy(update={"body": bodies})


def make_body_paths_absolute(body: BodySpec, directory: Path) -> None:
    """The same for one body."""
    if body.mesh is not None:
        body.mesh = os.path.abspath(directory / body.mesh)
    if body.motion is not None and body.motion.file is not None:
        body.motion.file = os.path.abspath(directory / body.motion.file)
