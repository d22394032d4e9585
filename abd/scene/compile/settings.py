"""Settings of a compiled scene with explicit values of all defaults; pairs of materials and bodies."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import combinations

import numpy as np

from abd.errors import Problem
from abd.model import Materials, Model, Settings, steps_in
from abd.names import Names
from abd.scene.compile.bodies import Records
from abd.scene.compile.scales import default_tolerance
from abd.scene.schema.schema import DEFAULT_MATERIAL, SceneSpec
from abd.scene.schema.solver_schema import SolverSpec


def settings_of(spec: SceneSpec, records: Records) -> Settings:
    """Return the settings; both tolerances are still NaN (`with_tolerances`)."""
    diagonal = _diagonal(records)
    solver, output = spec.solver, spec.output
    frames = output.frames or 100
    if output.duration is not None:
        frames = max(1, steps_in(output.duration, max(solver.world_dt, default=solver.dt)))
    own = {one.name: getattr(solver, one.name) for one in fields(Settings) if one.name in SolverSpec.model_fields}
    own |= {
        "integrator": "generalized_alpha" if solver.integrator == "bdf2" else solver.integrator,
        "gravity": np.array(spec.gravity),
        "contact_stiffness": None if solver.contact_stiffness == "auto" else float(solver.contact_stiffness),
        "tolerance": np.nan,
        "friction_tolerance": np.nan,
    }
    return Settings(**own, frames=frames, diagonal=diagonal)


def solver_notes(solver: SolverSpec) -> list[str]:
    """Return the notes about solver settings that are replaced."""
    if solver.integrator != "bdf2":
        return []
    return ["solver.integrator = 'bdf2' is no longer available: 'generalized_alpha', also of second order, is used"]


def with_tolerances(model: Model, solver: SolverSpec) -> Model:
    """Return the model with tolerances, by default from its bodies."""
    tolerance, friction = solver.tolerance, solver.friction_tolerance
    is_relative = solver.tolerance_relative is not None
    if tolerance is None:
        tolerance = solver.tolerance_relative * model.settings.diagonal if is_relative else default_tolerance(model)
    if friction is None:
        friction = tolerance if is_relative else min(tolerance, 0.05 * solver.eps_v)
    return replace(model, settings=replace(model.settings, tolerance=tolerance, friction_tolerance=friction))


def _diagonal(records: Records) -> float:
    """Diagonal [m] of the box around all surfaces at t = 0, without half-spaces; 1 without any."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    least, most = (np.full((len(records.firsts), 3), end) for end in (np.inf, -np.inf))
    np.minimum.at(least, records.first, records.q[:, :3])
    np.maximum.at(most, records.first, records.q[:, :3])
    for record, first, last in zip(records.firsts, least, most, strict=True):
        if record.surface is not None:
            rotation = record.q[3:].reshape(3, 3)
            relative = record.surface.vertices @ (rotation @ record.body_frame[:3, :3]).T
            shift = rotation @ record.body_frame[:3, 3]
            low = np.minimum(low, relative.min(axis=0) + (shift + first) - record.radius)
            high = np.maximum(high, relative.max(axis=0) + (shift + last) + record.radius)
    diagonal = float(np.linalg.norm(high - low)) if np.isfinite(low).all() else 0.0
    return diagonal if diagonal > 0.0 else 1.0


def materials_of(spec: SceneSpec) -> Materials:
    """Return pairwise tables: geometric means such as sqrt(mu_a mu_b), or the values of a [[material_pair]]."""
    given = ("mu", "restitution", "rolling", "spinning")
    own = {DEFAULT_MATERIAL: (0.0, 0.0, 0.0, 0.0)} | {
        one.name: tuple(getattr(one, name) for name in given) for one in spec.material
    }
    names = list(own)
    tables = {name: np.sqrt(np.outer(column, column)) for name, column in zip(given, np.array([*own.values()]).T, strict=True)}
    for k, table in enumerate(tables.values()):
        np.fill_diagonal(table, [values[k] for values in own.values()])  # without rounding
    stiffness, enabled = np.ones_like(tables["mu"]), np.ones(tables["mu"].shape, dtype=bool)
    for pair in spec.material_pair:
        a, b = (names.index(name) for name in pair.between)
        for name in given:
            if (value := getattr(pair, name)) is not None:
                tables[name][a, b] = tables[name][b, a] = value
        stiffness[a, b] = stiffness[b, a] = pair.stiffness
        enabled[a, b] = enabled[b, a] = pair.enabled
    return Materials(names=names, stiffness=stiffness, enabled=enabled, **tables)


def filtered_pairs(spec: SceneSpec, names: Names, problems: list[Problem]) -> np.ndarray:
    """Return the filtered pairs of bodies (k, 2), smaller index first, without repetition and disabled bodies.

    Args:
        names: of all bodies, in order.
        problems: receives problems about unknown components of split bodies.
    """
    disabled = {body.name for body in spec.body if not body.enabled}
    found = set()
    for index, one in enumerate(spec.contact_filter):
        for name in one.bodies:
            if name not in names and name not in disabled:
                problems.append(Problem(f"there is no body '{name}'", f"contact_filter[{index}].bodies", name))
        indices = (names.find(name) for name in one.bodies)
        found.update(combinations(sorted(k for k in indices if k is not None), 2))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
