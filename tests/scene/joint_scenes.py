"""Two boxes and a joint between them, for tests of joints in scenes."""

import numpy as np

import abd
from abd.joints.rows.table import value_at
from abd.joints.types import TYPES
from abd.model import affine_matrices

BODIES = """[[body]]
name = "a"
box = [1, 1, 1]
[[body]]
name = "b"
box = [1, 1, 1]
position = [2, 0, 0]
"""


def box_scene(**solver) -> abd.Scene:
    scene = abd.Scene("joints", solver=solver)
    scene.add_body("a", box=(1, 1, 1))
    scene.add_body("b", box=(1, 1, 1), position=(2, 0, 0), euler={"order": "xyz", "degrees": (10, 20, 30)})
    return scene


def placed(model, joint) -> tuple[np.ndarray, np.ndarray]:
    """Frames D and C in the world at t = 0."""
    poses = [*affine_matrices(model.bodies.q), np.eye(4)]
    return poses[joint.parent] @ joint.parent_frame, poses[joint.child] @ joint.child_frame


def read(model, joint) -> dict[str, float]:
    """Coordinates by name at t = 0, angles in (-pi, pi]."""
    D, C = placed(model, joint)
    measures = TYPES[joint.type].coordinates(joint)
    return dict(zip([m.name for m in measures], value_at(measures, np.linalg.inv(D) @ C).tolist()))


def compiled(scene, name="j"):
    model = scene.compile()
    return model, next(joint for joint in model.joints if joint.name == name)
