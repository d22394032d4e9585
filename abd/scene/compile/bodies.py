"""Compilation of bodies from specs and surfaces to the values of `abd.model.Bodies`.

Tables that differ only in name, world and position are compiled once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from abd import rotations
from abd.errors import Problem, SceneError
from abd.model import WORLD, Kind, affine_state
from abd.names import CopyNames, Names, copy_place
from abd.scene.compile.motion import Motion, prescribed_motion
from abd.scene.geometry.frames import frame_pose
from abd.scene.geometry.matter import BodySource, Matter
from abd.scene.geometry.meshes import Surface
from abd.scene.schema.fields import in_radians
from abd.scene.schema.findings import located
from abd.scene.schema.schema import BodySpec, RepeatSpec, SceneSpec
from abd.scene.schema.values import AXIS_NAMES


def copy_names(name: str, repeat: RepeatSpec | None) -> Sequence[str]:
    """Return the names of the copies of a body."""
    return [name] if repeat is None else CopyNames(name, repeat.count)


def grid(count: tuple[int, int, int]) -> np.ndarray:
    """Return grid indices (k, 3), z fastest."""
    return np.stack(np.unravel_index(np.arange(int(np.prod(count))), count), axis=1)


def copy_end(name: str, place: tuple[int, int, int], repeated: dict[str, BodySpec]) -> str:
    """Return the name of the body of a joint's copy at a grid index, if that of the first copy is `name`."""
    found = copied(name, repeated)
    if found is None:
        return name
    i, j, k = (a + b for a, b in zip(found[1], place, strict=True))
    return f"{found[0].name}_{i}_{j}_{k}"


def copied(name: str, repeated: dict[str, BodySpec]) -> tuple[BodySpec, tuple[int, int, int]] | None:
    """Return the repeated body and the grid index of a copy; None for other names."""
    found = copy_place(name)
    return None if found is None or found[0] not in repeated else (repeated[found[0]], found[1])


def repeated_bodies(bodies: list[BodySpec]) -> dict[str, BodySpec]:
    """Return bodies with copies, by the name of their table."""
    return {body.name: body for body in bodies if body.repeat is not None}


START = 1e-3
"""Part of a time step over which a difference quotient gives the initial velocity of a prescribed body."""
ROUNDING = 1e-14
"""Change of a prescribed position [m] or map in this time that counts as rounding."""
_LINE = 1e-12
"""Second largest moment of S, relative to the largest, below which a body counts as a line or a point."""


@dataclass
class BodyRecord:
    """The row of one body in `abd.model.Bodies`, with its surface and motion; the shapes are those given there."""

    name: str
    kind: Kind
    surface: Surface | None
    spec: BodySpec
    body_frame: np.ndarray = field(default_factory=lambda: np.eye(4))
    plane: np.ndarray = field(default_factory=lambda: np.full(4, np.nan))
    mass: float = 0.0
    moment: np.ndarray = field(default_factory=lambda: np.zeros(3))
    volume: float = 0.0
    q: np.ndarray = field(default_factory=lambda: affine_state(np.eye(4)))
    qd: np.ndarray = field(default_factory=lambda: np.zeros(12))
    force: np.ndarray = field(default_factory=lambda: np.zeros(3))
    torque: np.ndarray = field(default_factory=lambda: np.zeros(3))
    free_translation: np.ndarray = field(default_factory=lambda: np.zeros(3, dtype=bool))
    rotation_axis: np.ndarray = field(default_factory=lambda: np.zeros(3))
    free_rotation: int = 0
    radius: float = 0.0
    center: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """Initial vector from the origin of the mesh frame to that of the internal frame, world axes [m]."""
    motion: Motion | None = None
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Keys whose part along fixed axes has no effect."""


def compile_body(name: str, spec: BodySpec, surface: Surface | None, source: BodySource, dt: float) -> BodyRecord:
    """Resolve one body that has passed `abd.scene.checks.checks`.

    Args:
        name: name of the body or of one of its components; spec: an expanded body, without `repeat`.
        surface: scaled; None for proxies and half-spaces.
        dt: time step [s], over which the initial velocity of a kinematic body is taken.

    Raises:
        SceneError: mass properties cannot be determined, or the motion cannot be read.
    """
    if spec.half_space is not None:
        normal = np.array(spec.half_space.normal)
        plane = np.append(normal / np.linalg.norm(normal), spec.half_space.offset)
        return BodyRecord(name, Kind.STATIC, None, spec, plane=plane)
    # along and about the world axes
    fixed_translation, fixed_rotation = np.isin(AXIS_NAMES, spec.fix).reshape(2, 3)
    kind = Kind[spec.kind.upper()]
    if kind is Kind.DYNAMIC and fixed_translation.all() and fixed_rotation.all():
        kind = Kind.STATIC
    record = BodyRecord(name, kind, surface, spec, radius=_contact_radius(spec, surface))
    matter = source.matter(spec, surface, needed=kind is Kind.DYNAMIC)
    if matter is not None:
        record.mass, record.volume, record.notes = matter.mass, matter.volume, list(matter.notes)

    pose = frame_pose(spec)
    if kind is Kind.STATIC:
        record.q = affine_state(pose)
    elif kind is Kind.KINEMATIC:
        center = spec.center_of_mass if matter is None else matter.center
        record.motion = prescribed_motion(spec.motion, pose, center, f"body.{spec.name}.motion")
        record.q = affine_state(record.motion(0.0))
        short = START * dt
        first, second = (affine_state(record.motion(time)) for time in (short, 2.0 * short))
        change = 4.0 * first - second - 3.0 * record.q
        record.qd = np.where(np.abs(change) > ROUNDING, change, 0.0) / (2.0 * short)
    else:
        _set_free(record, pose, matter, fixed_translation, fixed_rotation)
    if kind is not Kind.DYNAMIC and matter is not None:
        record.moment = matter.mesh_moments
    return record


def surface_size(record: BodyRecord) -> float:
    """Return the diagonal [m] of the bounding box of the body's surface with contact radius; 0 without a surface."""
    if record.surface is None:
        return 0.0
    return float(np.linalg.norm(np.ptp(record.surface.vertices, axis=0) + 2.0 * record.radius))


def _set_free(
    record: BodyRecord,
    pose: np.ndarray,
    matter: Matter,
    fixed_translation: np.ndarray,
    fixed_rotation: np.ndarray,
) -> None:
    """Set frame, initial state, loads and degrees of freedom of a dynamic body."""
    spec = record.spec
    axes, record.moment = matter.axes, matter.moments
    largest = record.moment.max()
    if not fixed_rotation.all() and np.sort(record.moment)[1] <= _LINE * largest:
        message = f"it has no inertia about {'its line' if largest > 0.0 else 'its point'}"
        remedy = "give a radius, or fix its rotations (rx, ry, rz)"
        raise SceneError.of(message, value=record.moment.tolist(), remedy=remedy)
    record.body_frame = rotations.inverse(rotations.pose(axes, matter.center))
    rotation = pose[:3, :3] @ axes
    record.center = pose[:3, :3] @ matter.center
    record.q = affine_state(rotations.pose(rotation, record.center + pose[:3, 3]))

    spin = np.array(in_radians(spec, "angular_velocity"))
    along, about = (("velocity", spec.velocity), ("force", spec.force)), (("torque", spec.torque), ("angular_velocity", spin))
    for fixed, values in ((fixed_translation, along), (fixed_rotation, about)):
        record.lost += [key for key, value in values if np.array(value)[fixed].any()]
    angular = np.where(fixed_rotation, 0.0, spin)
    turning = np.cross(angular, rotation, axisb=0, axisc=0).reshape(9) if angular.any() else np.zeros(9)
    record.qd = np.concatenate([np.where(fixed_translation, 0.0, spec.velocity), turning])
    record.force = np.where(fixed_translation, 0.0, spec.force)
    record.torque = np.where(fixed_rotation, 0.0, spec.torque)
    record.free_translation = ~fixed_translation
    record.free_rotation = {0: 3, 2: 1, 3: 0}[int(fixed_rotation.sum())]
    if record.free_rotation == 1:
        record.rotation_axis = np.where(fixed_rotation, 0.0, 1.0)


def _contact_radius(spec: BodySpec, surface: Surface | None) -> float:
    """Return the contact radius [m]: the largest of half thickness (open surface), radius (rods, points, exact sphere or
    capsule) and rounding."""
    if surface is None:
        return 0.0
    half_thickness = spec.thickness / 2.0 if len(surface.triangles) and not surface.closed else 0.0
    thin = spec.radius if len(surface.codim_edges) or len(surface.points) else 0.0
    return max(half_thickness, thin, surface.radius, spec.rounding)


@dataclass(frozen=True, eq=False)
class Records(Sequence):
    """All bodies in order; bodies that differ only in names, worlds and positions share a record.

    Attributes:
        firsts: the records, in the order of the first body of each.
        first: (n,) index of the record of every body; names: of all bodies.
        world: (n,) int32, their worlds; position: (n, 3) of their mesh frames [m].
    """

    firsts: list[BodyRecord]
    first: np.ndarray
    names: Names
    world: np.ndarray
    position: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, k: int) -> BodyRecord:
        return replace(self.firsts[self.first[k]], name=self.names[k], q=self.q[k])

    @property
    def counts(self) -> np.ndarray:
        """Number of bodies of each record."""
        return np.bincount(self.first, minlength=len(self.firsts))

    def identity(self, k: int) -> Hashable:
        """Return a key that is equal for bodies that differ only in names and worlds; k may be `WORLD`."""
        return None if k == WORLD else (int(self.first[k]), *self.position[k].tolist())

    def chosen(self, records: Iterable[bool]) -> np.ndarray:
        """Return the indices of the bodies of selected records (bool for each)."""
        return np.flatnonzero(np.fromiter(records, dtype=bool, count=len(self.firsts))[self.first])

    @cached_property
    def q(self) -> np.ndarray:
        """(n, 12) initial states."""
        q = np.array([record.q for record in self.firsts]).reshape(-1, 12)[self.first]
        center = np.array([record.center for record in self.firsts]).reshape(-1, 3)[self.first]
        dynamic, still = (self.chosen(one.kind is kind for one in self.firsts) for kind in (Kind.DYNAMIC, Kind.STATIC))
        q[dynamic, :3] = center[dynamic] + self.position[dynamic]
        q[still, :3] = self.position[still]
        return q


UNSHARED = ("name", "world", "position")
"""Keys in which bodies of one record differ."""


def compile_bodies(spec: SceneSpec, wrong: set[int], problems: list[Problem]) -> Records:
    """Compile all bodies except the `wrong` ones; problems of equal bodies are added to `problems` once."""
    source, lengths = BodySource(), spec.solver.world_dt or defaultdict(lambda: spec.solver.dt)
    firsts, known = list[BodyRecord](), dict[Hashable, tuple[dict[str, int], Faults]]()
    faults, faulty = Faults(), Counter[tuple[str, str]]()
    names, components = list[str | CopyNames](), list[tuple[str, str]]()
    numbers, worlds, places = list[int](), list[int](), list[Sequence[Sequence[float]]]()
    for table, body in enumerate(spec.body):
        if table in wrong or not body.enabled:
            continue
        for one, named, positions in _compiled_alone(body):
            dt = lengths[one.world]
            # the record of a prescribed motion holds the place and the time step
            key = one.content(*UNSHARED) if one.motion is None else (one.content("name", "world"), dt)
            if key not in known:
                found, own = _compiled(one, f"body.{body.name}", dt, source)
                known[key] = {suffix: len(firsts) + k for k, suffix in enumerate(found)}, own
                firsts += found.values()
                faults = own | faults
            found, own = known[key]
            faulty.update(dict.fromkeys(own, len(named)))
            for suffix, number in found.items():
                names.append(f"{one.name}{suffix}" if len(named) == 1 else named)
                components += [(f"{one.name}{suffix}", body.name)] if suffix else []
                numbers.append(number)
                worlds.append(one.world)
                places.append(positions)
    single = Counter(name for name in names if isinstance(name, str))
    for name, table in components:
        if single[name] > 1:
            message, remedy = f"component '{name}' has the name of another body", "rename one of the bodies"
            problems.append(Problem(message, f"body.{table}.name", name, remedy=remedy))
    for fault, count in faulty.items():
        name, problem = faults[fault]
        problems.append(replace(problem, message=f"body '{name}'{and_more(count)}: {problem.message}"))
    counts = [len(positions) for positions in places]
    first, world = (np.repeat(np.array(values, dtype=np.int32), counts) for values in (numbers, worlds))
    return Records(firsts, first, Names(names), world, np.concatenate([np.zeros((0, 3)), *places]))


Faults = dict[tuple[str, str], tuple[str, Problem]]
"""Name of the first body and problem, by the table or the mesh file, and the message."""


def _compiled(one: BodySpec, where: str, dt: float, source: BodySource) -> tuple[dict[str, BodyRecord], Faults]:
    """Return the record of a body, or of every component of a split body, by the suffix of its name, and its faults."""
    try:
        surfaces = source.surfaces(one)
    except SceneError as error:
        key = f"{where}.{'surface' if one.mesh is None else 'mesh'}"
        return {}, {(one.mesh or where, found.message): (one.name, located(found, key)) for found in error.problems}
    records, faults = dict[str, BodyRecord](), Faults()
    for k, surface in enumerate(surfaces or [None]):
        suffix = f"_{k}" if one.split_components and surfaces else ""
        name = f"{one.name}{suffix}"
        try:
            records[suffix] = compile_body(name, one, surface, source, dt)
        except SceneError as error:
            for found in error.problems:
                faults.setdefault((where, found.message), (name, located(found, where)))
    return records, faults


def and_more(count: int) -> str:
    """Return the text " (and N more)" for a number of equal bodies."""
    return f" (and {count - 1} more)" if count > 1 else ""


def notes_of(record: BodyRecord, count: int) -> list[str]:
    """Return notes for the user about the bodies of a record."""
    body = f"body '{record.name}'{and_more(count)}"
    return [*record.notes, *(f"{body}: the part of its {key} along fixed axes has no effect" for key in record.lost)]


def _compiled_alone(body: BodySpec) -> list[tuple[BodySpec, Sequence[str], Sequence[Sequence[float]]]]:
    """Return the bodies of a table to compile, each with names and positions of the bodies that it represents.

    The first copy represents all, unless they split into components or have a motion.
    """
    if body.repeat is None:
        return [(body, [body.name], [body.position])]
    names = CopyNames(body.name, body.repeat.count)
    positions = np.array(body.position) + grid(body.repeat.count) * np.array(body.repeat.step)
    one_each = body.split_components or body.motion is not None
    places = zip(names, positions.tolist()) if one_each else [(names[0], positions[0].tolist())]
    copies = [body.model_copy(update={"name": name, "position": tuple(place), "repeat": None}) for name, place in places]
    return [(one, [one.name], [one.position]) for one in copies] if one_each else [(copies[0], names, positions)]
