"""Spins of single bodies that nothing in a mechanism turns: of a rod about itself between two balls, of a body on springs at its
centre.

They are principal axes of a body, through its centre, about which no joint, spring or coupling ever pushes it, at whatever
pose: looked for at the start and at poses at random. Their momenta are theirs alone (`abd.potentials.conservation`). Of axes
those of thin bodies count, whose spin a step follows by itself (`abd.potentials.gyration`), in mechanisms without motions as a
whole: of a top such a motion says more.
"""

from __future__ import annotations

import numpy as np

from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import linearize
from abd.model import Model
from abd.potentials.conservation import ALL, NOBODY
from abd.potentials.free_motion import torque
from abd.potentials.gyration import thin_axis
from abd.rotations import rotations

NONE = 1e-9
"""Share of a row's gradient by lengths as large as the body that counts as nothing."""
POSES = 3


def own_spins(model: Model, system: JointSystem, bodies: np.ndarray) -> np.ndarray:
    """(k,) for each of the bodies (k,) the principal thin axis, 0 to 2, whose spin is its own; `ALL`, or `NOBODY`."""
    pushed = np.zeros((len(model.bodies), 3))  # largest moments about the own axes
    for moments in (_straight(model, system), *_measured(model, system)):
        for body, moment in zip(*moments, strict=True):
            pushed[body] = np.maximum(pushed[body], np.abs(moment))
    untouched = (pushed <= NONE)[bodies] & (np.asarray(model.bodies.free_rotation) == 3)[bodies, None]
    thin = thin_axis(model.bodies.moment[bodies])
    along = untouched[np.arange(len(bodies)), thin] & (thin >= 0)
    return np.where(untouched.all(axis=1), ALL, np.where(along, thin, NOBODY)).astype(np.int32)


def _straight(model: Model, system: JointSystem) -> tuple[np.ndarray, np.ndarray]:
    """Bodies (t,) and moments (t, 3) of the linear rows, which pull points and directions that the bodies carry."""
    rows, body, moment = system.linear, [], []
    acts = rows.K.any(axis=1)
    for of, Y in ((rows.child, rows.Yc), (rows.parent, rows.Yp)):
        mine = acts & (of >= 0)
        arm = Y[mine, 1:] / _size(model)[of[mine], None]
        body += [of[mine]] * 3
        moment += [np.cross(arm, np.eye(3)[axis]) for axis in range(3)]
    return np.concatenate(body), np.concatenate(moment)


def _measured(model: Model, system: JointSystem) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of the measures of all rows, at the start and at poses at random."""
    table, rng, out = system.table, np.random.default_rng(0), []
    if not len(table):
        return out
    size = _size(model)
    for pose in range(1 + POSES):
        q = model.bodies.q.copy()
        if pose:
            A = q[:, 3:].reshape(-1, 3, 3)
            q[:, 3:] = (rotations(rng.uniform(-0.7, 0.7, (len(q), 3))) @ A).reshape(-1, 9)
            q[:, :3] += size[:, None] * rng.uniform(-0.5, 0.5, (len(q), 3))
        _, *gradients = linearize(table, q)
        A = q[:, 3:].reshape(-1, 3, 3)
        for of, gradient in zip((table.child, table.parent), gradients, strict=True):
            mine = of >= 0
            b, g = of[mine], gradient[mine]
            moment = np.einsum("kij,ki->kj", A[b], torque(g[:, 3:].reshape(-1, 3, 3), A[b]))
            length = np.linalg.norm(g[:, :3], axis=1) * size[b] + np.linalg.norm(moment, axis=1)
            out.append((b, moment / np.where(length > 0.0, length, 1.0)[:, None]))
    return out


def _size(model: Model) -> np.ndarray:
    """(n,) radii of gyration [m]."""
    bodies = model.bodies
    some = bodies.mass > 0.0
    size = np.sqrt(bodies.moment.sum(axis=1) / np.where(some, bodies.mass, 1.0))
    return np.where(some & (size > 0.0), size, 1.0)
