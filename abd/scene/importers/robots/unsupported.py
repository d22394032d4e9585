"""Values of a model that change its motion in MuJoCo, and that a scene does not have."""

from __future__ import annotations

import numpy as np

from abd.scene.importers.robots.compiled import mujoco

SHOWN = 3
"""Elements that a note names."""


def note_unsupported(model, notes: list[str]) -> None:
    """Add a note about all such values other than 0; they are ignored."""
    touching = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    options = {
        "density in <option>": model.opt.density,
        "viscosity in <option>": model.opt.viscosity,
        "override in <flag>": int(model.opt.enableflags) & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE),
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
        },
        "pair": {"margin": model.pair_margin, "adhesion": model.pair_adhesion},
    }
    found = [key for key, value in options.items() if value]
    for kind, rows_by_key in values.items():
        for key, rows in rows_by_key.items():
            numbers = np.flatnonzero(np.any(rows, axis=tuple(range(1, rows.ndim)))).tolist()
            found += [f"{key} of {_listed(model, kind, numbers)}"] if numbers else []
    if found:
        notes.append(f"not supported: {'; '.join(found)}")


def _listed(model, kind: str, numbers: list[int]) -> str:
    """Return the kind and the first names of elements; the numbers of those without a name."""
    of_kind = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    names = [mujoco.mj_id2name(model, of_kind, k) for k in numbers[:SHOWN]]
    words = ", ".join(f"'{name}'" if name else str(k) for k, name in zip(numbers, names))
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return f"{kind}{'s' if len(numbers) > 1 else ''} {words}{more}"
