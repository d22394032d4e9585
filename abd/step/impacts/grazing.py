"""Contacts that graze: they close, but their points pass the other body without touching it, as facets that turn about a joint.

To stop such a contact takes an impulse without bound where its normal passes close to the axis of a joint. Impacts do not treat
contacts that graze; their barriers act as without an impact. The motion of the last step is continued: that of a body with joints
or a prescribed motion is a screw, others move straight on and turn.
"""

from __future__ import annotations

import numpy as np

from abd.contact.surfaces import targets
from abd.model import Model
from abd.potentials.distance import point_triangle
from abd.rotations import exp, inverse, log, polar, pose, rotation_vector, rotations

SAMPLES = np.array([0.0, 0.125, 0.25, 0.5])
"""Times at which gaps are computed, over the time in which they would close at constant speed."""
OPEN = 0.5
"""Smallest gap of a contact that grazes, over the present one."""


def grazing(
    model: Model, pairs: np.ndarray, place: np.ndarray, steps: np.ndarray, before: np.ndarray, after: np.ndarray,
    guided: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return (k,) bool, contacts of pairs of bodies (k, 2) that graze after a step between states (n, 12).

    Args:
        place: (k, 3) midway between the surfaces [m]; steps: (k,) number of such steps in which the contacts would close.
        guided: (n,) bool, bodies with joints or prescribed motions.
    """
    out = np.zeros(len(pairs), dtype=bool)
    for k, bodies in enumerate(pairs):
        moves = [_displacements(before[body], after[body], steps[k] * SAMPLES, guided[body]) for body in bodies]
        x = np.append(place[k], 1.0)
        # a point midway that is fixed to one body meets the other one after half of the time
        each = (
            _distances(model, body, after[body], np.linalg.solve(other, (own @ x)[:, :, None])[:, :3, 0])
            for body, own, other in zip(bodies, moves[::-1], moves, strict=True)
        )
        out[k] = all((gaps >= OPEN * gaps[0]).all() for gaps in each)
    return out


def _displacements(before: np.ndarray, after: np.ndarray, steps: np.ndarray, guided: bool) -> np.ndarray:
    """Return the displacements (s, 4, 4) of a body in a number of steps (s,) after one between two states (12,)."""
    (R_0, R_1), (p_0, p_1) = polar(np.stack([before, after])[:, 3:].reshape(-1, 3, 3)), (before[:3], after[:3])
    if guided:
        twist = log(pose(R_1, p_1) @ inverse(pose(R_0, p_0)))
        return np.stack([exp(count * twist) for count in steps])
    R = rotations(steps[:, None] * rotation_vector(R_1 @ R_0.T))
    return pose(R, p_1 + steps[:, None] * (p_1 - p_0) - R @ p_1)


def _distances(model: Model, body: int, q: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the distances (s,) of points x (s, 3) from the surface of a body in the state q (12,) [m]."""
    bodies = model.bodies
    if bodies.mesh[body] < 0:
        return x @ bodies.plane[body, :3] - bodies.plane[body, 3]
    mesh = model.meshes[bodies.mesh[body]]
    rest, corners = np.linalg.solve(q[3:].reshape(3, 3), (x - q[:3]).T).T, mesh.vertices[targets(mesh)]
    squares, *_ = point_triangle(np.repeat(rest, len(corners), axis=0), *np.tile(corners, (len(x), 1, 1)).transpose(1, 0, 2))
    return np.sqrt(squares.reshape(len(x), -1).min(axis=1)) - bodies.radius[body]
