"""Free motion of bodies over a step, and their momenta and forces at its end, by the kernels of the step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import warp as wp

from abd.backends.body_data import BodyData
from abd.backends.device.device import Device
from abd.potentials.integrators import Scheme
from cuda_kernels.bodies import bodies, integrators, momenta
from cuda_kernels.bodies.affine import Pose

READ = {
    "kind": wp.int32, "mass": wp.float64, "moment": wp.vec3d, "rotation": wp.int32, "axis": wp.vec3d, "surface": wp.vec3d,
}  # fmt: skip
"""Constants of bodies that the kernels read."""


@dataclass(frozen=True)
class Moved:
    """Results of a step for n bodies.

    Attributes:
        target: (n, 12) inertial targets; turn: (n, 3) rotations to them [rad]; scale: (n,) weights of the inertia.
        qd, forces: (n, 12) velocities and acceleration history at the end.
    """

    target: np.ndarray
    turn: np.ndarray
    scale: np.ndarray
    qd: np.ndarray
    forces: np.ndarray


@cache
def _device() -> Device:
    return Device("cpu")


def moved(
    data: BodyData, body: np.ndarray, rule: Scheme, rows: np.ndarray, q: np.ndarray, qd: np.ndarray, forces: np.ndarray,
    end: np.ndarray, pulled: np.ndarray | None = None, end_pulls: np.ndarray | None = None,
) -> Moved:  # fmt: skip
    """Return the results of a step from q with velocities qd to `end`, (n, 12) each.

    Args:
        body: (n,) of `data`; rows: (n,) of `Scheme.motion`; forces: (n, 12) acceleration history.
        pulled, end_pulls: (n, 12) forces of springs at the start and at the end (`abd.joints.rows.springs.pulls`).
    """
    device, n = _device(), len(q)
    constants, none = bodies.BodyData(), np.zeros((n, 12))
    for name, kind in READ.items():
        setattr(constants, name, device.upload(getattr(data, name)[body], kind))

    def pose(states: np.ndarray) -> Pose:
        out = Pose()
        out.p, out.A = device.upload(states[:, :3], wp.vec3d), device.upload(states[:, 3:].reshape(-1, 3, 3), wp.mat33d)
        return out

    def floats(values: np.ndarray) -> wp.array:
        return device.upload(values, wp.float64)

    def vectors() -> wp.array:
        return device.zeros(n, wp.vec3d)

    first = device.zeros(n, wp.int32)  # level, mechanism and scheme
    scheme = device.upload(rows.astype(np.int32), wp.int32), first, first, first, floats(rule.motion[None])
    now, target, rest, scale, lead = pose(q), pose(none), pose(none), floats(np.zeros(n)), integrators.Lead()
    lead.dp, lead.w, lead.push, lead.twist, lead.load = vectors(), vectors(), vectors(), vectors(), floats(np.zeros(n))
    before = floats(qd)
    pulled, end_pulls = (floats(none if one is None else one) for one in (pulled, end_pulls))
    memory, velocity = device.upload(forces, wp.float64), device.zeros((n, 12), wp.float64)
    device.launch(integrators.coast, n, constants, *scheme, now, before, memory, pulled, target, scale, lead, rest)
    known = pose(end), now, target, scale, before, pulled, end_pulls
    device.launch(momenta.keep_momentum, n, constants, *scheme, *known, memory, velocity)
    states = np.concatenate([target.p.numpy(), target.A.numpy().reshape(-1, 9)], axis=1)
    return Moved(states, lead.w.numpy(), scale.numpy(), velocity.numpy(), memory.numpy())
