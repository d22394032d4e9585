"""Tables of joint rows for the kernels: values by functions of time, flags and codes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.by_bodies import PerBody
from abd.joints.coordinates.readings import HOLDING
from abd.joints.rows.forces import DOING
from abd.joints.rows.laws import Role
from abd.joints.rows.system import JointSystem
from cuda_kernels.joints import row_laws
from cuda_kernels.step import statistics


class Timed:
    """Values by functions of time: rows (k,), their bodies (k,), distinct functions, and `which` (k,) function of every row."""

    def __init__(self, found: dict[int, Callable[[float], float]], bodies: np.ndarray):
        several = {id(function): function for function in found.values()}
        place = {key: k for k, key in enumerate(several)}
        self.rows, self.functions = np.array(list(found), dtype=int), list(several.values())
        self.bodies, self.which = bodies[self.rows], np.array([place[id(function)] for function in found.values()])

    def at(self, time: PerBody) -> np.ndarray:
        """Evaluate the functions (k,) at a time [s], scalar or (n,); each function once per distinct time."""
        if not isinstance(time, np.ndarray):
            return np.array([function(time) for function in self.functions])[self.which]
        calls = np.stack([self.which, time[self.bodies]], axis=1)
        distinct, of = np.unique(calls, axis=0, return_inverse=True)
        return np.array([self.functions[int(which)](float(t)) for which, t in distinct])[of.ravel()]


def flags(system: JointSystem, active: np.ndarray, resolved: np.ndarray) -> np.ndarray:
    """(R,) `cuda_kernels.joints.row_laws.RowLaws.flags`; `active` (j,): joints whose residuals enter the statistics;
    `resolved` (R,): `abd.joints.rows.springs`."""
    a, k = system.row_laws, row_laws
    drive, armature = a.role == Role.DRIVE, a.role == Role.ARMATURE
    driven, held = np.isin(a.role, DOING), np.isin(a.role, HOLDING)
    counts = np.where(held, active[a.joint] if len(a.joint) else False, (a.role == Role.COUPLING) & a.active)
    chosen = (
        (k.ACTIVE, a.active),
        (k.EXACT, a.exact),
        (k.FOLLOWS, a.follows),
        (k.MOVING, a.follows & drive),
        (k.ARMATURE, armature),
        (k.ELASTIC, system.springs),
        (k.LIMIT, system.limits & ~a.exact),
        (k.DRIVEN, driven),
        (k.LOSING, ~driven & ~armature & ~(a.exact & ~a.follows)),
        (k.METRES, counts & ~a.rotary),
        (k.RADIANS, counts & a.rotary),
        (k.GAP, a.role == Role.GAP),
        (k.TURNING, system.turning),
        (k.RESOLVED, resolved),
    )
    return sum(int(flag) * which.astype(np.int32) for flag, which in chosen).astype(np.int32)


def codes(system: JointSystem, active: np.ndarray) -> np.ndarray:
    """(l,) residual components of linear rows in the statistics: bits 1, 2, 4 for x, y, z, `statistics.TURNED` for angles."""
    rows = system.linear
    components = (rows.mask != 0.0) @ np.array([1, 2, 4])
    turned = np.where(rows.is_point, 0, int(statistics.TURNED))
    return np.where(active[rows.joint] if len(rows) else False, components + turned, 0).astype(np.int32)
