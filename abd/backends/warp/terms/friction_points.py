"""Friction per contact point on a device (`abd.contact.forces`, `abd.contact.sharing`). The first call compiles the kernels."""

from __future__ import annotations

import numpy as np
import warp as wp

from abd.backends.device.device import Device
from abd.backends.device.pool import Pool
from abd.contact import sharing
from abd.contact.forces import FrictionPoints
from abd.contact.pair_rows import PairRows
from cuda_kernels.bodies.vector12 import vec12

MOST = 4_000_000
"""Number of combinations of contact and friction points up to which the device compares all; above it, the host uses a tree."""


class FrictionReader:
    """Reader of friction per point; it has its own arrays, so that it can evaluate any state."""

    def __init__(self, device: Device):
        self.device, self.pool = device, Pool(device)

    def friction_points(
        self, pair, kind, n, Y_i, Y_j, start_stretch, load, rest, q: np.ndarray, eps: np.ndarray, eps_v: float
    ) -> FrictionPoints:
        """See `abd.contact.forces.friction_points`."""
        from cuda_kernels.friction.friction_points import PointFriction, read_points
        from cuda_kernels.friction.lagging import Lagged

        count = len(pair)
        if count == 0:
            return FrictionPoints.nothing()
        frozen, out = Lagged(), PointFriction()
        for name, values, dtype in (
            ("pair", pair, wp.vec2i), ("kind", kind, wp.int32), ("n", n, wp.vec3d), ("Y_i", Y_i, wp.vec4d),
            ("Y_j", Y_j, wp.vec4d), ("load", load, wp.float64), ("start_stretch", start_stretch, wp.vec3d),
        ):  # fmt: skip
            setattr(frozen, name, self._given(name, values, dtype))
        capacities = {name: self.pool.get(f"out {name}", count, wp.vec3d) for name in PointFriction.vars}
        for name, capacity in capacities.items():
            setattr(out, name, capacity)
        states = self._given("q", q, vec12), self._given("rest", rest, vec12)
        self.device.launch(read_points, count, frozen, *states, self._given("eps", eps, wp.float64), float(eps_v), out, grain=512)
        read = {name: self.device.read(capacity, count) for name, capacity in capacities.items()}
        return FrictionPoints(
            pair=pair, kind=kind, point=read["place"], load=load, force=read["force"], slip=read["slip"],
            torque_i=read["torque_i"], torque_j=read["torque_j"],
        )  # fmt: skip

    def shared(self, pair: np.ndarray, point: np.ndarray, rows: PairRows, points: FrictionPoints, friction_rows: PairRows):
        """See `abd.contact.sharing.shared`; the rows by pair of contact points and friction points are given."""
        if not len(pair) or not len(points.pair):
            return np.zeros((len(pair), 3)), np.zeros((len(pair), 3))
        ends = _common(rows, friction_rows)
        if float(np.prod(np.diff(ends, axis=2).astype(float), axis=0).sum()) > MOST:
            return sharing.shared(pair, point, points)
        from cuda_kernels.friction.friction_points import PointFriction, share_friction

        point_friction, taken = PointFriction(), friction_rows.taken
        point_friction.force, point_friction.slip, point_friction.place = (
            self._given(f"shared {name}", taken(getattr(points, name)), wp.vec3d) for name in ("force", "slip", "point")
        )
        count = len(pair)
        friction, slip = (self.pool.get(name, count, wp.vec3d) for name in ("friction", "mean slip"))
        weight = self.pool.get("weight", count, wp.float64)
        # the kernel does not write points of pairs without friction
        self.device.fill(friction)
        self.device.fill(slip)
        self.device.launch(
            share_friction, ends.shape[1],
            *(self._given(name, one, wp.vec2i) for name, one in zip(("of points", "of friction"), ends, strict=True)),
            self._given("place", rows.taken(point), wp.vec3d), self._given("kinds", taken(points.kind), wp.int32),
            self._given("loads", taken(points.load), wp.float64), point_friction, friction, slip, weight, grain=64,
        )  # fmt: skip
        found = tuple(self.device.read(one, count) for one in (friction, slip))
        if rows.order is None:
            return found
        back = np.empty(count, dtype=int)
        back[rows.order] = np.arange(count)
        return tuple(one[back] for one in found)

    def _given(self, name: str, values: np.ndarray, dtype) -> wp.array:
        """Upload a host array; the next array of the same name overwrites it."""
        capacity = self.pool.get(name, len(values), dtype)
        self.device.write(capacity, values)
        return capacity


def _common(rows: PairRows, friction_rows: PairRows) -> np.ndarray:
    """(2, k, 2) row ranges [first, end) of contact points and of friction points, for the pairs that have both."""
    _, of_points, of_friction = np.intersect1d(rows.key, friction_rows.key, assume_unique=True, return_indices=True)
    parts = (rows, of_points), (friction_rows, of_friction)
    return np.stack(
        [np.stack([one.starts[k], one.starts[k] + one.counts[k]], axis=1) for one, k in parts]
    ).astype(np.int32)
