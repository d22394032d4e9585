"""Where a robot starts: MuJoCo's reference pose or a keyframe, inside of all ranges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from abd.errors import Problem, SceneError
from abd.scene.schema.suggestions import did_you_mean

INSIDE = 1e-3
"""Distance from an end of its range at which a coordinate starts that was there or beyond, over the range [-]."""
WIDEST = 1e-3
"""Largest such distance [rad or m]."""


@dataclass
class Start:
    """MuJoCo's state at the start.

    Attributes:
        data: `MjData`, kinematics done; qpos: (nq,); control: (nu,); activation: (na,).
        keyframes: names of all; keyframe: that of the one taken, "" for none.
    """

    data: object
    qpos: np.ndarray
    control: np.ndarray
    activation: np.ndarray
    keyframes: list[str]
    keyframe: str


def start_of(
    mujoco,
    model,
    keyframe: str,
    names: list[str],
    path: Path,
    notes: list[str],
    state: tuple[np.ndarray, np.ndarray] | None = None,
) -> Start:
    """The state that a scene starts in.

    Args:
        keyframe: name or number, "" for the reference pose; names: of the joints;
        state: qpos and qvel to start in, instead.

    Raises:
        SceneError: there is no such keyframe.
    """
    keys = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_KEY, k) or str(k) for k in range(model.nkey)]
    data = mujoco.MjData(model)
    if keyframe:
        number = keys.index(keyframe) if keyframe in keys else int(keyframe) if keyframe.isdecimal() else -1
        if not 0 <= number < model.nkey:
            remedy = did_you_mean(keyframe, keys) or (f"there are {', '.join(keys)}" if keys else "drop --keyframe")
            message = f"there is no keyframe '{keyframe}'"
            raise SceneError([Problem(message, file=str(path), value=keyframe, remedy=remedy)])
        mujoco.mj_resetDataKeyframe(model, data, number)
        keyframe = keys[number]
    if state is not None:
        data.qpos[:], data.qvel[:] = state
    _move_inside(mujoco, model, data, names, notes)
    mujoco.mj_normalizeQuat(model, data.qpos)
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    return Start(data, data.qpos.copy(), data.ctrl.copy(), data.act.copy(), keys, keyframe)


def _move_inside(mujoco, model, data, names: list[str], notes: list[str]) -> None:
    """Coordinates at an end of their range, or beyond, start a little inside: limits are barriers."""
    if int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_LIMIT):
        return
    moved = []
    for joint in np.flatnonzero(model.jnt_limited).tolist():
        if int(model.jnt_type[joint]) not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            continue
        at, (low, high) = int(model.jnt_qposadr[joint]), model.jnt_range[joint].tolist()
        gap = min(INSIDE * (high - low), WIDEST)
        value = float(data.qpos[at])
        inside = float(np.clip(value, low + gap, high - gap))
        if not low < value < high:
            moved.append(f"'{names[joint]}' from {value:.4g} to {inside:.4g}")
            data.qpos[at] = inside
    if moved:
        notes.append(f"joints at or beyond an end of their range start inside: {', '.join(moved)}")
