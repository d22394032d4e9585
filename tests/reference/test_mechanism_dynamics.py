"""Dynamics of trees in minimal coordinates: RigidBodyDynamics.jl's invariants, and a four-bar."""

from dataclasses import replace

import numpy as np
import pytest
from contact_models import NO_MESH, scene
from differences import derivative
from joint_samples import CASES, frame, joint_of
from reference_values import FOUR_BAR, LOOP_FORCE
from scipy.integrate import solve_ivp

from abd.joint_model import Joint
from abd.joints.coordinates.kinematics import JointKinematics
from abd.joints.coordinates.mechanism import Mechanism
from abd.model import WORLD, Kind, affine_state
from abd.rotations import adjoint, axial, inverse, log, pose

GRAVITY = np.array([1.0, -2.0, -9.81])


def model(masses, moments, joints, kind=None, q=None, gravity=GRAVITY):
    """Bodies without surfaces: masses (n,), moments of S (n, 3)."""
    count = len(masses)
    q = np.tile(affine_state(np.eye(4)[None]), (count, 1)) if q is None else q
    changes = {"mass": np.array(masses, dtype=float), "moment": np.array(moments, dtype=float)}
    changes |= {} if kind is None else {"kind": np.array(kind, np.int32)}
    made = scene([NO_MESH] * count, q, **changes)
    return replace(made, joints=joints, settings=replace(made.settings, gravity=np.array(gravity, dtype=float)))


def random_tree(seed):
    """A tree of joints of all types, some of them running against it, and one floating body."""
    rng, bodies = np.random.default_rng(seed), 5
    joints, chosen = [], {}
    for body in range(bodies):
        kind, form = CASES[rng.integers(len(CASES))]
        ends = (int(rng.integers(WORLD, body)), body)
        if ends[0] != WORLD and rng.random() < 0.5:
            ends = ends[::-1]
        joints.append(joint_of(kind, rng, ends, f"j{body}"))
        chosen[f"j{body}"] = form
    order = rng.permutation(bodies)
    made = model(rng.uniform(0.5, 2.0, bodies + 1), rng.uniform(0.1, 1.0, (bodies + 1, 3)), [joints[k] for k in order])
    return made, Mechanism(made, chosen), rng


def state(mechanism, rng):
    return mechanism.random_configuration(rng), rng.standard_normal(mechanism.num_velocities)


def assert_close(a, b, tolerance):
    """Equal up to a tolerance relative to the largest number, or to one."""
    scale = max(1.0, np.abs(np.asarray(b)).max(initial=0.0))
    assert np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0) <= tolerance * scale


def affine_momentum(made, q, qd):
    """(6,) linear and angular momentum about the origin of affine bodies."""
    mass, S = made.bodies.mass, made.bodies.moment
    A, dA = q[:, 3:].reshape(-1, 3, 3), qd[:, 3:].reshape(-1, 3, 3)
    spin = np.einsum("nk,nkc->c", S, np.cross(A.transpose(0, 2, 1), dA.transpose(0, 2, 1)))
    return np.concatenate([mass @ qd[:, :3], np.cross(q[:, :3], mass[:, None] * qd[:, :3]).sum(axis=0) + spin])


SEEDS = pytest.mark.parametrize("seed", range(6))


@SEEDS
def test_affine_states_and_mechanism_states_convert_both_ways(seed):
    _, mechanism, rng = random_tree(seed)
    q, v = state(mechanism, rng)
    rate = mechanism.rate(q, v)
    states, velocities = mechanism.affine_state(q, v)
    assert_close(velocities, derivative(lambda t: mechanism.affine_state(q + t * rate, v)[0]), 1e-10)
    back, speed = mechanism.state_of(states, velocities, last=q)
    assert_close(mechanism.poses(back), mechanism.poses(q), 1e-10)
    assert_close(mechanism.affine_state(back, speed)[1], velocities, 1e-10)
    body, point = 2, rng.standard_normal(3)
    measured = derivative(lambda t: mechanism.poses(q + t * rate)[body] @ np.append(point, 1.0))[:3]
    jacobian = mechanism.geometric_jacobian(q, body, point)
    assert_close(jacobian[:3] @ v, measured, 1e-10)
    A, dA = states[body, 3:].reshape(3, 3), velocities[body, 3:].reshape(3, 3)
    assert_close(mechanism.geometric_jacobian(q, body)[3:] @ v, axial(dA @ A.T), 1e-12)


@SEEDS
def test_energy_and_momentum_are_those_of_the_affine_bodies(seed):
    made, mechanism, rng = random_tree(seed)
    q, v = state(mechanism, rng)
    states, velocities = mechanism.affine_state(q, v)
    affine = 0.5 * np.sum(made.bodies.mass_matrix * velocities**2)
    assert abs(mechanism.kinetic_energy(q, v) - affine) < 1e-12 * affine
    assert abs(0.5 * v @ mechanism.mass_matrix(q) @ v - affine) < 1e-12 * affine
    assert_close(mechanism.momentum_matrix(q) @ v, affine_momentum(made, states, velocities), 1e-12)


@SEEDS
def test_mass_matrix_is_the_jacobian_of_inverse_dynamics(seed):
    _, mechanism, rng = random_tree(seed)
    q, v = state(mechanism, rng)
    M, bias = mechanism.mass_matrix(q), mechanism.dynamics_bias(q, v)
    columns = [mechanism.inverse_dynamics(q, v, e) - bias for e in np.eye(len(v))]
    assert_close(np.array(columns).T, M, 1e-12)
    assert_close(M, M.T, 1e-14)
    torque, wrenches = rng.standard_normal(len(v)), rng.standard_normal((len(mechanism.fixed), 6))
    acceleration = mechanism.forward_dynamics(q, v, torque, wrenches)
    assert_close(mechanism.inverse_dynamics(q, v, acceleration, wrenches), torque, 1e-9)


@SEEDS
def test_joint_wrenches_accelerate_every_body(seed):
    """The equations of Newton and Euler hold for each body, with torques along motions."""
    made, mechanism, rng = random_tree(seed)
    q, v = state(mechanism, rng)
    acceleration, rate = rng.standard_normal(len(v)), mechanism.rate(q, v)
    wrenches = mechanism.joint_wrenches(q, v, acceleration)
    floating = mechanism.branches[-1]
    assert floating.joint == -1

    def momenta(t):
        states, velocities = mechanism.affine_state(q + t * rate, v + t * acceleration)
        of = made.bodies
        parts = [replace(of, mass=one * of.mass, moment=one[:, None] * of.moment) for one in np.eye(len(states))]
        return np.array([affine_momentum(replace(made, bodies=part), states, velocities) for part in parts])

    needed = derivative(momenta)
    poses = np.concatenate([mechanism.poses(q), np.eye(4)[None]])
    given, outside = np.zeros((len(poses), 6)), np.zeros(6)
    for joint, wrench in zip(made.joints, wrenches, strict=True):
        anchor = (poses[joint.child] @ joint.child_frame)[:3, 3]
        about_origin = np.concatenate([wrench[:3], wrench[3:] + np.cross(anchor, wrench[:3])])
        given[joint.child] += about_origin
        given[joint.parent] -= about_origin
    for body, mass in enumerate(made.bodies.mass):
        weight = mass * GRAVITY
        given[body] += np.concatenate([weight, np.cross(poses[body, :3, 3], weight)])
    attached = [b.outer for b in mechanism.branches[:-1]]
    assert_close(given[attached], needed[attached], 1e-9)
    outside = needed.sum(axis=0)
    assert_close(mechanism.momentum_rate(q, v, acceleration), outside, 1e-9)
    torques = mechanism.inverse_dynamics(q, v, acceleration)
    for b in mechanism.branches[:-1]:
        joint = made.joints[b.joint]
        C = poses[joint.child] @ joint.child_frame
        local = (wrenches[b.joint].reshape(2, 3) @ C[:3, :3]).ravel()
        space = b.space if joint.child == b.outer else b.space.space
        assert_close(space.subspace(q[b.positions]).T @ local, torques[b.velocities], 1e-10)


def test_loops_and_static_bodies():
    """A chain between a static body and the world is a loop; inactive joints do not count."""
    rng = np.random.default_rng(8)
    ends = [(0, 1), (1, 2), (WORLD, 2), (2, 1)]
    joints = [joint_of("hinge", rng, pair, f"j{k}") for k, pair in enumerate(ends)]
    states = affine_state(np.array([frame(rng) for _ in range(3)]))
    kinds = [Kind.STATIC, Kind.DYNAMIC, Kind.DYNAMIC]
    made = model([0.0, 1.0, 1.0], np.full((3, 3), 0.2), joints, kinds, states)
    mechanism = Mechanism(made)
    assert [b.joint for b in mechanism.branches] == [2, 0] and mechanism.loops == [1, 3]
    with pytest.raises(ValueError, match="joints close loops: j1, j3"):
        mechanism.joint_wrenches(*state(mechanism, rng), np.zeros(2))
    rope = replace(made, joints=[*joints, joint_of("rope", rng, (0, 1), "line")])
    with pytest.raises(ValueError, match="'line' has no configuration"):
        Mechanism(rope).forward_dynamics(*state(mechanism, rng))
    tree = Mechanism(replace(made, joints=[replace(j, active=k in (0, 1)) for k, j in enumerate(joints)]))
    assert [(b.inner, b.outer) for b in tree.branches] == [(0, 1), (1, 2)] and tree.loops == []
    q, v = state(tree, rng)
    assert_close(tree.affine_state(q, v)[0][0], states[0], 0.0)
    assert tree.mass_matrix(q).shape == (2, 2)
    rate = tree.rate(q, v)
    measured = derivative(lambda t: tree.potential_energy(q + t * rate))
    assert abs(tree.gravity_term(q) @ v - measured) < 1e-9


def test_four_bar_follows_its_reference():
    """Angles, loop force, energy and closure equal those of RigidBodyDynamics.jl from rest."""
    l0, l1, l2, l3 = 1.10, 0.5, 1.20, 0.75
    masses, centres, inertias = (0.5, 1.0, 0.75), (0.25, 0.60, 0.375), (0.333, 0.537, 0.4)
    down_y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # its z is -y

    def at(x):
        return pose(down_y, np.array([x, 0.0, 0.0]))

    c1, c2, c3 = centres
    joints = [
        Joint("crank", "hinge", 18, WORLD, 0, at(0.0), at(-c1)),
        Joint("coupler", "hinge", 18, 0, 1, at(l1 - c1), at(-c2)),
        Joint("rocker", "hinge", 18, WORLD, 2, at(l0), at(-c3)),
        Joint("closing", "hinge", 18, 1, 2, at(l2 - c2), at(l3 - c3)),
    ]
    moments = [[J / 2, 0.0, J / 2] for J in inertias]
    mechanism = Mechanism(model(masses, moments, joints, gravity=np.array([0.0, 0.0, -9.81])))
    assert [b.joint for b in mechanism.branches] == [0, 2, 1] and mechanism.loops == [3]
    start = np.array([1.6707963267948966, 1.5397303602625536, -1.4591054166649482])

    def apart(q):
        poses = mechanism.poses(q)
        return (poses[2] @ joints[3].child_frame - poses[1] @ joints[3].parent_frame)[:3, 3]

    assert_close(apart(start), 0.0, 1e-15)
    times = [time for time in FOUR_BAR if time <= 1.0]
    path = solve_ivp(
        lambda t, y: np.concatenate([y[3:], mechanism.forward_dynamics(y[:3], y[3:])]),
        (0.0, 1.0), [*start, 0.0, 0.0, 0.0], method="DOP853", rtol=1e-10, atol=1e-11, t_eval=times,
    )  # fmt: skip
    assert_close(path.y[:2].T, [FOUR_BAR[time] for time in times], 1e-9)
    assert_close(path.y[3:5, 3], (0.7888582651, 0.5243977304), 1e-8)
    q, v = path.y[:3, 2], path.y[3:, 2]
    force = mechanism.with_loops(q, v)[1][0, :3]
    assert_close(force, LOOP_FORCE, 1e-8)
    energies = [mechanism.kinetic_energy(y[:3], y[3:]) + mechanism.potential_energy(y[:3]) for y in path.y.T]
    assert np.ptp([*energies, mechanism.potential_energy(start)]) < 1e-8
    assert_close(apart(path.y[:3, 3]), 0.0, 1e-9)


@pytest.mark.parametrize("kind", ["hinge", "universal", "gimbal", "planar", "ellipsoid", "cylindrical"])
def test_loops_stay_closed(kind):
    """Along a motion with the computed acceleration the gap of the loop grows with the third power of time."""
    rng = np.random.default_rng(12)
    joints = [joint_of("free", rng, (WORLD, 0), "a"), joint_of("free", rng, (0, 1), "b")]
    made = model(np.ones(2), np.full((2, 3), 0.2), joints)
    mechanism = Mechanism(made)
    q, loop = mechanism.random_configuration(rng), joint_of(kind, rng, (0, 1), "c")
    poses, kinematics = mechanism.poses(q), JointKinematics(loop)
    own = kinematics.random_configuration(rng)
    C = poses[0] @ loop.parent_frame @ kinematics.joint_transform(own)
    loop = replace(loop, child_frame=inverse(poses[1]) @ C)
    mechanism.joints.append(loop), mechanism.loops.append(2)  # a search would prefer the joint to those of six freedoms
    # Body 1 moves against body 0 as the loop's joint lets it.
    spin = kinematics.motion_subspace(own) @ rng.standard_normal(kinematics.num_velocities)
    v = np.concatenate([rng.standard_normal(6), np.zeros(6)])
    J = mechanism.jacobians(q)[1][:, 6:]
    v[6:] = np.linalg.solve(J, adjoint(loop.child_frame) @ spin)
    acceleration, wrenches = mechanism.with_loops(q, v)
    local = (wrenches[0].reshape(2, 3) @ C[:3, :3]).ravel()
    assert_close(kinematics.motion_subspace(own).T @ local, 0.0, 1e-9)

    rate = mechanism.rate(q, v)  # all joints of the tree have coordinates: v is dq/dt

    def gap(t):
        poses = mechanism.poses(q + t * rate + 0.5 * t * t * acceleration)
        T = inverse(poses[0] @ loop.parent_frame) @ poses[1] @ loop.child_frame
        nearest = kinematics.joint_transform(kinematics.configuration_at(T))
        return np.linalg.norm(log(inverse(nearest) @ T))

    assert gap(1e-3) < 1e-5 and gap(5e-4) < 0.16 * gap(1e-3) + 1e-12
