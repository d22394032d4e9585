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
    """Load a scene; return it, its compiled model (None if that fails) and all problems in file order.

    Args:
        as for `abd.load`.

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
    lines = [
        f"{model.name}: {len(bodies)} bodies ({count or 'none'}), {planes} of them half-spaces",
        f"surfaces: {triangles} triangles on {len(meshed)} bodies, {len(model.meshes)} distinct meshes",
        f"mass: {_masses(model)}",
    ]
    if model.joints:
        types = Counter(JointList.of(model.joints).column("type").tolist())
        lines.append(f"joints: {', '.join(f'{types[name]} {name}' for name in sorted(types))}")
    if model.couplings:
        lines.append(f"couplings: {len(model.couplings)}")
    if model.joints:
        lines.extend(_mechanisms(model))
    lines.append(
        f"steps: {settings.frames} of {settings.dt:g} s, {settings.integrator}, contact within {_activations(model)} m"
    )
    lines.append(f"scales: tolerance {settings.tolerance:.3g} m/s, {_kappa(model)}")
    return lines + [f"note: {note}" for note in model.notes]


def _activations(model: Model) -> str:
    """Activation distances [m] as text: one number, or the smallest and the largest."""
    own = PairLaw(model).d_hat
    low, high = (f"{value:.3g}" for value in (own.min(initial=np.inf), own.max(initial=0.0)))
    return low if low == high else f"{low} .. {high}"


MECHANISMS_SHOWN = 5


def _mechanisms(model: Model) -> list[str]:
    """Rows, rank and mobility of the mechanisms that the joints form, the largest first."""
    from abd.joints.closure.redundancy import analyse

    found = sorted(analyse(model, model.bodies.q), key=lambda one: -one.rows)
    lines = []
    for one in found[:MECHANISMS_SHOWN]:
        text = f"mechanism: {len(one.bodies)} bodies, {len(one.joints)} joints, {one.rows} rows"
        if one.rank is None:
            lines.append(f"{text}, {one.note}")
            continue
        named = ", ".join(f"{row} of '{joint}'" for joint, row in one.redundant[:MECHANISMS_SHOWN])
        more = ", ..." if len(one.redundant) > MECHANISMS_SHOWN else ""
        spare = f", {len(one.redundant)} of them redundant ({named}{more})" if one.redundant else ""
        lines.append(f"{text}{spare}, mobility {one.mobility}")
    if len(found) > MECHANISMS_SHOWN:
        lines.append(f"and {len(found) - MECHANISMS_SHOWN} more mechanisms")
    return lines


def _kappa(model: Model) -> str:
    """Range of the stiffness of the dynamic bodies."""
    kappa = model.bodies.kappa[model.bodies.kind == Kind.DYNAMIC]
    if len(kappa) == 0:
        return "no kappa, because no body is dynamic"
    low, high = kappa.min(), kappa.max()
    return f"kappa {low:.2g} Pa" if low == high else f"kappa from {low:.2g} to {high:.2g} Pa"


def _masses(model: Model) -> str:
    """Total and range of the masses of the dynamic bodies."""
    mass = model.bodies.mass[model.bodies.kind == Kind.DYNAMIC]
    if len(mass) == 0:
        return "no dynamic body"
    lightest, heaviest = int(np.argmin(mass)), int(np.argmax(mass))
    dynamic, names = np.flatnonzero(model.bodies.kind == Kind.DYNAMIC), model.bodies.names
    text = f"{mass.sum():.6g} kg in total, from {mass[lightest]:.4g} kg ({names[dynamic[lightest]]})"
    return f"{text} to {mass[heaviest]:.4g} kg ({names[dynamic[heaviest]]})"
