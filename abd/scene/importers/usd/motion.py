"""Motion of a kinematic body: its pose at the time samples of a stage, and between them where it does not move uniformly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from abd.rotations import quaternion, rotation_vector, rotations
from abd.scene.importers.usd.stage import Stage, UsdGeom

DISTANCE, ANGLE = 1e-5, 1e-3
"""Largest deviations of position [m] and rotation [rad] from the motion of the stage."""
TESTED = (0.5, 0.382)
"""Fractions of the time between two keyframes at which they are compared with the stage; the second one finds full turns."""
DEEPEST = 16
"""Largest number of bisections between two time samples."""


def keyframes(stage: Stage, path: str) -> tuple[list[dict], np.ndarray] | None:
    """Return the keyframes of a prim that has time samples or is below one, and its pose (4, 4) at the start; None for others."""
    prim, samples = stage.prim(path), set()
    while prim and not prim.IsPseudoRoot():
        for op in UsdGeom.Xformable(prim).GetOrderedXformOps() if prim.IsA(UsdGeom.Xformable) else ():
            samples.update(op.GetTimeSamples())
        prim = prim.GetParent()
    if len(samples) < 2:
        return None
    rate, start = stage.usd.GetTimeCodesPerSecond(), stage.usd.GetStartTimeCode()
    start = start if stage.usd.HasAuthoredTimeCodeRange() else min(samples)

    def at(code: float) -> np.ndarray:
        return stage.placed(stage.to_world(path, code))

    codes = sorted({start, *(code for code in samples if code > start)})
    poses = [(start, at(start))]
    for end in codes[1:]:
        poses += _between(at, *poses[-1], end, at(end), DEEPEST)
    frames = [
        {"time": (code - start) / rate, "position": pose[:3, 3].tolist(), "quaternion": quaternion(pose[:3, :3]).tolist()}
        for code, pose in poses
    ]
    return frames, poses[0][1]


def _between(at: Callable[[float], np.ndarray], begin: float, first: np.ndarray, end: float, last: np.ndarray, depth: int):
    """Return the times and poses after the first one, up to the last one, whose interpolation is the motion of the stage."""
    turn = rotation_vector(last[:3, :3] @ first[:3, :3].T)
    for fraction in TESTED:
        exact = at(begin + fraction * (end - begin))
        rotation = rotations(fraction * turn[None])[0] @ first[:3, :3]
        position = (1.0 - fraction) * first[:3, 3] + fraction * last[:3, 3]
        turned = np.abs(exact[:3, :3] - rotation).max()
        if depth and (turned > ANGLE or np.linalg.norm(exact[:3, 3] - position) > DISTANCE):
            middle = 0.5 * (begin + end)
            pose = at(middle)
            return _between(at, begin, first, middle, pose, depth - 1) + _between(at, middle, pose, end, last, depth - 1)
    return [(end, last)]
