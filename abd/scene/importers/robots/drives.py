"""Actuators as drives of coordinates.

The joint effort is the gear ratio times ``(g_0 + g_1 length + g_2 velocity) u + b_0 + b_1 length + b_2 velocity``. The control c
is constant; without activation dynamics u = c. An integrator has u = u_0 + c t, a filter
u = c + (u_0 - c) exp(-t / tau).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from abd.scene.importers.robots.compiled import disables, mujoco
from abd.scene.importers.robots.joints import Coordinate


@dataclass
class _Effort:
    """Effort ``constant - stiffness q - damping dq/dt`` plus `varying` formulas of t on a joint of MuJoCo, at most `limit`."""

    constant: float
    stiffness: float
    damping: float
    limit: float = np.inf
    varying: tuple[str, ...] = ()


def add_drives(model, data, names: list[str], coordinates: dict[int, Coordinate], notes: list[str]) -> set[int]:
    """Add the drives of actuators to the coordinates; notes list the other actuators.

    Args:
        data: MuJoCo's state at the start, with constant controls; names: of the actuators.

    Returns:
        numbers of the actuators that became drives.
    """
    if disables(model, "ACTUATION"):
        return set()
    driving: set[int] = set()
    found: dict[int, list[tuple[int, _Effort]]] = {}
    unknown: dict[str, list[str]] = {}
    for k in range(model.nu):
        target = _transmission(model, k, coordinates)
        if isinstance(target, str):
            unknown.setdefault(target, []).append(names[k])
            continue
        joint, gear = target
        effort = _effort(model, k, gear, float(data.ctrl[k]), data.act)
        if isinstance(effort, str):
            unknown.setdefault(effort, []).append(names[k])
        else:
            found.setdefault(joint, []).append((k, effort))
            low, high = model.actuator_forcerange[k].tolist()
            if np.isfinite(effort.limit) and low != -high:
                text = f"the force range {low:g} .. {high:g} is not symmetric; the smaller limit is used"
                notes.append(f"actuator '{names[k]}': {text}")
    for reason, which in unknown.items():
        notes.append(f"actuators are ignored: {', '.join(which)} ({reason})")
    for joint, efforts in found.items():
        own = efforts
        if len(efforts) > 1 and any(np.isfinite(effort.limit) for _, effort in efforts):
            own = efforts[:1]
            left = ", ".join(names[k] for k, _ in efforts[1:])
            notes.append(f"actuators are ignored: {left} (their limits differ from those of '{names[efforts[0][0]]}')")
        total = _Effort(
            *(sum(getattr(effort, key) for _, effort in own) for key in ("constant", "stiffness", "damping")),
            limit=own[0][1].limit,
            varying=tuple(text for _, effort in own for text in effort.varying),
        )
        driving.update(k for k, _ in own)
        coordinates[joint].settings["drive"] = _drive(total, coordinates[joint])
    return driving


def _transmission(model, k: int, coordinates: dict[int, Coordinate]) -> tuple[int, float] | str:
    """Return the joint of an actuator and its gear, or the reason why it is not supported."""
    kinds = mujoco.mjtTrn
    kind, target, gear = int(model.actuator_trntype[k]), int(model.actuator_trnid[k, 0]), model.actuator_gear[k]
    if kind in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT):
        if target in coordinates:
            return target, float(gear[0])
        return "drives of ball and free joints are not supported"
    if kind == kinds.mjTRN_TENDON and model.tendon_num[target] == 1:
        at = int(model.tendon_adr[target])
        joint = int(model.wrap_objid[at])
        if model.wrap_type[at] == mujoco.mjtWrap.mjWRAP_JOINT and joint in coordinates:
            return joint, float(gear[0] * model.wrap_prm[at])
    reasons = {
        int(kinds.mjTRN_TENDON): "drives of tendons over several joints or sites are not supported",
        int(kinds.mjTRN_SITE): "forces at sites are not supported",
        int(kinds.mjTRN_BODY): "adhesion is not supported",
        int(kinds.mjTRN_SLIDERCRANK): "slider-crank transmissions are not supported",
    }
    return reasons.get(kind, "unknown transmission")


def _effort(model, k: int, gear: float, control: float, activation: np.ndarray) -> _Effort | str:
    """Return the effort on the joint, or the reason why it is not supported."""
    gain, bias = model.actuator_gainprm[k, :3].copy(), model.actuator_biasprm[k, :3].copy()
    if model.actuator_gaintype[k] == mujoco.mjtGain.mjGAIN_FIXED:
        gain[1:] = 0.0
    elif model.actuator_gaintype[k] != mujoco.mjtGain.mjGAIN_AFFINE:
        return "their type of gain is not supported"
    if model.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_NONE:
        bias[:] = 0.0
    elif model.actuator_biastype[k] != mujoco.mjtBias.mjBIAS_AFFINE:
        return "their type of bias is not supported"
    if model.actuator_ctrllimited[k]:
        control = float(np.clip(control, *model.actuator_ctrlrange[k]))
    varying = _activation(model, k, control, activation)
    if varying is None:
        return "muscles and user-defined activation dynamics are not supported"
    if varying and gain[1:].any():
        return "activation dynamics with a state-dependent gain are not supported"
    slope = bias + (0.0 if varying else control) * gain
    if slope[1] > 0.0 or slope[2] > 0.0:
        return "negative gains are not supported"
    text, limit = (f"{gear * float(gain[0])!r}*({varying})",) if varying and gain[0] else (), np.inf
    if model.actuator_forcelimited[k]:
        low, high = model.actuator_forcerange[k].tolist()
        if low != -high and slope[1] == slope[2] == 0.0:  # a force that depends on time alone
            force = f"{float(slope[0])!r} + {float(gain[0])!r}*({varying})"
            text = (f"{gear!r}*min(max({force}, {low!r}), {high!r})",) if text else ()
            return _Effort(0.0 if text else gear * min(max(float(slope[0]), low), high), 0.0, 0.0, np.inf, text)
        limit = abs(gear) * min(-low, high)
        if not limit > 0.0:
            return "forces in one direction only are not supported"
    return _Effort(float(gear * slope[0]), float(-(gear**2) * slope[1]), float(-(gear**2) * slope[2]), limit, text)


def _activation(model, k: int, control: float, activation: np.ndarray) -> str | None:
    """The activation of an actuator as a formula of t, empty without dynamics; None for those that are not supported."""
    kinds, kind = mujoco.mjtDyn, int(model.actuator_dyntype[k])
    if kind == kinds.mjDYN_NONE:
        return ""
    if model.actuator_actnum[k] != 1:
        return None
    first = float(activation[int(model.actuator_actadr[k])])
    if kind == kinds.mjDYN_INTEGRATOR:
        text = f"{first!r} + {control!r}*t"
    elif kind in (kinds.mjDYN_FILTER, kinds.mjDYN_FILTEREXACT):
        tau = max(float(model.actuator_dynprm[k, 0]), 1e-15)
        text = f"{control!r} + {first - control!r}*exp(-t/{tau!r})"
    else:
        return None
    if model.actuator_actlimited[k]:
        low, high = model.actuator_actrange[k].tolist()
        text = f"min(max({text}, {low!r}), {high!r})"
    return text


def _drive(effort: _Effort, coordinate: Coordinate) -> dict[str, object]:
    """Keys of the drive."""

    def scaled(factor: float, offset: float) -> float | str:
        """``factor (constant + varying) + offset``."""
        if not effort.varying:
            return factor * effort.constant + offset + 0.0
        return f"{factor!r}*({' + '.join((repr(effort.constant), *effort.varying))}) + {offset!r}"

    keys: dict[str, object]
    if effort.stiffness > 0.0:
        keys = {
            "mode": "pd",
            "target": scaled(coordinate.sign / effort.stiffness, -coordinate.sign * coordinate.offset),
        }
        keys |= {"stiffness": effort.stiffness, "damping": effort.damping}
    elif effort.damping > 0.0:
        rate = scaled(coordinate.sign / effort.damping, 0.0)
        keys = {"mode": "pd", "damping": effort.damping} | ({"rate": rate} if rate else {})
    else:
        keys = {"mode": "force", "target": scaled(coordinate.sign, 0.0)}
    keys = {key: value + 0.0 if isinstance(value, float) else value for key, value in keys.items()}
    return keys | ({"effort": effort.limit} if np.isfinite(effort.limit) else {})
