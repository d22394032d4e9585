"""`abd.newton.SolverABD` in the loops of Newton's users; `newton` may need a separate environment."""

import importlib.util

import numpy as np
import pytest

from abd.optional import MissingLibrary

HAS_NEWTON = importlib.util.find_spec("newton") is not None
with_newton = pytest.mark.skipif(
    not HAS_NEWTON, reason="needs newton: pip install newton, in an environment of its own"
)

if HAS_NEWTON:
    import newton
    import warp as wp

    import abd.newton

G = 9.81


def at(x=0.0, y=0.0, z=0.0, turn=None):
    return wp.transform((x, y, z), turn if turn is not None else wp.quat_identity())


def about(axis, angle):
    return wp.quat_from_axis_angle(wp.vec3(*axis), float(angle))


def simulate(solver, model, steps, dt, start=None, control=None, each=None):
    """Newton's loop; the last state."""
    state, other = model.state(), model.state()
    if start is not None:
        start(state)
    elif model.joint_count:
        newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    for k in range(steps):
        state.clear_forces()
        if each is not None:
            each(k, state)
        solver.step(state, other, control, None, dt)
        state, other = other, state
    return state


def test_missing_newton_is_reported_with_its_install_command():
    if HAS_NEWTON:
        pytest.skip("newton is installed")
    import abd.newton as adapter

    with pytest.raises(
        MissingLibrary, match=r"abd.newton needs newton, which is not installed: pip install 'abd-solver\[newton\]'"
    ):
        _ = adapter.SolverABD


@with_newton
def test_a_free_body_falls_and_keeps_its_spin():
    builder = newton.ModelBuilder()
    body = builder.add_body(xform=at(0, 0, 5), com=(0.1, 0.0, 0.0), mass=2.0, inertia=wp.diag(wp.vec3(0.1, 0.2, 0.25)))
    model = builder.finalize(device="cpu")

    def start(state):
        state.body_qd.assign(np.array([[1.0, 0.5, 0.0, 0.3, 5.0, 0.2]], dtype=np.float32))

    state = simulate(abd.newton.SolverABD(model), model, 50, 0.01, start)
    q, qd = state.body_q.numpy()[body], state.body_qd.numpy()[body]
    R = rotation(q)
    com = q[:3] + R @ [0.1, 0, 0]
    np.testing.assert_allclose(com, [0.1 + 0.5, 0.25, 5 - 0.5 * G * 0.25], atol=2e-5)
    np.testing.assert_allclose(qd[:3], [1, 0.5, -G * 0.5], atol=2e-5)
    momentum = R @ np.diag([0.1, 0.2, 0.25]) @ R.T @ qd[3:]
    np.testing.assert_allclose(momentum, [0.03, 1.0, 0.05], atol=2e-4)


def rotation(q) -> np.ndarray:
    return np.array(wp.quat_to_matrix(wp.quat(*map(float, q[3:])))).reshape(3, 3)


def cube_mesh(half):
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float32) * half
    faces = [0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1, 2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4, 1, 5, 7, 1, 7, 3]
    return newton.Mesh(corners, np.array(faces, dtype=np.int32))


@with_newton
def test_every_shape_comes_to_rest_on_the_plane():
    """The final height of the origin is that of the shape."""
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.mu = 0.5
    builder.add_ground_plane()
    heights = {}

    def add(name, height, kind, **keys):
        body = builder.add_body(xform=at(float(len(heights)), 0.0, height + 0.005), label=name)
        getattr(builder, f"add_shape_{kind}")(body, **keys)
        heights[name] = height

    add("box", 0.1, "box", hx=0.2, hy=0.15, hz=0.1)
    add("sphere", 0.12, "sphere", radius=0.12)
    add("capsule", 0.1, "capsule", xform=at(turn=about((0, 1, 0), np.pi / 2)), radius=0.1, half_height=0.2)
    add("cylinder", 0.15, "cylinder", radius=0.2, half_height=0.15)
    add("cone", 0.1, "cone", radius=0.2, half_height=0.1)
    add("ellipsoid", 0.08, "ellipsoid", rx=0.2, ry=0.2, rz=0.08)
    add("mesh", 0.1, "mesh", mesh=cube_mesh(0.1))
    add("hull", 0.1, "convex_hull", mesh=cube_mesh(0.1))
    model = builder.finalize(device="cpu")
    solver = abd.newton.SolverABD(model)
    state = simulate(solver, model, 60, 0.01)
    q, qd = state.body_q.numpy(), state.body_qd.numpy()
    for k, (name, height) in enumerate(heights.items()):
        # bodies rest within the activation distance, 2 % of their smallest extent
        assert -1e-4 < q[k, 2] - height < 0.02 * 2.0 * min(height, 0.2), (name, q[k, 2])
        assert np.abs(qd[k, :3]).max() < 2e-2, name
    names = list(solver.simulation.model.bodies.names)
    assert names[: len(heights)] == list(heights)


@with_newton
def test_a_height_field_carries_a_ball():
    builder = newton.ModelBuilder()
    data = np.zeros((5, 5), dtype=np.float32)
    data[:, :] = 0.25
    builder.add_shape_heightfield(heightfield=newton.Heightfield(data=data, nrow=5, ncol=5, hx=1.0, hy=1.0))
    ball = builder.add_body(xform=at(0.1, 0.05, 0.36))
    builder.add_shape_sphere(ball, radius=0.1)
    model = builder.finalize(device="cpu")
    state = simulate(abd.newton.SolverABD(model), model, 30, 0.01)
    assert 0.35 - 1e-4 < state.body_q.numpy()[ball, 2] < 0.355


def pendulum(axis=(0, 1, 0), **joint):
    builder = newton.ModelBuilder()
    link = builder.add_link(xform=at(0.5, 0, 0), mass=1.5, inertia=wp.diag(wp.vec3(0.01, 0.02, 0.03)))
    pivot = builder.add_joint_revolute(
        -1, link, parent_xform=at(0, 0, 0), child_xform=at(-0.5, 0, 0), axis=axis, **joint
    )
    builder.add_articulation([pivot])
    return builder, link


@with_newton
def test_pendulum_follows_its_equation():
    from scipy.integrate import solve_ivp

    builder, _ = pendulum()
    model = builder.finalize(device="cpu")
    state = simulate(abd.newton.SolverABD(model), model, 500, 1e-3)
    inertia = 0.02 + 1.5 * 0.25
    truth = solve_ivp(
        lambda t, y: [y[1], 1.5 * G * 0.5 * np.cos(y[0]) / inertia], (0, 0.5), [0, 0], rtol=1e-10, atol=1e-12
    )
    # joint coordinates are written back beside the poses
    assert state.joint_q.numpy()[0] == pytest.approx(truth.y[0, -1], abs=1e-4)
    assert state.joint_qd.numpy()[0] == pytest.approx(truth.y[1, -1], abs=1e-3)


@with_newton
def test_limits_are_never_exceeded_and_drives_follow_control():
    builder, _ = pendulum(limit_lower=-0.2, limit_upper=0.4)
    model = builder.finalize(device="cpu")
    solver, seen = abd.newton.SolverABD(model), []
    simulate(solver, model, 60, 0.01, each=lambda k, state: seen.append(float(state.joint_q.numpy()[0])))
    assert max(seen) < 0.4 and max(seen) > 0.39

    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    slide = builder.add_link(mass=2.0, inertia=wp.diag(wp.vec3(0.01, 0.01, 0.01)))
    joint = builder.add_joint_prismatic(-1, slide, axis=(1, 0, 0), target_ke=800.0, target_kd=80.0)
    builder.add_articulation([joint])
    model = builder.finalize(device="cpu")
    control = model.control()

    def aim(k, _state):
        control.joint_target_q.assign(np.array([0.25 if k < 100 else -0.1], dtype=np.float32))

    ends, solver = [], abd.newton.SolverABD(model)
    for steps in (100, 200):
        state = simulate(solver, model, steps, 0.01, control=control, each=aim)
        ends.append(state.body_q.numpy()[slide, 0])
    assert ends == pytest.approx([0.25, -0.1], abs=2e-3)


@with_newton
def test_ball_fixed_and_distance_joints_hold():
    builder = newton.ModelBuilder()
    mass = {"mass": 1.0, "inertia": wp.diag(wp.vec3(0.01, 0.01, 0.01))}
    a = builder.add_link(xform=at(0.3, 0, 0), **mass)
    b = builder.add_link(xform=at(0.6, 0, 0), **mass)
    c = builder.add_link(xform=at(1.1, 0, 0), **mass)
    joints = [
        builder.add_joint_ball(-1, a, parent_xform=at(0, 0, 0), child_xform=at(-0.3, 0, 0)),
        builder.add_joint_fixed(a, b, parent_xform=at(0.15, 0, 0), child_xform=at(-0.15, 0, 0)),
        builder.add_joint_distance(b, c, parent_xform=at(), child_xform=at(), min_distance=0.5, max_distance=0.5),
    ]
    builder.add_articulation(joints)
    model = builder.finalize(device="cpu")
    state = simulate(abd.newton.SolverABD(model), model, 40, 0.01)
    q = state.body_q.numpy()
    assert q[a, 2] < -0.05, "it swings"
    np.testing.assert_allclose(q[a, :3] + rotation(q[a]) @ [-0.3, 0, 0], 0.0, atol=1e-5)
    np.testing.assert_allclose(q[b, :3], q[a, :3] + rotation(q[a]) @ [0.3, 0, 0], atol=1e-5)
    assert np.linalg.norm(q[c, :3] - q[b, :3]) == pytest.approx(0.5, abs=1e-5)


@with_newton
def test_d6_joint_of_two_slides_and_a_turn():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    config = newton.ModelBuilder.JointDofConfig
    body = builder.add_link(mass=2.0, inertia=wp.diag(wp.vec3(0.1, 0.1, 0.1)))
    joint = builder.add_joint_d6(
        -1,
        body,
        linear_axes=[config(axis=(1, 0, 0)), config(axis=(0, 1, 0))],
        angular_axes=[config(axis=(0, 0, 1))],
    )
    builder.add_articulation([joint])
    model = builder.finalize(device="cpu")
    push = np.array([[1.0, 2.0, 5.0, 0.3, 0.3, 0.4]], dtype=np.float32)
    state = simulate(abd.newton.SolverABD(model), model, 50, 0.01, each=lambda k, state: state.body_f.assign(push))
    q = state.body_q.numpy()[body]
    np.testing.assert_allclose(q[:3], [0.0625, 0.125, 0.0], atol=2e-5)
    np.testing.assert_allclose(state.joint_q.numpy(), [0.0625, 0.125, 0.5], atol=1e-4)


@with_newton
def test_efforts_of_joints_and_forces_on_bodies():
    builder, _ = pendulum()
    model = builder.finalize(device="cpu")
    model.set_gravity((0.0, 0.0, 0.0))
    control = model.control()
    control.joint_f.assign(np.array([0.2], dtype=np.float32))
    state = simulate(abd.newton.SolverABD(model), model, 50, 0.01, control=control)
    assert state.joint_qd.numpy()[0] == pytest.approx(0.2 * 0.5 / (0.02 + 1.5 * 0.25), rel=1e-3)


def pile(count=12):
    """Boxes and balls that fall on each other."""
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.mu = 0.6
    builder.add_ground_plane()
    for k in range(count):
        body = builder.add_body(xform=at(0.03 * (k % 3), 0.02 * (k % 2), 0.08 + 0.13 * k))
        if k % 3 == 2:
            builder.add_shape_sphere(body, radius=0.06)
        else:
            builder.add_shape_box(body, hx=0.06, hy=0.06, hz=0.06)
    return builder.finalize(device="cpu")


@with_newton
def test_a_pile_comes_down_without_overlaps():
    model = pile()
    solver, gaps = abd.newton.SolverABD(model), []
    assert isinstance(solver, newton.solvers.SolverBase)
    simulate(solver, model, 1, 0.005)
    state = simulate(solver, model, 50, 0.005, each=lambda k, state: gaps.append(solver.report.min_gap))
    assert min(gaps) > 0.0 and solver.report.contacts > 10
    assert (state.body_q.numpy()[:, 2] > 0.06 - 1e-5).all()


@with_newton
def test_values_set_by_the_user_are_used():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    first, second = (
        builder.add_body(xform=at(float(k)), mass=1.0, inertia=wp.diag(wp.vec3(1, 1, 1))) for k in range(2)
    )
    mover = builder.add_body(xform=at(0, 5, 0), mass=1.0, inertia=wp.diag(wp.vec3(1, 1, 1)), is_kinematic=True)
    model = builder.finalize(device="cpu")

    def touch(k, state):
        if k == 5:
            q, qd = state.body_q.numpy(), state.body_qd.numpy()
            q[first, :3], qd[second] = (0, 0, 7), (0, 2, 0, 0, 0, 1)
            state.body_q.assign(q)
            state.body_qd.assign(qd)
        q = state.body_q.numpy()
        q[mover, 0] = 0.1 * (k + 1)
        state.body_q.assign(q)

    solver = abd.newton.SolverABD(model)
    state = simulate(solver, model, 15, 0.01, each=touch)
    q = state.body_q.numpy()
    np.testing.assert_allclose(q[first, :3], [0, 0, 7], atol=1e-6)
    np.testing.assert_allclose(q[second, :3], [1, 0.2, 0], atol=1e-5)
    assert q[mover, 0] == pytest.approx(1.5)
    index = list(solver.simulation.model.bodies.names).index(model.body_label[mover].replace("/", "."))
    assert solver.simulation.model.user_transform(solver.simulation.stepper.q)[index, 0, 3] == pytest.approx(
        1.5, abs=1e-6
    )


@with_newton
def test_worlds_share_the_ground_and_do_not_collide():
    one = newton.ModelBuilder()
    body = one.add_body(xform=at(0, 0, 0.105))
    one.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    builder = newton.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(one, 3)
    model = builder.finalize(device="cpu")
    solver = abd.newton.SolverABD(model)
    state = simulate(solver, model, 30, 0.01)
    z = state.body_q.numpy()[:, 2]
    assert len(z) == 3 and np.ptp(z) < 1e-6 and (abs(z - 0.1) < 0.02 * 0.2).all()
    assert len(solver.simulation.model.bodies) == 6


@with_newton
def test_filters_of_shapes_become_filters_of_bodies():
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    bodies = [builder.add_body(xform=at(0.05 * k, 0, 0)) for k in range(2)]
    shapes = [builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1) for body in bodies]
    builder.add_shape_collision_filter_pair(*shapes)
    model = builder.finalize(device="cpu")
    solver = abd.newton.SolverABD(model)
    simulate(solver, model, 2, 0.01)
    assert solver.simulation.model.filtered.tolist() == [[0, 1]]


@with_newton
def test_overlaps_and_soft_bodies_are_refused():
    from abd.errors import SceneError
    from abd.newton.model_values import ModelError

    builder = newton.ModelBuilder()
    for k in range(2):
        body = builder.add_body(xform=at(0.05 * k, 0, 1))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    model = builder.finalize(device="cpu")
    with pytest.raises(SceneError, match=r"overlap|intersect"):
        simulate(abd.newton.SolverABD(model), model, 1, 0.01)
    solver = abd.newton.SolverABD(model, allow_overlaps=True)
    simulate(solver, model, 2, 0.01)
    assert any("initial overlaps" in note for note in solver.notes)
    builder = newton.ModelBuilder()
    builder.add_particle((0, 0, 0), (0, 0, 0), 1.0)
    soft = builder.finalize(device="cpu")
    with pytest.raises(ModelError, match="1 particles"):
        abd.newton.SolverABD(soft)


@with_newton
def test_change_of_model_or_step_restarts_the_solver():
    builder = newton.ModelBuilder()
    body = builder.add_body(xform=at(0, 0, 5), mass=1.0, inertia=wp.diag(wp.vec3(1, 1, 1)))
    model = builder.finalize(device="cpu")
    solver, state, other = abd.newton.SolverABD(model), model.state(), model.state()
    for k in range(30):
        if k == 20:
            model.set_gravity((0.0, 0.0, 0.0))
            solver.notify_model_changed(newton.ModelFlags.MODEL_PROPERTIES)
        state.clear_forces()
        solver.step(state, other, None, None, 0.01 if k < 10 else 0.02)
        state, other = other, state
    assert state.body_qd.numpy()[body, 2] == pytest.approx(-G * 0.3, rel=1e-4)
