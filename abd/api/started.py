"""What a simulation is made of: a scene, and the model of its start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from abd.model import Model

if TYPE_CHECKING:
    from abd.scene.scene import Scene
    from abd.scene.schema.schema import SceneSpec


def started(scene: Scene | SceneSpec | str | Path) -> tuple[Scene, Model]:
    """The scene, and what it compiles to with a start that is free of intersections."""
    from abd.scene.scene import Scene, load

    if isinstance(scene, str | Path):
        scene = load(scene)
    if not isinstance(scene, Scene):
        scene = Scene.from_spec(scene)
    return scene, scene.started()
