"""MuJoCo's compiler and its input: meshes, boxes for missing meshes, corrected inertias."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from abd.errors import SceneError
from abd.optional import required
from abd.rotations import quaternion, quaternion_matrix
from abd.scene.geometry.mass import nearest_inertia, symmetric_tensor
from abd.scene.importers.formats import ImportOptions
from abd.scene.importers.robots.assets import Assets

mujoco = required("mujoco", "robots", "mujoco", "reading URDF and MJCF")

SMALL = 1e-3
"""Mass of a massless link, relative to the smallest mass of the robot's other links."""
FAR = 1e9
"""Smallest bound of a range [rad or m] that means no bound."""
THIN = 1e-6
"""Least moment of S = tr(I)/2 - I, over the largest, of an inertia that is put in place of an impossible one."""


@dataclass
class Compiled:
    """A compiled robot.

    Attributes:
        spec: MuJoCo's `MjSpec`; model: its `MjModel`.
        meshes: key in `assets` of MuJoCo's meshes by name, without those that `refpos` or `refquat` moves.
        massless: names of bodies that got a mass; notes: changes.
    """

    spec: object
    model: object
    assets: Assets
    meshes: dict[str, str] = field(default_factory=dict)
    massless: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def disables(model, *what: str) -> bool:
    """Return whether a model disables one of these features, such as "LIMIT"."""
    bits = mujoco.mjtDisableBit
    return any(int(model.opt.disableflags) & int(getattr(bits, f"mjDSBL_{one}")) for one in what)


@contextmanager
def warnings_in(notes: list[str]) -> Iterator[None]:
    """Add warnings to the notes, which MuJoCo would print and write to a file in the working directory."""
    warned: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(warned.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        mujoco.set_mju_user_warning(before)
    warned += [str(warning.message) for warning in caught]
    notes += [f"MuJoCo: {_one_line(warning)}" for warning in dict.fromkeys(warned)]


def compile_robot(
    text: str,
    path: Path,
    assets: Assets,
    options: ImportOptions,
    hfields: dict[str, bytes] | None = None,
    floating: dict[str, str] | None = None,
    removed: str = "",
) -> Compiled:
    """Compile prepared XML.

    Args:
        hfields: content of the files of height fields; floating: joint of bodies that move freely, by their names;
        removed: elements that are not in the text.

    Raises:
        SceneError: MuJoCo rejects the file, or meshes are missing.
    """
    notes: list[str] = []
    try:
        with warnings_in(notes):
            spec = mujoco.MjSpec.from_string(text, assets=hfields or {})
            out = Compiled(spec, None, assets)
            _place_meshes(out, options, path)
            for name, joint in (floating or {}).items():  # three sliders and a ball: a free joint at any level of the tree
                for letter, axis in zip("xyz", np.eye(3)):
                    spec.body(name).add_joint(name=f"{joint}_{letter}", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
                spec.body(name).add_joint(name=joint, type=mujoco.mjtJoint.mjJNT_BALL)
            if options.free_base:
                _free_roots(spec, out.notes)
            for body in spec.bodies[1:]:
                _correct_inertia(body, out.notes)
            _give_mass(spec, out)
            _note_ranges(spec, out.notes)
            out.model = spec.compile()
    except (ValueError, RuntimeError, MemoryError) as error:
        text = re.sub("'(mesh_[0-9]+)'", lambda name: f"'{assets.files.get(f'{name[1]}.stl', name[1])}'", str(error))
        message = f"MuJoCo's compiler: {_one_line(text)}"
        remedy = f"correct the file{f' ({removed}; remove what refers to them)' if removed else ''}"
        raise SceneError.of(message, file=str(path), remedy=remedy) from None
    out.notes += notes
    return out


def _free_roots(spec, notes: list[str]) -> None:
    """Free the bodies that are fixed to the world."""
    roots = [body for body in spec.worldbody.bodies if not list(body.joints) and not body.mocap]
    for body in roots:
        body.add_freejoint()
        notes.append(f"body '{body.name}' is free (--free-base)")
    if not roots:
        notes.append("--free-base has no effect: no body is fixed to the world")


def _one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", "; ", text.strip().removeprefix("Error: "))


def _place_meshes(out: Compiled, options: ImportOptions, path: Path) -> None:
    """Set the vertices of every mesh; replace or report missing meshes."""
    spec, assets = out.spec, out.assets
    gone: dict[str, str] = {}
    for mesh in spec.meshes:
        key = mesh.file
        if not key:
            continue
        if tuple(mesh.refpos) == (0.0, 0.0, 0.0) and tuple(mesh.refquat) == (1.0, 0.0, 0.0, 0.0):
            out.meshes[mesh.name or Path(key).stem] = key
        if key in assets.missing:
            gone[mesh.name or Path(key).stem] = key
            continue
        found = assets.mesh(key)
        if found is None:
            mesh.file = str(assets.files[key])
        else:
            mesh.file = ""
            mesh.name = mesh.name or Path(key).stem
            mesh.uservert = found.vertices.astype(np.float32).ravel()
            mesh.userface = found.triangles.astype(np.int32).ravel()
    if not gone:
        return
    users = {name: [geom for geom in spec.geoms if geom.meshname == name] for name in gone}
    only_seen = {name for name, geoms in users.items() if all(not g.contype and not g.conaffinity for g in geoms)}
    needed = [key for name, key in gone.items() if name not in only_seen]
    listed = list(dict.fromkeys(assets.missing[key] for key in gone.values()))
    if needed and options.missing_meshes == "fail":
        message = "\n  ".join([f"{len(listed)} meshes are missing:", *listed])
        remedy = "give their folder with --assets DIR, or use boxes with --missing-meshes boxes"
        raise SceneError.of(message, file=str(path), value=listed, remedy=remedy)
    out.notes += [f"missing mesh: {one}" for one in listed]
    made, bare = [], []
    for body in spec.bodies:
        geoms = [geom for geom in body.geoms if geom.meshname in gone]
        solid = [geom for geom in geoms if geom.meshname not in only_seen]
        if solid:
            sizes = _add_box(body, solid[0])
            made += [f"'{body.name}' {sizes}"] if sizes else []
            bare += [] if sizes else [f"'{body.name}'"]
        for geom in geoms:
            spec.delete(geom)
    if made:
        out.notes.append(f"boxes [m] with their inertia replace the missing meshes of {', '.join(made)}")
    if bare:
        out.notes.append(
            f"missing meshes without a box, because the body has no inertia: {', '.join(bare)}"
        )
    for mesh in [mesh for mesh in spec.meshes if mesh.name in gone or Path(mesh.file).stem in gone]:
        spec.delete(mesh)


def _add_box(body, geom) -> str:
    """Add a box of the body's mass and inertia with the contact settings of a geom; return its extents, "" without inertia."""
    inertia = _inertia(body)
    if inertia is None or not body.mass > 0.0:
        return ""
    second, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    half = np.sqrt(3.0 * np.maximum(second, THIN * second.max()) / body.mass)
    extra = {key: getattr(geom, key) for key in ("contype", "conaffinity", "condim", "friction", "rgba", "group")}
    body.add_geom(
        name=f"{body.name}_box", type=mujoco.mjtGeom.mjGEOM_BOX, size=half, pos=body.ipos, quat=quaternion(axes), **extra
    )
    return " x ".join(f"{2.0 * x:.3g}" for x in half)


def _inertia(body) -> np.ndarray | None:
    """Return the inertia (3, 3) about the centre of mass in the axes of the body; None if it follows from shapes."""
    if not body.explicitinertial:
        return None
    full = np.array(body.fullinertia)
    if not np.isnan(full[0]):
        return symmetric_tensor(*full)
    rotation = quaternion_matrix(np.array(body.iquat))
    return rotation @ np.diag(body.inertia) @ rotation.T


def _correct_inertia(body, notes: list[str]) -> None:
    """Replace an impossible inertia by the nearest possible one.

    See `abd.scene.geometry.mass.nearest_inertia`.
    """
    inertia = _inertia(body)
    if inertia is None or not body.mass > 0.0:
        return
    if not inertia.any():
        value = 0.4 * body.mass * 0.05**2
        corrected = value * np.eye(3)
        notes.append(f"body '{body.name}' has mass but no inertia: that of a ball of radius 5 cm is used, {value:.3g} kg m^2")
    else:
        corrected = nearest_inertia(inertia, THIN)
        if corrected is inertia:
            return
        moments = [", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh(one)) for one in (inertia, corrected)]
        notes.append(
            f"body '{body.name}': principal inertias [{moments[0]}] kg m^2 are not possible; the nearest possible ones, "
            f"[{moments[1]}], are used"
        )
    if not np.isnan(np.array(body.fullinertia)[0]):
        body.fullinertia = [corrected[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    else:
        values, axes = np.linalg.eigh(corrected)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        body.inertia, body.iquat = values, quaternion(axes)


def _give_mass(spec, out: Compiled) -> None:
    """Assign a small mass to bodies that move and have none, also in the bodies fixed to them."""
    explicit = [body.mass for body in spec.bodies if body.explicitinertial and body.mass > 0.0]
    mass = SMALL * min(explicit) if explicit else 1.0
    length = 0.1
    for body in spec.bodies[1:]:
        if list(body.joints) and not _has_mass(body):
            body.explicitinertial, body.mass, body.ipos = True, mass, [0.0, 0.0, 0.0]
            body.inertia, body.iquat = [mass * length**2] * 3, [1.0, 0.0, 0.0, 0.0]
            out.massless.add(body.name)


def _note_ranges(spec, notes: list[str]) -> None:
    """Add notes about empty ranges, which MuJoCo ignores."""
    ranges = {
        "joint": (spec.joints, ("range", "actfrcrange")),
        "tendon": (spec.tendons, ("range", "actfrcrange")),
        "actuator": (spec.actuators, ("ctrlrange", "forcerange", "actrange")),
    }
    automatic = int(mujoco.mjtLimited.mjLIMITED_AUTO)
    for kind, (elements, keys) in ranges.items():
        for k, element in enumerate(elements):
            for key in keys:
                lower, upper = getattr(element, key)
                given = int(getattr(element, key.replace("range", "") + "limited"))
                if given == automatic and lower >= upper and (lower or upper):
                    notes.append(f"{kind} '{element.name or k}': {ignored_range(key, lower, upper)}")


def ignored_range(key: str, lower: float, upper: float) -> str:
    """Text of a note on a range without extent."""
    return f"its {key} [{lower:g}, {upper:g}] is ignored, as in MuJoCo: the lower bound must be below the upper bound"


def _has_mass(body) -> bool:
    """Return whether a body, or a body fixed to it, has mass."""
    if body.explicitinertial and body.mass > 0.0:
        return True
    for geom in body.geoms:
        given = not np.isnan(geom.mass)
        if (given and geom.mass > 0.0) or (not given and geom.density > 0.0):
            return True
    return any(not list(child.joints) and _has_mass(child) for child in body.bodies)
