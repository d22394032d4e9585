"""Tangents of functions of several coordinates, set by the host before rows are evaluated (`abd.joints.relations`)."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device import Device
from abd.errors import DeviceError
from abd.joints.measured_rows import MeasuredRows
from abd.joints.relations import set_tangents


class RelationTangents:
    """What sets the pieces of the terms of relations on a device.

    Raises:
        DeviceError: there are relations, on a device whose arrays the host does not see.
    """

    def __init__(self, host: MeasuredRows, rows, device: Device):
        self.host, self.rows = host, rows
        if host.relations and device.wide:
            raise DeviceError(
                f"functions of several coordinates in couplings do not run on {device.name}; use --device cpu or numpy, or "
                "sums of polynomials and tables of single coordinates"
            )
        self.terms = [np.arange(len(host.term_measure))[one.terms] for one in host.relations]
        self.chosen = np.concatenate(self.terms) if self.terms else np.zeros(0, dtype=int)
        self.piece = host.piece_starts[self.chosen]

    def set(self, values: wp.array) -> None:
        """Take the tangents at measured values (m,)."""
        if not len(self.chosen):
            return
        v = values.numpy()[self.host.term_measure]
        height, slope = np.zeros(len(v)), np.zeros(len(v))
        set_tangents(self.host.relations, v, height, slope)
        coefficients = self.rows.coefficients.numpy()
        coefficients[self.piece, 0], coefficients[self.piece, 1] = height[self.chosen], slope[self.chosen]
        self.rows.origin.numpy()[self.piece] = v[self.chosen]
