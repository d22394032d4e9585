"""Tangents of couplings by functions of several coordinates, and forces by formulas, set by the host before rows are evaluated
(`abd.joints.rows.measured_rows`)."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.by_bodies import PerBody
from abd.errors import DeviceError
from abd.joints.rows.measured_rows import set_tangents
from abd.joints.rows.system import JointSystem


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
