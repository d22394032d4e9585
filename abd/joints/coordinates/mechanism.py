"""The joints of a scene as a mechanism in minimal coordinates: the rigid limit of the solver.

A breadth-first search from the world selects the joints of a spanning tree, those of six freedoms only for bodies that no
other joint reaches. The other joints close loops and constrain the forward dynamics. Bodies without a joint in the tree float;
static and kinematic bodies keep the pose and the velocity of the model. Rigid inertia follows from S of the affine body,
``I = tr(S) 1 - S``. Armature, springs, drives, limits and friction of coordinates are ignored. The mechanism serves to
read states and to verify the solver, not to step.

Twists (v; w) of bodies have components in the body frame, at the centre of mass, where the inertia is diagonal. Joint
velocities and configurations are those of `abd.joints.coordinates.configurations`, in the order of `branches`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from abd.joint_model import Joint
from abd.joints.coordinates.configurations import Rigid, configuration_space, forms
from abd.joints.coordinates.kinematics import JointKinematics
from abd.joints.coordinates.spaces import Reversed, Space
from abd.joints.rows.rigid_rows import rotations_and_spins
from abd.joints.types import TYPES
from abd.model import WORLD, Kind, Model, affine_matrices, affine_state
from abd.rotations import adjoint, cross, inverse, pose, skew


@dataclass(frozen=True)
class Branch:
    """Joint of the tree, directed away from the world.

    Attributes:
        joint: index into `Model.joints`, -1 for a floating body.
        inner, outer: bodies that it connects; `inner` is the joint's child if the tree has the opposite direction.
        inner_frame, outer_frame: (4, 4) joint frames in their body frames.
        space: configuration space, from inner to outer.
        positions, velocities: slices of q and v.
    """

    joint: int
    inner: int
    outer: int
    inner_frame: np.ndarray
    outer_frame: np.ndarray
    space: Space
    positions: slice
    velocities: slice

    def pose(self, q: np.ndarray) -> np.ndarray:
        """(4, 4) pose of the outer body in the inner body's frame, for all positions q."""
        return self.inner_frame @ self.space.transform(q[self.positions]) @ inverse(self.outer_frame)


class Mechanism:
    """Kinematics and dynamics of the spanning tree.

    Attributes:
        branches: joints of the tree, ordered outwards from the world.
        loops: indices of the active joints outside the tree: those that close loops, and those without a configuration
            space; without joints of six freedoms.
        num_positions, num_velocities: sizes of q and v.
        inertia: (n, 6) diagonal of the spatial inertia of each body [kg, kg m^2]; 0 for static and kinematic bodies.
        gravity: (3,) [m/s^2].
    """

    def __init__(self, model: Model, forms: dict[str, str] | None = None):
        """`forms` selects configuration spaces by joint name."""
        bodies = model.bodies
        self.joints = model.joints
        self.gravity = np.asarray(model.settings.gravity, dtype=float)
        self.fixed = affine_matrices(bodies.q)
        dynamic = bodies.kind == Kind.DYNAMIC
        self._twists = np.where(dynamic[:, None], 0.0, _rigid(bodies.q, bodies.qd)[1][:WORLD])
        turning = bodies.moment.sum(axis=1)[:, None] - bodies.moment
        self.inertia = np.where(
            dynamic[:, None], np.concatenate([bodies.mass[:, None].repeat(3, 1), turning], axis=1), 0
        )
        self.branches: list[Branch] = []
        self.num_positions = self.num_velocities = 0
        self._build_tree(set(np.flatnonzero(~dynamic).tolist()) | {WORLD}, len(bodies), forms or {})
        used = {branch.joint for branch in self.branches}
        closing = (k for k, joint in enumerate(self.joints) if joint.active and not _is_unconstrained(joint))
        self.loops = [k for k in closing if k not in used]

    def _build_tree(self, roots: set[int], count: int, chosen: dict[str, str]) -> None:
        links: dict[int, list[int]] = {}
        for k, joint in enumerate(self.joints):
            if joint.active and forms(joint):
                links.setdefault(joint.parent, []).append(k)
                links.setdefault(joint.child, []).append(k)
        reached: set[int] = set()
        held: deque[tuple[int, int]] = deque()  # (joint, reached body), and those of six freedoms
        free: deque[tuple[int, int]] = deque()

        def reach(body: int) -> None:
            reached.add(body)
            for k in links.get(body, ()):
                (free if _is_unconstrained(self.joints[k]) else held).append((k, body))

        for body in sorted(roots):
            reach(body)
        for floating in range(count + 1):
            while held or free:
                k, body = (held or free).popleft()
                joint = self.joints[k]
                outer = joint.child if joint.parent == body else joint.parent
                if outer not in reached and outer not in roots:
                    space = configuration_space(joint, chosen.get(joint.name))
                    self._add_branch(k, body, outer, *_frames(joint, body, space))
                    reach(outer)
            if floating < count and floating not in reached:
                self._add_branch(-1, WORLD, floating, np.eye(4), np.eye(4), Rigid("quaternion", moves=True))
                reach(floating)

    def _add_branch(self, joint: int, inner: int, outer: int, D: np.ndarray, C: np.ndarray, space: Space) -> None:
        nq, nv = self.num_positions, self.num_velocities
        self.num_positions, self.num_velocities = nq + space.num_positions, nv + space.num_velocities
        positions, velocities = slice(nq, self.num_positions), slice(nv, self.num_velocities)
        self.branches.append(Branch(joint, inner, outer, D, C, space, positions, velocities))

    def zero_configuration(self) -> np.ndarray:
        """(nq,) zero poses of all joints."""
        return np.concatenate([np.zeros(0), *(branch.space.zero() for branch in self.branches)])

    def random_configuration(self, rng: np.random.Generator) -> np.ndarray:
        """(nq,) random poses of all joints."""
        return np.concatenate([np.zeros(0), *(branch.space.random(rng) for branch in self.branches)])

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """dq/dt (nq,) at velocity v (nv,)."""
        return self._by_branch(lambda b: b.space.to_rate(q[b.positions]) @ v[b.velocities])

    def moved(self, q: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """(nq,) configuration at local coordinates phi (nv,) from q."""
        return self._by_branch(lambda b: b.space.from_local(q[b.positions], phi[b.velocities]))

    def _by_branch(self, function) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(function(branch) for branch in self.branches)])

    def poses(self, q: np.ndarray) -> np.ndarray:
        """(n, 4, 4) poses of the body frames; static and kinematic bodies have those of the model."""
        return self._poses(q)[:WORLD]

    def _poses(self, q: np.ndarray) -> np.ndarray:
        """(n + 1, 4, 4) poses of the bodies and, at index `WORLD` = -1, of the world."""
        out = np.concatenate([self.fixed, np.eye(4)[None]])
        for branch in self.branches:
            out[branch.outer] = out[branch.inner] @ branch.pose(q)
        return out

    def jacobians(self, q: np.ndarray) -> np.ndarray:
        """(n, 6, nv): twists of all bodies, in body axes, are ``J v``."""
        J = np.zeros((len(self.fixed) + 1, 6, self.num_velocities))
        for b in self.branches:
            J[b.outer] = adjoint(inverse(b.pose(q))) @ J[b.inner]
            J[b.outer][:, b.velocities] = adjoint(b.outer_frame) @ b.space.subspace(q[b.positions])
        return J[:WORLD]

    def geometric_jacobian(self, q: np.ndarray, body: int, point: np.ndarray | None = None) -> np.ndarray:
        """(6, nv) Jacobian of the velocity of a material point and of the angular velocity, in world axes.

        The point (3,) is given in the body frame; default: the centre of mass.
        """
        R = self.poses(q)[body, :3, :3]
        at = np.eye(6)
        if point is not None:
            at[:3, 3:] = -skew(point)
        return np.kron(np.eye(2), R) @ at @ self.jacobians(q)[body]

    def affine_state(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """States (n, 12) and velocities (n, 12) of the affine bodies in this rigid motion."""
        poses, twists = self.poses(q), self._motion(q, v, np.zeros_like(v), np.zeros(3))[0][:WORLD]
        R, rates = poses[:, :3, :3], np.zeros_like(poses)
        rates[:, :3, :3] = R @ skew(twists[:, 3:])
        rates[:, :3, 3] = np.einsum("nij,nj->ni", R, twists[:, :3])
        return affine_state(poses), affine_state(rates)

    def state_of(self, q: np.ndarray, qd: np.ndarray, last: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Configuration (nq,) and velocity (nv,) of affine states q, qd (n, 12), by polar factors and least squares.

        Angles are nearest to those of the configuration `last`, if given.
        """
        poses, twists = _rigid(q, qd)
        configuration, velocity = np.zeros(self.num_positions), np.zeros(self.num_velocities)
        for b in self.branches:
            inner, outer = poses[b.inner] @ b.inner_frame, poses[b.outer] @ b.outer_frame
            T = inverse(inner) @ outer
            configuration[b.positions] = b.space.at(T, None if last is None else last[b.positions])
            relative = adjoint(inverse(b.outer_frame)) @ twists[b.outer]
            relative -= adjoint(inverse(b.inner_frame @ T)) @ twists[b.inner]
            S = b.space.subspace(configuration[b.positions])
            velocity[b.velocities] = np.linalg.lstsq(S, relative, rcond=None)[0]
        return configuration, velocity

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """Mass matrix M (nv, nv)."""
        J = self.jacobians(q)
        return np.einsum("nia,ni,nib->ab", J, self.inertia, J)

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """``1/2 v^T M v`` [J]."""
        return 0.5 * float(np.sum(self.inertia * (self.jacobians(q) @ v) ** 2))

    def potential_energy(self, q: np.ndarray) -> float:
        """Potential energy of gravity [J], zero if the centre of all mass is level with the world's origin."""
        return -float(np.einsum("n,ni,i->", self.inertia[:, 0], self.poses(q)[:, :3, 3], self.gravity))

    def momentum_matrix(self, q: np.ndarray) -> np.ndarray:
        """(6, nv): linear and angular momentum about the world's origin, world axes, are ``A v``."""
        J = self.jacobians(q)
        return np.einsum("nij,ni,nia->ja", self._to_body(q), self.inertia, J)

    def momentum_rate(self, q: np.ndarray, v: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(6,) rate of the momentum for dv/dt = `rate`: the sum of all external wrenches, including gravity."""
        return np.einsum("nij,ni->j", self._to_body(q), self._forces(q, v, rate, np.zeros(3)))

    def _to_body(self, q: np.ndarray) -> np.ndarray:
        """(n, 6, 6) maps from twists about the world's origin to body twists; their transposes map body wrenches back."""
        return np.array([adjoint(inverse(T)) for T in self.poses(q)]).reshape(-1, 6, 6)

    def _forces(self, q: np.ndarray, v: np.ndarray, rate: np.ndarray, gravity: np.ndarray) -> np.ndarray:
        """(n, 6) wrenches required in addition to gravity (Newton and Euler), in body axes."""
        V, A = self._motion(q, v, rate, gravity)
        momenta = self.inertia * V[:WORLD]
        turning = np.array([cross(twist).T @ momentum for twist, momentum in zip(V, momenta)]).reshape(-1, 6)
        return self.inertia * A[:WORLD] - turning

    def _motion(
        self, q: np.ndarray, v: np.ndarray, rate: np.ndarray, gravity: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Twists (n + 1, 6) of the bodies and the world, and the rates of their components."""
        count = len(self.fixed)
        V, A = np.concatenate([self._twists, np.zeros((1, 6))]), np.zeros((count + 1, 6))
        # Fixed bodies accelerate against gravity, so that inertia forces contain the weights. Components turn with their body.
        A[:count, :3] = -np.einsum("nji,j->ni", self.fixed[:, :3, :3], gravity) - np.cross(V[:count, 3:], V[:count, :3])
        A[WORLD, :3] = -gravity
        for b in self.branches:
            back, carry = adjoint(inverse(b.pose(q))), adjoint(b.outer_frame)
            S, part = b.space.subspace(q[b.positions]), v[b.velocities]
            relative = carry @ (S @ part)
            V[b.outer] = back @ V[b.inner] + relative
            own = carry @ (S @ rate[b.velocities] + b.space.bias(q[b.positions], part))
            A[b.outer] = back @ A[b.inner] + own + cross(V[b.outer]) @ relative
        return V, A

    def inverse_dynamics(
        self, q: np.ndarray, v: np.ndarray, rate: np.ndarray, wrenches: np.ndarray | None = None
    ) -> np.ndarray:
        """Joint torques tau (nv,) for dv/dt = `rate`.

        Args:
            wrenches: (n, 6) external forces and torques on the bodies at their centres of mass, world axes.
        """
        needed = self._forces(q, v, rate, self.gravity) - self._in_body_axes(q, wrenches)
        return np.einsum("nia,ni->a", self.jacobians(q), needed)

    def _in_body_axes(self, q: np.ndarray, wrenches: np.ndarray | None) -> np.ndarray:
        if wrenches is None:
            return np.zeros_like(self.inertia)
        parts = np.asarray(wrenches, dtype=float).reshape(-1, 2, 3)
        return np.einsum("nji,nkj->nki", self.poses(q)[:, :3, :3], parts).reshape(-1, 6)

    def dynamics_bias(self, q: np.ndarray, v: np.ndarray, wrenches: np.ndarray | None = None) -> np.ndarray:
        """c (nv,) of ``M dv/dt + c = tau``."""
        return self.inverse_dynamics(q, v, np.zeros(self.num_velocities), wrenches)

    def gravity_term(self, q: np.ndarray) -> np.ndarray:
        """(nv,) gradient of the potential energy along v: the bias at rest, on bases at rest."""
        weights = self.inertia[:, :1] * np.einsum("nji,j->ni", self.poses(q)[:, :3, :3], self.gravity)
        return -np.einsum("nia,ni->a", self.jacobians(q)[:, :3], weights)

    def forward_dynamics(
        self, q: np.ndarray, v: np.ndarray, torque: np.ndarray | None = None, wrenches: np.ndarray | None = None,
        constraints: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:  # fmt: skip
        """dv/dt (nv,) under joint torques (nv,) and external wrenches with closed loops (`with_loops`)."""
        return self.with_loops(q, v, torque, wrenches, constraints)[0]

    def with_loops(
        self, q: np.ndarray, v: np.ndarray, torque: np.ndarray | None = None, wrenches: np.ndarray | None = None,
        constraints: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """dv/dt (nv,), and the wrench (l, 6) of each of `loops` on its child about its anchor, world axes.

        q and v must close the loops; dv/dt keeps them closed, without a correction of drift. Multipliers of redundant
        constraints have minimum norm.

        Args:
            constraints: G (k, nv) and b (k,) of further constraints ``G dv/dt + b = 0``.

        Raises:
            ValueError: a joint outside the tree has no configuration space, so that its forces are unknown.
        """
        push = -self.dynamics_bias(q, v, wrenches)
        push = push if torque is None else push + torque
        M, out = self.mass_matrix(q), np.zeros((len(self.loops), 6))
        found = [self._loop(self.joints[k], q, v) for k in self.loops]
        found += [] if constraints is None else [(*constraints, np.zeros((6, 0)))]
        if not found:
            return np.linalg.solve(M, push), out
        rows, biases, axes = zip(*found)
        G, nv = np.concatenate(rows), self.num_velocities
        system = np.block([[M, -G.T], [G, np.zeros((len(G), len(G)))]])
        solution = np.linalg.lstsq(system, np.concatenate([push, -np.concatenate(biases)]), rcond=1e-12)[0]
        ends = np.cumsum([len(bias) for bias in biases])
        for k, (end, axis) in enumerate(zip(ends[: len(out)], axes)):
            out[k] = axis @ solution[nv + end - axis.shape[1] : nv + end]
        return solution[:nv], out

    def _loop(self, joint: Joint, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """G (k, nv) and b (k,) of ``G dv/dt + b = 0``, and the constraint wrenches (6, k) in world axes."""
        kinematics = JointKinematics(joint)
        poses, (V, A) = self._poses(q), self._motion(q, v, np.zeros(self.num_velocities), np.zeros(3))
        J = np.concatenate([self.jacobians(q), np.zeros((1, 6, self.num_velocities))])
        C = poses[joint.child] @ joint.child_frame
        T = inverse(poses[joint.parent] @ joint.parent_frame) @ C
        to_child, to_parent = adjoint(inverse(joint.child_frame)), adjoint(inverse(joint.parent_frame @ T))
        own = kinematics.configuration_at(T)
        W = kinematics.constraint_wrench_subspace(own)
        relative = to_child @ J[joint.child] - to_parent @ J[joint.parent]
        twist = to_child @ V[joint.child] - to_parent @ V[joint.parent]
        rate = to_child @ A[joint.child] - to_parent @ A[joint.parent] - cross(to_child @ V[joint.child]) @ twist
        # d(W^T twist)/dt = W^T (rate - dS/dt v), for W^T S = 0 at all times.
        bias = W.T @ (rate - kinematics.bias_acceleration(own, kinematics.velocity_of(own, twist)))
        return W.T @ relative, bias, np.kron(np.eye(2), C[:3, :3]) @ W

    def joint_wrenches(
        self, q: np.ndarray, v: np.ndarray, rate: np.ndarray, wrenches: np.ndarray | None = None
    ) -> np.ndarray:
        """(j, 6) wrench of each joint on its child, drives included, for dv/dt = `rate`.

        Force [N] and torque [N m] about the child's anchor, world axes, as the solver reports them; zero for inactive
        joints.

        Raises:
            ValueError: joints close loops, so that the motion does not determine the wrenches.
        """
        if self.loops:
            names = ", ".join(self.joints[k].name for k in self.loops)
            raise ValueError(f"the motion does not determine wrenches if joints close loops: {names}")
        poses, out = self._poses(q), np.zeros((len(self.joints), 6))
        own = self._forces(q, v, rate, self.gravity) - self._in_body_axes(q, wrenches)
        carried = np.append(np.einsum("nij,ni->nj", self._to_body(q), own), np.zeros((1, 6)), axis=0)  # about the world's origin
        for b in reversed(self.branches):
            carried[b.inner] += carried[b.outer]
            if b.joint >= 0:
                joint = self.joints[b.joint]
                force, couple = carried[b.outer].reshape(2, 3) * (1.0 if joint.child == b.outer else -1.0)
                anchor = (poses[joint.child] @ joint.child_frame)[:3, 3]
                out[b.joint] = np.concatenate([force, couple - np.cross(anchor, force)])
        return out


def _is_unconstrained(joint: Joint) -> bool:
    """Whether a joint has six freedoms, such as a spring."""
    return not (TYPES[joint.type].rows(joint) or TYPES[joint.type].measured(joint))


def _rigid(q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rigid poses (n + 1, 4, 4) and twists (n + 1, 6), in body axes, of affine states, velocities (n, 12) and the world."""
    R, spins = rotations_and_spins(q, qd)
    twists = (np.stack([qd[:, :3], spins], axis=1) @ R).reshape(-1, 6)
    return np.concatenate([pose(R, q[:, :3]), np.eye(4)[None]]), np.concatenate([twists, np.zeros((1, 6))])


def _frames(joint: Joint, inner: int, space: Space) -> tuple[np.ndarray, np.ndarray, Space]:
    """Frames on the inner and the outer body and the space between them."""
    if joint.parent == inner:
        return joint.parent_frame, joint.child_frame, space
    return joint.child_frame, joint.parent_frame, Reversed(space)
