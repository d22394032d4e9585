"""`abd check`: compile a scene, report all its problems and summarise its contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from abd.contact.pair_law import PairLaw
from abd.errors import Problem, SceneError
from abd.joint_list import JointList
from abd.model import Kind, Model
from abd.scene.all_problems import further_problems
from abd.scene.checks.checks import check_scene
from abd.scene.files.reader import Examined, examine
from abd.scene.importers.formats import find_scene
from abd.scene.scene import Scene, is_native, load
from abd.scene.schema.findings import as_problem


def check(
    source: str | Path,
    overrides: Iterable[str] = (),
    allow_overlaps: bool = False,
    allow_code: bool = False,
    **import_options: Any,
) -> tuple[Scene, Model | None, list[Problem]]:
    """Load a scene as `abd.load`; return it, its compiled model (None if that fails) and all problems in file order.

    Raises:
        SceneError: the scene does not exist, is not a scene, or cannot be imported.
    """
    overrides, path = list(overrides), find_scene(source)
    if is_native(path):
        found, problems = examine(path, allow_code)
        if problems:
            scene = Scene.from_spec(found.spec, path=path)
            further, model = further_problems(found, not allow_overlaps)
            try:
                scene.override(overrides)
            except SceneError as error:
                problems += error.problems
            return scene, model, _in_order(problems + scene.located(further))
    scene = load(source, overrides, allow_overlaps, allow_code=allow_code, **import_options)
    origin = {key: list(range(len(items))) for key, items in scene.spec if isinstance(items, list)}
    findings = check_scene(scene.spec)
    problems = [as_problem(finding, scene.spec) for finding in findings]
    further, model = further_problems(Examined(scene.spec, findings, origin, {}), not allow_overlaps)
    if model is not None:
        model = replace(model, notes=list(dict.fromkeys([*scene.notes, *model.notes])))
    return scene, model, _in_order(scene.located(problems + further))


def _in_order(problems: list[Problem]) -> list[Problem]:
    """Remove duplicate problems and sort by line."""
    once = {(one.file, one.line, one.key, one.message): one for one in problems}
    return sorted(once.values(), key=lambda one: one.line or 0)


def as_table(scene: Scene | None, model: Model | None, problems: list[Problem]) -> dict[str, Any]:
    """Return the output of `abd check --json`."""
    keys = ("level", "file", "line", "key", "message", "value", "remedy")
    found = [{key: _plain(getattr(one, key)) for key in keys} for one in problems]
    lines = summary(model) if model is not None and not problems else []
    return {"scene": None if scene is None else scene.name, "problems": found, "summary": lines}


def _plain(value: Any) -> Any:
    """Convert a value for JSON: numbers, booleans and lists stay, everything else becomes text."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def summary(model: Model) -> list[str]:
    """Summarise bodies, surfaces, masses, joints, settings and notes of a scene in lines."""
    bodies, settings = model.bodies, model.settings
    kinds = Counter(Kind(kind) for kind in bodies.kind.tolist())
    count = ", ".join(f"{kinds[kind]} {kind.name.lower()}" for kind in Kind if kinds[kind])
    planes = int(np.isfinite(bodies.plane[:, 3]).sum())
    meshed = bodies.mesh[bodies.mesh >= 0]
    triangles = sum(len(model.meshes[k].triangles) for k in meshed)
    lines = [f"{model.name}: {_counted(len(bodies), 'body', 'bodies')} ({count or 'none'})"]
    lines[0] += f", {planes} of them {'half-spaces' if planes > 1 else 'a half-space'}" if planes else ""
    if len(meshed):
        on, distinct = _counted(len(meshed), "body", "bodies"), _counted(len(model.meshes), "distinct mesh", "distinct meshes")
        lines.append(f"surfaces: {triangles} triangles on {on}, {distinct}")
    lines.append(f"mass: {_masses(model)}")
    if model.joints:
        types = Counter(JointList.of(model.joints).column("type").tolist())
        lines.append(f"joints: {', '.join(f'{types[name]} {name}' for name in sorted(types))}")
    if model.couplings:
        lines.append(f"couplings: {len(model.couplings)}")
    if model.joints:
        lines.extend(_mechanisms(model))
    activation = _range(PairLaw(model).d_hat, ".3g")
    lines.append(f"steps: {settings.frames} of {settings.dt:g} s, {settings.integrator}, contact within {activation} m")
    kappa = bodies.kappa[bodies.kind == Kind.DYNAMIC]
    stiffness = f"kappa {_range(kappa, '.2g')} Pa" if len(kappa) else "no kappa, because no body is dynamic"
    lines.append(f"scales: tolerance {settings.tolerance:.3g} m/s, {stiffness}")
    return lines + [f"note: {note}" for note in model.notes]


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _range(values: np.ndarray, digits: str) -> str:
    """Return values as text: one number, or the smallest and the largest."""
    low, high = (format(value, digits) for value in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"


MECHANISMS_SHOWN = 5


def _mechanisms(model: Model) -> list[str]:
    """Return rows, rank and mobility of the mechanisms that the joints form, the largest first."""
    from abd.joints.closure.redundancy import analyse

    found = list(Counter(map(_mechanism, sorted(analyse(model, model.bodies.q), key=lambda one: -one.rows))).items())
    shown, more = found[:MECHANISMS_SHOWN], sum(count for _, count in found[MECHANISMS_SHOWN:])
    lines = [f"mechanism: {text}" if count == 1 else f"{count} mechanisms, each: {text}" for text, count in shown]
    return lines + ([f"and {more} more mechanisms"] if more else [])


def _mechanism(one: Any) -> str:
    """Return rows, rank and mobility of one mechanism (`abd.joints.closure.redundancy`)."""
    bodies, joints = _counted(len(one.bodies), "body", "bodies"), _counted(len(one.joints), "joint", "joints")
    text = f"{bodies}, {joints}, {one.rows} rows"
    if one.rank is None:
        return f"{text}, {one.note}"
    named = ", ".join(f"{row} of '{joint}'" for joint, row in one.redundant[:MECHANISMS_SHOWN])
    more = ", ..." if len(one.redundant) > MECHANISMS_SHOWN else ""
    spare = f", {len(one.redundant)} of them redundant ({named}{more})" if one.redundant else ""
    return f"{text}{spare}, mobility {one.mobility}"


def _masses(model: Model) -> str:
    """Total and range of the masses of the dynamic bodies."""
    dynamic, names = np.flatnonzero(model.bodies.kind == Kind.DYNAMIC), model.bodies.names
    mass = model.bodies.mass[dynamic]
    if len(mass) == 0:
        return "no dynamic body"
    if len(mass) == 1:
        return f"{mass[0]:.6g} kg ({names[dynamic[0]]})"
    if np.isclose(mass.min(), mass.max(), rtol=1e-4, atol=0.0):
        return f"{mass.sum():.6g} kg in total, {mass[0]:.4g} kg each"
    ends = (f"{mass[k]:.4g} kg ({names[dynamic[k]]})" for k in (mass.argmin(), mass.argmax()))
    return f"{mass.sum():.6g} kg in total, from {' to '.join(ends)}"
