"""Actuators as drives of coordinates, with their armature and damping.

The joint effort is the gear ratio times ``(g_0 + g_1 length + g_2 velocity) u + b_0 + b_1 length + b_2 velocity``. The control c
is constant; without activation dynamics u = c. An integrator has u = u_0 + c t, a filter
u = c + (u_0 - c) exp(-t / tau).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    driving: set[int] = set()
    found: dict[int, list[tuple[int, _Effort]]] = {}
    unknown: dict[str, list[str]] = {}
    for k in range(model.nactuator):
        target = _transmission(model, k, coordinates)
        if not isinstance(target, str):
            _add_rotor(model, k, target[1], coordinates[target[0]].settings)
        if _is_disabled(model, k):
            continue
        if isinstance(target, str):
            unknown.setdefault(target, []).append(names[k])
            continue
        joint, gear = target
        effort = _effort(model, data, k, gear)
        if isinstance(effort, str):
            unknown.setdefault(effort, []).append(names[k])
        else:
            found.setdefault(joint, []).append((k, effort))
            _note_asymmetry(f"actuator '{names[k]}': the force range", effort, model.actuator_forcerange[k], notes)
    for joint, efforts in found.items():
        own = efforts
        if len(efforts) > 1 and any(np.isfinite(effort.limit) for _, effort in efforts):
            own = efforts[:1]
            left = ", ".join(names[k] for k, _ in efforts[1:])
            text = f"of several actuators of a joint with force limits the first is used, '{names[efforts[0][0]]}'"
            notes.append(f"actuators are ignored: {left} ({text})")
        total = _Effort(
            *(sum(getattr(effort, key) for _, effort in own) for key in ("constant", "stiffness", "damping")),
            limit=own[0][1].limit,
            varying=tuple(text for _, effort in own for text in effort.varying),
        )
        low, high = model.jnt_actfrcrange[joint].tolist()
        if model.jnt_actfrclimited[joint] and low != -high:  # the joint has the effort limit of a symmetric range
            total = _within(total, low, high)
            if isinstance(total, str):
                unknown.setdefault(total, []).extend(names[k] for k, _ in own)
                continue
            _note_asymmetry(f"'{coordinates[joint].key}': the effort range", total, (low, high), notes)
        driving.update(k for k, _ in own)
        coordinates[joint].settings["drive"] = _drive(total, coordinates[joint])
    for reason, which in unknown.items():
        notes.append(f"actuators are ignored: {', '.join(which)} ({reason})")
    return driving


def _is_disabled(model, k: int) -> bool:
    """Return whether a flag or the group of an actuator disables its force."""
    group = int(model.actuator_group[k])
    return disables(model, "ACTUATION") or (group >= 0 and bool(int(model.opt.disableactuator) >> group & 1))


def _add_rotor(model, k: int, gear: float, settings: dict[str, object]) -> None:
    """Add the armature and the damping of an actuator, which do not depend on its force, to those of its joint."""
    damping = 0.0 if disables(model, "DAMPER") else model.actuator_damping[k]
    for key, value in (("armature", model.actuator_armature[k]), ("damping", damping)):
        if value:
            settings[key] = settings.get(key, 0.0) + float(gear**2 * value)


def _note_asymmetry(subject: str, effort: _Effort, ends: tuple[float, float], notes: list[str]) -> None:
    """Add a note if an effort has the smaller limit of an asymmetric range."""
    low, high = ends
    if np.isfinite(effort.limit) and low != -high:
        notes.append(f"{subject} {low:g} .. {high:g} is not symmetric; the smaller limit is used")


def _transmission(model, k: int, coordinates: dict[int, Coordinate]) -> tuple[int, float] | str:
    """Return the joint of an actuator and its gear, or the reason why it is not supported."""
    kinds = mujoco.mjtTrn
    kind, target = int(model.actuator_trntype[k]), int(model.actuator_trnid[k, 0])
    gear = model.actuator_gear[model.actuator_outadr[k]]
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


def _effort(model, data, k: int, gear: float) -> _Effort | str:
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
    at = int(model.actuator_ctrladr[k])
    control = float(data.ctrl[at])
    if model.actuator_ctrllimited[at] and not disables(model, "CLAMPCTRL"):
        control = float(np.clip(control, *model.actuator_ctrlrange[at]))
    varying = _activation(model, k, control, data.act)
    if varying is None:
        return "muscles and user-defined activation dynamics are not supported"
    if varying and gain[1:].any():
        return "activation dynamics with a state-dependent gain are not supported"
    slope = bias + (0.0 if varying else control) * gain
    if slope[1] > 0.0 or slope[2] > 0.0:
        return "negative gains are not supported"
    text = (f"{gear * float(gain[0])!r}*({varying})",) if varying and gain[0] else ()
    effort = _Effort(float(gear * slope[0]), float(-(gear**2) * slope[1]), float(-(gear**2) * slope[2]), varying=text)
    return _within(effort, *sorted((gear * model.actuator_forcerange[k]).tolist())) if model.actuator_forcelimited[k] else effort


def _within(effort: _Effort, low: float, high: float) -> _Effort | str:
    """Return an effort within a range, or the reason why it is not supported.

    A force that depends on time alone has the bounds of an asymmetric range; other efforts have its smaller limit.
    """
    if low != -high and effort.stiffness == effort.damping == 0.0:
        low, high = max(low, -effort.limit), min(high, effort.limit)
        if not effort.varying:
            return _Effort(min(max(effort.constant, low), high), 0.0, 0.0)
        force = " + ".join((repr(effort.constant), *effort.varying))
        return _Effort(0.0, 0.0, 0.0, varying=(f"min(max({force}, {low!r}), {high!r})",))
    if not min(-low, high) > 0.0:
        return "forces in one direction only are not supported"
    return replace(effort, limit=min(-low, high, effort.limit))


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

    def scaled(factor: float) -> float | str:
        """``factor (constant + varying)``."""
        if not effort.varying:
            return factor * effort.constant
        return f"{factor!r}*({' + '.join((repr(effort.constant), *effort.varying))})"

    keys: dict[str, object]
    if effort.stiffness > 0.0:
        keys = {
            "mode": "pd",
            "target": scaled(coordinate.sign / effort.stiffness),
        }
        keys |= {"stiffness": effort.stiffness, "damping": effort.damping}
    elif effort.damping > 0.0:
        keys = {"mode": "velocity", "target": scaled(coordinate.sign / effort.damping), "damping": effort.damping}
    else:
        keys = {"mode": "force", "target": scaled(coordinate.sign)}
    keys = {key: value + 0.0 if isinstance(value, float) else value for key, value in keys.items()}
    return keys | ({"effort": effort.limit} if np.isfinite(effort.limit) else {})
