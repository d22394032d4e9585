"""User-defined joint types for tests: the slotted hinge in four forms, and cubes."""

import numpy as np
import warp as wp

from abd import RowFlags
from abd.joint_model import Joint
from abd.joints.measures.axes import displacement, turn
from abd.joints.measures.motions import turned
from abd.model import WORLD
from abd.rotations import pose

LENGTH = RowFlags.BILATERAL | RowFlags.LINEAR
ANGLE = RowFlags.BILATERAL | RowFlags.ROTARY
ROWS = {"y": LENGTH, "z": LENGTH, "rx": ANGLE, "ry": ANGLE}
OWN = {"x": RowFlags.LINEAR, "theta": RowFlags.ROTARY}


def slotted_residual(M, r, p):
    """y, z, rx, ry, then the coordinates x, theta; `arctan2` takes no complex numbers."""
    theta = np.arctan2(0.5 * (M[:, 1, 0] - M[:, 0, 1]), 0.5 * (M[:, 0, 0] + M[:, 1, 1]))
    return np.stack([r[:, 1], r[:, 2], -M[:, 1, 2], M[:, 0, 2], r[:, 0], theta], axis=1)


@wp.func
def slotted_row(row: int, M: wp.mat33d, r: wp.vec3d, p: wp.array(dtype=wp.float64)) -> wp.float64:
    if row == 0:
        return r[1]
    if row == 1:
        return r[2]
    if row == 2:
        return -M[1, 2]
    if row == 3:
        return M[0, 2]
    if row == 4:
        return r[0]
    return wp.atan2(M[1, 0] - M[0, 1], M[0, 0] + M[1, 1])


def slotted_projection(T, p):
    G = T.copy()
    G[:, :3, :3] = align_z(T[:, :3, :3])
    G[:, 1:3, 3] = 0.0
    return G


def slotted_wrenches(T_GD, p):
    """y of D turns against C: its wrench is (s, c, 0, 0, 0, 0); moments about x and y of C."""
    W = np.zeros((len(T_GD), 4, 6), dtype=T_GD.dtype)
    W[:, 0, 0], W[:, 0, 1] = T_GD[:, 1, 0], T_GD[:, 1, 1]
    W[:, 1, 2] = W[:, 2, 3] = W[:, 3, 4] = 1.0
    return W


def slotted_transform(values, p):
    return pose(turned(np.array([0.0, 0.0, values[1]])), np.array([values[0], 0.0, 0.0]))


def define_slotted(define, form):
    """A slotted hinge by name, with both coordinates."""
    keys = {"rows": ROWS, "transform": slotted_transform}
    if form == "wrenches":
        own = {"x": displacement("x"), "theta": turn("theta")}
        keys |= {"wrenches": slotted_wrenches, "project": slotted_projection, "coordinates": own}
    else:
        keys |= {"function": slotted_residual if form == "numpy" else slotted_row, "coordinates": OWN}
    return define(f"slotted_{form}", **keys)


def joint_of(kind, ends=(WORLD, 0), **parameters):
    return Joint("joint", kind, 0, *ends, np.eye(4), np.eye(4), parameters=parameters)


def cubes(M, r, p):
    return p[:, :1] * M[:, 0] * r[:, :1] ** 3


def by_hand(M, r, p):
    out = np.zeros((len(M), 3, 12))
    for k in range(3):
        out[:, k, k] = p[:, 0] * r[:, 0] ** 3
        out[:, k, 9] = 3.0 * p[:, 0] * M[:, 0, k] * r[:, 0] ** 2
    return out


THREE = dict.fromkeys(("a", "b", "c"), LENGTH)


def align_z(R: np.ndarray) -> np.ndarray:
    """Rotations (k, 3, 3) turned by the shortest way so that their z axes are z of D (ArtiSynth's rotateZDirection)."""
    x, y, z = R[:, 0, 2], R[:, 1, 2], R[:, 2, 2]
    W = np.zeros_like(R)
    W[:, 0, 2], W[:, 2, 0], W[:, 1, 2], W[:, 2, 1] = -x, x, -y, y
    return R + W @ R + (W @ W @ R) / (1.0 + z)[:, None, None]
