"""Host data of joint rows for the kernels: flags and codes, values by functions of time, and tangents of couplings by functions
of several coordinates and forces by formulas, which the host sets before rows are evaluated
(`abd.joints.rows.measured_rows`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.by_bodies import PerBody
from abd.errors import DeviceError
from abd.joints.coordinates.readings import HOLDING
from abd.joints.rows.forces import DOING
from abd.joints.rows.laws import Role
from abd.joints.rows.measured_rows import set_tangents
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


class RelationTangents:
    """Host evaluation of relations and given forces: it writes the polynomial segments of their terms and the laws of their rows.

    Raises:
        DeviceError: the system has relations or given forces, and the host cannot access the arrays of the device.
    """

    def __init__(self, system: JointSystem, rows, device: Device):
        self.system, self.host, self.rows, self.given = system, system.rows, rows, system.given
        host = self.host
        if host.relations and device.wide:
            raise DeviceError(
                f"functions of several coordinates in couplings do not run on {device.name}; use --device cpu or numpy, or "
                "sums of polynomials and tables of single coordinates"
            )
        if self.given and device.wide:
            raise DeviceError(
                "forces by formulas or functions of lengths, coordinates and speeds (force_formula, force_function) do not run "
                f"on {device.name}; use --device cpu or numpy"
            )
        self.begin(1.0, 0.0)
        self.terms = [np.arange(len(host.term_measure))[one.terms] for one in host.relations]
        self.chosen = np.concatenate(self.terms) if self.terms else np.zeros(0, dtype=int)
        self.piece = host.piece_starts[self.chosen]

    def begin(self, ch2: PerBody, time: PerBody) -> None:
        """Begin a substep with c h^2 [s^2] that ends at `time` [s], both scalar or (n,)."""
        self.ch2, self.time = self.system.of_rows(ch2), self.system.of_rows(time)

    def set(self, values: wp.array) -> None:
        """Set the tangents and forces at measured values (m,)."""
        measured = values.numpy() if self.given or len(self.chosen) else None
        for row, force in self.given.items():
            m = self.host.term_measure[self.host.starts[row]]
            force.set(self.rows.p.numpy()[row], measured[m], float(self.ch2[row]), float(self.time[row]))
        if not len(self.chosen):
            return
        v = measured[self.host.term_measure]
        height, slope = np.zeros(len(v)), np.zeros(len(v))
        set_tangents(self.host.relations, v, height, slope)
        coefficients = self.rows.coefficients.numpy()
        coefficients[self.piece, 0], coefficients[self.piece, 1] = height[self.chosen], slope[self.chosen]
        self.rows.origin.numpy()[self.piece] = v[self.chosen]


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
