"""Joints of one link in MuJoCo's order, and the joints of a scene with the same motion.

A body of MuJoCo may have several joints, each about or along an axis that the previous joints move:

    T = B J_1(q_1 - r_1) ... J_n(q_n - r_n),   J(q) = T(p) R(a, q) T(-p)  or  T(q a)

with anchors p and axes a in the body's frame, and references r. Joints that a joint type describes together become one joint;
a carrier, a body without a surface and with a small fraction of the link's mass, is between the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from abd.rotations import pose

SAME = 1e-9
"""Largest sine between parallel axes, or distance [m] between coincident lines."""
STEEPEST = 1.5
"""Largest pitch [rad] of a gimbal; beyond it carriers are between its axes."""
HINGE, SLIDE, BALL = "hinge", "slide", "ball"


@dataclass
class Axis:
    """One of MuJoCo's joints.

    Attributes:
        number: MuJoCo's; kind: HINGE, SLIDE or BALL; point, axis: (3,) in the frame of the link.
        reference: value at the reference pose; range: of a hinge [rad].
    """

    number: int
    kind: str
    point: np.ndarray
    axis: np.ndarray
    reference: float = 0.0
    range: tuple[float, float] = (-np.inf, np.inf)

    @property
    def twist(self) -> np.ndarray:
        """(6,) twist of a unit speed of a hinge or slide."""
        if self.kind == SLIDE:
            return np.append(self.axis, np.zeros(3))
        return np.append(np.cross(self.point, self.axis), self.axis)


@dataclass
class Fit:
    """A joint of the scene for consecutive axes.

    Attributes:
        type: of the joint; frame: (4, 4) its frame in the link's where all its coordinates are 0.
        coordinates: name and sign for every axis; parameters: keys of the joint.
    """

    type: str
    frame: np.ndarray
    coordinates: list[tuple[str, float]]
    parameters: dict[str, object] = field(default_factory=dict)


def fits(axes: list[Axis]) -> list[tuple[list[Axis], Fit]]:
    """Return joints with the motion of a link's axes, by a greedy search from the parent."""
    out, start = [], 0
    while start < len(axes):
        for count in range(min(3, len(axes) - start), 0, -1):
            part = axes[start : start + count]
            found = fit(part)
            if found is not None:
                out.append((part, found))
                start += count
                break
    return out


def fit(axes: list[Axis]) -> Fit | None:
    """Return the joint type with the motion of these successive axes; None without one."""
    kinds = "".join(axis.kind[0] for axis in axes)
    a = [axis.axis for axis in axes]
    if kinds == "b":
        return Fit("spherical", pose(np.eye(3), axes[0].point), [])
    if kinds == "h":
        return Fit("hinge", _about(axes[0].point, a[0]), [("theta", 1.0)])
    if kinds == "s":
        return Fit("slider", _about(axes[0].point, a[0]), [("z", 1.0)])
    if kinds in ("sh", "hs"):
        return _slide_and_hinge(axes, kinds)
    if kinds == "ss" and _orthogonal(*a):
        held = {"constrained": ("z", "rx", "ry", "rz")}
        return Fit("general", pose(_triad(*a), axes[0].point), [("x", 1.0), ("y", 1.0)], held)
    if kinds == "hh":
        return _two_hinges(axes)
    if len(kinds) == 3 and _orthogonal(a[0], a[1]) and _orthogonal(a[0], a[2]) and _orthogonal(a[1], a[2]):
        triad = _triad(a[0], a[1])
        sign = float(np.sign(triad[:, 2] @ a[2]))
        if kinds == "ssh":
            return Fit("planar", pose(triad, axes[2].point), [("x", 1.0), ("y", 1.0), ("theta", sign)])
        if kinds == "sss":
            held = {"constrained": ("rx", "ry", "rz")}
            return Fit("general", pose(triad, axes[0].point), [("x", 1.0), ("y", 1.0), ("z", sign)], held)
        point = _meeting(axes)
        within = max(abs(end) for end in axes[1].range) < STEEPEST
        # references of the first and last axis turn the frames, that of the second has no place
        if kinds == "hhh" and point is not None and within and axes[1].reference == 0.0:
            names = [("roll", 1.0), ("pitch", 1.0), ("yaw", sign)]
            return Fit("gimbal", pose(triad, point), names, {"axes": "xyz"})
    return None


def _slide_and_hinge(axes: list[Axis], kinds: str) -> Fit | None:
    slide, hinge = axes if kinds == "sh" else axes[::-1]
    if np.linalg.norm(np.cross(slide.axis, hinge.axis)) < SAME:
        signs = {slide.number: ("z", float(np.sign(slide.axis @ hinge.axis))), hinge.number: ("theta", 1.0)}
        return Fit("cylindrical", _about(hinge.point, hinge.axis), [signs[axis.number] for axis in axes])
    if kinds == "sh" and _orthogonal(slide.axis, hinge.axis):
        triad = np.stack([slide.axis, np.cross(hinge.axis, slide.axis), hinge.axis], axis=1)
        return Fit("slotted_hinge", pose(triad, hinge.point), [("x", 1.0), ("theta", 1.0)])
    return None


def _two_hinges(axes: list[Axis]) -> Fit | None:
    """Return a universal joint, skewed if the axes are not perpendicular."""
    first, second = (axis.axis for axis in axes)
    sine = float(first @ second)
    across = second - sine * first
    point = _meeting(axes)
    if point is None or np.linalg.norm(across) < 1e-3:
        return None
    y = across / np.linalg.norm(across)
    triad = np.stack([np.cross(y, first), y, first], axis=1)
    skew = {} if abs(sine) < SAME else {"skew": float(np.arcsin(sine))}
    return Fit("universal", pose(triad, point), [("roll", 1.0), ("pitch", 1.0)], {"axes": "zy"} | skew)


def _meeting(axes: list[Axis]) -> np.ndarray | None:
    """Return the common point (3,) of the lines of hinges; None for skew lines."""
    across = [np.eye(3) - np.outer(axis.axis, axis.axis) for axis in axes]
    if all(np.array_equal(axis.point, axes[0].point) for axis in axes):
        return axes[0].point
    matrix = sum(across)
    right = sum(one @ axis.point for one, axis in zip(across, axes))
    point = np.linalg.lstsq(matrix, right, rcond=None)[0]
    apart = max(np.linalg.norm(one @ (point - axis.point)) for one, axis in zip(across, axes))
    return point if apart < SAME else None


def _orthogonal(a: np.ndarray, b: np.ndarray) -> bool:
    return abs(float(a @ b)) < SAME


def _triad(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([x, y, np.cross(x, y)], axis=1)


def _about(point: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """(4, 4) frame with z along an axis."""
    helper = np.eye(3)[int(np.argmin(np.abs(axis)))]
    x = helper - (helper @ axis) * axis
    x /= np.linalg.norm(x)
    return pose(np.stack([x, np.cross(axis, x), axis], axis=1), point)
