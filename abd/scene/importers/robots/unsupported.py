"""Values of a model that change its motion in MuJoCo, and that a scene does not have."""

from __future__ import annotations

import numpy as np

from abd.scene.importers.robots.compiled import mujoco

SHOWN = 3
"""Elements that a note names."""
DAMPED = 0.99
"""Damping ratio from which contacts and limits do not rebound, with room for rounding."""


def note_unsupported(model, notes: list[str]) -> None:
    """Add a note about all such values other than 0; they are ignored."""
    touching = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    options = {
        "density in <option>": model.opt.density,
        "viscosity in <option>": model.opt.viscosity,
        "override in <flag>": int(model.opt.enableflags) & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE),
    }
    underdamped = {
        "joint": _underdamped(model.jnt_solref) & (model.jnt_limited != 0),
        "tendon": _underdamped(model.tendon_solref_lim) & (model.tendon_limited != 0),
        "equality": _underdamped(model.eq_solref),
        "geom": _underdamped(model.geom_solref) & touching,
        "pair": _underdamped(model.pair_solref),
    }
    values = {
        # kind of element: rows of its elements by key
        "joint": {
            "margin": model.jnt_margin * model.jnt_limited,
            "nonlinear stiffness": model.jnt_stiffnesspoly,
            "nonlinear damping": model.dof_dampingpoly[model.jnt_dofadr],
            "springyield": model.jnt_springyield,
            "actuatorgravcomp within actuatorfrcrange": model.jnt_actgravcomp & model.jnt_actfrclimited,
        },
        "tendon": {
            "margin": model.tendon_margin * model.tendon_limited,
            "nonlinear stiffness": model.tendon_stiffnesspoly,
            "nonlinear damping": model.tendon_dampingpoly,
            "springyield": model.tendon_springyield,
            "actuatorfrcrange": model.tendon_actfrclimited,
        },
        "actuator": {"nonlinear damping": model.actuator_dampingpoly, "delay": model.actuator_delay},
        "geom": {
            "margin": model.geom_margin * touching,
            "adhesion": model.geom_adhesion,
            "surfacevel": model.geom_surfacevel,
            "gap": model.geom_gap * touching,
        },
        "pair": {
            "margin": model.pair_margin,
            "adhesion": model.pair_adhesion,
            "gap": model.pair_gap,
            "anisotropic friction": model.pair_friction[:, [0, 3]] - model.pair_friction[:, [1, 4]],
        },
    }
    found = [key for key, value in options.items() if value]
    for kind, rows_by_key in values.items():
        for key, rows in rows_by_key.items():
            numbers = np.flatnonzero(np.any(rows, axis=tuple(range(1, rows.ndim)))).tolist()
            found += [f"{key} of {_listed(model, kind, numbers)}"] if numbers else []
    listed = [_listed(model, kind, np.flatnonzero(rows).tolist()) for kind, rows in underdamped.items() if rows.any()]
    if listed:
        found.append(f"underdamped solref (for contacts and limits use restitution) of {', '.join(listed)}")
    if found:
        notes.append(f"not supported: {'; '.join(found)}")


def _underdamped(solref: np.ndarray) -> np.ndarray:
    """Return whether rows (time constant, damping ratio), or (-stiffness, -damping), are underdamped."""
    critical = np.where(solref[:, 0] > 0.0, 1.0, 2.0 * np.sqrt(np.abs(solref[:, 0])))
    return np.abs(solref[:, 1]) < DAMPED * critical


def _listed(model, kind: str, numbers: list[int]) -> str:
    """Return the kind and the first names of elements; the numbers of those without a name."""
    of_kind = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    names = [mujoco.mj_id2name(model, of_kind, k) for k in numbers[:SHOWN]]
    words = ", ".join(f"'{name}'" if name else str(k) for k, name in zip(numbers, names))
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return f"{kind}{'s' if len(numbers) > 1 else ''} {words}{more}"
