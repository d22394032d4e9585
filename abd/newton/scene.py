"""A Newton model in a state, as a scene.

Bodies keep Newton's numbers; static shapes (those of body -1) follow as bodies of their own, once for every world. Material and
margin of a body are the largest values of its shapes. Joints are exact, and their limits are never passed; those that a start
already violates are compliant, with Newton's stiffness. A joint's axis becomes z of both of its frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np

from abd.newton.joints import Joints
from abd.newton.model_values import ModelError, enlarged, plane_keys, shape_collider, transform_matrix, unique_names
from abd.scene.compile.bodies import and_more
from abd.scene.importers.compound import Collider, keys
from abd.scene.scene import Scene


@dataclass
class Translated:
    """A scene made of a model, with its bodies in order and static shapes behind, and notes on changes and ignored parts.

    Attributes:
        coordinates: (joint name, coordinate, its place in Newton's joint_q, number of the degree of freedom) of joints with axes.
        drives: (joint name, coordinate, number of the coordinate's target, number of the degree of freedom, with a position).
        single: joints of one coordinate: number, name and coordinate.
    """

    scene: Scene
    coordinates: list[tuple[str, str, int, int]] = field(default_factory=list)
    drives: list[tuple[str, str, int, int, bool]] = field(default_factory=list)
    single: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def translate(
    newton,
    model,
    body_q: np.ndarray,
    body_qd: np.ndarray,
    joint_q: np.ndarray,
    dt: float,
    enforcement: str,
    solver: dict,
) -> Translated:
    """Return the scene of a model whose bodies are at `body_q` (n, 7) with the velocities `body_qd` (n, 6).

    Raises `ModelError` for a shape, a joint or gravity that a scene cannot have."""
    scene = Scene("newton", gravity=_gravity(model), solver={"dt": dt, **solver})
    out = Translated(scene)
    materials = _Materials(scene, model, out)
    world, flags = _numpy(model.body_world), _numpy(model.body_flags)
    mass, com, inertia = _numpy(model.body_mass), _numpy(model.body_com), _numpy(model.body_inertia)
    names = unique_names([str(label) or f"body_{k}" for k, label in enumerate(model.body_label)])
    shapes = _Shapes(newton, model, out)
    for k in range(model.body_count):
        colliders = shapes.of_body(k)
        if world[k] < 0 and colliders and model.world_count > 1:
            raise ModelError(f"body '{names[k]}' collides in all worlds: SolverABD needs one such body in each world")
        table = materials.applied(keys(colliders), names[k], shapes.numbers(k))
        T = transform_matrix(body_q[k])
        R = T[:3, :3]
        table |= {"position": T[:3, 3].tolist(), "matrix": R.tolist(), "world": max(int(world[k]), 0)}
        moves = mass[k] > 0.0 and not flags[k] & int(newton.BodyFlags.KINEMATIC)
        if mass[k] > 0.0:
            table |= {
                "mass": float(mass[k]),
                "center_of_mass": com[k].astype(float).tolist(),
                "inertia": (0.5 * (inertia[k] + inertia[k].T)).astype(float).tolist(),
            }
        elif not colliders:
            # a frame of other bodies: its mass has no effect, because no force moves it
            table |= {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}
        if moves:
            table |= {"velocity": body_qd[k, :3].tolist(), "angular_velocity": body_qd[k, 3:].tolist()}
        else:
            table |= {"kind": "kinematic", "motion": {"velocity": (0.0, 0.0, 0.0)}}
        scene.add_body(names[k], **table)
    shapes.add_static(scene, materials, max(1, int(model.world_count)))
    materials.add_notes()
    if model.joint_count:
        joints = Joints(newton, model, body_q, joint_q, names, enforcement, out)
        for table in filter(None, map(joints.table, range(model.joint_count))):
            scene.add_joint(**table)
    _add_mimics(model, scene, out)
    for pair in shapes.filters(names):
        scene.add_contact_filter(*pair)
    return out


def require_rigid_bodies(model) -> None:
    """Raise `ModelError` if the model has no bodies, or others than rigid bodies."""
    for name, what in (
        ("particle_count", "particles"), ("tri_count", "triangles of cloth"), ("tet_count", "tetrahedra"),
        ("spring_count", "springs between particles"), ("muscle_count", "muscles"),
    ):  # fmt: skip
        if int(getattr(model, name, 0) or 0):
            raise ModelError(f"the model has {getattr(model, name)} {what}: SolverABD supports rigid bodies only")
    if not model.body_count:
        raise ModelError("the model has no bodies: SolverABD needs at least one")


def _gravity(model) -> tuple[float, float, float]:
    """Return gravity [m/s^2], which must be equal in all worlds."""
    rows = np.asarray(_numpy(model.gravity), dtype=float).reshape(-1, 3)
    if len(rows) == 0:
        return (0.0, 0.0, 0.0)
    if (rows != rows[0]).any():
        raise ModelError(f"gravity differs between worlds ({rows.tolist()}): SolverABD needs the same gravity in all worlds")
    return tuple(rows[0].tolist())


def _numpy(array) -> np.ndarray:
    return np.zeros(0) if array is None else array.numpy()


MATERIAL = {"mu": "mu", "restitution": "restitution", "rolling": "mu_rolling", "spinning": "mu_torsional"}
"""Keys of a material, and their names in Newton, with the same units."""


class _Materials:
    """Values of shapes that a scene has once for every body: materials and margins."""

    def __init__(self, scene: Scene, model, out: Translated):
        self._scene, self._out, self._names = scene, out, {}
        self._values = {key: _numpy(getattr(model, f"shape_material_{name}")) for key, name in MATERIAL.items()}
        self._margin = _numpy(model.shape_margin)
        self._different: dict[str, list[str]] = {}

    def applied(self, table: dict, name: str, shapes: list[int]) -> dict:
        """Return the keys of a body with these shapes: its surface moved out by their margin, and their material."""
        if not shapes:
            return table
        found = {key: self._largest(name, MATERIAL[key], array[shapes]) for key, array in self._values.items()}
        found["restitution"] = min(found["restitution"], 1.0)
        material = ", ".join(f"{key} {value:.6g}" for key, value in found.items() if value or key == "mu")
        numbers = tuple(found.values())
        if numbers not in self._names:
            while material in self._names.values():
                material += "'"  # two that differ beyond six digits
            self._names[numbers] = material
            self._scene.add_material(material, **found)
        return enlarged(table, self._largest(name, "margin", self._margin[shapes])) | {"material": self._names[numbers]}

    def add_notes(self) -> None:
        """Add notes on bodies whose shapes differ."""
        for key, names in self._different.items():
            text = f"body '{names[0]}'{and_more(len(names))}: its shapes have different {key}; the largest is used"
            self._out.notes.append(text)

    def _largest(self, name: str, key: str, values: np.ndarray) -> float:
        if values.min() < values.max():
            self._different.setdefault(key, []).append(name)
        return max(float(values.max()), 0.0)


class _Shapes:
    """Colliding shapes of a model, by body."""

    def __init__(self, newton, model, out: Translated):
        self.newton, self.model, self.out = newton, model, out
        self._body, self._flags = _numpy(model.shape_body), _numpy(model.shape_flags)
        self._group = _numpy(model.shape_collision_group)
        self._world = _numpy(model.shape_world)
        self._type, self._scale = _numpy(model.shape_type), _numpy(model.shape_scale)
        self._place = _numpy(model.shape_transform)
        self._numbers: dict[int, list[int]] = {}
        collide = int(newton.ShapeFlags.COLLIDE_SHAPES)
        for k in range(model.shape_count):
            if self._flags[k] & collide and self._group[k] != 0:
                self._numbers.setdefault(int(self._body[k]), []).append(k)
        self._static: list[tuple[str, int]] = []

    def numbers(self, body: int) -> list[int]:
        """Return the colliding shapes of a body."""
        return self._numbers.get(body, [])

    def of_body(self, body: int) -> list[Collider]:
        """Colliders of a body, in its frame."""
        solid = [k for k in self.numbers(body) if not self._is_plane(k)]
        for k in self.numbers(body):
            if self._is_plane(k):
                self.out.notes.append(f"plane '{self.model.shape_label[k]}' of a body is ignored: half-spaces cannot move")
        return [self._collider(k) for k in solid]

    def add_static(self, scene: Scene, materials: _Materials, worlds: int) -> None:
        """Add shapes without body; those of all worlds are added to each world."""
        for k in self.numbers(-1):
            own = int(self._world[k])
            label = str(self.model.shape_label[k] or f"shape_{k}").replace("/", ".").strip()
            for world in range(worlds) if own < 0 else [own]:
                name = label if worlds == 1 else f"{label}@{world}"
                while scene._is_taken("body", name):
                    name += "'"
                if self._is_plane(k):
                    table = plane_keys(transform_matrix(self._place[k]))
                    if (self._scale[k][:2] > 0.0).any():
                        self.out.notes.append(f"finite plane '{label}' is treated as infinite")
                else:
                    one = self._collider(k)
                    place, one.place = one.place, np.eye(4)
                    table = {
                        **keys([one]),
                        "kind": "static",
                        "position": place[:3, 3].tolist(),
                        "matrix": place[:3, :3].tolist(),
                    }
                scene.add_body(name, **materials.applied(table, name, [k]), world=world)
                self._static.append((name, k))

    def filters(self, names: list[str]) -> list[tuple[str, ...]]:
        """Return pairs of bodies without colliding shapes, by filters between shapes and by groups."""
        shapes: dict[str, list[int]] = {names[body]: own for body, own in self._numbers.items() if body >= 0}
        shapes |= {name: [k] for name, k in self._static}
        body_of: dict[int, list[str]] = {}
        for name, own in shapes.items():
            for k in own:
                body_of.setdefault(k, []).append(name)
        filtered = {(min(i, j), max(i, j)) for i, j in self.model.shape_collision_filter_pairs}
        near: set[tuple[str, str]] = set()
        for i, j in filtered:
            near |= {tuple(sorted((a, b))) for a in body_of.get(i, ()) for b in body_of.get(j, ()) if a != b}
        groups = {name: frozenset(self._group[own].tolist()) for name, own in shapes.items()}
        apart = {
            both for both in product(set(groups.values()), repeat=2) if not all(groups_collide(*pair) for pair in product(*both))
        }
        if apart:
            near |= {tuple(sorted(pair)) for pair in combinations(shapes, 2) if (groups[pair[0]], groups[pair[1]]) in apart}
        static = {name for name, _ in self._static}
        out = []
        for a, b in sorted(near):
            if {a, b} <= static:
                continue
            pairs = [(min(i, j), max(i, j)) for i in shapes[a] for j in shapes[b]]
            if all(pair in filtered or not groups_collide(*self._group[list(pair)].tolist()) for pair in pairs):
                out.append((a, b))
            else:
                self.out.notes.append(
                    f"filters between some shapes of '{a}' and '{b}' are ignored: filters apply to whole bodies"
                )
        return out

    def _is_plane(self, k: int) -> bool:
        return int(self._type[k]) == int(self.newton.GeoType.PLANE)

    def _collider(self, k: int) -> Collider:
        kind, label, source = self.newton.GeoType(int(self._type[k])).name, self.model.shape_label[k], self.model.shape_source[k]
        return shape_collider(kind, label, self._scale[k].astype(float), source, transform_matrix(self._place[k]))


def groups_collide(a: int, b: int) -> bool:
    """Newton's rule of collision groups: 0 collides with none; positive groups collide with themselves and negative ones,
    negative groups with all others."""
    if a == 0 or b == 0:
        return False
    return a == b or b < 0 if a > 0 else a != b


def _add_mimics(model, scene: Scene, out: Translated) -> None:
    """Add mimic joints, ``q = c0 + c1 q_leader``."""
    if int(getattr(model, "constraint_mimic_count", 0) or 0):
        out.notes.append(f"{model.constraint_mimic_count} mimic constraints of the deprecated type are ignored")
    leaders = _numpy(getattr(model, "joint_mimic_joint", None))
    coefficients = _numpy(getattr(model, "joint_mimic_coeffs", None))
    single = {joint["number"]: joint for joint in out.single}
    for follower, leader in enumerate(leaders):
        if leader < 0:
            continue
        pair = single.get(follower), single.get(int(leader))
        if None in pair:
            out.notes.append(
                f"mimic of joint {model.joint_label[follower]} is ignored: both joints must have one coordinate"
            )
            continue
        names = [f"{one['name']}.{one['coordinate']}" for one in pair]
        terms = [{"coordinate": names[1], "polynomial": coefficients[follower].astype(float).tolist()}]
        scene.add_coupling(f"{pair[0]['name']} follows {pair[1]['name']}", names[0], terms, enforcement="exact")
