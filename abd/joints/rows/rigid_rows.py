"""Joint rows of rigid bodies: values, and derivatives by the twists of the bodies.

The rows are those of `abd.joints.rows.build` for compliant joints, plus one row per coordinate. A dynamic body moves by
a twist (v; w) at its centre of mass, world axes. With ``dp = v`` and ``dA = [w] A``, the derivative (g_p, G) of a row
by the affine state becomes ``(g_p, 2 axial(G A^T))``. Joints that constrain some world axes while their parent moves
have no measures: their rows are components of linear rows, and come last. A *cluster* is a set of bodies that move as
one, with a single twist at the mean of their centres. Lengths are in units of `RigidRows.length`, so that metres and
radians have comparable weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from abd.errors import SceneError
from abd.joint_model import Joint
from abd.joints.rows.build import Builder
from abd.joints.rows.laws import Law, Role
from abd.joints.rows.measured_rows import evaluate as row_values
from abd.joints.rows.rows import by_states, residual
from abd.joints.rows.system import JointSystem
from abd.joints.rows.table import by_twists, values
from abd.joints.types import TYPES
from abd.model import WORLD, Kind, Model
from abd.rotations import axial, polar, rotations, skew

GROUND = -1
"""Cluster of all bodies that do not move."""
RIGID = 1e-14
"""Largest entry of A A^T - 1 of a map that counts as a rotation."""


@dataclass(frozen=True)
class RigidRows:
    """R rows: rows over m measures, then l components of linear rows.

    Attributes:
        system: measures, measured rows and linear rows.
        components: (l,) linear rows and (l,) world axes of the component rows.
        role: (R,) `Role`, CONSTRAINT, GAP, COUPLING or COORDINATE; joint: (R,) owner (couplings: the joint of q0);
            coupling: (R,) its index, else -1.
        name: of the row, coordinate or coupling; rotary: (R,) radians rather than metres.
        held: (R,) bool, constraint, gap and coupling rows of active joints.
        yields: (R,) bool, rows with a compliance.
        target: (R,) value of a closed row; coordinates: their initial value.
        length: unit of length [m].
        movable: (n,) bool, dynamic bodies with any freedom; free: (n,) dynamic bodies with six freedoms.
        basis: (n, 6, 6) projectors onto the admissible twists of each body.
    """

    system: JointSystem
    components: tuple[np.ndarray, np.ndarray]
    role: np.ndarray
    joint: np.ndarray
    coupling: np.ndarray
    name: list[str]
    rotary: np.ndarray
    held: np.ndarray
    yields: np.ndarray
    target: np.ndarray
    length: float
    movable: np.ndarray
    free: np.ndarray
    basis: np.ndarray

    def __len__(self) -> int:
        return len(self.joint)

    @property
    def scale(self) -> np.ndarray:
        """(R,) factors that make rows dimensionless."""
        return np.where(self.rotary, 1.0, 1.0 / self.length)

    def coordinates(self) -> np.ndarray:
        """(c,) indices of the coordinate rows, joint by joint."""
        return np.flatnonzero(self.role == Role.COORDINATE)

    def values(self, q: np.ndarray, reference: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Rows (R,) and measures (m,) at rigid states q (n, 12); angles nearest to `reference` (m,) or the initial
        values.
        """
        system = self.system
        measured = values(system.table, q, system.initial if reference is None else reference)
        return np.append(row_values(system.rows, measured)[0], residual(system.linear, q)[self.components]), measured

    def jacobian(self, q: np.ndarray, reference: np.ndarray | None = None):
        """Sparse (R, 6 n) derivatives of the dimensionless rows by the twists ``(v / length; w)`` of all bodies."""
        from scipy.sparse import csr_matrix

        system = self.system
        sides = system.linearize(q, system.initial if reference is None else reference)[1]
        linear, last = by_states(system.linear, *self.components), np.arange(len(system.rows), len(self))
        parts = [
            (row, body, by_twists(gradient, q, body))
            for row, of_rows in ((system.rows.term_row, sides), (last, linear))
            for body, gradient in of_rows
        ]
        row, body, twist = (np.concatenate(column) for column in zip(*parts, strict=True))
        twist = twist * self.scale[row][:, None] * np.repeat([self.length, 1.0], 3)
        twist[body == WORLD] = 0.0
        column = 6 * np.maximum(body, 0)[:, None] + np.arange(6)
        return csr_matrix((twist.ravel(), (np.repeat(row, 6), column.ravel())), shape=(len(self), 6 * len(q)))


def rigid_rows(model: Model, q: np.ndarray) -> RigidRows:
    """Rows of the joints and couplings of a model; pose-dependent rows are those at q (n, 12).

    Rows of inactive joints exist, but are not `held`.
    """
    model = replace(model, joints=[_with_axis_rows(joint) for joint in model.joints])
    each = np.ones(len(model.joints))
    builder = Builder(model, each)
    for k, joint in enumerate(model.joints):
        builder.add_constraints(k, joint)
        initial = {settings.name: settings.initial for settings in joint.coordinates}
        for one in TYPES[joint.type].coordinates(joint):
            along = builder.coordinate(k, one.name, one)
            builder.add(along, Role.COORDINATE, Law.OFF, target=initial.get(one.name, 0.0))
    for k, coupling in enumerate(model.couplings):
        builder.add_coupling(k, coupling)
    system = builder.finish(each)
    system.follow_poses(q)
    a, components = system.row_laws, np.nonzero(system.linear.mask)
    owner = system.linear.joint[components[0]]
    active = np.array([joint.active for joint in model.joints], dtype=bool)
    movable, free, basis = freedoms(model)

    def extended(column: np.ndarray, of_components) -> np.ndarray:
        return np.append(column, np.broadcast_to(of_components, len(owner))).astype(column.dtype)

    return RigidRows(
        system=system,
        components=components,
        role=extended(a.role, Role.CONSTRAINT),
        joint=extended(a.joint, owner),
        coupling=extended(a.coupling, -1),
        name=a.name + ["xyz"[axis] for axis in components[1]],
        rotary=extended(a.rotary, False),
        held=extended(a.active & (a.role != Role.COORDINATE), active[owner]),
        yields=extended((a.stiffness > 0.0) & (a.role != Role.GAP), False),
        target=extended(a.target, 0.0),
        length=_length(model),
        movable=movable,
        free=free,
        basis=basis,
    )


def follows_pose(model: Model) -> bool:
    """Whether the rows of any joint depend on the pose."""
    return any(TYPES[joint.type].FOLLOWS_POSE for joint in model.joints)


def _with_axis_rows(joint: Joint) -> Joint:
    """The joint with one row per constrained axis, whatever its enforcement; compliant if it has compliances.

    World axes that are constrained while the parent moves are not functions of the two frames; they remain linear rows.
    """
    try:
        if joint.parameters:
            TYPES[joint.type].constraints(joint)
    except SceneError:
        return replace(joint, enforcement="penalty")
    return joint if joint.enforcement == "compliant" else replace(joint, enforcement="compliant", compliance=())


def freedoms(model: Model) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`movable` (n,), `free` (n,) and `basis` (n, 6, 6) of `RigidRows`."""
    bodies = model.bodies
    dynamic = bodies.kind == Kind.DYNAMIC
    basis = np.zeros((len(bodies), 6, 6))
    basis[:, [0, 1, 2], [0, 1, 2]] = bodies.free_translation
    axis = bodies.rotation_axis
    about = np.where((bodies.free_rotation == 1)[:, None, None], axis[:, :, None] * axis[:, None, :], 0.0)
    basis[:, 3:, 3:] = np.where((bodies.free_rotation == 3)[:, None, None], np.eye(3), about)
    basis[~dynamic] = 0.0
    free = dynamic & bodies.free_translation.all(axis=1) & (bodies.free_rotation == 3)
    return np.abs(basis).sum(axis=(1, 2)) > 0.0, free, basis


def _length(model: Model) -> float:
    """Length unit [m]: root mean square distance of joint points from body centres, or of the radii of gyration if
    larger.

    It is 1 m without joints.
    """
    arms = [joint.child_frame[:3, 3] for joint in model.joints]
    arms += [joint.parent_frame[:3, 3] for joint in model.joints if joint.parent != WORLD]
    if not arms:
        return 1.0
    ends = sorted({end for joint in model.joints for end in (joint.parent, joint.child)} - {WORLD})
    moving = [end for end in ends if model.bodies.kind[end] == Kind.DYNAMIC]
    squares = [np.sum(np.square(arms), axis=1), model.bodies.moment[moving].sum(axis=1) / model.bodies.mass[moving]]
    length = float(np.sqrt(max(one.mean() for one in squares if len(one))))
    # a power of two, so that results do not depend on the number of worlds
    return float(2.0 ** np.round(np.log2(length))) if length > 0.0 else 1.0


@dataclass(frozen=True)
class Clusters:
    """Groups of bodies that move as one.

    Attributes:
        of: (n,) cluster of every body, `GROUND` for bodies that do not move.
        count: number of clusters.
        freedoms: (count, 6, 6) projectors onto the admissible twists of the clusters.
        pivot: (count,) body at whose centre the twist of a cluster acts, -1 for the mean of the centres.
    """

    of: np.ndarray
    count: int
    freedoms: np.ndarray
    pivot: np.ndarray

    def centres(self, q: np.ndarray) -> np.ndarray:
        """(count, 3) reference points of the twists."""
        inside = self.of >= 0
        total = np.zeros((self.count, 3))
        np.add.at(total, self.of[inside], q[inside, :3])
        mean = total / np.maximum(np.bincount(self.of[inside], minlength=self.count), 1)[:, None]
        return np.where((self.pivot >= 0)[:, None], q[self.pivot, :3], mean)

    def spread(self, q: np.ndarray, length: float):
        """Sparse (6 n, 6 count) map from cluster twists to body twists, lengths in units of `length`."""
        from scipy.sparse import csr_matrix

        body = np.flatnonzero(self.of >= 0)
        cluster = self.of[body]
        arm = (q[body, :3] - self.centres(q)[cluster]) / length
        block = np.tile(np.eye(6), (len(body), 1, 1))
        block[:, :3, 3:] = -skew(arm)
        block = block @ self.freedoms[cluster]
        row = 6 * body[:, None, None] + np.arange(6)[:, None] + np.zeros(6, dtype=int)
        column = 6 * cluster[:, None, None] + np.arange(6) + np.zeros((6, 1), dtype=int)
        return csr_matrix((block.ravel(), (row.ravel(), column.ravel())), shape=(6 * len(q), 6 * self.count))

    def move(self, q: np.ndarray, twists: np.ndarray, length: float) -> np.ndarray:
        """States q (n, 12) after twists (count, 6) of the clusters; rotations are exponentials."""
        out = q.copy()
        body = np.flatnonzero(self.of >= 0)
        cluster = self.of[body]
        twists = np.einsum("cij,cj->ci", self.freedoms, twists)
        R = rotations(twists[:, 3:])[cluster]
        centre = self.centres(q)[cluster]
        arm = np.einsum("bij,bj->bi", R, q[body, :3] - centre)
        out[body, :3] = centre + length * twists[cluster, :3] + arm
        out[body, 3:] = polar(R @ q[body, 3:].reshape(-1, 3, 3)).reshape(-1, 9)
        return out


def single_clusters(rows: RigidRows) -> Clusters:
    """One cluster per movable body."""
    return clusters_of(rows, np.where(rows.movable, np.arange(len(rows.movable)), GROUND))


def clusters_of(rows: RigidRows, label: np.ndarray) -> Clusters:
    """Clusters of bodies with equal labels (n,) >= 0; at most one body per cluster lacks a freedom."""
    used, of = np.unique(label[label >= 0], return_inverse=True)
    full = np.full(len(label), GROUND)
    full[label >= 0] = of
    freedoms, pivot = np.tile(np.eye(6), (len(used), 1, 1)), np.full(len(used), -1)
    partly = np.flatnonzero((full >= 0) & ~rows.free)
    freedoms[full[partly]], pivot[full[partly]] = rows.basis[partly], partly
    return Clusters(full, len(used), freedoms, pivot)


def rotations_and_spins(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotations (n, 3, 3) closest to the maps A, and axial vectors (n, 3) of ``dA/dt A^-1``, of states and velocities (n, 12)."""
    A = q[:, 3:].reshape(-1, 3, 3)
    return polar(A), axial(qd[:, 3:].reshape(-1, 3, 3) @ np.linalg.inv(A))


def rigid_states(q: np.ndarray) -> np.ndarray:
    """States q (n, 12) without strain: maps that are not rotations within `RIGID` are replaced by the nearest rotation."""
    out = np.array(q, dtype=float)
    A = out[:, 3:].reshape(-1, 3, 3)
    strained = np.abs(A @ A.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0) > RIGID
    if strained.any():
        out[strained, 3:] = polar(A[strained]).reshape(-1, 9)
    return out
