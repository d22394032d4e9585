"""Kinematics of every joint type: RigidBodyDynamics.jl's invariants at random states."""

from functools import partial

import numpy as np
import pytest
from differences import derivative
from joint_samples import CASES, joint_of

from abd.joint_model import CoordinateSettings, Drive, Joint
from abd.joints.coordinates.configurations import configuration_space
from abd.joints.coordinates.kinematics import (
    Bounds,
    JointKinematics,
    effort_bounds,
    flip_direction,
    position_bounds,
    velocity_bounds,
)
from abd.joints.coordinates.spaces import Coordinates
from abd.joints.measures.motions import Z, screw
from abd.model import WORLD
from abd.rotations import (
    NEWTON_COUNT,
    adjoint,
    exp,
    inverse,
    log,
    log_rate,
    mrp_matrix,
    polar,
    quaternion,
    quaternion_matrix,
)

PLAIN = Joint("plain", "hinge", 18, 0, 1, np.eye(4), np.eye(4))


@pytest.fixture(params=[f"{kind} {form} {way}" for kind, form in CASES for way in ("forward", "reversed")])
def kinematics(request):
    kind, form, way = request.param.split()
    forward = JointKinematics(joint_of(kind, np.random.default_rng(1)), form)
    return forward if way == "forward" else forward.reversed()


def states(kinematics, count=5):
    rng = np.random.default_rng(7)
    for _ in range(count):
        yield kinematics.random_configuration(rng), rng.standard_normal(kinematics.num_velocities), rng


def rate_of(function, points, rates):
    """d/dt of function(points + t rates) at t = 0."""
    return derivative(lambda t: function(*(point + t * rate for point, rate in zip(points, rates, strict=True))))


def vee(G):
    return np.array([G[0, 3], G[1, 3], G[2, 3], G[2, 1], G[0, 2], G[1, 0]])


def assert_close(a, b, tolerance):
    assert np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0) <= tolerance


@pytest.mark.parametrize("axes", ["child", "parent"])
def test_wrenches_of_constraints_do_no_work(kinematics, axes):
    for q, v, rng in states(kinematics):
        S, T = kinematics.motion_subspace(q, axes), kinematics.constraint_wrench_subspace(q, axes)
        assert_close(T.T @ S, 0.0, 1e-12)
        assert_close(T.T @ T, np.eye(T.shape[1]), 1e-12)
        twist, wrench = kinematics.joint_twist(q, v, axes), rng.standard_normal(6)
        assert_close(twist, S @ v, 1e-12)
        torque = kinematics.joint_torque(q, wrench, axes)
        assert_close(torque, S.T @ wrench, 1e-12)
        assert abs(torque @ v - wrench @ twist) < 1e-12 * (1 + np.abs(wrench) @ np.abs(twist))


def test_twist_is_the_rate_of_the_transform(kinematics):
    for q, v, _ in states(kinematics):
        T, rate = kinematics.joint_transform(q), kinematics.velocity_to_configuration_derivative(q, v)
        dT = rate_of(kinematics.joint_transform, [q], [rate])
        assert_close(vee(inverse(T) @ dT), kinematics.joint_twist(q, v), 1e-10)
        assert_close(vee(dT @ inverse(T)), kinematics.joint_twist(q, v, "parent"), 1e-10)


@pytest.mark.parametrize("axes", ["child", "parent"])
def test_acceleration_is_the_rate_of_the_twist(kinematics, axes):
    for q, v, rng in states(kinematics):
        acceleration, rate = rng.standard_normal(len(v)), kinematics.velocity_to_configuration_derivative(q, v)
        measured = rate_of(partial(kinematics.joint_twist, frame=axes), [q, v], [rate, acceleration])
        assert_close(measured, kinematics.joint_spatial_acceleration(q, v, acceleration, axes), 1e-10)
        if kinematics.has_fixed_subspaces:
            assert_close(kinematics.bias_acceleration(q, v), 0.0, 1e-12)


def test_fixed_subspaces_are_those_that_do_not_change(kinematics):
    found = [kinematics.motion_subspace(q) for q, _, _ in states(kinematics)]
    assert kinematics.has_fixed_subspaces == all(np.allclose(S, found[0], atol=1e-12) for S in found)


def test_rates_and_velocities(kinematics):
    for q, v, rng in states(kinematics):
        to_velocity = kinematics.configuration_derivative_to_velocity_jacobian(q)
        to_rate = kinematics.velocity_to_configuration_derivative_jacobian(q)
        assert_close(to_velocity @ to_rate, np.eye(len(v)), 1e-12)
        rate, force = kinematics.velocity_to_configuration_derivative(q, v), rng.standard_normal(len(v))
        assert_close(kinematics.configuration_derivative_to_velocity(q, rate), v, 1e-12)
        dual = kinematics.configuration_derivative_to_velocity_adjoint(q, force)
        any_rate = rng.standard_normal(len(q))
        back = kinematics.configuration_derivative_to_velocity(q, any_rate)
        assert abs(force @ back - dual @ any_rate) < 1e-12 * (1 + np.abs(force) @ np.abs(back))


def test_local_coordinates(kinematics):
    for q, v, rng in states(kinematics):
        phi, rate = kinematics.local_coordinates(q, q, v)
        assert_close(phi, 0.0, 1e-15)
        phi = rng.standard_normal(len(v))
        phi *= 1.5 / max(1.5, np.linalg.norm(phi))
        there = kinematics.global_coordinates(q, phi)
        back, rate = kinematics.local_coordinates(q, there, v)
        assert_close(back, phi, 1e-12)
        assert not len(v) or np.abs(back).max() > 0.0
        assert kinematics.is_configuration_normalised(there)
        dq = kinematics.velocity_to_configuration_derivative(there, v)
        measured = rate_of(lambda there, q=q, v=v: kinematics.local_coordinates(q, there, v)[0], [there], [dq])
        assert_close(measured, rate, 1e-10)


def test_configurations(kinematics):
    zero = kinematics.zero_configuration()
    assert kinematics.is_configuration_normalised(zero)
    if not kinematics.joint.type.startswith("ellipsoid"):
        assert_close(kinematics.joint_transform(zero), np.eye(4), 0.0)
    for q, v, rng in states(kinematics):
        assert kinematics.is_configuration_normalised(q)
        T = kinematics.joint_transform(q)
        assert_close(kinematics.joint_transform(kinematics.principal_value(q)), T, 1e-12)
        assert_close(kinematics.joint_transform(kinematics.configuration_at(T)), T, 1e-12)
        loose = q + 0.1 * rng.standard_normal(len(q))
        assert kinematics.is_configuration_normalised(kinematics.normalise_configuration(loose))
        assert_close(kinematics.velocity_of(q, kinematics.joint_twist(q, v)), v, 1e-9)
    draws = [kinematics.random_configuration(np.random.default_rng(5)) for _ in range(2)]
    assert_close(*draws, 0.0)


def test_reversal_inverts():
    for kind, form in CASES:
        kinematics = JointKinematics(joint_of(kind, np.random.default_rng(2)), form)
        for q, v, _ in states(kinematics):
            T, other = kinematics.joint_transform(q), kinematics.reversed()
            assert_close(other.joint_transform(q) @ T, np.eye(4), 1e-14)
            assert_close(other.joint_twist(q, v), -adjoint(T) @ kinematics.joint_twist(q, v), 1e-12)
            assert_close(other.reversed().motion_subspace(q), kinematics.motion_subspace(q), 1e-12)


@pytest.mark.parametrize("kind", ["hinge", "slider", "cylindrical", "planar_translation", "fixed", "screw"])
def test_flipped_joint_has_the_same_constraints(kind):
    rng = np.random.default_rng(3)
    joint = joint_of(kind, rng, coordinates=(CoordinateSettings("theta", lower=-1.0, upper=2.0),))
    flipped = flip_direction(joint)
    assert (flipped.parent, flipped.child) == (1, 0) and position_bounds(flipped) == position_bounds(joint)
    kinematics, other = JointKinematics(joint), JointKinematics(flipped)
    for q, _, _ in states(kinematics):
        child = joint.parent_frame @ kinematics.joint_transform(q) @ inverse(joint.child_frame)
        parent = flipped.parent_frame @ other.joint_transform(q) @ inverse(flipped.child_frame)
        assert_close(parent @ child, np.eye(4), 1e-13)


def test_joints_that_cannot_be_flipped_are_refused():
    with pytest.raises(ValueError, match="world"):
        flip_direction(Joint("a", "hinge", 18, WORLD, 0, np.eye(4), np.eye(4)))
    ball = joint_of("spherical", np.random.default_rng(0))
    assert_close(flip_direction(ball).parent_frame, ball.child_frame, 0.0)
    for kind in ("universal", "planar", "ellipsoid", "free"):
        with pytest.raises(ValueError, match="the inverse of joint"):
            flip_direction(joint_of(kind, np.random.default_rng(0)))
    with pytest.raises(ValueError, match="type rope has none"):
        JointKinematics(joint_of("rope", np.random.default_rng(0)))
    with pytest.raises(ValueError, match="no configuration of form 'mrp': it has coordinates, sincos"):
        configuration_space(PLAIN, "mrp")
    with pytest.raises(ValueError, match='"child" or "parent"'):
        JointKinematics(PLAIN).motion_subspace(np.zeros(1), "world")


def test_planar_velocities_are_rates_in_axes_of_the_child():
    plain, turned = (JointKinematics(joint_of("planar", np.random.default_rng(0)), f) for f in ("coordinates", "planar"))
    q, rate = np.array([0.3, -0.2, 0.7]), np.array([1.0, 2.0, 0.5])
    c, s = np.cos(0.7), np.sin(0.7)
    v = turned.configuration_derivative_to_velocity(q, rate)
    assert_close(v, [c * 1.0 + s * 2.0, -s * 1.0 + c * 2.0, 0.5], 1e-15)
    assert_close(turned.joint_twist(q, v), plain.joint_twist(q, rate), 1e-14)
    assert turned.has_fixed_subspaces and not plain.has_fixed_subspaces


def test_principal_values_choose_the_shorter_turn():
    ball = JointKinematics(joint_of("spherical", np.random.default_rng(0)))
    assert_close(ball.principal_value(np.array([-0.6, 0.0, 0.8, 0.0])), [0.6, 0.0, -0.8, 0.0], 0.0)
    shadow = JointKinematics(ball.joint, "mrp").principal_value(np.array([0.0, 2.0, 0.0]))
    assert_close(shadow, [0.0, -0.5, 0.0], 0.0)
    assert_close(mrp_matrix(shadow), mrp_matrix(np.array([0.0, 2.0, 0.0])), 1e-15)
    assert_close(JointKinematics(PLAIN).principal_value(np.array([7.0])), [7.0 - 2 * np.pi], 1e-15)
    lead = Coordinates([screw(Z, 0.1)], [])
    assert_close(lead.principal(np.array([7.0])), [7.0], 0.0)


def test_exponentials_and_logarithms():
    rng = np.random.default_rng(6)
    for size in (0.0, 1e-9, 1e-3, 0.0499, 0.0501, 1.0, 3.0):
        direction = rng.standard_normal(3)
        twist = np.concatenate([rng.standard_normal(3), size * direction / np.linalg.norm(direction)])
        T = exp(twist)
        assert_close(T[:3, :3] @ T[:3, :3].T, np.eye(3), 1e-15 * 4)
        assert_close(log(T), twist, 2e-14)
        V = rng.standard_normal(6)
        measured = rate_of(lambda t, T=T, V=V: log(T @ exp(t * V)), [0.0], [1.0])
        assert_close(measured, log_rate(twist) @ V, 1e-10 if size < 2 else 1e-6)
        Q = T[:3, :3]
        assert_close(quaternion_matrix(quaternion(Q)), Q, 1e-14)
        assert quaternion(Q)[0] >= 0.0


def test_bounds_of_a_joint():
    drive = Drive("pd", lambda t: 0.0, effort=4.0)
    settings = CoordinateSettings("theta", lower=-0.5, upper=9.0, velocity_limit=3.0, effort_limit=6.0, drive=drive)
    joint = joint_of("hinge", np.random.default_rng(0), coordinates=(settings,))
    assert position_bounds(joint) == {"theta": Bounds(-0.5, 9.0)}
    assert velocity_bounds(joint) == {"theta": Bounds(-3.0, 3.0)}
    assert effort_bounds(joint) == {"theta": Bounds(-4.0, 4.0)}
    assert position_bounds(PLAIN) == {"theta": Bounds()}
    ball = joint_of("spherical", np.random.default_rng(0))
    assert [len(bounds(ball)) for bounds in (position_bounds, velocity_bounds, effort_bounds)] == [4, 3, 3]


@pytest.mark.parametrize("strain", [0.0, 1e-9, 1e-4, 0.03, 0.5])
def test_batched_polar_factors_equal_single_ones(strain):
    rng = np.random.default_rng(3)
    A = np.linalg.qr(rng.standard_normal((1000, 3, 3)))[0]
    A[:, :, 0] *= np.linalg.det(A)[:, None]
    A[:900] += strain * rng.standard_normal((900, 3, 3))
    R = polar(A)
    alone = np.concatenate([polar(A[k : k + NEWTON_COUNT - 1]) for k in range(0, len(A), NEWTON_COUNT - 1)])
    assert np.abs(R - alone).max() < 1e-13
    assert np.abs(R.transpose(0, 2, 1) @ R - np.eye(3)).max() < 1e-14 and (np.linalg.det(R) > 0.0).all()


def test_mirrored_matrices_become_rotations():
    A = np.tile(np.diag([1.0, 1.0, -1.0]), (2 * NEWTON_COUNT, 1, 1))
    A[::2] = np.eye(3)
    assert np.allclose(np.linalg.det(polar(A)), 1.0) and (polar(A)[::2] == np.eye(3)).all()
